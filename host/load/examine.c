/* SPDX-License-Identifier: Apache-2.0 */
#include "load/examine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "load/inspect.h"
#include "load/library.h"
#include "load/load.h"

/* The host itself notices a missing library only where the loader refuses the file. */
static void find_libraries(struct examined *out)
{
    struct str missing = {0};

    for (uint32_t i = 0; i < out->facts.n_needed; i++)
        if (!library_find(out->facts.needed[i], out->facts.runpath, out->path, out->found[i],
                          sizeof(out->found[i])))
            out->found[i][0] = '\0';
    if (!out->reason && library_list_missing(&out->facts, out->path, &missing) && missing.text) {
        out->reason = FRIT_REASON_LIBRARY_MISSING;
        snprintf(out->detail, sizeof(out->detail), "%s", missing.text);
    }
    str_fini(&missing);
}

void examine_file(const char *path, struct examined *out)
{
    struct plugin plugin = {.path = out->path};

    *out = (struct examined){0};
    if (!realpath(path, out->path))
        snprintf(out->path, sizeof(out->path), "%s", path);
    out->reason = elf_read(out->path, &out->facts, out->detail, sizeof(out->detail));
    if (out->reason)
        return;
    inspect_isa_text(out->facts.note.isa, out->isa, sizeof(out->isa));
    if (inspect_file(&plugin, &out->facts)) {
        out->reason = plugin.reason;
        memcpy(out->detail, plugin.detail, sizeof(out->detail));
    }
    find_libraries(out);
}
