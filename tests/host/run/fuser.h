/* SPDX-License-Identifier: Apache-2.0 */
/* A fuser for the scripted driver: takes ops of one element type that the driver has, up to a
 * number of them; its programs compute what the ops do. */
#ifndef TESTS_STREAM_FUSER_H
#define TESTS_STREAM_FUSER_H

#include "run/driver.h"

enum { RECIPE_OPS = 16, RECIPES = 64 };

/* What a program runs; as long as the programs live. */
struct recipe {
    struct driver_op ops[RECIPE_OPS];
    int out[RECIPE_OPS];
};

struct fusing {
    struct driver driver; /* first */
    /* Script, before fusing_open. */
    bool takes_effects; /* driver_effect_op too */
    uint32_t most;      /* ops of a block, 0: RECIPE_OPS */
    frit_device *device;
    struct recipe recipes[RECIPES];
    uint32_t n_recipes;
    uint32_t n_fusers; /* alive */
};

/* Opens a device on the driver that has the fuser; frees both in the end. */
void fusing_open(struct fusing *fusing);
void fusing_close(struct fusing *fusing);

#endif
