/* SPDX-License-Identifier: Apache-2.0 */
#include "load/quarantine.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/fail.h"
#include "base/log.h"
#include "conf/conf.h"
#include "load/artefact.h"
#include "load/breadcrumb.h"
#include "load/elf.h"
#include "load/load.h"
#include "load/tried.h"

enum { DEATHS = 2 /* after which a plugin is not loaded */, FORGOTTEN_S = 7 * 24 * 3600 };

/* As it is kept; `deaths` 0: nothing is known. */
struct record {
    int64_t time; /* of the last, since 1970 */
    uint32_t deaths;
    char slot[28];
};

static struct artefact_name name_of(const struct elf_identity *identity)
{
    return (struct artefact_name){
        .space = "frit-died", .key = identity, .n_key = sizeof(*identity)};
}

/* False: nothing is known of the file. */
static bool recall(const struct conf *conf, const struct elf_identity *identity, struct record *out)
{
    const struct artefact_name name = name_of(identity);

    if (!artefact_get_record(conf_artefacts(conf), &name, out, sizeof(*out)))
        return false;
    out->slot[sizeof(out->slot) - 1] = '\0';
    return out->deaths && time(NULL) - out->time < FORGOTTEN_S;
}

static frit_status keep(const struct conf *conf, const struct elf_identity *identity,
                        const struct record *record, frit_err *err)
{
    const struct artefact_name name = name_of(identity);

    return artefact_put(conf_artefacts(conf), (uint64_t)conf_options(conf)->artefact_bytes, &name,
                        record, sizeof(*record), err);
}

static void note_death(void *ctx, const char *path, const char *slot)
{
    const struct conf *conf = ctx;
    struct elf_facts *facts = malloc(sizeof(*facts));
    struct record record = {0};
    char words[256];

    if (strcmp(slot, TRIED_SLOT) == 0) {
        free(facts);
        tried_set_deaths(conf_artefacts(conf), (uint64_t)conf_options(conf)->artefact_bytes, path,
                         tried_deaths(conf_artefacts(conf), path) + 1);
        return;
    }
    if (!facts || elf_read(path, facts, words, sizeof(words)) != FRIT_REASON_NONE) {
        free(facts);
        return;
    }
    if (!recall(conf, &facts->identity, &record))
        record = (struct record){0};
    record.time = time(NULL);
    record.deaths++;
    snprintf(record.slot, sizeof(record.slot), "%s", slot);
    (void)keep(conf, &facts->identity, &record, NULL);
    free(facts);
}

void quarantine_collect(const struct conf *conf)
{
    breadcrumb_collect(conf_artefacts(conf), note_death, (void *)(uintptr_t)conf);
}

frit_status quarantine_check(struct arena *arena, const struct conf *conf,
                             const struct elf_identity *identity, struct plugin *plugin)
{
    struct elf_identity *copy = arena_alloc(arena, sizeof(*copy));
    struct record record;

    if (!copy)
        return FRIT_NO_HOST_MEMORY;
    *copy = *identity;
    plugin->identity = copy;
    if (!recall(conf, identity, &record))
        return FRIT_OK;
    if (record.deaths >= DEATHS)
        return plugin_refuse(plugin, FRIT_REASON_DIED,
                             "%u processes died in its %s; `frit doctor forgive %s` to load it "
                             "again",
                             record.deaths, record.slot, plugin->id[0] ? plugin->id : plugin->path);
    plugin->suspect = arena_alloc(arena, sizeof(*plugin->suspect));
    if (!plugin->suspect)
        return FRIT_NO_HOST_MEMORY;
    *plugin->suspect = (struct suspect){conf, copy, record.deaths, "", false};
    memcpy(plugin->suspect->slot, record.slot, sizeof(record.slot));
    log_write(FRIT_LOG_WARN, "load", "plugin %s: a process died in its %s; it is tried with care",
              plugin->path, record.slot);
    return FRIT_OK;
}

void quarantine_clear(struct suspect *suspect, const char *slot)
{
    if (suspect && strcmp(suspect->slot, slot) == 0 && !atomic_exchange(&suspect->cleared, true))
        (void)keep(suspect->conf, suspect->identity, &(struct record){0}, NULL);
}

frit_status quarantine_forgive(const struct conf *conf, const struct elf_identity *identity,
                               frit_err *err)
{
    struct record record;

    if (!recall(conf, identity, &record))
        return FRIT_INVALID;
    return keep(conf, identity, &(struct record){0}, err);
}
