/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that processes died in.  After one death a plugin is probed before it is loaded, whoever
 * vouches for it; after a second one it is not loaded, until its file changes, a week has passed,
 * or it is forgiven.  A call that returns where a process died before clears the plugin. What is
 * known lies among the artefacts; without them nothing is. */
#ifndef LOAD_QUARANTINE_H
#define LOAD_QUARANTINE_H

#include <stdatomic.h>
#include <stdint.h>

#include <frit/status.h>

struct arena;
struct conf;
struct elf_identity;
struct plugin;

/* A plugin that a process died in, and that is used all the same. */
struct suspect {
    const struct conf *conf;
    const struct elf_identity *identity;
    uint32_t deaths;
    char slot[28]; /* where */
    atomic_bool cleared;
};

/* Notes what processes died in since somebody last looked. */
void quarantine_collect(const struct conf *conf);
/* Refuses the plugin (FRIT_REASON_DIED), or sets its `suspect` where there is something to know. */
frit_status quarantine_check(struct arena *arena, const struct conf *conf,
                             const struct elf_identity *identity, struct plugin *plugin);
/* The slot returned.  NULL does nothing. */
void quarantine_clear(struct suspect *suspect, const char *slot);
/* What is known of the file is forgotten.  FRIT_INVALID: nothing was. */
frit_status quarantine_forgive(const struct conf *conf, const struct elf_identity *identity,
                               frit_err *err);

#endif
