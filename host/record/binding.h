/* SPDX-License-Identifier: Apache-2.0 */
/* The binding of a thread to a device: the stream that it records into there, and its scopes.
 *
 * Threads: a binding is touched by its thread alone, unless said otherwise. */
#ifndef RECORD_BINDING_H
#define RECORD_BINDING_H

#include "record/scope.h"
#include "record/stream.h"

struct binding {
    frit_device *device;
    uint64_t device_id;    /* differs from that of a closed device at the same address */
    struct stream *stream; /* that it records into now */
    struct stream *own;    /* the thread's own, which it records into unless it entered another */
    struct scopes scopes;
    uint32_t persistent; /* open persistent sections */
    uint32_t context;    /* of the ops that it records now, see context.h */
};

/* Whether the calling thread holds a baton.  A call that it makes then comes out of a driver or
 * fuser and must not run anything: it would wait for itself. */
bool thread_is_executing(void);
void thread_set_executing(bool executing);

/* The calling thread's binding, made at the first use.  Fails in a process that is barred. */
frit_status binding_current(frit_device *device, struct binding **out, frit_err *err);
/* The same if there is one already, else NULL. */
struct binding *binding_peek(const frit_device *device);
/* The one that the thread used last on any device, NULL: none. */
extern _Thread_local struct binding *binding_last __attribute__((tls_model("initial-exec")));
/* The binding for a tensor without a device: one with an open scope, else the last used; NULL: the
 * thread used no device that is open. */
struct binding *binding_any(void);

/* Sections of persistent memory on the device of a binding. */
void binding_persistent_begin(struct binding *binding);
void binding_persistent_end(struct binding *binding); /* does nothing where none is open */
/* Sections of a numeric class on all devices.  The strictest of those that are open holds. */
void thread_numeric_begin(uint32_t numeric_class);
bool thread_numeric_end(void); /* false: none is open */

/* In the child of a fork (base/process.h): its thread has no bindings any more. */
void bindings_bar(void);

/* Makes the thread record into `stream`, NULL: its own again; *before gets the stream that it left,
 * NULL for its own.  FRIT_BUSY if another thread is in it. */
frit_status binding_set_stream(frit_device *device, struct stream *stream, struct stream **before,
                               frit_err *err);

/* Inside the lock of the binding's stream: a slot for an output; it belongs to the innermost scope.
 * NULL if out of memory. */
static inline __attribute__((always_inline)) struct slot *
binding_create_output(struct binding *binding, uint32_t op, const struct op_type *type)
{
    struct slot *slot = slot_create(&binding->stream->home, binding->device);

    if (!slot)
        return NULL;
    slot->made_by = op;
    op_type_copy(&slot->value.type, type);
    if (scope_add(&binding->scopes, slot))
        return slot;
    slot_disown(slot);
    slot_end(slot);
    return NULL;
}

#endif
