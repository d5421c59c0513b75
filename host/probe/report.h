/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of load/probe_report.h. */
#ifndef PROBE_REPORT_H
#define PROBE_REPORT_H

#include <frit/status.h>

/* Notes which file PROBE_FD is. */
void report_open(void);
/* Writes one line at once; a line that is too long is cut.  Where PROBE_FD is closed or another
 * file by now, the process ends with PROBE_UNHEARD. */
void report_line(const char *format, ...) FRIT_PRINTF(1, 2);

#endif
