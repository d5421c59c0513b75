/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "load/probe_report.h"

void report_line(const char *format, ...)
{
    char line[PROBE_LINE];
    va_list args;
    size_t n;

    va_start(args, format);
    n = (size_t)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (n > sizeof(line) - 2)
        n = sizeof(line) - 2;
    for (size_t i = 0; i < n; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[n] = '\n';
    (void)!write(PROBE_FD, line, n + 1);
}
