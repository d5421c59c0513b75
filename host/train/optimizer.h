/* SPDX-License-Identifier: Apache-2.0 */
/* What an optimiser has. */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include <frit/train.h>

#include "train/cell.h"
#include "train/update.h"

enum { NAME_BYTES = 40, MOST_CORRECTIONS = 2 };

struct state_name {
    uint64_t param; /* UINT64_MAX: none */
    char text[NAME_BYTES];
};

/* Cells are the parameters, whose tensors are the program's between steps, then states by
 * parameter, then corrections. */
struct frit_optimizer {
    frit_optimizer_config config;
    frit_device *device;
    uint32_t n_params, n_states, n_corrections;
    struct op_type *types;       /* of the parameters */
    uint32_t (*state)[N_STATES]; /* by parameter: the cell, 0: none */
    struct state_name *names;    /* of states and corrections */
    struct cells cells;
    uint32_t correction; /* the first cell of corrections */
    uint64_t steps, steps_before;
    frit_tensor *norm; /* of the last step; NULL: none */
};

#endif
