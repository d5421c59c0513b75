/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin's call may not change: floating-point modes, signals, timers, the current folder,
 * the umask, the locale, limits, processors, descriptors that it did not open, the environment; and
 * threads that run on when it is closed. */
#ifndef PROBE_STATE_H
#define PROBE_STATE_H

#include <stddef.h>

/* Notes the state of thread and process. */
void state_note(void);
/* Reports what changed since state_note in a call of file number `file`, and notes it. */
void state_compare(size_t file, const char *slot);
/* Once every plugin is closed: reports threads that are left, and lets them run for a moment, since
 * what they do now shows a fault. */
void state_compare_threads(size_t file);

#endif
