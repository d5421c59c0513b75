/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are looked for. */
#ifndef LOAD_FIND_H
#define LOAD_FIND_H

#include <limits.h>
#include <stdbool.h>

#include <frit/status.h>

struct registry;

/* find.c: fills candidates and dirs. */
frit_status find_candidates(struct registry *registry);
/* The given files are the candidates. */
frit_status find_files(struct registry *registry, const char *const *paths, uint32_t n);

/* The absolute folder of the real libfrit, where frit/ with plugins and programs lies. */
bool find_own_folder(char path[PATH_MAX]);
/* Another folder in its place, for tests; NULL: none.  Before any registry is opened. */
void find_set_own_folder(const char *folder);

#endif
