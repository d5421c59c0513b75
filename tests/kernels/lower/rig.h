/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks from concrete tensors: ops are appended with their values, then lowered by a schedule,
 * verified, and run by the evaluator.  Failures end the test. */
#ifndef TESTS_KERNELS_LOWER_RIG_H
#define TESTS_KERNELS_LOWER_RIG_H

#include <frit/op_table.h>

#include "lower/sched.h"

enum { RIG_VALUES = 64, RIG_OPS = 48, RIG_SCALARS = 32, RIG_BOUNDS = 256, RIG_MAX = 1 << 28 };

#define RIG_NONE   UINT32_MAX
#define RIG_ABSENT (UINT32_MAX - 1)

struct rig_value {
    uint32_t dtype, rank;
    int64_t dims[FRIT_MAX_RANK], strides[FRIT_MAX_RANK];
    uint32_t maker, last_use; /* ops */
    bool keep;
    char *data; /* of `elements`; element 0 at `origin`; NULL: more than RIG_MAX */
    int64_t elements, origin;
};

/* An operand: a value, or a scalar. */
struct rig_in {
    uint32_t value; /* RIG_NONE: a scalar; RIG_ABSENT: nothing */
    uint32_t dtype;
    frit_scalar scalar;
};

struct rig_op {
    uint32_t id, n_in, out;
    uint32_t n_more, more[FRIT_OP_MAX_OUT - 1]; /* outputs after the first */
    struct rig_in in[FRIT_OP_MAX_IN];
    const void *attrs; /* the caller's, until the rig ends */
    uint64_t extra[2]; /* seed, counter */
};

struct rig {
    uint32_t n_values, n_ops;
    struct rig_value values[RIG_VALUES];
    struct rig_op ops[RIG_OPS];
    struct kir_target target;
    uint32_t index_width;
    uint32_t most_groups; /* of the last phase that run; 0: all */
    bool no_classes;      /* the signature says nothing of bounds and scalars */
    /* After rig_run. */
    struct block block;
    struct kir_module module;
    struct sched_numbers numbers;
    frit_signature sig;
    frit_arg_sig args[RIG_VALUES];
    int64_t extents[RIG_VALUES * FRIT_MAX_RANK];
    frit_scalar scalars[RIG_SCALARS];
    int64_t bounds[RIG_BOUNDS];
    uint8_t bound_classes[RIG_BOUNDS], scalar_classes[RIG_SCALARS]; /* of attributes alone */
    uint32_t n_scalars, n_bounds;
};

/* A target that has everything, with groups of 64. */
void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);

/* A dense tensor of zeros. */
uint32_t rig_input(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims);
/* One whose dims lie in memory in this order, outermost first, those of `negative` backwards and
 * with gaps of `gap` elements between the innermost. */
uint32_t rig_laid(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                  const uint32_t *order, uint32_t negative, int64_t gap);
struct rig_in rig_value(uint32_t value);
struct rig_in rig_real(uint32_t dtype, double real);
struct rig_in rig_int(uint32_t dtype, int64_t number);
/* The value an op makes. */
uint32_t rig_op(struct rig *rig, uint32_t id, uint32_t n_in, const struct rig_in *in,
                const void *attrs, uint32_t dtype, uint32_t rank, const int64_t *dims);
/* One more output of the last op: the value. */
uint32_t rig_second(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims);
/* Its last value is not forgotten after its last use: it is an output. */
void rig_keep(struct rig *rig, uint32_t value);

/* How many of the block's first ops the schedule covers; 0 if out of memory too. */
uint32_t rig_match(const struct schedule *schedule, const struct block *block, bool *open);
/* Pushes, closes, lowers and verifies all; FRIT_UNSUPPORTED where the schedule says so. */
frit_status rig_build(struct rig *rig, const struct schedule *schedule);
/* The same, then runs it. */
frit_status rig_try(struct rig *rig, const struct schedule *schedule);
void rig_run(struct rig *rig, const struct schedule *schedule);
/* Pushes all ops; what rig_try does first. */
void rig_push(struct rig *rig);
/* Divisions that the lanes of the first phase do each for themselves. */
uint32_t rig_divisions(const struct rig *rig);

/* An element by its row-major number: floats as themselves, integers, bool. */
double rig_get_real(const struct rig *rig, uint32_t value, int64_t number);
int64_t rig_get_int(const struct rig *rig, uint32_t value, int64_t number);
void rig_set_real(struct rig *rig, uint32_t value, int64_t number, double real);
void rig_set_int(struct rig *rig, uint32_t value, int64_t number, int64_t integer);
int64_t rig_count(const struct rig *rig, uint32_t value);

/* Of long lists of shapes and types one in so many is run: with the address sanitizer, where the
 * evaluator takes five times as long, and without FRIT_TEST_LONG=1, 7; else 1. */
uint32_t rig_every(void);
bool rig_is_real(uint32_t dtype);

/* A number below `n`, the next of a fixed sequence. */
uint32_t rig_random(uint64_t *state, uint32_t n);

#endif
