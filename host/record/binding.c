/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's list of bindings, one per device that it used.  A thread that wants to own a stream
 * holds the device's lock, so that no two get one; its owner needs no lock to give it up. */
#include "record/binding.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/process.h"
#include "base/thread.h"
#include "device/device.h"
#include "record/context.h"

struct bindings {
    struct binding **list;
    uint32_t count, capacity;
    /* Open numeric sections, by the class that holds in them: an inner one is never less strict, so
     * that the strictest of these is the innermost. */
    uint32_t n_numeric[FRIT_NUMERIC_RELAXED + 1];
    bool executing;
    int cancel; /* what thread_hold_cancel returned when the baton was taken */
};

static _Thread_local struct bindings mine;
_Thread_local struct binding *binding_last;
static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* Tensors that its open scopes own belong to the program from now on. */
static void binding_destroy(struct binding *binding)
{
    for (uint32_t i = 0; i < binding->scopes.count; i++) {
        struct slot *slot = slot_enter(binding->scopes.entries[i].handle, NULL);

        if (slot) {
            slot->scope = NULL;
            slot_leave(slot);
        }
    }
    free(binding->scopes.entries);
    free(binding);
}

/* The thread gives up the stream, unless the stream has moved to another device meanwhile. */
static void abandon(struct stream *stream, uint64_t device_id)
{
    if (stream && atomic_load(&stream->device_id) == device_id && home_is_mine(&stream->home))
        home_set_owner(&stream->home, NULL);
}

static void forget_thread(void *unused)
{
    (void)unused;
    if (process_is_barred())
        return;
    for (uint32_t i = 0; i < mine.count; i++) {
        abandon(mine.list[i]->stream, mine.list[i]->device_id);
        abandon(mine.list[i]->own, mine.list[i]->device_id);
        binding_destroy(mine.list[i]);
    }
    free(mine.list);
    mine = (struct bindings){0};
    binding_last = NULL;
}

static void make_key(void)
{
    pthread_key_create(&at_thread_end, forget_thread);
}

struct binding *binding_peek(const frit_device *device)
{
    if (binding_last && binding_last->device_id == device->id)
        return binding_last;
    for (uint32_t i = 0; i < mine.count; i++) {
        if (mine.list[i]->device_id == device->id)
            return binding_last = mine.list[i];
    }
    return NULL;
}

bool thread_is_executing(void)
{
    return mine.executing;
}

void thread_set_executing(bool executing)
{
    if (executing)
        mine.cancel = thread_hold_cancel();
    mine.executing = executing;
    if (!executing)
        thread_release_cancel(&mine.cancel);
}

/* What there was stays in memory, where a search for leaks finds it. */
void bindings_bar(void)
{
    mine.count = 0;
    binding_last = NULL;
}

/* ---- sections ---- */

static uint32_t numeric_class(void)
{
    uint32_t strictest = FRIT_NUMERIC_EXACT;

    while (strictest < FRIT_NUMERIC_RELAXED && !mine.n_numeric[strictest])
        strictest++;
    return strictest;
}

static void renew_context(struct binding *binding)
{
    binding->context = context_of(binding->persistent > 0, numeric_class());
}

static void renew_contexts(void)
{
    for (uint32_t i = 0; i < mine.count; i++)
        renew_context(mine.list[i]);
}

void binding_persistent_begin(struct binding *binding)
{
    binding->persistent++;
    renew_context(binding);
}

void binding_persistent_end(struct binding *binding)
{
    if (binding->persistent > 0)
        binding->persistent--;
    renew_context(binding);
}

void thread_numeric_begin(uint32_t class)
{
    const uint32_t outer = numeric_class();

    mine.n_numeric[class < outer ? class : outer]++;
    renew_contexts();
}

bool thread_numeric_end(void)
{
    const uint32_t inner = numeric_class();

    if (!mine.n_numeric[inner])
        return false;
    mine.n_numeric[inner]--;
    renew_contexts();
    return true;
}

/* ---- bindings ---- */

static bool is_open(const struct binding *binding)
{
    return atomic_load(&binding->stream->device_id) == binding->device_id;
}

struct binding *binding_any(void)
{
    struct binding *any = NULL;

    for (uint32_t i = 0; i < mine.count; i++) {
        struct binding *binding = mine.list[i];
        bool last = binding == binding_last;

        if (!is_open(binding))
            continue;
        if (!any || (binding->scopes.depth > 0) > (any->scopes.depth > 0) ||
            (last && (binding->scopes.depth > 0) == (any->scopes.depth > 0)))
            any = binding;
    }
    return any;
}

static struct binding *binding_add(void)
{
    struct binding *binding;

    if (!array_grow(&mine.list, &mine.capacity, mine.count, 1, sizeof(*mine.list)))
        return NULL;
    binding = calloc(1, sizeof(*binding));
    if (binding)
        mine.list[mine.count++] = binding;
    return binding;
}

/* Destroys the bindings to closed devices.  `binding_last` may point to one of them, so it is
 * reset. */
static void sweep(void)
{
    uint32_t kept = 0;

    binding_last = NULL;
    for (uint32_t i = 0; i < mine.count; i++) {
        struct binding *binding = mine.list[i];

        if (is_open(binding))
            mine.list[kept++] = binding;
        else
            binding_destroy(binding);
    }
    mine.count = kept;
}

/* The thread's first use of the device. */
static frit_status bind(frit_device *device, struct binding **out, frit_err *err)
{
    HOLD_CANCEL;
    struct binding *binding;
    struct stream *stream;

    if (process_is_barred())
        return process_refuse(err);
    pthread_once(&key_once, make_key);
    sweep();
    TRY(stream_for_thread(device, &stream, err));
    binding = binding_add();
    if (!binding) {
        abandon(stream, device->id);
        return fail_memory(err, sizeof(*binding));
    }
    pthread_setspecific(at_thread_end, &mine);
    *binding = (struct binding){.device = device,
                                .device_id = device->id,
                                .stream = stream,
                                .own = stream,
                                .scopes.owner = thread_token()};
    renew_context(binding);
    binding_last = *out = binding;
    return FRIT_OK;
}

frit_status binding_current(frit_device *device, struct binding **out, frit_err *err)
{
    struct binding *binding = binding_peek(device);

    *out = binding;
    return binding ? FRIT_OK : bind(device, out, err);
}

/* Under the device's lock. */
static bool is_listed(const frit_device *device, const struct stream *stream)
{
    const struct stream *at = device->streams;

    while (at && at != stream)
        at = at->next;
    return at;
}

frit_status binding_set_stream(frit_device *device, struct stream *stream, struct stream **before,
                               frit_err *err)
{
    struct binding *binding;
    frit_status st = FRIT_OK;

    *before = NULL;
    TRY(binding_current(device, &binding, err));
    if (!stream)
        stream = binding->own;
    if (binding->stream != binding->own)
        *before = binding->stream;
    pthread_mutex_lock(&device->lock);
    if (!is_listed(device, stream) || (stream != binding->own && !stream->explicit))
        st = fail(err, FRIT_INVALID, "stream_enter: not an open stream of %s", device->name);
    else if (atomic_load(&stream->home.owner) && !home_is_mine(&stream->home))
        st = fail(err, FRIT_BUSY, "stream_enter: another thread is in this stream");
    else if (stream != binding->own)
        home_set_owner(&stream->home, thread_token());
    if (!st && *before && *before != stream)
        home_set_owner(&(*before)->home, NULL);
    pthread_mutex_unlock(&device->lock);
    if (!st)
        binding->stream = stream;
    return st;
}
