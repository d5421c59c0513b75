/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that nobody vouches for are tried in a process of their own before they are loaded here:
 * loaded, opened, enumerated and closed, alone and then together with all that will be loaded. What
 * was learnt is kept by the identity of the files, so that a second start does not wait. */
#ifndef LOAD_PROBE_H
#define LOAD_PROBE_H

#include <stdint.h>

#include <frit/status.h>

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

/* Probes those of the subjects that have to be, at most PROBE_SECONDS at a time and side by side;
 * then, if any was new, all that are left together.  Refuses those that failed.  Without the
 * program frit-probe beside libfrit only what is configured as `always` is refused. */
void probe_all(const struct conf *conf, const struct probe_subject *subjects, uint32_t n);

#endif
