/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/attrs.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "graph/dtype.h"

frit_status attrs_copy(const frit_op_info *row, const void *given, void *out, frit_err *err)
{
    uint64_t size = op_record(row)->size, known = 0;

    memset(out, 0, size);
    if (given) {
        memcpy(&known, given, sizeof(known));
        if (known < sizeof(known))
            return fail(err, FRIT_INVALID, "%s: the attributes' struct_size is not set", row->name);
        for (uint64_t i = size; i < known; i++) {
            if (((const unsigned char *)given)[i])
                return fail(err, FRIT_UNSUPPORTED,
                            "%s: the attributes have fields this version does not know", row->name);
        }
        memcpy(out, given, known < size ? known : size);
    }
    memcpy(out, &size, sizeof(size));
    return FRIT_OK;
}

static bool choice_exists(const char *list, int64_t value)
{
    const frit_choice_info *choice;

    for (uint32_t i = 0; (choice = frit_choice_info_at(i)); i++) {
        if (choice->value == value && strcmp(choice->list, list) == 0)
            return true;
    }
    return false;
}

/* Fields that are one int64_t. */
static const char *check_number(const frit_field_info *field, int64_t value)
{
    switch (field->type) {
    case FRIT_ATTR_INT:
        return value < 0 ? "is negative" : NULL;
    case FRIT_ATTR_FLAG:
        return value != 0 && value != 1 ? "is neither 0 nor 1" : NULL;
    case FRIT_ATTR_CHOICE:
        return choice_exists(field->choices, value) ? NULL : "is none of the choices";
    case FRIT_ATTR_DTYPE:
        return value > 0 && value < FRIT_DTYPE_LIMIT && dtype_class((uint32_t)value)
                   ? NULL
                   : "is not an element type";
    default:
        return NULL;
    }
}

/* The count of a list, and what lies beyond it to zero; `item` in bytes. */
static const char *check_list(void *list, size_t item)
{
    int64_t count;

    memcpy(&count, list, sizeof(count));
    if (count < 0)
        return "has a negative count";
    if (count > FRIT_MAX_RANK)
        return "has more entries than the 8 dims that a tensor can have";
    memset((char *)list + sizeof(count) + (size_t)count * item, 0,
           (size_t)(FRIT_MAX_RANK - count) * item);
    return NULL;
}

/* Window sizes are small, so that their products fit. */
static const char *check_vec(const int64_t *vec)
{
    for (int i = 0; i < 3; i++) {
        if (vec[i] < 0)
            return "has a negative entry";
        if (vec[i] > INT32_MAX)
            return "has an entry beyond 2147483647";
    }
    return NULL;
}

static const char *check_field(const frit_field_info *field, void *at)
{
    switch (field->type) {
    case FRIT_ATTR_AXES:
        return check_list(at, sizeof(int64_t));
    case FRIT_ATTR_DIMS:
        return check_list(at, sizeof(int64_t));
    case FRIT_ATTR_SLICES:
        return check_list(at, sizeof(frit_range));
    case FRIT_ATTR_VEC:
        return check_vec(at);
    case FRIT_ATTR_REAL:
        return isfinite(*(double *)at) ? NULL : "is not finite";
    default:
        return check_number(field, *(int64_t *)at);
    }
}

frit_status attrs_check(const frit_op_info *row, void *attrs, frit_err *err)
{
    const frit_record_info *record = op_record(row);

    if (!record->n_fields)
        return FRIT_OK;
    if (!attrs || *(uint64_t *)attrs != record->size)
        return fail(err, FRIT_INVALID, "%s: attributes are missing", row->name);
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];
        const char *why = check_field(field, (char *)attrs + field->offset);

        if (why)
            return fail(err, FRIT_INVALID, "%s: attribute %s %s", row->name, field->name, why);
    }
    return FRIT_OK;
}

uint32_t attrs_dtype(const frit_op_info *row, const void *attrs)
{
    const frit_record_info *record = op_record(row);

    for (uint32_t i = 0; i < record->n_fields; i++) {
        if (record->field[i].type == FRIT_ATTR_DTYPE)
            return (uint32_t) * (const int64_t *)((const char *)attrs + record->field[i].offset);
    }
    return FRIT_NO_DTYPE;
}
