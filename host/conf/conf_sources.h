/* SPDX-License-Identifier: Apache-2.0 */
/* Where a configuration comes from, as arguments, so that a test can give it a world of its own. */
#ifndef CONF_CONF_SOURCES_H
#define CONF_CONF_SOURCES_H

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

#endif
