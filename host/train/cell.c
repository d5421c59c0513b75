/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that a step replaces. */
#include "train/cell.h"

#include "base/fail.h"
#include "graph/op.h"
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

/* The state of a tensor's slot; SLOT_EMPTY: it is gone. */
static enum slot_state state_of(frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);
    enum slot_state state = slot ? slot->state : SLOT_EMPTY;

    if (slot)
        slot_leave(slot);
    return state;
}

static bool has_failed(frit_tensor *tensor)
{
    return state_of(tensor) == SLOT_FAILED;
}

static void go_back(struct cells *cells)
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
        frit_tensor *now = cells->cell[i].now;
        const enum slot_state state = state_of(now);

        if (state == SLOT_EMPTY)
            return fail(err, FRIT_INVALID,
                        "%s: tensor %u is gone: it was released once too often, or its device was "
                        "closed",
                        call, i);
        if (state == SLOT_FAILED) {
            fail(err, frit_tensor_status(now), "%s: an earlier step has failed: %s", call,
                 frit_tensor_error(now));
            if (cells->is_pending)
                go_back(cells);
            return err->status;
        }
        is_pending |= state == SLOT_PENDING;
    }
    if (!is_pending)
        forget_before(cells);
    return FRIT_OK;
}

frit_status cells_commit(struct cells *cells, const char *call, frit_err *err)
{
    for (uint32_t i = 0; i < cells->n; i++) {
        frit_tensor *next = cells->cell[i].next;

        if (!next || !has_failed(next))
            continue;
        fail(err, frit_tensor_status(next), "%s: %s", call, frit_tensor_error(next));
        cells_drop(cells);
        return err->status;
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
