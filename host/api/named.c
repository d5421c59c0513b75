/* SPDX-License-Identifier: Apache-2.0 */
/* Ops by name: finds the op, fills the record of its attributes, and calls it. */
#include <frit/custom.h>
#include <frit/op_table.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/call.h"
#include "api/report.h"
#include "base/fail.h"
#include "base/str.h"
#include "graph/custom.h"
#include "graph/foreign.h"
#include "graph/op.h"
#include "graph/scalar.h"

/* A record that is filled from named attributes. */
struct fill {
    const frit_op_info *row;
    const frit_record_info *record;
    unsigned char *at;
    frit_err *err;
};

/* ---- one attribute ---- */

static frit_status wrong_kind(const struct fill *f, const frit_field_info *field, const char *wants)
{
    return fail(f->err, FRIT_INVALID, "%s: attribute %s is %s", f->row->name, field->name, wants);
}

static frit_status fill_real(const struct fill *f, const frit_field_info *field,
                             const frit_attr *attr)
{
    double value;

    if (attr->list || attr->value.kind == FRIT_SCALAR_NONE || attr->value.kind > FRIT_SCALAR_U64)
        return wrong_kind(f, field, "a number");
    value = scalar_number(&attr->value);
    memcpy(f->at + field->offset, &value, sizeof(value));
    return FRIT_OK;
}

static frit_status fill_whole(const struct fill *f, const frit_field_info *field,
                              const frit_attr *attr)
{
    bool whole = attr->value.kind == FRIT_SCALAR_I64 ||
                 (attr->value.kind == FRIT_SCALAR_U64 && attr->value.bits <= INT64_MAX);

    if (attr->list || !whole)
        return wrong_kind(f, field, "one whole number");
    memcpy(f->at + field->offset, &attr->value.bits, sizeof(attr->value.bits));
    return FRIT_OK;
}

/* A list: its count, except for a VEC, then the numbers; an item consists of `per` numbers. */
static frit_status fill_list(const struct fill *f, const frit_field_info *field,
                             const frit_attr *attr, uint64_t per)
{
    bool vec = field->type == FRIT_ATTR_VEC;
    uint64_t most = vec ? 3 : FRIT_MAX_RANK * per;
    int64_t count;

    if (!attr->list || attr->n_list > most || attr->n_list % per)
        return fail(f->err, FRIT_INVALID,
                    "%s: attribute %s is a list of at most %" PRIu64 " numbers%s", f->row->name,
                    field->name, most, per > 1 ? ", start, stop and step per dim" : "");
    count = (int64_t)(attr->n_list / per);
    if (!vec)
        memcpy(f->at + field->offset, &count, sizeof(count));
    memcpy(f->at + field->offset + (vec ? 0 : sizeof(count)), attr->list,
           attr->n_list * sizeof(*attr->list));
    return FRIT_OK;
}

static frit_status fill_field(const struct fill *f, const frit_field_info *field,
                              const frit_attr *attr)
{
    switch (field->type) {
    case FRIT_ATTR_REAL:
        return fill_real(f, field, attr);
    case FRIT_ATTR_AXES:
    case FRIT_ATTR_DIMS:
    case FRIT_ATTR_VEC:
        return fill_list(f, field, attr, 1);
    case FRIT_ATTR_SLICES:
        return fill_list(f, field, attr, 3);
    default:
        return fill_whole(f, field, attr);
    }
}

/* ---- all of them ---- */

static uint32_t find_field(const struct fill *f, const char *name)
{
    uint32_t i = 0;

    while (i < f->record->n_fields && (!name || strcmp(f->record->field[i].name, name) != 0))
        i++;
    return i;
}

static frit_status fail_unknown_attr(const struct fill *f, const char *name)
{
    fail(f->err, FRIT_INVALID, "%s: there is no attribute '%s'; it has", f->row->name,
         name ? name : "");
    for (uint32_t i = 0; i < f->record->n_fields; i++)
        fail_append(f->err, "%s %s", i ? "," : "", f->record->field[i].name);
    if (!f->record->n_fields)
        fail_append(f->err, " none");
    return FRIT_INVALID;
}

