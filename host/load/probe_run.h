/* SPDX-License-Identifier: Apache-2.0 */
/* Probe processes: started, listened to, ended. */
#ifndef LOAD_PROBE_RUN_H
#define LOAD_PROBE_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "load/probe_report.h"

enum { PROBE_OUTPUT = 256 };

struct probe_run {
    pid_t pid; /* 0: it could not be started, or has ended and was waited for */
    int report_fd, output_fd;
    bool late;               /* it was killed since its time was over */
    bool has_exit;           /* `exit` is known: nobody else waited for it */
    int exit;                /* as waitpid gives it */
    double started, seconds; /* when it was, and how long it took */
    struct probe_report report;
    uint32_t n_line;
    char line[PROBE_LINE];
    char output[PROBE_OUTPUT]; /* the end of what it wrote to its standard streams, terminated */
};

/* Starts `argv[0]`, an absolute path, with no open files but its standard streams and PROBE_FD; its
 * report must end with the token.  Returns 0 or an errno. */
int probe_start(struct probe_run *run, char *const argv[], char *const environment[],
                const char *token);
/* Waits until all have ended, and kills those that have not after `seconds`. */
void probe_wait(struct probe_run *runs, unsigned n, double seconds);

#endif
