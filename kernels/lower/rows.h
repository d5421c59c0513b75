/* SPDX-License-Identifier: Apache-2.0 */
/* What rows.def lists, by op id: a function that lowers one element, or one that looks through a
 * view.  All are pure but for what they emit. */
#ifndef LOWER_ROWS_H
#define LOWER_ROWS_H

#include <frit/op_table.h>

#include "ir/kir.h"
#include "ir/target.h"
#include "lower/space.h"

enum lower_result { LOWER_EXACT, LOWER_ROUNDS };
enum lower_at { LOWER_NOTHING, LOWER_NUMBER, LOWER_DIAGONAL };
enum view_count { VIEW_SAME, VIEW_OTHER };

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
};

/* The value, of kir_type_of(dtype). */
typedef uint32_t (*lower_fn)(const struct lower *l);

struct lower_row {
    lower_fn fn;
    uint32_t result; /* enum lower_result */
    uint32_t at;     /* enum lower_at */
};

/* One view: the map of its operand from that of its result. */
struct view {
    struct space *space;
    const void *attrs;
    uint32_t in_rank, out_rank;
    int64_t in[FRIT_MAX_RANK], out[FRIT_MAX_RANK]; /* dims */
};

/* False: attributes that make no sense. */
typedef bool (*view_fn)(const struct view *view, const struct space_map *of, struct space_map *in);

struct view_row {
    view_fn fn;
    uint32_t count; /* enum view_count */
};

/* NULL: not listed. */
const struct lower_row *lower_row_of(uint32_t op);
const struct view_row *view_row_of(uint32_t op);

/* Rounds or wraps a value to what a tensor of this type can hold. */
uint32_t lower_round(struct kir_module *m, uint32_t dtype, uint32_t value);

#define LOWER_ROW(name, RESULT, AT) uint32_t lower_##name(const struct lower *l);
#define LOWER_VIEW(name, COUNT) \
    bool view_##name(const struct view *view, const struct space_map *of, struct space_map *in);
#include "lower/rows.def"

#endif
