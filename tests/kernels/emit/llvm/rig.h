/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code of modules, made and run by the tests here.  They skip where there is no LLVM. */
#ifndef TESTS_KERNELS_EMIT_LLVM_RIG_H
#define TESTS_KERNELS_EMIT_LLVM_RIG_H

#include "emit/llvm/blob.h"
#include "emit/llvm/llvm.h"

struct rig {
    struct llvm *llvm;    /* NULL: there is none */
    struct llvm_cpu best; /* this machine's */
};

/* Of a group of tests. */
int rig_open(void **state);
int rig_close(void **state);
const struct rig *rig_of(void **state);

/* What fails, fails the test. */
struct object *rig_compile(const struct rig *rig, const struct kir_module *m,
                           const struct llvm_cpu *cpu, int level);
void *rig_scratch(const struct object *object, uint32_t phase); /* one thread's, from malloc */
void rig_run(const struct object *object, uint32_t phase, const uint32_t *grid,
             const uint64_t *words, void *const *args, bool streams);

#endif
