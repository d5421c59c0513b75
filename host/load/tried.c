/* SPDX-License-Identifier: Apache-2.0 */
#include "load/tried.h"

#include <string.h>
#include <time.h>

#include "load/artefact.h"

enum { FORGOTTEN_S = 7 * 24 * 3600 };

struct tried {
    int64_t time; /* since 1970 */
    uint32_t deaths, reserved;
};

static struct artefact_name name_of(const char *name)
{
    return (struct artefact_name){.space = "frit-tried", .key = name, .n_key = strlen(name)};
}

uint32_t tried_deaths(const char *folder, const char *name)
{
    const struct artefact_name key = name_of(name);
    struct tried tried;

    return folder && artefact_get_record(folder, &key, &tried, sizeof(tried)) &&
                   time(NULL) - tried.time < FORGOTTEN_S
               ? tried.deaths
               : 0;
}

void tried_set_deaths(const char *folder, uint64_t limit, const char *name, uint32_t deaths)
{
    const struct artefact_name key = name_of(name);
    const struct tried tried = {.time = time(NULL), .deaths = deaths};

    if (folder)
        (void)artefact_put(folder, limit, &key, &tried, sizeof(tried), NULL);
}
