/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/probe_report.h"

static struct stat opened;

void report_open(void)
{
    (void)fstat(PROBE_FD, &opened);
}

static bool is_heard(void)
{
    struct stat now;

    return fstat(PROBE_FD, &now) == 0 && now.st_dev == opened.st_dev && now.st_ino == opened.st_ino;
}

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
    if (!is_heard())
        _exit(PROBE_UNHEARD);
    (void)!write(PROBE_FD, line, n + 1);
}
