/* SPDX-License-Identifier: Apache-2.0 */
/* The last line of the report of a process that crashes. */
#ifndef PROBE_CRASH_H
#define PROBE_CRASH_H

/* From now on a crash writes its line before the process ends by its signal. */
void crash_install(void);

#endif
