/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a plugin's file: either a reason with words, or facts whose texts are terminated. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load/elf.h"
#include "load/inspect.h"
#include "load/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static bool ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static void check_facts(const struct elf_facts *facts)
{
    check(facts->n_needed <= ELF_NEEDED && facts->n_exports <= ELF_EXPORTS);
    for (uint32_t i = 0; i < facts->n_needed; i++)
        check(ends(facts->needed[i], ELF_NAME));
    check(ends(facts->soname, ELF_NAME) && ends(facts->runpath, ELF_PATH));
    check(ends(facts->identity.build_id, sizeof(facts->identity.build_id)));
    if (facts->has_note)
        check(ends(facts->note.id, sizeof(facts->note.id)) &&
              ends(facts->note.version, sizeof(facts->note.version)) &&
              ends(facts->note.runtimes, sizeof(facts->note.runtimes)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct elf_facts facts;
    struct plugin plugin = {.path = "a file"};
    char path[64], text[512] = "";
    int fd = memfd_create("elf", 0);
    uint32_t reason;

    check(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    reason = elf_read(path, &facts, text, sizeof(text));
    check((reason != 0) == (text[0] != '\0'));
    if (!reason) {
        check_facts(&facts);
        check((inspect_file(&plugin, &facts) != 0) == (plugin.reason != 0));
    }
    close(fd);
    return 0;
}
