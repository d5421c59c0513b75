/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ops as data: the rows of ops.def and the attribute records of attrs.def. */
#ifndef FRIT_OP_H
#define FRIT_OP_H

#include <frit/types.h>

/* Op ids: FRIT_OP_add and so on.  Custom ops (custom.h) get numbers from FRIT_OP_CUSTOM on, which
 * mean something in one process only: their names are what lasts. */
enum {
    FRIT_OP_none = 0,
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) \
    FRIT_OP_##name = (id),
#include <frit/ops.def>
    FRIT_OP_LIMIT = 320, /* every row's id is below */
    FRIT_OP_CUSTOM = 0x8000
};

enum {
    FRIT_CLASS_NONE = 0,
    FRIT_CLASS_VIEW,
    FRIT_CLASS_COPY,
    FRIT_CLASS_CAST,
    FRIT_CLASS_INIT,
    FRIT_CLASS_RANDOM,
    FRIT_CLASS_MAP, /* elementwise, whatever the row: a promise, see ops.def */
    FRIT_CLASS_REDUCE,
    FRIT_CLASS_ARG_REDUCE,
    FRIT_CLASS_SCAN,
    FRIT_CLASS_INDEX,
    FRIT_CLASS_JOIN,
    FRIT_CLASS_CONTRACT,
    FRIT_CLASS_POOL,
    FRIT_CLASS_RESAMPLE,
    FRIT_CLASS_NORM,
    FRIT_CLASS_SORT,
    FRIT_CLASS_FFT,
    FRIT_CLASS_LOSS,
    FRIT_CLASS_QUANT,
    FRIT_CLASS_COLLECTIVE,
    FRIT_CLASS_GRADIENT
};

enum { FRIT_LEVEL_NONE = 0, FRIT_LEVEL_CORE, FRIT_LEVEL_COMPOSITE };

/* Traits of a row; legend in ops.def. */
#define FRIT_OP_COMMUTES 0x01u
#define FRIT_OP_ASSOC    0x02u
#define FRIT_OP_SCALARS  0x04u
#define FRIT_OP_SEEDED   0x08u
#define FRIT_OP_ORDERED  0x10u

/* How an operand or a result is declared in its row, and its type letter; legend in ops.def. */
enum {
    FRIT_ROLE_NONE = 0,
    FRIT_ROLE_IN,
    FRIT_ROLE_OPT,
    FRIT_ROLE_NUM,
    FRIT_ROLE_MANY,
    FRIT_ROLE_OUT,
    FRIT_ROLE_XOUT
};

enum {
    FRIT_LETTER_NONE = 0,
    FRIT_LETTER_T,
    FRIT_LETTER_N,
    FRIT_LETTER_F,
    FRIT_LETTER_Z,
    FRIT_LETTER_L,
    FRIT_LETTER_R,
    FRIT_LETTER_I,
    FRIT_LETTER_BOOL,
    FRIT_LETTER_I64,
    FRIT_LETTER_D,
    FRIT_LETTER_P
};

/* What an operand is. */
enum { FRIT_OPERAND_ABSENT = 0, FRIT_OPERAND_TENSOR = 1, FRIT_OPERAND_SCALAR = 2 };

/* ---- attribute records ---- */

typedef struct frit_axes {
    int64_t count; /* 0 = none given, else 1..FRIT_MAX_RANK */
    int64_t axis[FRIT_MAX_RANK];
} frit_axes;

typedef struct frit_dims {
    int64_t rank;
    int64_t dim[FRIT_MAX_RANK];
} frit_dims;

#define FRIT_SLICE_END \
    INT64_MAX /* as `stop` of a positive, or with a negative step: to the end of the dim */

typedef struct frit_range {
    int64_t start; /* negative counts from the end */
    int64_t stop;  /* exclusive; negative counts from the end */
    int64_t step;  /* 0: the whole dim, start and stop ignored */
} frit_range;

typedef struct frit_slices {
    int64_t count; /* dims from here on are whole */
    frit_range dim[FRIT_MAX_RANK];
} frit_slices;

/* How a field of each type is declared. */
#define FRIT_FIELD_INT(name)    int64_t name
#define FRIT_FIELD_FLAG(name)   int64_t name
#define FRIT_FIELD_CHOICE(name) int64_t name
#define FRIT_FIELD_DTYPE(name)  int64_t name
#define FRIT_FIELD_AXIS(name)   int64_t name
#define FRIT_FIELD_AXES(name)   frit_axes name
#define FRIT_FIELD_DIMS(name)   frit_dims name
#define FRIT_FIELD_VEC(name)    int64_t name[3]
#define FRIT_FIELD_SLICES(name) frit_slices name
#define FRIT_FIELD_REAL(name)   double name

/* struct frit_attrs_conv and so on.  The first field is the size, as in every struct of the
 * contract. */
#define FRIT_ATTRS(record)               \
    typedef struct frit_attrs_##record { \
        uint32_t struct_size;            \
        uint32_t reserved;
#define FRIT_ATTR(record, field, TYPE, USE, PLACE, list, meaning) FRIT_FIELD_##TYPE(field);
#define FRIT_ATTRS_END(record) \
    }                          \
    frit_attrs_##record;
#include <frit/attrs.def>

/* FRIT_CHOICE_update_add and so on; the word as in the text form. */
enum {
#define FRIT_CHOICE(list, value, name) FRIT_CHOICE_##list##_##name = (value),
#include <frit/attrs.def>
    FRIT_CHOICE_none = 0
};

enum {
    FRIT_ATTR_INT = 1,
    FRIT_ATTR_FLAG,
    FRIT_ATTR_CHOICE,
    FRIT_ATTR_DTYPE,
    FRIT_ATTR_AXIS,
    FRIT_ATTR_AXES,
    FRIT_ATTR_DIMS,
    FRIT_ATTR_VEC,
    FRIT_ATTR_SLICES,
    FRIT_ATTR_REAL
};

enum { FRIT_USE_KEY = 1, FRIT_USE_LAUNCH, FRIT_USE_SHAPE };

enum { FRIT_PLACE_POS = 1, FRIT_PLACE_NAMED };

#endif
