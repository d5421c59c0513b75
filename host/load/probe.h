/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that nobody vouches for are tried in a process of their own before they are loaded here:
 * loaded, opened, enumerated and closed, alone and then together with all that will be loaded. What
 * was learnt is kept by the identity of the files, so that a second start does not wait. */
#ifndef LOAD_PROBE_H
#define LOAD_PROBE_H

#include <stdint.h>

#include <frit/status.h>

#include "load/probe_report.h"

struct conf;
struct conf_plugin;
struct elf_identity;
struct plugin;

/* A plugin that may be loaded next: refused by a probe, or left as it was. */
struct probe_subject {
    struct plugin *plugin;
    const struct elf_identity *identity;
    const struct conf_plugin *section; /* that names the file; NULL: the one of the plugin's id */
};

/* For tests: how long a process may take.  0: as usual. */
void probe_set_limit(double seconds);

/* What a process of its own found out about one file. */
struct probe_outcome {
    uint32_t reason; /* why it would not be used, or has no devices; 0: it would and has */
    uint32_t n_devices;
    char words[PROBE_LINE];   /* the reason in words, or what a plugin without a driver offers */
    char changes[PROBE_LINE]; /* what it changed that is not its own, "" if nothing */
    double seconds;           /* that it took */
};

/* Probes a file alone, whatever is known of it or configured; nothing is kept.
 * FRIT_REASON_NOT_PROBED: it could not be tried. */
void probe_file(const struct conf *conf, const char *path, struct probe_outcome *out);

/* Probes those of the subjects that have to be, at most PROBE_SECONDS at a time and side by side;
 * then, if any was new, all that are left together.  Refuses those that failed.  Without the
 * program frit-probe beside libfrit only what is configured as `always` is refused. */
void probe_all(const struct conf *conf, const struct probe_subject *subjects, uint32_t n);

#endif
