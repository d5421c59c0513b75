/* SPDX-License-Identifier: Apache-2.0 */
/* The relative form of a graph, without sizes, which fusers receive and plans are saved in.
 *
 * Values have the graph's numbers; extents above 1 are numbered in order of first appearance; of
 * the attributes only KEY fields are set.  It is appended to op by op.  One thread at a time. */
#ifndef PLAN_RELATIVE_H
#define PLAN_RELATIVE_H

#include <stdbool.h>

#include <frit/op_table.h>
#include <frit/program.h>

#include "base/arena.h"

struct graph;
struct op_type;
struct str;

/* All zeros: empty. */
struct relative {
    struct arena arena;
    frit_op_desc *ops;
    uint32_t n_ops, ops_capacity;
    uint32_t n_values; /* 1 + the largest value number */
    int64_t *extents;  /* extents[k] is the size of extent number k + 2 */
    uint32_t n_extents, extents_capacity;
    uint32_t n_scalars; /* number of SCALAR operands so far */
    uint32_t n_deaths;  /* deaths in the lists of all ops */
};

void relative_fini(struct relative *relative);
/* Removes all ops, keeping the memory. */
void relative_reset(struct relative *relative);

/* Appends the relative form of graph->ops[op], which must be the next op.  `dead`: values that die
 * with it.  After a failure nothing has changed. */
frit_status relative_append(struct relative *relative, const struct graph *graph, uint32_t op,
                            const uint32_t *dead, uint32_t n_dead, frit_err *err);
/* Adds a death to an existing op. */
frit_status relative_add_death(struct relative *relative, uint32_t op, uint32_t value,
                               frit_err *err);

/* Deaths, each moved to the last op that uses or makes the value: those of op i are
 * values[first[i]] .. values[first[i + 1] - 1]. */
struct relative_deaths {
    uint32_t *first; /* per op: index of its first death in `values`; one more for the end */
    uint32_t *values;
};
/* Allocates the result in the arena.  Ignores deaths of values that no op has.  Values must be
 * below n_values. */
frit_status relative_last_uses(const struct relative *relative, struct arena *arena,
                               struct relative_deaths *out, frit_err *err);

/* Sets a tensor operand: extents 0 and 1 are sizes, others are numbered from 2 by first appearance
 * in `extents`, which must have capacity for the type's. */
void relative_tensor(int64_t *extents, uint32_t *n_extents, const struct op_type *type,
                     uint32_t value, frit_operand *out);
/* Copies the KEY attributes to a zeroed record; `attrs` may be NULL if there are no fields. */
void relative_attrs(const frit_record_info *record, const void *attrs, unsigned char *out);

/* Whether two ops have equal ids, operands and KEY attributes; deaths are not compared. */
bool relative_same_op(const frit_op_desc *a, const frit_op_desc *b);

/* Serialises the ops `first` .. `end` - 1: if the preceding ops are equal, equal bytes mean equal
 * ops.  Omits deaths; writes custom ops with name and revision, so that the bytes do not depend on
 * the process. */
void relative_write(const struct relative *relative, uint32_t first, uint32_t end, struct str *out);

/* Prints a line per op:
 *   3: add f32[a, b] %0, %1 -> %2 | dead %0
 * with extents as letters in order of first appearance, 0 and 1 as digits, scalars as "s". */
void relative_print(const struct relative *relative, struct str *out);

#endif
