/* SPDX-License-Identifier: Apache-2.0 */
/* Runs ranks as processes of this machine: the lines that they print get their rank in front, and
 * when one fails it is named and the others end. */
#ifndef LAUNCH_SUPERVISE_H
#define LAUNCH_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>

struct ranks {
    uint32_t first, n; /* of them run here */
    uint32_t size; /* sets the variables RANK and WORLD_SIZE; 0: they are set by another launcher */
    const char **words; /* the program and its arguments; NULL after the last */
};

/* The exit code: 0, that of the first rank that failed (128 and its number for a signal), or 127
 * where none could be started. */
int supervise(const struct ranks *ranks);

#endif
