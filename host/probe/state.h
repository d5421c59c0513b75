/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin's call may not change: floating-point modes, signals, the current folder, the
 * umask, the locale, the standard streams. */
#ifndef PROBE_STATE_H
#define PROBE_STATE_H

#include <stddef.h>

/* Notes the state of thread and process. */
void state_note(void);
/* Reports what changed since state_note in a call of file number `file`, and notes it. */
void state_compare(size_t file, const char *slot);

#endif
