/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of load/probe_report.h. */
#ifndef PROBE_REPORT_H
#define PROBE_REPORT_H

#include <frit/status.h>

/* Writes one line at once; a line that is too long is cut. */
void report_line(const char *format, ...) FRIT_PRINTF(1, 2);

#endif
