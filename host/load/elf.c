/* SPDX-License-Identifier: Apache-2.0 */
/* A look at a file before the dynamic loader maps it: a regular file, a shared object of this
 * library's own machine, and long enough for its segments, since mapping a cut file ends in SIGBUS.
 *
 * Reads at most the file header and MAX_SEGMENTS program headers. */
#include "load/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/load.h"

enum { MAX_SEGMENTS = 64 };

/* The linker's name for the header of the object that this file is linked into. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

static bool read_exactly(int fd, void *into, size_t bytes, uint64_t offset)
{
    return pread(fd, into, bytes, (off_t)offset) == (ssize_t)bytes;
}

static const char *header_trouble(const Elf64_Ehdr *header)
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
        header->e_phnum > MAX_SEGMENTS)
        return "has an impossible table of segments";
    return NULL;
}

static const char *content_trouble(int fd, uint64_t file_bytes)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment[MAX_SEGMENTS];
    const char *trouble;

    if (file_bytes == 0)
        return "is empty";
    if (!read_exactly(fd, &header, sizeof(header), 0))
        return file_bytes < sizeof(header) ? "is shorter than an ELF header" : "cannot be read";
    trouble = header_trouble(&header);
    if (trouble)
        return trouble;
    if (header.e_phoff > file_bytes ||
        !read_exactly(fd, segment, header.e_phnum * sizeof(segment[0]), header.e_phoff))
        return "is cut off before its table of segments";
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        if (segment[i].p_filesz > file_bytes ||
            segment[i].p_offset > file_bytes - segment[i].p_filesz)
            return "is cut off: a segment ends past the end of the file";
    }
    return NULL;
}

static uint32_t system_trouble(const char *path, char *text, size_t size)
{
    bool missing = errno == ENOENT || errno == ENOTDIR;

    snprintf(text, size, "%s: %s", path, strerror(errno));
    return missing ? FRIT_REASON_NOT_FOUND : FRIT_REASON_LOAD_FAILED;
}

uint32_t elf_check(const char *path, char *text, size_t size)
{
    struct stat info;
    const char *trouble;
    int fd;

    if (stat(path, &info))
        return system_trouble(path, text, size);
    if (!S_ISREG(info.st_mode)) {
        snprintf(text, size, "%s is not a regular file", path);
        return FRIT_REASON_NOT_A_FILE;
    }
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return system_trouble(path, text, size);
    trouble = content_trouble(fd, (uint64_t)info.st_size);
    close(fd);
    if (!trouble)
        return FRIT_REASON_NONE;
    snprintf(text, size, "%s %s", path, trouble);
    return FRIT_REASON_NOT_ELF;
}
