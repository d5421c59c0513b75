/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of ops: what an op is given, and the check that says what it gives.
 *
 * Every op that enters the host, from C, from text or from a decomposition, passes op_check once.
 */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include <stdbool.h>

#include <string.h>

#include <frit/op_table.h>
#include <frit/status.h>

/* Element type and dims of a value. */
struct op_type {
    uint32_t dtype; /* FRIT_NO_DTYPE: no value */
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
};

/* What is longer than its rank is not looked at: the first dims go in one step. */
static inline void op_type_copy(struct op_type *to, const struct op_type *from)
{
    enum { FEW = 4 };

    to->dtype = from->dtype;
    to->rank = from->rank;
    if (from->rank <= FEW)
        memcpy(to->dims, from->dims, FEW * sizeof(*to->dims));
    else
        memcpy(to->dims, from->dims, from->rank * sizeof(*to->dims));
}

struct op_input {
    uint32_t kind;       /* FRIT_OPERAND_* */
    struct op_type type; /* TENSOR; SCALAR after the check: rank 0 and the type it is used as */
    frit_scalar scalar;  /* SCALAR; after the check F64 for floats, U64 for unsigned, else I64 */
};

struct op_call {
    uint32_t op;
    uint32_t n_in;
    uint32_t wanted; /* bit k: XOUT output k is wanted */
    struct op_input *in;
    void *attrs; /* the row's record; NULL only for the record `none` */
};

/* Checks arity, element types, scalars, attributes and dims, and infers the outputs: `out` has room
 * for FRIT_OP_MAX_OUT, unwanted ones get FRIT_NO_DTYPE.  Every slot of the row has its operand,
 * absent ones are marked.  The text names the op, the broken rule and the operands' types.
 *
 * Rewrites the attributes into the form drivers see (legend of attrs.def): defaults filled, axes
 * counted from the front, sets of axes ascending, slices resolved (empty: 0, 0, 1; one element:
 * step 1; a negative step that runs to the front stops at FRIT_SLICE_END).  Rewrites scalars into
 * the kind of their type, a scalar in the place of a tensor also into its precision; an F of NUM
 * operands alone is f32.  A checked call passes again and does not change. */
frit_status op_check(struct op_call *call, struct op_type *out, frit_err *err);

/* A type whose dims are no dims, or whose elements or bytes do not fit in 63 bits, fails. */
frit_status op_type_check(const struct op_type *type, frit_err *err);

/* The row of an id, one of ops.def or a custom op's; NULL if there is none. */
const frit_op_info *op_row(uint32_t op);
/* Whether there is such a row, of a view. */
bool op_is_view(uint32_t op);
/* What its attributes are; op_custom_record is for rows of custom ops. */
const frit_record_info *op_custom_record(const frit_op_info *row);
static inline const frit_record_info *op_record(const frit_op_info *row)
{
    return row->record < FRIT_RECORD_COUNT ? frit_record_info_at(row->record)
                                           : op_custom_record(row);
}
/* The row of a name, NULL if there is none. */
const frit_op_info *op_find(frit_str name);
/* The nearest name in ops.def, for "did you mean"; NULL if none is near. */
const char *op_nearest(const char *name);

/* Elements of a type whose dims passed a check. */
int64_t op_elements(const struct op_type *type);
static inline bool op_type_equal(const struct op_type *a, const struct op_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dims[d] != b->dims[d])
            return false;
    }
    return true;
}
/* "f32[500, 64]" into `text`, cut if it does not fit; returns text. */
const char *op_type_text(const struct op_type *type, char *text, size_t size);

/* Number of outputs and of operand slots of a row. */
uint32_t op_n_out(const frit_op_info *row);
uint32_t op_n_slots(const frit_op_info *row);
/* The slot that operand `index` of `n_in` fills: a MANY slot takes all that the others leave. */
const frit_slot_info *op_slot(const frit_op_info *row, uint32_t n_in, uint32_t index);

#endif
