/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The rows of ops.def and attrs.def as constant data, for whoever wants to loop over them.
 *
 * Not part of the contract: each includer has its own copy, as new as its own headers. */
#ifndef FRIT_OP_TABLE_H
#define FRIT_OP_TABLE_H

#include <frit/op.h>

enum { FRIT_OP_MAX_IN = 6, FRIT_OP_MAX_OUT = 5, FRIT_OP_MAX_FIELDS = 7 };

typedef struct frit_field_info {
    const char *name;
    const char *choices; /* list name of a CHOICE, else "none" */
    const char *meaning;
    uint32_t type;   /* FRIT_ATTR_* */
    uint32_t use;    /* FRIT_USE_* */
    uint32_t place;  /* FRIT_PLACE_* */
    uint32_t offset; /* in the record */
    uint32_t size;
    uint32_t reserved;
} frit_field_info;

typedef struct frit_record_info {
    const char *name;
    uint32_t size; /* of the whole record */
    uint32_t n_fields;
    frit_field_info field[FRIT_OP_MAX_FIELDS];
} frit_record_info;

typedef struct frit_slot_info {
    const char *name; /* NULL after the last */
    uint32_t role;    /* FRIT_ROLE_* */
    uint32_t letter;  /* FRIT_LETTER_* */
} frit_slot_info;

typedef struct frit_op_info {
    const char *name; /* NULL where no row has this id */
    uint32_t id;
    uint32_t cls;   /* FRIT_CLASS_* */
    uint32_t level; /* FRIT_LEVEL_* */
    uint32_t traits;
    uint32_t rev;
    uint32_t record; /* index for frit_record_info_at */
    frit_slot_info in[FRIT_OP_MAX_IN + 1];
    frit_slot_info out[FRIT_OP_MAX_OUT + 1];
    const char *meaning;
} frit_op_info;

/* FRIT_RECORD_conv and so on: index of a record, in the order of attrs.def; private to an includer.
 */
enum {
#define FRIT_ATTRS(record) FRIT_RECORD_##record,
#include <frit/attrs.def>
    FRIT_RECORD_COUNT
};

/* The macros below make initialisers and case labels, which take no parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
static inline const frit_record_info *frit_record_info_at(uint32_t record)
{
    enum {
#define FRIT_ATTRS(record)                                        n_fields_of_##record = 0
#define FRIT_ATTR(record, field, TYPE, USE, PLACE, list, meaning) +1
#define FRIT_ATTRS_END(record)                                    ,
#include <frit/attrs.def>
    };
    static const frit_record_info table[] = {
#define FRIT_ATTRS(record) \
    {#record, (uint32_t)sizeof(frit_attrs_##record), (uint32_t)n_fields_of_##record, {
#define FRIT_ATTR(record, field, TYPE, USE, PLACE, list, meaning) \
    {#field,                                                      \
     #list,                                                       \
     meaning,                                                     \
     FRIT_ATTR_##TYPE,                                            \
     FRIT_USE_##USE,                                              \
     FRIT_PLACE_##PLACE,                                          \
     (uint32_t)offsetof(frit_attrs_##record, field),              \
     (uint32_t)sizeof(((frit_attrs_##record *)0)->field),         \
     0},
#define FRIT_ATTRS_END(record)             \
    {                                      \
        NULL, NULL, NULL, 0, 0, 0, 0, 0, 0 \
    }                                      \
    }                                      \
    }                                      \
    ,
#include <frit/attrs.def>
    };
    return record < FRIT_RECORD_COUNT ? &table[record] : NULL;
}

typedef struct frit_choice_info {
    const char *list;
    const char *name;
    int64_t value;
} frit_choice_info;

/* The words of every enumeration, list by list; NULL beyond the last. */
static inline const frit_choice_info *frit_choice_info_at(uint32_t index)
{
    static const frit_choice_info table[] = {
#define FRIT_CHOICE(list, value, name) {#list, #name, value},
#include <frit/attrs.def>
    };
    return index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}

static inline const frit_op_info *frit_op_info_at(uint32_t id)
{
    enum {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) row_##name,
#include <frit/ops.def>
        n_rows
    };
#define IN(name, letter)   {#name, FRIT_ROLE_IN, FRIT_LETTER_##letter},
#define OPT(name, letter)  {#name, FRIT_ROLE_OPT, FRIT_LETTER_##letter},
#define NUM(name, letter)  {#name, FRIT_ROLE_NUM, FRIT_LETTER_##letter},
#define MANY(name, letter) {#name, FRIT_ROLE_MANY, FRIT_LETTER_##letter},
#define OUT(name, letter)  {#name, FRIT_ROLE_OUT, FRIT_LETTER_##letter},
#define XOUT(name, letter) {#name, FRIT_ROLE_XOUT, FRIT_LETTER_##letter},
    static const frit_op_info rows[n_rows] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) \
    {#name,                                                                        \
     id,                                                                           \
     FRIT_CLASS_##cls,                                                             \
     FRIT_LEVEL_##level,                                                           \
     (traits),                                                                     \
     rev,                                                                          \
     FRIT_RECORD_##attrs,                                                          \
     {in{NULL, 0, 0}},                                                             \
     {out{NULL, 0, 0}},                                                            \
     meaning},
#include <frit/ops.def>
    };
#undef IN
#undef OPT
#undef NUM
#undef MANY
#undef OUT
#undef XOUT
    switch (id) {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) \
    case id:                                                                       \
        return &rows[row_##name];
#include <frit/ops.def>
    default:
        return NULL;
    }
}
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
