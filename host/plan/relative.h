/* SPDX-License-Identifier: Apache-2.0 */
/* The relative form of a graph: what fusers see and what plans are saved as.
 *
 * Value numbers are those of the graph; extents above 1 are numbered in order of first appearance;
 * of the attributes only KEY fields are set, at the row's record size.  Grown op by op, so that a
 * search can follow a queue.  Threads: one at a time. */
#ifndef PLAN_RELATIVE_H
#define PLAN_RELATIVE_H

#include "base/arena.h"
#include "base/str.h"
#include "graph/graph.h"

/* All zero is empty. */
struct relative {
    struct arena arena;
    frit_op_desc *ops;
    uint32_t n_ops, ops_room;
    uint32_t n_values; /* one more than the largest value number */
    int64_t *extents;  /* extents[k] is number k + 2 */
    uint32_t n_extents, extents_room;
    uint32_t n_scalars; /* SCALAR operands so far: their numbers */
    uint32_t n_deaths;  /* over all ops */
};

void relative_fini(struct relative *relative);
/* Empties it, keeping the memory. */
void relative_reset(struct relative *relative);

/* Appends the relative form of graph->ops[op], which must be the next op.  `dead`: values that die
 * with it.  On failure nothing has changed. */
frit_status relative_append(struct relative *relative, const struct graph *graph, uint32_t op,
                            const uint32_t *dead, uint32_t n_dead, frit_err *err);
/* Adds a death to an op that is there already. */
frit_status relative_bury(struct relative *relative, uint32_t op, uint32_t value, frit_err *err);

/* Deaths, each moved to the last op that uses or makes the value: those of op i are
 * values[first[i]] to before values[first[i + 1]]. */
struct relative_deaths {
    uint32_t *first; /* n_ops + 1 */
    uint32_t *values;
};
/* Into the arena.  A death of a value that no op has is left out.  Values must be below n_values.
 */
frit_status relative_last_uses(const struct relative *relative, struct arena *arena,
                               struct relative_deaths *out, frit_err *err);

/* The parts of an op.  A tensor operand: extents 0 and 1 are themselves, others are numbered from 2
 * by first appearance in `extents`, which has room for those of the type. */
void relative_tensor(int64_t *extents, uint32_t *n_extents, const struct op_type *type,
                     uint32_t value, frit_operand *out);
/* The KEY attributes into a zeroed record; `attrs` NULL: one without fields. */
void relative_attrs(const frit_record_info *record, const void *attrs, unsigned char *out);

/* Whether the two are the same ops: ids, operands, KEY attributes; deaths are not compared. */
bool relative_same_op(const frit_op_desc *a, const frit_op_desc *b);

/* Appends ops `first` to before `end` as bytes: equal bytes after equal ops mean equal ops.  Deaths
 * are left out; custom ops go by name and revision, so that another process writes the same. */
void relative_write(const struct relative *relative, uint32_t first, uint32_t end, struct str *out);

/* One line per op, for tests and explain:
 *   3: add f32[a, b] %0, %1 -> %2 | dead %0
 * extents as letters in order of first appearance, 0 and 1 as digits, scalars as "s". */
void relative_print(const struct relative *relative, struct str *out);

#endif
