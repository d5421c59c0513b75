/* SPDX-License-Identifier: Apache-2.0 */
/* Reads configuration files in order of precedence. */
#ifndef CONF_FILES_H
#define CONF_FILES_H

#include <frit/status.h>

struct conf;
struct conf_sources;

/* Adds the values of the file that FRIT_CONFIG names; without it, of the user's file and the
 * system's. */
frit_status files_read(struct conf *conf, const struct conf_sources *sources, frit_err *err);

#endif
