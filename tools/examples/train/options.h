/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdint.h>

struct options {
    const char *device, *model, *svg, *save, *resume, *root; /* NULL: not given */
    uint64_t epochs, seed, replicas, stop;                   /* 0: not given */
    uint64_t help, validate;                                 /* given: 1 */
};

/* Returns zero, having printed why, if the command line is wrong. */
int options_parse(struct options *options, int argc, char **argv);
void options_help(void);

#endif
