/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that a step replaces all together, and how a step that failed is undone.
 *
 * A step is recorded first and runs later, so it may fail long after it was recorded.  Each cell
 * keeps its tensor of before until all cells are known to have been computed; if one has failed,
 * all go back.  Steps that are recorded while others still wait are undone together with them.
 *
 * Threads: one at a time. */
#ifndef TRAIN_CELL_H
#define TRAIN_CELL_H

#include <stdbool.h>

#include <frit/frit.h>

/* Each tensor is a reference; NULL: none. */
struct cell {
    frit_tensor *now;
    frit_tensor *before; /* before the steps that are not known to have run */
    frit_tensor *next;   /* of the step that is being recorded */
};

struct cells {
    struct cell *cell;
    uint32_t n;
    bool keeps;      /* the tensors of before are kept */
    bool is_pending; /* there are any */
};

/* A reference of its own. */
frit_tensor *cell_own(frit_tensor *tensor);
/* Releases the reference; silent where the device was closed before. */
void cell_release(frit_tensor **tensor);

/* Looks at what is known of the steps so far, without waiting.  If a cell has failed, all go back,
 * where they can, and the failure is returned. */
frit_status cells_settle(struct cells *cells, const char *call, frit_err *err);
/* Undoes the steps that are not known to have run; does nothing where there are none. */
void cells_go_back(struct cells *cells);
/* The step was recorded: each cell becomes its `next`.  Fails, and drops the step, if one of them
 * has failed already. */
frit_status cells_commit(struct cells *cells, const char *call, frit_err *err);
/* Drops the step that is being recorded. */
void cells_drop(struct cells *cells);
/* Replaces the tensor of a cell by one of the same type, and adds a reference. */
frit_status cells_set(struct cells *cells, uint32_t index, frit_tensor *tensor, const char *call,
                      frit_err *err);
void cells_fini(struct cells *cells);

#endif
