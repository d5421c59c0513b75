/* SPDX-License-Identifier: Apache-2.0 */
/* What a probe process reports of the plugins that it tries, as lines of text:
 *
 *   frit-probe 1                       first; the protocol's version
 *   at FILE SLOT                       the plugin of file number FILE is about to be called
 *   changed FILE SLOT WHAT             the call left the thread or process with another WHAT
 *   devices FILE COUNT [REASON [WORDS...]]   why there are none
 *   refused FILE REASON WORDS...       the host refused it, as it will again
 *   crash SIGNAL WORDS...
 *   done TOKEN                         without it the process ended early; only a crash at its end
 *                                      may follow
 *
 * Lines that are not of these forms are ignored: the plugin may write to the pipe too. */
#ifndef LOAD_PROBE_REPORT_H
#define LOAD_PROBE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROBE_VERSION = 1,
    PROBE_FD = 3,       /* the child writes its report there */
    PROBE_UNHEARD = 99, /* exit code of a child whose PROBE_FD is not its own any more */
    PROBE_FILES = 64,   /* tried by one process at most */
    PROBE_LINE = 512    /* bytes of a line, terminated; the rest of a longer one is dropped */
};

struct probe_report {
    char token[17];   /* given on the command line, so that only the end of the work has it */
    uint32_t version; /* 0: no first line yet */
    bool done;
    bool has_place;
    uint32_t file; /* where it is, or was last */
    char slot[16];
    int signal; /* of a crash, 0: none was reported */
    char crash[PROBE_LINE];
    uint32_t n_changes;
    char changes[PROBE_LINE]; /* "SLOT: WHAT", separated by ", " */
    uint32_t n_devices;       /* of all files */
    uint32_t reason;          /* why the first that is not used is not, 0: all are; and in words */
    char words[PROBE_LINE];
};

/* Takes one line, without its end. */
void probe_report_take(struct probe_report *report, const char *line);

#endif
