/* SPDX-License-Identifier: Apache-2.0 */
/* A world for a configuration: a root folder with files, an environment, settings of the program.
 */
#ifndef TESTS_CONF_WORLD_H
#define TESTS_CONF_WORLD_H

#include "unit.h"

#include "base/fail.h"
#include "conf/conf_sources.h"

/* The folder: "" has /etc, "/home" is the home of the user.  cmocka setup and teardown of a test.
 */
int world_setup(void **state);
int world_teardown(void **state);
const char *world_root(void);

/* Writes a file under the root, with its folders. */
void world_write(const char *path, const char *text);
void world_write_bytes(const char *path, const char *bytes, size_t length);
void world_remove(const char *path);
/* Adds "NAME=VALUE", where one "%s" stands for the root. */
void world_setenv(const char *entry);
/* Adds a setting of the program; three borrowed texts. */
void world_set(const char *section, const char *key, const char *value);
/* Forgets variables (but HOME) and settings. */
void world_reset(void);

/* Loads; fails the test where that fails. */
struct conf *world_load(void);
frit_status world_try(struct conf **out, frit_err *err);
/* Loads and expects a failure with this text, where "%s" stands for the root. */
void world_refuses(frit_status status, const char *text);
/* Expects a value and its origin ("%s" as above) in what conf_at shows; value NULL: not shown. */
void world_shows(const struct conf *conf, const char *section, const char *key, const char *value,
                 const char *origin);

#endif
