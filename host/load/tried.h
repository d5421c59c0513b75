/* SPDX-License-Identifier: Apache-2.0 */
/* What processes died of while they tried it: candidates of programs.  Who tries one is in a call
 * of this slot (load/breadcrumb.h) with its name, which begins with a slash, in the place of a
 * plugin's file; the next process counts those that ended there.  Kept for a week, among the
 * artefacts; without them nothing is. */
#ifndef LOAD_TRIED_H
#define LOAD_TRIED_H

#include <stdint.h>

#define TRIED_SLOT "trial"

/* How many processes died of it. */
uint32_t tried_deaths(const char *folder, const char *name);
/* 0: it went well, and is as if nobody had. */
void tried_set_deaths(const char *folder, uint64_t limit, const char *name, uint32_t deaths);

#endif
