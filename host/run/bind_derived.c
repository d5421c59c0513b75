/* SPDX-License-Identifier: Apache-2.0 */
/* Only what is derived from a frame's external operands is kept: what is made inside of the frame
 * is too young to be derived from twice.  Others find it once the submit that fills it went
 * through, so that they are after that in the queue. */
#include "run/bind_derived.h"

#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/prepared.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/batch.h"
#include "run/bind_args.h"
#include "run/frame.h"
#include "run/launch_parts.h"
#include "tensor/value.h"

void derived_key_of(const frit_derived_spec *spec, const struct value *operand,
                    struct derived_key *out)
{
    memset(out, 0, sizeof(*out));
    out->tag = spec->tag;
    out->bytes = spec->bytes;
    out->dtype = operand->type.dtype;
    out->rank = operand->type.rank;
    out->first = operand->layout.offset;
    memcpy(out->dims, operand->type.dims, out->rank * sizeof(*out->dims));
    memcpy(out->strides, operand->layout.strides, out->rank * sizeof(*out->strides));
}

static bool is_external(const struct frame *frame, const struct buffer *buffer)
{
    for (uint32_t i = 0; i < frame->n_values; i++) {
        if (frame->values[i].external && frame->values[i].value.buffer == buffer)
            return true;
    }
    return false;
}

static bool is_written(const struct batch *batch, const struct buffer *buffer)
{
    for (uint32_t i = 0; i < batch->n_written; i++) {
        if (batch->written[i] == buffer)
            return true;
    }
    return false;
}

/* The number of the operand's contents, 0: what is derived from them is not kept. */
static uint64_t content_of(const struct launch *l, uint32_t arg)
{
    struct buffer *buffer = l->in[arg].buffer;

    return !l->copy_of && is_external(l->frame, buffer) && !is_written(l->batch, buffer)
               ? derived_content(buffer)
               : 0;
}

static frit_status find_or_fill(struct launch *l, struct derived_use *use, frit_err *err)
{
    struct buffer *of = l->in[use->arg].buffer;
    frit_status st;

    use->memory = derived_find(of, use->content, &use->key);
    if (!use->memory)
        use->memory = batch_find_derived(l->batch, use->content, &use->key);
    if (use->memory)
        return FRIT_OK;
    use->fill = true;
    TRY(buffer_create(l->frame->device->memory, use->key.bytes, false, &use->memory, err));
    st = batch_derives(
        l->batch,
        &(struct batch_derived){
            .of = of, .memory = use->memory, .content = use->content, .key = use->key},
        err);
    if (st)
        buffer_disown(use->memory);
    return st;
}

static frit_status bind(struct launch *l, const frit_derived_spec *spec, struct derived_use *use,
                        frit_derived *out, frit_err *err)
{
    *use = (struct derived_use){.arg = spec->arg, .content = content_of(l, spec->arg)};
    use->kept = use->content != 0;
    derived_key_of(spec, &l->in[spec->arg], &use->key);
    if (use->kept) {
        TRY(find_or_fill(l, use, err));
        frame_add_workspace(l->frame, use->memory, NO_CHANGE);
        TRY(batch_uses(l->batch, use->memory, use->fill, err));
        launch_touch(l, use->memory->handle, use->memory->offset, spec->bytes, use->fill);
        l->args[spec->arg].content_id = use->content;
    } else {
        use->fill = true;
        TRY(launch_workspace(l, spec->bytes, false, &use->memory, err));
    }
    *out = (frit_derived){use->memory->handle, use->memory->offset, use->fill, 0};
    return FRIT_OK;
}

frit_status launch_bind_derived(struct launch *l, frit_err *err)
{
    uint32_t n = l->prepared->spec.n_derived;
    frit_derived *derived = arena_array(&l->batch->arena, n + 1u, sizeof(*derived));

    l->derived = arena_array(&l->batch->arena, n + 1u, sizeof(*l->derived));
    if (!derived || !l->derived)
        return fail_memory(err, sizeof(*derived));
    for (uint32_t i = 0; i < n; i++) {
        TRY(bind(l, prepared_derived(l->prepared, i), &l->derived[i], &derived[i], err));
        atomic_fetch_add(l->derived[i].fill ? &l->frame->device->count.derived_fills
                                            : &l->frame->device->count.derived_hits,
                         1);
    }
    l->launch->n_derived = n;
    l->launch->derived = derived;
    return FRIT_OK;
}
