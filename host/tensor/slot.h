/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor slots and the handles that name them.
 *
 * A handle is the address of a slot with the slot's generation and a take bit in the bits that an
 * aligned user-space address leaves free; it is never dereferenced before it was resolved.  All
 * slots of the process lie in one reserved region that is never unmapped, so that a stale or
 * foreign handle is told from a live one by arithmetic and one load.
 *
 * `life` holds generation, owners (handles the program has to release) and uses (queued ops and
 * calls under way) in one word, so that "is it alive, then use it" is one compare-and-swap.  When
 * the last owner goes, the generation changes and the handle is stale for all threads; when the
 * last use goes too, the slot's contents are dropped.  Threads: any. */
#ifndef TENSOR_SLOT_H
#define TENSOR_SLOT_H

#include <stdatomic.h>

#include <frit/frit.h>

#include "tensor/failure.h"
#include "tensor/value.h"

struct stream;

/* EMPTY -> PENDING -> READY or FAILED; the last two are final but for frit_write, which keeps
 * READY. */
enum slot_state { SLOT_EMPTY, SLOT_PENDING, SLOT_READY, SLOT_FAILED };

struct slot {
    _Alignas(128) atomic_uint_least64_t life;
    atomic_uint state;    /* enum slot_state; release after `value` or `failure` is written */
    atomic_flag busy;     /* held for a few instructions around reading or swapping value.buffer */
    uint32_t scope_index; /* in the owning scope stack; changed by the stream's thread alone */
    _Atomic(frit_device *) device;  /* NULL only on failures without one */
    struct stream *home;            /* where it is computed */
    _Atomic(struct stream *) scope; /* stream whose scope owns it, NULL: the program */
    struct failure *failure;
    struct value value;
    struct slot *next_free;
};

/* A slot with one owner and one use (the caller's), state PENDING, and its handle.
 * FRIT_NO_HOST_MEMORY where there is none left. */
frit_status slot_create(frit_device *device, struct stream *home, struct slot **out, frit_err *err);
frit_tensor *slot_handle(const struct slot *slot);

/* Resolves a handle and adds a use.  NULL: `err` says whether it is stale, foreign or NULL. */
struct slot *slot_use(frit_tensor *tensor, frit_err *err);
/* Adds a use to a slot that is already in use. */
void slot_use_again(struct slot *slot);
void slot_unuse(struct slot *slot);

/* Adds and gives back an owner through a handle; false for a handle that names nothing. */
bool slot_own(frit_tensor *tensor);
bool slot_disown(frit_tensor *tensor);
/* Whether some handle of it is alive; whether there are more uses than one; either. */
bool slot_owned(const struct slot *slot);
bool slot_shared(const struct slot *slot);
bool slot_wanted(const struct slot *slot);

enum slot_state slot_state(const struct slot *slot);
/* Ends PENDING; the type was set before the handle went out.  The value's buffer is taken over. */
void slot_set_ready(struct slot *slot, const struct value *value);
/* Ends PENDING, or spoils a READY slot; takes over one reference. */
void slot_set_failed(struct slot *slot, struct failure *failure);
/* A consistent copy of a READY slot's value with its buffer pinned for the caller. */
void slot_pin_value(struct slot *slot, struct value *out);
/* Replaces the buffer of a READY slot by one with a dense layout, taking it over. */
void slot_swap_buffer(struct slot *slot, struct buffer *buffer);

/* The handle with the take bit, whether it is set, and the handle without. */
frit_tensor *handle_take(frit_tensor *tensor);
bool handle_taken(const frit_tensor *tensor);
frit_tensor *handle_plain(frit_tensor *tensor);
/* An error tensor that needs no memory and survives any release. */
frit_tensor *handle_immortal(frit_status status);

/* Live handles of a device. */
uint64_t slot_count(const frit_device *device);
/* Ends every handle of a device that is being closed; no call on it is under way. */
void slot_end_device(const frit_device *device);

#endif
