/* SPDX-License-Identifier: Apache-2.0 */
#include "job/program.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { SHOWN_BYTES = 8 }; /* of a build id */

static void find_in_segment(const ElfW(Phdr) * header, uintptr_t base, char *out, size_t size)
{
    const char *at = (const char *)(base + header->p_vaddr), *end = at + header->p_memsz;

    while (!out[0] && (size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        const char *name = at + sizeof(*note);
        const unsigned char *bytes = (const void *)(name + ((note->n_namesz + 3) & ~3u));

        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
            for (uint32_t i = 0; i < note->n_descsz && i < SHOWN_BYTES && 2 * i + 2 < size; i++)
                snprintf(out + 2 * (size_t)i, 3, "%02x", bytes[i]);
        at = (const char *)bytes + ((note->n_descsz + 3) & ~3u);
    }
}

/* The program itself comes first. */
static int find_build_id(struct dl_phdr_info *info, size_t size, void *ctx)
{
    char *out = ctx;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            find_in_segment(&info->dlpi_phdr[i], info->dlpi_addr, out, 2 * SHOWN_BYTES + 1);
    }
    return 1;
}

void program_text(char out[PROGRAM_TEXT])
{
    char path[4096], id[2 * SHOWN_BYTES + 1] = "";
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    const char *name = "?";
    struct stat info;

    if (n > 0) {
        path[n] = '\0';
        name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    }
    (void)dl_iterate_phdr(find_build_id, id);
    if (id[0])
        snprintf(out, PROGRAM_TEXT, "%.80s (build %s)", name, id);
    else
        snprintf(out, PROGRAM_TEXT, "%.80s (%lld bytes)", name,
                 n > 0 && !stat(path, &info) ? (long long)info.st_size : 0);
    text_clean(out, strlen(out), out, PROGRAM_TEXT);
}
