/* SPDX-License-Identifier: Apache-2.0 */
/* Long enough for its segments, since mapping a cut file ends in SIGBUS. */
#include "load/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <frit/status.h>

#include "load/elf_dynamic.h"
#include "load/elf_file.h"
#include "load/elf_note.h"

/* The linker's name for the header of the object that this file is linked into. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

bool elf_file_read(const struct elf_file *file, uint64_t offset, void *into, size_t bytes)
{
    return offset <= file->bytes && bytes <= file->bytes - offset &&
           pread(file->fd, into, bytes, (off_t)offset) == (ssize_t)bytes;
}

bool elf_file_text(const struct elf_file *file, uint64_t offset, char *into, size_t size)
{
    size_t bytes = size - 1;

    if (offset >= file->bytes)
        return false;
    if (bytes > file->bytes - offset)
        bytes = file->bytes - offset;
    if (!elf_file_read(file, offset, into, bytes))
        return false;
    into[bytes] = '\0';
    return true;
}

uint64_t elf_file_offset(const struct elf_file *file, uint64_t address)
{
    for (uint32_t i = 0; i < file->n_segments; i++) {
        const Elf64_Phdr *segment = &file->segment[i];

        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz)
            return segment->p_offset + (address - segment->p_vaddr);
    }
    return UINT64_MAX;
}

static const char *check_header(const Elf64_Ehdr *header)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return "does not begin with the ELF magic";
    if (header->e_ident[EI_CLASS] != ELFCLASS64)
        return "is not 64-bit";
    if (header->e_ident[EI_DATA] != ELFDATA2LSB)
        return "is not little-endian";
    if (header->e_machine != __ehdr_start.e_machine)
        return "is made for another machine";
    if (header->e_type != ET_DYN)
        return "is ELF, but not a shared object";
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 ||
        header->e_phnum > ELF_SEGMENTS)
        return "has an impossible table of segments";
    return NULL;
}

static const char *read_segments(struct elf_file *file)
{
    const char *trouble;

    if (file->bytes == 0)
        return "is empty";
    if (!elf_file_read(file, 0, &file->header, sizeof(file->header)))
        return file->bytes < sizeof(file->header) ? "is shorter than an ELF header"
                                                  : "cannot be read";
    trouble = check_header(&file->header);
    if (trouble)
        return trouble;
    file->n_segments = file->header.e_phnum;
    if (!elf_file_read(file, file->header.e_phoff, file->segment,
                       file->n_segments * sizeof(file->segment[0])))
        return "is cut off before its table of segments";
    for (uint32_t i = 0; i < file->n_segments; i++) {
        if (file->segment[i].p_filesz > file->bytes ||
            file->segment[i].p_offset > file->bytes - file->segment[i].p_filesz)
            return "is cut off: a segment ends past the end of the file";
    }
    return NULL;
}

/* Without its header the stack is executable by the ABI of the machine. */
static void read_flags(const struct elf_file *file, struct elf_facts *out)
{
    out->executable_stack = true;
    for (uint32_t i = 0; i < file->n_segments; i++) {
        const Elf64_Phdr *segment = &file->segment[i];

        if (segment->p_type == PT_GNU_STACK)
            out->executable_stack = segment->p_flags & PF_X;
        if (segment->p_type == PT_TLS)
            out->tls_bytes = segment->p_memsz;
        if (segment->p_type == PT_GNU_RELRO)
            out->relro = true;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_W && segment->p_flags & PF_X)
            out->writable_code = true;
    }
}

static uint32_t read_content(struct elf_file *file, struct elf_facts *out, const char **trouble)
{
    *trouble = read_segments(file);
    if (!*trouble)
        *trouble = elf_read_dynamic(file, out);
    if (*trouble)
        return FRIT_REASON_NOT_ELF;
    read_flags(file, out);
    *trouble = elf_read_notes(file, out);
    return *trouble ? FRIT_REASON_BAD_NOTE : FRIT_REASON_NONE;
}

static uint32_t system_trouble(const char *path, char *text, size_t size)
{
    bool missing = errno == ENOENT || errno == ENOTDIR;

    snprintf(text, size, "%s: %s", path, strerror(errno));
    return missing ? FRIT_REASON_NOT_FOUND : FRIT_REASON_LOAD_FAILED;
}

/* O_NONBLOCK: a file that became a pipe since it was looked at must not wait for a writer. */
static int open_regular(const char *path, struct stat *info)
{
    int fd;

    if (stat(path, info) || !S_ISREG(info->st_mode))
        return -1;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, info) || !S_ISREG(info->st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

uint32_t elf_read(const char *path, struct elf_facts *out, char *text, size_t size)
{
    struct stat info = {0};
    struct elf_file file = {.fd = open_regular(path, &info)};
    const char *trouble;
    uint32_t reason;

    memset(out, 0, sizeof(*out));
    if (file.fd < 0) {
        if (info.st_mode == 0 || S_ISREG(info.st_mode))
            return system_trouble(path, text, size);
        snprintf(text, size, "%s is not a regular file", path);
        return FRIT_REASON_NOT_A_FILE;
    }
    file.bytes = (uint64_t)info.st_size;
    out->identity = (struct elf_identity){.device = info.st_dev,
                                          .inode = info.st_ino,
                                          .bytes = file.bytes,
                                          .changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 +
                                                        info.st_mtim.tv_nsec};
    reason = read_content(&file, out, &trouble);
    close(file.fd);
    if (reason)
        snprintf(text, size, "%s %s", path, trouble);
    return reason;
}
