/* SPDX-License-Identifier: Apache-2.0 */
/* What rows.def lists, by op id: a function that lowers one element, or one that looks through a
 * view.  All are pure but for what they emit. */
#ifndef LOWER_ROWS_H
#define LOWER_ROWS_H

#include <frit/op_table.h>

#include "ir/kir.h"
#include "ir/target.h"
#include "lower/space/space.h"

struct sched;

enum lower_result { LOWER_EXACT, LOWER_ROUNDS, LOWER_WRAPS };
enum lower_at { LOWER_NOTHING, LOWER_NUMBER, LOWER_DIAGONAL, LOWER_TURNED, LOWER_PACKED };
enum lower_scalars { LOWER_OWN, LOWER_WIDE };
enum view_count { VIEW_SAME, VIEW_OTHER };
enum join_axis { JOIN_NONE, JOIN_OLD, JOIN_NEW };

/* One element of one op. */
struct lower {
    struct kir_module *m;
    const struct kir_target *target;
    uint32_t dtype; /* of the result */
    uint32_t n;
    uint32_t in_dtype[FRIT_OP_MAX_IN];
    uint32_t in[FRIT_OP_MAX_IN]; /* values, of kir_type_of(in_dtype) */
    uint32_t seed, counter;      /* I64, of a SEEDED row */
    uint32_t at;                 /* index; see rows.def */
    const void *attrs;           /* KEY fields */
};

/* The value, of kir_type_of(dtype). */
typedef uint32_t (*lower_fn)(const struct lower *l);

struct lower_row {
    lower_fn fn;
    uint32_t result;  /* enum lower_result */
    uint32_t at;      /* enum lower_at */
    uint32_t scalars; /* enum lower_scalars */
};

/* One view: the map of its operand from that of its result. */
struct view {
    struct space *space;
    const void *attrs; /* KEY fields */
    uint32_t in_rank, out_rank;
    int64_t in[FRIT_MAX_RANK], out[FRIT_MAX_RANK]; /* dims */
    const struct sched *s;                         /* knows of bounds; the op's begin at: */
    uint32_t first_bound;
};

/* False: attributes that make no sense. */
typedef bool (*view_fn)(const struct view *view, const struct space_map *of, struct space_map *in);

struct view_row {
    view_fn fn;
    uint32_t count; /* enum view_count */
};

/* As a view of operand `part`, whose element is read where its coordinates are within its dims and
 * all of `zero` are 0. */
typedef bool (*part_fn)(const struct view *view, const struct space_map *of, struct space_map *in,
                        struct space_map *zero);

struct part_row {
    part_fn fn;
    uint32_t part, rest; /* operands */
};

/* Reading x, of dims, where the elements of an index say: the coordinates in both of an element of
 * the result.  That in x along `axis` is the index's element, brought within the dim, and not
 * given. */
struct pick {
    const void *attrs;
    uint32_t rank, index_rank, out_rank;
    int64_t dims[FRIT_MAX_RANK], index[FRIT_MAX_RANK], out[FRIT_MAX_RANK];
};

/* False: dims or attributes that make no sense. */
typedef bool (*pick_fn)(const struct pick *pick, const struct space_map *of, struct space_map *in,
                        struct space_map *index, uint32_t *axis);

/* NULL: not listed. */
pick_fn pick_row_of(uint32_t op);
enum join_axis join_row_of(uint32_t op);
const struct part_row *part_row_of(uint32_t op);
const struct lower_row *lower_row_of(uint32_t op);
const struct view_row *view_row_of(uint32_t op);
/* Whether it costs about as much as what loads its operands: it may be done again and again. */
bool lower_is_cheap(uint32_t op);

/* ---- what rows are made of ---- */

/* Rounds or wraps a value of kir_type_of(dtype) to what a tensor of this type can hold. */
uint32_t lower_fit(struct kir_module *m, uint32_t dtype, uint32_t value);
/* A number as a value of a type. */
uint32_t lower_const(struct kir_module *m, uint32_t dtype, double number);
/* Of an element in memory. */
uint32_t lower_bits(uint32_t dtype);
bool lower_is_float(uint32_t dtype);
bool lower_is_unsigned(uint32_t dtype); /* integers, not bool */
/* a < b, the smaller, the larger; of bool too; NaN wins. */
uint32_t lower_less(struct kir_module *m, uint32_t dtype, uint32_t a, uint32_t b);
uint32_t lower_min(struct kir_module *m, uint32_t dtype, uint32_t a, uint32_t b);
uint32_t lower_max(struct kir_module *m, uint32_t dtype, uint32_t a, uint32_t b);

#define LOWER_ROW(name, RESULT, AT, SCALARS, COST) uint32_t lower_##name(const struct lower *l);
#define LOWER_VIEW(name, COUNT) \
    bool view_##name(const struct view *view, const struct space_map *of, struct space_map *in);
#define LOWER_PART(name, part, rest)                                                            \
    bool part_##name(const struct view *view, const struct space_map *of, struct space_map *in, \
                     struct space_map *zero);
#define LOWER_PICK(name)                                                                        \
    bool pick_##name(const struct pick *pick, const struct space_map *of, struct space_map *in, \
                     struct space_map *index, uint32_t *axis);
#include "lower/rows/rows.def"

#endif