static frit_status fill_attrs(const struct fill *f, const frit_named_call *call)
{
    uint64_t size = f->record->size;
    uint32_t given = 0;

    memcpy(f->at, &size, sizeof(size));
    for (uint64_t i = 0; i < call->n_attrs; i++) {
        uint32_t at = find_field(f, call->attrs[i].name);

        if (at == f->record->n_fields)
            return fail_unknown_attr(f, call->attrs[i].name);
        if (given >> at & 1)
            return fail(f->err, FRIT_INVALID, "%s: attribute %s is given twice", f->row->name,
                        f->record->field[at].name);
        given |= 1u << at;
        TRY(fill_field(f, &f->record->field[at], &call->attrs[i]));
    }
    for (uint32_t i = 0; i < f->record->n_fields; i++) {
        const frit_field_info *field = &f->record->field[i];

        if (field->place == FRIT_PLACE_POS && !(given >> i & 1))
            return fail(f->err, FRIT_INVALID, "%s: the attribute %s is missing: %s", f->row->name,
                        field->name, field->meaning);
    }
    return FRIT_OK;
}

/* ---- the call ---- */

static frit_status fail_unknown_op(const char *name, frit_err *err)
{
    const struct foreign *foreign = foreign_op(str_of(name));
    const char *nearest = op_nearest(name);
    struct str known = {0};
    char hint[160];

    if (strchr(name, '.')) {
        str_addf(&known, ": ");
        custom_explain_unknown(str_of(name), &known);
    } else if (foreign) {
        str_addf(&known, "%s", foreign_text(foreign, hint, sizeof(hint)));
    } else if (nearest) {
        str_addf(&known, ": did you mean '%s'?", nearest);
    }
    fail(err, FRIT_INVALID, "frit_op_named: unknown op '%.64s'%s", name,
         known.text ? known.text : "");
    str_fini(&known);
    return FRIT_INVALID;
}

static bool call_is_sized(const frit_named_call *call)
{
    return call && call->struct_size >= FRIT_END_OF(frit_named_call, n_attrs);
}

static frit_status check(const frit_named_call *call, const frit_op_info **row, frit_err *err)
{
    if (process_is_barred())
        return report_barred(err, "frit_op_named");
    if (!call_is_sized(call))
        return fail(err, FRIT_INVALID,
                    "frit_op_named: the call is NULL or its struct_size is not set");
    if (!call->name)
        return fail(err, FRIT_INVALID, "frit_op_named: the name is NULL");
    *row = op_find(str_of(call->name));
    if (!*row)
        return fail_unknown_op(call->name, err);
    if (call->n_in > INT32_MAX || (call->n_in && !call->in))
        return fail(err, FRIT_INVALID, "%s: %" PRIu64 " operands%s", call->name, call->n_in,
                    call->in ? " are too many" : " at NULL");
    if (call->n_attrs && !call->attrs)
        return fail(err, FRIT_INVALID, "%s: %" PRIu64 " attributes at NULL", call->name,
                    call->n_attrs);
    return FRIT_OK;
}

void frit_op_named(frit_device *device, const frit_named_call *call, frit_tensor **outputs,
                   uint64_t n_outputs)
{
    uint64_t record[FRIT_CUSTOM_RECORD / sizeof(uint64_t)] = {0};
    const frit_op_info *row = NULL;
    frit_err err = ERR_INIT;
    frit_status st = check(call, &row, &err);

    if (!st) {
        const struct fill f = {row, op_record(row), (unsigned char *)record, &err};

        st = fill_attrs(&f, call);
    }
    if (!st) {
        const frit_call plain = {.struct_size = sizeof(plain),
                                 .op = row->id,
                                 .n_in = (uint32_t)call->n_in,
                                 .in = call->in,
                                 .attrs = record};

        frit_op(device, &plain, outputs, n_outputs);
        return;
    }
    if (!call_is_sized(call) || call->n_in > INT32_MAX)
        api_refuse(device, NULL, 0, outputs, n_outputs, &err);
    else
        api_refuse(device, call->in, (uint32_t)call->n_in, outputs, n_outputs, &err);
}
