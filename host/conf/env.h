/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment; no other file does. */
#ifndef CONF_ENV_H
#define CONF_ENV_H

#include <frit/status.h>

struct conf;

/* That of the process; empty where a program runs with more rights than its caller, who must not
 * steer it. */
const char *const *env_of_process(void);
/* NULL where the variable is absent or empty. */
const char *env_get(const char *const *environment, const char *name);
/* Puts FRIT_PLUGIN_PATH and the options' variables, and lists strangers. */
frit_status env_read(struct conf *conf, const char *const *environment, frit_err *err);

#endif
