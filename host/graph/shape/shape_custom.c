/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of custom ops: the attributes that need operand 0's dims, then the plugin's infer, of
 * whose answer nothing is believed. */
#include "graph/shape/shape_custom.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "graph/custom.h"
#include "graph/custom_call.h"
#include "graph/shape/shape.h"

/* ---- attributes ---- */

static frit_status axes_from_front(const struct shape_call *s, frit_axes *axes)
{
    for (int64_t i = 0; i < axes->count; i++)
        TRY(shape_axis(s, &axes->axis[i], shape_in(s, 0)->rank));
    return FRIT_OK;
}

static frit_status settle_field(const struct shape_call *s, const frit_field_info *field)
{
    void *at = (char *)s->call->attrs + field->offset;
    int64_t dims[FRIT_MAX_RANK];

    switch (field->type) {
    case FRIT_ATTR_AXIS:
        return shape_axis(s, at, shape_in(s, 0)->rank);
    case FRIT_ATTR_AXES:
        return axes_from_front(s, at);
    case FRIT_ATTR_SLICES:
        return shape_slices(s, at, dims);
    default:
        return FRIT_OK;
    }
}

static frit_status settle_attrs(const struct shape_call *s)
{
    const frit_record_info *record = op_record(s->row);

    for (uint32_t i = 0; i < record->n_fields && s->call->n_in; i++)
        TRY(settle_field(s, &record->field[i]));
    return FRIT_OK;
}

/* ---- the call as a plugin sees it ---- */

static void operand_out(const struct op_input *in, uint32_t *value, frit_custom_operand *out)
{
    *out = (frit_custom_operand){.kind = in->kind, .scalar = in->scalar};
    out->type = custom_type(&in->type);
    if (in->kind == FRIT_OPERAND_TENSOR)
        out->value = (*value)++;
}

frit_custom_type custom_type(const struct op_type *type)
{
    frit_custom_type out = {.dtype = type->dtype, .rank = type->rank};

    memcpy(out.dims, type->dims, type->rank * sizeof(*type->dims));
    return out;
}

frit_status custom_view_init(struct custom_view *view, const frit_op_info *row,
                             const struct op_call *call, const struct op_type *out, frit_err *err)
{
    uint32_t value = 0;

    *view = (struct custom_view){.in = view->fixed, .none = {sizeof(uint64_t)}};
    if (call->n_in > FRIT_CUSTOM_IN) {
        view->in = calloc(call->n_in, sizeof(*view->in));
        if (!view->in)
            return fail_memory(err, call->n_in * sizeof(*view->in));
    }
    for (uint32_t i = 0; i < call->n_in; i++)
        operand_out(&call->in[i], &value, &view->in[i]);
    for (uint32_t k = 0; k < op_n_out(row); k++)
        view->out[k] = custom_type(&out[k]);
    view->call = (frit_custom_call){.struct_size = FRIT_END_OF(frit_custom_call, attrs),
                                    .n_in = call->n_in,
                                    .n_out = op_n_out(row),
                                    .wanted = call->wanted,
                                    .in_stride = sizeof(*view->in),
                                    .out_stride = sizeof(*view->out),
                                    .in = view->in,
                                    .out = view->out,
                                    .attrs = op_record(row)->n_fields ? call->attrs : view->none};
    return FRIT_OK;
}

void custom_view_fini(struct custom_view *view)
{
    if (view->in != view->fixed)
        free(view->in);
}

frit_status custom_fail(const frit_op_info *row, const char *slot, frit_status status,
                        frit_err *said, frit_err *err)
{
    said->text[sizeof(said->text) - 1] = '\0';
    text_clean(said->text, strlen(said->text), said->text, sizeof(said->text));
    if (!status_is_listed(status))
        return fail(err, FRIT_INTERNAL, "%s: '%s' of plugin '%s' returned %d", row->name, slot,
                    custom_at(row->id)->plugin, status);
    if (!said->text[0])
        return fail(err, status, "%s: '%s' of plugin '%s' refused and gave no reason (%s)",
                    row->name, slot, custom_at(row->id)->plugin, status_name(status));
    return fail(err, status, "%s: %s", row->name, said->text);
}

/* ---- results ---- */

static frit_status take_result(const struct shape_call *s, uint32_t k, const frit_custom_type *type)
{
    const char *plugin = custom_at(s->row->id)->plugin;
    const char *name = s->row->out[k].name;

    if (type->rank > FRIT_MAX_RANK)
        return fail(s->err, FRIT_INTERNAL,
                    "%s: plugin '%s' infers rank %u for %s, the largest is 8", s->row->name, plugin,
                    type->rank, name);
    if (s->row->out[k].letter == FRIT_LETTER_NONE)
        s->out[k].dtype = type->dtype;
    s->out[k].rank = type->rank;
    memcpy(s->out[k].dims, type->dims, type->rank * sizeof(*type->dims));
    if (op_type_check(&s->out[k], s->err)) {
        fail_context(s->err, "%s: plugin '%s' infers nonsense for %s", s->row->name, plugin, name);
        return FRIT_INTERNAL;
    }
    return FRIT_OK;
}

frit_status shape_custom(struct shape_call *s)
{
    const struct custom_op *custom = custom_at(s->row->id);
    frit_custom_type out[FRIT_CUSTOM_OUT] = {0};
    frit_err said = ERR_INIT;
    struct custom_view view;
    frit_status st;

    TRY(settle_attrs(s));
    TRY(custom_view_init(&view, s->row, s->call, s->out, s->err));
    memcpy(out, view.out, sizeof(out));
    st = custom->infer(custom->self, &view.call, out, &said);
    if (st)
        st = custom_fail(s->row, "infer", st, &said, s->err);
    for (uint32_t k = 0; k < view.call.n_out && !st; k++)
        st = take_result(s, k, &out[k]);
    custom_view_fini(&view);
    return st;
}
