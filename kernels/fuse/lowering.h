/* SPDX-License-Identifier: Apache-2.0 */
/* The state while a block and a signature are lowered to the kernels of a launch, and the ways to
 * do it: the whole block as one kernel, each component as a space of a kernel, or a product by the
 * vendor's library and the rest as a kernel.  Not thread-safe. */
#ifndef FUSE_LOWERING_H
#define FUSE_LOWERING_H

#include "fuse/program.h"
#include "lower/block/components.h"

struct prepared_space;

/* State while a block is lowered; `arena` has temporary arrays. */
struct lowering {
    const struct program *program;
    const struct schedule *schedule; /* NULL: the vendor's library */
    const struct kir_target *target; /* the device's, or a variation's */
    bool is_reduced;                 /* it may reduce products */
    const frit_signature *sig;
    int64_t *extents;
    struct arena arena;
    struct prepared *out;
    uint32_t bodies_capacity;
    struct component *components;
    struct prepared_space *spaces;
    uint32_t n_spaces;
    uint8_t (*digests)[KIR_DIGEST]; /* per body */
    uint32_t digests_capacity;
};

/* Sets `extents`. */
frit_status lowering_extents(struct lowering *l, frit_err *err);
/* The ways; each fills `out` but for its phases and digest. */
frit_status lowering_whole(struct lowering *l, frit_err *err);
frit_status lowering_components(struct lowering *l, frit_err *err);
frit_status lowering_product(struct lowering *l, frit_err *err);

/* ---- parts of them ---- */

/* Initialises and builds the module of `s`; on success the caller owns it. */
frit_status lowering_build(const struct lowering *l, const struct schedule *schedule,
                           struct sched *s, frit_err *err);
/* Adds a body for a new module, which it takes, also on failure. */
frit_status lowering_add_body(struct lowering *l, const struct sched *s, struct body **out,
                              frit_err *err);
/* Adds a body for a product, which is allocated in the arena of `out`. */
frit_status lowering_add_product(struct lowering *l, struct kernels_product_launch *product,
                                 frit_err *err);
/* Lists the inputs of a bit mask as arguments of the launch; args[i] is the block's argument that
 * bit i stands for. */
frit_status lowering_add_alias(struct lowering *l, uint64_t inputs, const uint32_t *args,
                               frit_output_spec *out, frit_err *err);
frit_output_spec *lowering_output(const struct lowering *l, uint32_t output);
#endif
