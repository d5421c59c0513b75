/* SPDX-License-Identifier: Apache-2.0 */
/* Small plans and a fuser whose programs can be saved, for tests of what keeps plans. */
#ifndef TESTS_PLAN_RIG_H
#define TESTS_PLAN_RIG_H

#include <stdatomic.h>

#include "plan/store.h"

struct program;
struct relative;

/* A chain of `n_ops` unary ops, the values between them dead.  `rows` says which ones: bit i of it
 * for op i.  With a program all ops are one step, else each is one. */
struct plan *rig_plan(uint32_t n_ops, uint32_t rows, struct program *program);
/* As a segment. */
void rig_relative(uint32_t n_ops, uint32_t rows, struct relative *out);

/* The key of op `number`, as good as any. */
struct op_key rig_key(uint64_t number);

/* Counts in *freed when the plan is. */
void rig_watch(struct plan *plan, atomic_uint *freed);

/* A program of `n_bytes` bytes of state, `fill` each; counted while it lives.  With `saved` false
 * its table has no to_state. */
struct program *rig_program(uint32_t n_bytes, uint8_t fill, bool saved);
extern atomic_int rig_live_programs;

/* The only fuser there: number 0. */
extern const frit_fuser_table rig_fuser_table;
/* For the file at `path`; valid while `fuser` is. */
struct store_context rig_context(struct store_fuser *fuser, const char *path);

#endif
