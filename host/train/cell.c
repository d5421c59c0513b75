/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that a step replaces. */
#include "train/cell.h"

#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "graph/op.h"
#include "memory/buffer.h"
#include "tensor/failure.h"
#include "tensor/slot.h"

frit_tensor *cell_own(frit_tensor *tensor)
{
    return frit_ref(handle_plain(tensor));
}

void cell_release(frit_tensor **tensor)
{
    struct slot *slot = *tensor ? slot_enter(*tensor, NULL) : NULL;

    if (slot) {
        slot_leave(slot);
        frit_release(*tensor);
    }
    *tensor = NULL;
}

/* ---- what is known ---- */

enum cell_state { CELL_READY, CELL_PENDING, CELL_FAILED, CELL_GONE };

/* Inside the slot's lock: the buffer of a value that the device may have reported as failed since,
 * pinned; NULL: there is none. */
static struct buffer *pin_suspect(const struct slot *slot)
{
    struct buffer *buffer = slot->state == SLOT_READY ? slot->value.buffer : NULL;

    if (!buffer || !atomic_load(&slot->device->n_spoiled))
        return NULL;
    buffer_pin(buffer);
    return buffer;
}

/* FAILED, GONE: `err` says why.  Does not wait. */
static enum cell_state look(frit_tensor *tensor, frit_err *err)
{
    struct slot *slot = slot_enter(tensor, err);
    struct buffer *suspect;
    struct failure *failure = NULL;
    enum slot_state state;
    frit_device *device;

    if (!slot)
        return CELL_GONE;
    state = slot->state;
    device = slot->device;
    if (state == SLOT_FAILED)
        failure = failure_ref(slot->failure);
    suspect = pin_suspect(slot);
    slot_leave(slot);
    if (suspect) {
        failure = lineage_failure_of(device->lineage, suspect);
        buffer_unpin(suspect);
    }
    if (!failure)
        return state == SLOT_PENDING ? CELL_PENDING : CELL_READY;
    fail(err, failure->status, "%s", failure->text);
    failure_unref(failure);
    return CELL_FAILED;
}

/* ---- steps ---- */

void cells_go_back(struct cells *cells)
{
    for (uint32_t i = 0; i < cells->n; i++) {
        struct cell *cell = &cells->cell[i];

        if (!cell->before)
            continue;
        cell_release(&cell->now);
        cell->now = cell->before;
        cell->before = NULL;
    }
    cells->is_pending = false;
}

static void forget_before(struct cells *cells)
{
    for (uint32_t i = 0; i < cells->n; i++)
        cell_release(&cells->cell[i].before);
    cells->is_pending = false;
}

frit_status cells_settle(struct cells *cells, const char *call, frit_err *err)
{
    bool is_pending = false;

    for (uint32_t i = 0; i < cells->n; i++) {
        const enum cell_state state = look(cells->cell[i].now, err);

        if (state == CELL_FAILED && cells->is_pending)
            cells_go_back(cells);
        if (state == CELL_FAILED)
            return fail_context(err, "%s: an earlier step has failed", call);
        if (state == CELL_GONE)
            return fail_context(err, "%s: tensor %u", call, i);
        is_pending |= state == CELL_PENDING;
    }
    if (!is_pending)
        forget_before(cells);
    return FRIT_OK;
}

frit_status cells_commit(struct cells *cells, const char *call, frit_err *err)
{
    for (uint32_t i = 0; i < cells->n; i++) {
        const enum cell_state state = look(cells->cell[i].next, err);

        if (state == CELL_READY || state == CELL_PENDING)
            continue;
        cells_drop(cells);
        return fail_context(err, "%s", call);
    }
    for (uint32_t i = 0; i < cells->n; i++) {
        struct cell *cell = &cells->cell[i];

        if (cells->keeps && !cells->is_pending)
            cell->before = cell->now;
        else
            cell_release(&cell->now);
        cell->now = cell->next;
        cell->next = NULL;
    }
    cells->is_pending = cells->keeps;
    return FRIT_OK;
}

void cells_drop(struct cells *cells)
{
    for (uint32_t i = 0; i < cells->n; i++)
        cell_release(&cells->cell[i].next);
}

/* A failed tensor has one too. */
static frit_status type_of(frit_tensor *tensor, struct op_type *out, frit_err *err)
{
    struct slot *slot = slot_enter(tensor, err);

    if (!slot)
        return FRIT_INVALID;
    *out = slot->value.type;
    slot_leave(slot);
    return FRIT_OK;
}

frit_status cells_set(struct cells *cells, uint32_t index, frit_tensor *tensor, const char *call,
                      frit_err *err)
{
    struct cell *cell = &cells->cell[index];
    struct op_type have, want;
    char text[128], other[128];

    if (type_of(tensor, &have, err))
        return fail_context(err, "%s: the tensor", call);
    if (frit_tensor_status(tensor))
        return fail(err, frit_tensor_status(tensor), "%s: %s", call, frit_tensor_error(tensor));
    if (type_of(cell->now, &want, err))
        return fail_context(err, "%s: the state", call);
    if (!op_type_equal(&have, &want))
        return fail(err, FRIT_INVALID, "%s: the tensor is %s, the state %s", call,
                    op_type_text(&have, text, sizeof(text)),
                    op_type_text(&want, other, sizeof(other)));
    cell_release(&cell->now);
    cell->now = cell_own(tensor);
    return FRIT_OK;
}

void cells_fini(struct cells *cells)
{
    forget_before(cells);
    cells_drop(cells);
    for (uint32_t i = 0; i < cells->n; i++)
        cell_release(&cells->cell[i].now);
}
