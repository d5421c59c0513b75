/* SPDX-License-Identifier: Apache-2.0 */
/* What calls across the border leave as it is: the state of the calling thread and of the process.
 */
#ifndef CLI_CONFORM_BORDER_H
#define CLI_CONFORM_BORDER_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { BORDER_SIGNALS = 32 };

struct border {
    int rounding;
    bool flushes; /* denormals */
    sigset_t mask;
    struct sigaction actions[BORDER_SIGNALS];
    mode_t umask;
    char locale[128];
    char folder[PATH_MAX];
};

void border_read(struct border *out);
/* What differs now, in words; NULL: nothing.  The mask and the modes are put back. */
const char *border_differs(const struct border *before);

#endif
