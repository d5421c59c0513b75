/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of load/probe_report.h. */
#ifndef PROBE_REPORT_H
#define PROBE_REPORT_H

#include <stddef.h>

/* main.c: writes one line at once; a line that is too long is cut. */
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* crash.c: from now on a crash writes its line before the process ends by its signal. */
void crash_install(void);

/* state.c: notes the state of thread and process. */
void state_note(void);
/* Writes a line for what changed since state_note in a call of file number `file`, and notes it. */
void state_compare(size_t file, const char *slot);

#endif
