/* SPDX-License-Identifier: Apache-2.0 */
/* Names of reasons.  A number from a newer plugin is "unknown", never an error. */
#include "load/reason.h"

#include <string.h>

#include "base/str.h"
#include "load/load.h"

static const struct {
    const char *name, *meaning;
} reasons[] = {
#define FRIT_REASON(value, NAME, name, meaning) [value] = {name, meaning},
#include <frit/reasons.def>
};

enum { N_REASONS = sizeof(reasons) / sizeof(reasons[0]) };

const char *reason_name(uint32_t reason)
{
    return reason < N_REASONS ? reasons[reason].name : "unknown";
}

const char *reason_meaning(uint32_t reason)
{
    return reason < N_REASONS ? reasons[reason].meaning : "a reason that this host does not know";
}

uint32_t reason_of_name(const char *name)
{
    for (uint32_t i = 0; i < N_REASONS; i++) {
        if (strcmp(reasons[i].name, name) == 0)
            return i;
    }
    return FRIT_REASON_NONE;
}

const char *reason_advice(uint32_t reason)
{
    static const char *const words[] = {
        [FRIT_REASON_NOT_FOUND] = "check the path, or install the plugin",
        [FRIT_REASON_NOT_A_FILE] = "name the .so file itself",
        [FRIT_REASON_NOT_ELF] = "install the plugin again, built for this machine",
        [FRIT_REASON_LOAD_FAILED] = "install what the loader misses; `ldd FILE` lists it",
        [FRIT_REASON_NO_ENTRY] = "the file is not a Frit plugin; take it out of the directory",
        [FRIT_REASON_ABI_MISMATCH] = "use plugin and library of the same release",
        [FRIT_REASON_SANITIZER_MISMATCH] = "build both with the same -fsanitize options",
        [FRIT_REASON_BAD_WELCOME] = "report it to the plugin's author",
        [FRIT_REASON_BAD_TABLE] = "report it to the plugin's author",
        [FRIT_REASON_NO_INTERFACE] = "report it to the plugin's author",
        [FRIT_REASON_BAD_ID] = "name the section [plugin.ID] after the plugin's own id",
        [FRIT_REASON_SHADOWED] = "remove one of the two, or change the order of the search",
        [FRIT_REASON_DISABLED] = "set enabled = yes there",
        [FRIT_REASON_BAD_OPTION] = "correct that line",
        [FRIT_REASON_NO_RUNTIME] = "install the vendor's runtime",
        [FRIT_REASON_NO_PERMISSION] = "add the user to the group that owns the device",
        [FRIT_REASON_RUNTIME_TOO_OLD] = "update the vendor's runtime",
        [FRIT_REASON_NO_DRIVER] =
            "install the driver's plugin, or add its directory to [search] dirs",
        [FRIT_REASON_BAD_NOTE] = "report it to the plugin's author",
        [FRIT_REASON_ISA_UNSUPPORTED] = "install a build of the plugin for this processor",
        [FRIT_REASON_LIBRARY_MISSING] =
            "install that library, or put its folder into LD_LIBRARY_PATH",
        [FRIT_REASON_CRASHES] = "`frit doctor plugin FILE` shows more; report it to its author",
        [FRIT_REASON_HANGS] = "`frit doctor plugin FILE` shows more; report it to its author",
        [FRIT_REASON_EXITS] = "`frit doctor plugin FILE` shows more; report it to its author",
        [FRIT_REASON_CLASHES] = "disable one of them: enabled = no in its section",
        [FRIT_REASON_NOT_PROBED] = "install frit-probe beside the library, or set probe = auto",
    };

    return reason < sizeof(words) / sizeof(words[0]) && words[reason] ? words[reason] : "";
}

void reason_print(uint32_t reason, const char *detail, struct str *out)
{
    str_addf(out, "%s: %s", reason_name(reason), reason_meaning(reason));
    if (detail[0])
        str_addf(out, " (%s)", detail);
}
