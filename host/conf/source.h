/* SPDX-License-Identifier: Apache-2.0 */
/* Where a configuration comes from, as arguments, so that a test can give it a world of its own. */
#ifndef CONF_SOURCE_H
#define CONF_SOURCE_H

#include "conf/merge.h"

struct conf_sources {
    const frit_setting *settings;
    uint64_t n_settings;
    const char *const *environment; /* "NAME=VALUE", NULL at the end */
    const char *root;               /* in front of /etc/frit */
};

/* conf_load over these sources. */
FRIT_NODISCARD frit_status conf_load_from(const struct conf_sources *sources, struct conf **out,
                                          frit_err *err);

/* ---- env.c ---- */

/* That of the process; empty where a program runs with more rights than its caller, who must not
 * steer it. */
const char *const *env_of_process(void);
/* NULL where the variable is absent or empty. */
const char *env_get(const char *const *environment, const char *name);
/* Puts FRIT_PLUGIN_PATH and the options' variables, and lists strangers. */
frit_status env_read(struct conf *conf, const char *const *environment, frit_err *err);

/* ---- files.c ---- */

/* Puts the file that FRIT_CONFIG names, or the user's and the system's. */
frit_status files_read(struct conf *conf, const struct conf_sources *sources, frit_err *err);

#endif
