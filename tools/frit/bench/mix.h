/* SPDX-License-Identifier: Apache-2.0 */
/* The mix of ops with which the cost of an op is measured: of eight, three take two tensors of one
 * shape, two a scalar, one broadcasts a row, one is a view, one reduces; half of the results are
 * taken by the op that uses them last, half released.  Square matrices of several sizes in turn.
 * One operand, the weight, may belong to all threads.
 *
 * A mix belongs to one thread. */
#ifndef CLI_BENCH_MIX_H
#define CLI_BENCH_MIX_H

#include <frit/frit.h>

enum { MIX_OPS = 8, MIX_SHAPES = 16, MIX_KEPT = 64 };

/* Which shapes, and how steps are recorded. */
struct mix_form {
    uint32_t n_shapes;        /* at most MIX_SHAPES */
    int64_t side, grows;      /* of the first, and how much larger each next one is */
    uint32_t steps_per_shape; /* then it is the next one's turn */
    uint32_t steps_per_scope; /* 0: no scopes; divides MIX_KEPT */
};

/* 2x2 and 4x4 in turn. */
extern const struct mix_form mix_plain;

struct bench_mix {
    const struct mix_form *form;
    frit_device *device;
    frit_tensor *weight[MIX_SHAPES]; /* borrowed */
    frit_tensor *x[MIX_SHAPES];
    frit_tensor *row[MIX_SHAPES];
    frit_tensor
        *kept[MIX_KEPT]; /* results of the last steps, so that none is dead before it runs */
    uint64_t steps;
};

/* What every thread may use; released by mix_release. */
void mix_weights(frit_device *device, const struct mix_form *form,
                 frit_tensor *weights[MIX_SHAPES]);
void mix_release(frit_tensor *weights[MIX_SHAPES]);
void mix_init(struct bench_mix *mix, frit_device *device, const struct mix_form *form,
              frit_tensor *const weights[MIX_SHAPES]);
void mix_fini(struct bench_mix *mix);

/* `steps` times the eight ops, at most MIX_KEPT, then a flush. */
void mix_run(struct bench_mix *mix, uint64_t steps);
/* The same ops, but each step goes on from the one before: one segment of steps * MIX_OPS ops in
 * one scope; its result, the caller's. */
frit_tensor *mix_chain(struct bench_mix *mix, uint64_t steps);

#endif
