/* SPDX-License-Identifier: Apache-2.0 */
/* Short names for building and running small modules in tests. */
#ifndef TESTS_KERNELS_IR_RIG_H
#define TESTS_KERNELS_IR_RIG_H

#include "ir/eval.h"
#include "ir/kir.h"

/* Bits of a float. */
uint64_t bits_f32(float value);
uint64_t bits_f64(double value);

/* Appends an instruction without immediate to the last phase; 0 to 3 operands. */
#define OP0(m, op)          kir_emit(m, KIR_##op, KIR_NONE, KIR_NONE, KIR_NONE)
#define OP1(m, op, a)       kir_emit(m, KIR_##op, a, KIR_NONE, KIR_NONE)
#define OP2(m, op, a, b)    kir_emit(m, KIR_##op, a, b, KIR_NONE)
#define OP3(m, op, a, b, c) kir_emit(m, KIR_##op, a, b, c)

/* Loads and stores of element `at` of argument `n` or (tload, tstore) tile `n`. */
uint32_t rig_load(struct kir_module *m, enum kir_type type, uint32_t n, uint32_t at);
void rig_store(struct kir_module *m, uint32_t n, uint32_t at, uint32_t value);
uint32_t rig_tload(struct kir_module *m, enum kir_type type, uint32_t n, uint32_t at);
void rig_tstore(struct kir_module *m, uint32_t n, uint32_t at, uint32_t value);

/* I32 constant. */
uint32_t rig_int(struct kir_module *m, int32_t value);

/* An argument over a whole array. */
#define RIG_ARRAY(array) ((struct eval_arg){(array), 0, sizeof(array)})

/* Runs a module of one phase over `groups` groups; an error fails the test. */
void rig_run(const struct kir_module *m, const uint64_t *words, const struct eval_arg *args,
             uint32_t groups);
/* The run must fail with FRIT_INVALID and exactly this text. */
void rig_run_bad(const struct kir_module *m, const uint64_t *words, const struct eval_arg *args,
                 uint32_t groups, const char *text);

/* An example module: out[row] = the sum of a row of in, with a loop, a tile and an if.  Arguments:
 * f32 read, f32 written; one I32 parameter, the length of a row; a group per row. */
void rig_row_sum(struct kir_module *m);

#endif
