/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a test program, by the candidate of its library (fake.h). */
#ifndef HIP_LINEAR_H
#define HIP_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "rig.h"

/* Tensors, each in memory of MAX_BYTES. */
enum { MAX_BYTES = 1 << 15, X = 0, W, BIAS, Y, TENSORS };

/* y = x w + bias, of f32; the arguments are the tensors in order. */
struct linear {
    int64_t m, n, k;
    bool has_bias; /* as the library's products can have */
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
    bool is_reduced;    /* by the candidate with reduced products */
    uint32_t candidate; /* the library's; 0: there is none */
    frit_allocation memory[TENSORS], workspace;
    frit_arg args[TENSORS];
    frit_launch launch;
    frit_cmd cmd;
};

/* Makes everything but the tensors' numbers; `is_reduced` is set.  Returns the first failure;
 * linear_close in any case. */
frit_status linear_open(struct rig *rig, struct linear *l, int64_t m, int64_t n, int64_t k);
void linear_close(struct rig *rig, struct linear *l);
/* Fills what points into the struct, once more after it has moved. */
void linear_fill_launch(struct linear *l);
uint32_t linear_arg_of_y(const struct linear *l);

/* Waits for a value; failures of earlier ones are known. */
frit_status linear_wait(struct rig *rig, uint64_t value);
/* Writes numbers of this tensor and seed, and waits, since memory may be freed after it. */
void linear_write(struct rig *rig, void *memory, int tensor, uint32_t seed);
/* Writes all operands. */
void linear_write_all(struct rig *rig, const struct linear *l, uint32_t seed);
/* Fails the test unless `memory` has the result for numbers of these seeds. */
void linear_expect(struct rig *rig, const struct linear *l, void *memory, uint32_t x_seed,
                   uint32_t seed);

#endif
