/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of equiv. */
#ifndef EQUIV_OPTIONS_H
#define EQUIV_OPTIONS_H

#include <stdbool.h>

#include <frit/frit.h>

#include "session.h"

enum { MAX_SETTINGS = 32 };

struct options {
    uint64_t seed, count;
    const char *device, *plugin, *near;
    char *beside[MAX_SIDES - 1];
    uint32_t n_beside;
    bool print, no_shrink, large;
    uint32_t shapes;
    frit_setting settings[MAX_SETTINGS];
    uint32_t n_settings;
};

/* False where it is not understood. */
bool options_parse(struct options *options, int argc, char **argv);
/* A setting of the host; the last one counts. */
void options_set(struct options *options, const char *section, const char *key, const char *value);
/* "fusion.max_blocks=2,frit.threads=1"; the text is cut in place.  False where it is none. */
bool options_set_text(struct options *options, char *text);

#endif
