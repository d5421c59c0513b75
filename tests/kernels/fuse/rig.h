/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the tests in this folder: builders of relative ops, a device that stores the modules
 * given to it for compilation and runs them with the evaluator, and launches of programs. */
#ifndef TESTS_FUSE_RIG_H
#define TESTS_FUSE_RIG_H

#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "kernels.h"

/* ---- relative ops ---- */

enum { RIG_OPS = 96, RIG_OPERANDS = 5, RIG_ARGS = 120, RIG_WORDS = 512 };

struct rig_ops {
    uint32_t n;
    frit_op_desc op[RIG_OPS];
    frit_operand operand[RIG_OPS][RIG_OPERANDS];
    uint32_t dead[RIG_OPS][RIG_OPERANDS];
};

/* Operands of type f32: a tensor whose dims have the extents 2 .. rank + 1, a scalar. */
frit_operand rig_tensor(uint32_t value, uint32_t rank);
frit_operand rig_scalar(uint32_t number);

/* Appends an op with one output; `dead` ends with UINT32_MAX, NULL: nothing dies. */
void rig_unary(struct rig_ops *ops, uint32_t id, frit_operand x, frit_operand y,
               const uint32_t *dead);
void rig_binary(struct rig_ops *ops, uint32_t id, frit_operand a, frit_operand b, frit_operand y,
                const uint32_t *dead);
#define RIG_DEAD(...) ((const uint32_t[]){__VA_ARGS__, UINT32_MAX})

/* (%0 + s0) * %1, negated: %2 and %3 die, %4 is the result. */
void rig_chain(struct rig_ops *ops, uint32_t rank);

/* ---- the device ---- */

struct rig {
    struct kernels_device device;
    atomic_uint n_compiles, n_releases, n_compiling;
    atomic_int fails;       /* the number of compiles that are still to fail */
    atomic_bool held;       /* compiles wait until it is false */
    atomic_uint generation; /* of all code */
    uint64_t serial;
};

void rig_init(struct rig *rig);
/* Fails the test if compiled code was not released. */
void rig_fini(struct rig *rig);
/* Waits until `n` threads are inside compile. */
void rig_await_compiling(struct rig *rig, uint32_t n);

/* ---- programs ---- */

/* The program that a new clone of the fuser of this name makes of all ops. */
frit_program rig_program(struct rig *rig, const char *fuser, const struct rig_ops *ops);
void rig_destroy(frit_program *program);
/* What kernels_supports says of one op. */
bool rig_has_op(const struct kernels_device *device, const frit_op_desc *op);

/* A dense signature of f32 arguments of the same dims. */
struct rig_sig {
    frit_signature sig;
    frit_arg_sig args[RIG_ARGS];
    uint8_t classes[RIG_ARGS];
};
void rig_signature(struct rig_sig *out, uint32_t n_in, uint32_t n_out, uint32_t n_scalars,
                   uint32_t rank, const int64_t *dims);

/* Prepares, and compiles if prepare returned FRIT_PREPARE_NEEDS_COMPILE. */
void rig_prepare(const frit_program *program, const struct rig_sig *sig, frit_launch_spec *spec,
                 frit_variant *variant);

/* The inputs whose memory the output may take according to the spec: bit i is input i. */
uint64_t rig_aliases(const frit_launch_spec *spec, uint32_t output);

/* A launch over these arguments, which have `n` elements each; NULL: absent. */
struct rig_launch {
    frit_launch launch;
    frit_arg args[RIG_ARGS];
    frit_scalar scalars[RIG_ARGS];
    _Alignas(8) char workspace[1 << 17];
    _Alignas(8) char derived[1 << 18];
};
void rig_bind(struct rig_launch *out, const frit_program *program, const frit_launch_spec *spec,
              float *const *args, uint32_t n_args, uint64_t n, const double *scalars,
              uint32_t n_scalars);
/* Runs it by the evaluator. */
void rig_run(const struct rig_launch *launch);

#endif
