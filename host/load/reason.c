/* SPDX-License-Identifier: Apache-2.0 */
/* Names of reasons.  A number from a newer plugin is "unknown", never an error. */
#include "load/reason.h"

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

void reason_print(uint32_t reason, const char *detail, struct str *out)
{
    str_addf(out, "%s: %s", reason_name(reason), reason_meaning(reason));
    if (detail[0])
        str_addf(out, " (%s)", detail);
}
