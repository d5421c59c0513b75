/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Custom ops: ops that a plugin adds to those of ops.def.
 *
 * The table lists the ops with their operands, results and attributes, the functions that infer the
 * results' dims, and for some ops a decomposition into ops of ops.def.  Drivers and fusers (of this
 * plugin or of others) compute the ops; they recognise one by `name` and `rev` of its frit_op_desc.
 * If no driver claims an op, the host runs its decomposition, or runs it on another device.
 *
 * A name is "org.example.op/1": words of a-z, 0-9 and '_' that begin with a letter, at least two,
 * separated by dots, then '/' and a number; at most FRIT_CUSTOM_NAME bytes.  An op whose meaning
 * changes gets another number, or at least another `rev`.  The first op of a process that has a name
 * keeps it.  A second one of that name is refused, as is an op that breaks a rule below; the
 * plugin's other ops are not affected.
 *
 * An op with the trait ORDERED has effects: it is never dropped, doubled or moved before or after
 * another such op, and runs though nobody reads its results; where all of them are empty, nothing
 * runs.  Effects of two streams of a device run one after the other, in the order in which the
 * streams submit them: on another queue, the host makes the later one wait for the earlier one's
 * point.
 *
 * The table, what it points to and `self` are constant and valid until the process ends: they
 * belong to the plugin's file, not to an instance. */
#ifndef FRIT_CUSTOM_H
#define FRIT_CUSTOM_H

#include <frit/op.h>
#include <frit/status.h>

enum {
    FRIT_CUSTOM_IN = 6,       /* most operands */
    FRIT_CUSTOM_OUT = 5,      /* most results */
    FRIT_CUSTOM_FIELDS = 7,   /* most attributes */
    FRIT_CUSTOM_RECORD = 512, /* most bytes of their record */
    FRIT_CUSTOM_NAME = 63
};

/* An operand or a result. */
typedef struct frit_custom_slot {
    frit_str name;   /* a word */
    uint32_t role;   /* operands: IN, OPT, NUM, or MANY as the first; results: OUT, XOUT */
    uint32_t letter; /* the type variable, FRIT_LETTER_*: slots of one letter have one type.  NONE:
                        an operand of any type, or a result whose type infer decides.  D: the type
                        that the op's attribute of type DTYPE gives */
} frit_custom_slot;

/* An attribute.  The record of an op is uint32_t struct_size and uint32_t reserved, then its fields
 * in their order, each declared as FRIT_FIELD_<TYPE> says. */
typedef struct frit_custom_field {
    frit_str name;    /* a word */
    frit_str meaning; /* for people */
    uint32_t type;    /* FRIT_ATTR_*, not CHOICE; an INT is not negative */
    uint32_t use;     /* FRIT_USE_*; LAUNCH is for REAL, DIMS and SLICES only */
    uint32_t place;   /* FRIT_PLACE_*: POS (positional) is required; NAMED defaults to 0 */
    uint32_t reserved;
} frit_custom_field;

/* Element type and dims. */
typedef struct frit_custom_type {
    uint32_t dtype; /* FRIT_NO_DTYPE: no tensor, or a result that nobody wants */
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
} frit_custom_type;

typedef struct frit_custom_operand {
    uint32_t kind;         /* FRIT_OPERAND_* */
    uint32_t value;        /* TENSOR: its number in a decomposition */
    frit_custom_type type; /* SCALAR: the type it is used as, rank 0 */
    frit_scalar scalar;
} frit_custom_operand;

/* A call with known dims, checked against slots and fields: element types fit their letters, AXIS
 * and AXES count from the front of operand 0, SLICES are resolved against it. */
typedef struct frit_custom_call {
    uint32_t struct_size;
    uint32_t n_in; /* more than the op lists where the first is MANY */
    uint32_t n_out;
    uint32_t wanted;     /* bit k: result k is wanted */
    uint32_t in_stride;  /* bytes between operands */
    uint32_t out_stride; /* and between results */
    const frit_custom_operand *in;
    const frit_custom_type *out; /* in decompose: what infer said */
    const void *attrs;           /* the record, all fields; never NULL */
} frit_custom_call;

/* An op of a decomposition. */
typedef struct frit_custom_part {
    uint32_t struct_size;
    uint32_t op; /* row of ops.def: SEEDED and ORDERED ones only in an op with that trait */
    uint32_t n_in;
    uint32_t wanted;    /* bit k: XOUT result k is wanted */
    uint32_t in_stride; /* bytes between operands */
    uint32_t reserved;
    const frit_custom_operand *in; /* kind, and value or scalar; `type` is not looked at */
    const void *attrs;             /* of the row's record; NULL: all defaults */
} frit_custom_part;

/* The host's, valid for the call of decompose. */
typedef struct frit_custom_build {
    uint32_t struct_size;
    uint32_t reserved;
    void *self;
    /* [object] +nonblock  Appends an op.  `values` has room for as many numbers as the row has
     * results. */
    frit_status (*add)(void *self, const frit_custom_part *part, uint32_t *values, frit_err *err);
} frit_custom_build;

typedef struct frit_custom_op {
    uint32_t struct_size;
    uint32_t rev; /* of the meaning, from 1 */
    frit_str name;
    frit_str meaning; /* for people */
    uint32_t traits;  /* FRIT_OP_COMMUTES and so on; without results it must be ORDERED */
    uint32_t n_in;
    uint32_t n_out;
    uint32_t n_fields;
    uint32_t slot_stride;  /* bytes between operands, and between results */
    uint32_t field_stride; /* between fields */
    const frit_custom_slot *in;
    const frit_custom_slot *out;
    const frit_custom_field *fields;
    const void *self; /* first argument of the functions below */
    /* [any] +nonblock  required; pure: equal calls have equal results.  Fills rank and dims of each
     * result, wanted or not, and the element type if its letter is NONE; the other element types
     * are set by the host.
     * A failure means that the operands do not fit; say why in err->text. */
    frit_status (*infer)(const void *self, const frit_custom_call *call, frit_custom_type *out,
                         frit_err *err);
    /* [any] +nonblock  NULL: the op has no decomposition.  Adds ops to `build`; for each wanted
     * result k sets results[k] to the number of its value, whose type must be the one that infer
     * gave.  Pure.  Not called if all results are empty. */
    frit_status (*decompose)(const void *self, const frit_custom_call *call,
                             const frit_custom_build *build, uint32_t *results, frit_err *err);
} frit_custom_op;

#define FRIT_OPS_TABLE "frit.ops/1"

typedef struct frit_ops_table {
    uint32_t struct_size;
    uint32_t n_ops;
    uint32_t op_stride;
    uint32_t reserved;
    const frit_custom_op *ops;
} frit_ops_table;

FRIT_STATIC_ASSERT(sizeof(frit_custom_slot) == 24 && sizeof(frit_custom_type) == 72, "frozen");
FRIT_STATIC_ASSERT(sizeof(frit_custom_field) == 48, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_custom_operand) == 96, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_custom_call, attrs) == 48, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_custom_part, attrs) == 40, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_custom_build, add) == 24, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_custom_op, decompose) == 112, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_ops_table, ops) == 24, "0.2");

#endif
