/* SPDX-License-Identifier: Apache-2.0 */
/* The region is reserved at the first tensor and made accessible a step at a time, so that an
 * untouched process pays nothing.  Free slots wait in their home, and what a home has too few of
 * comes from a list under the table's lock, several at a time; resolving takes no lock. */
#include "tensor/slot.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/fail.h"
#include "base/process.h"
#include "base/thread.h"
#include "memory/buffer.h"
#include "tensor/failure.h"

enum {
    STEP_SLOTS = 4096,   /* made accessible at once */
    MAX_SLOTS = 1 << 24, /* reserved: 6 GiB of addresses */
    BATCH_SLOTS = 64,    /* that a home gets at once */
    SPACE_SHARE = 16,    /* of a limited address space: this part at most */
};

_Static_assert(sizeof(struct slot) <= SLOT_BYTES, "slots have a fixed size");
_Static_assert(SLOT_BYTES % 128 == 0, "the low bits of a slot's address are the handle's");

struct slot_region slot_region;

static struct {
    pthread_mutex_t lock;
    size_t n_reserved;
    struct slot *free;
    atomic_bool has_immortals; /* and keeps them in a child of which slots_bar was called */
    struct slot_home nowhere;  /* of the immortal errors */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Thread_local char thread_token_byte;

/* The first slots are the immortal errors, one per status. */
enum { N_IMMORTAL = 16 };

static struct slot *slot_at(size_t index)
{
    return (struct slot *)(void *)(atomic_load_explicit(&slot_region.base, memory_order_acquire) +
                                   index * SLOT_BYTES);
}

/* ---- the table ---- */

static size_t n_open(void)
{
    return atomic_load(&slot_region.bytes) / SLOT_BYTES;
}

/* Where the process may have so much address space only, most of it is left to others. */
static size_t most_slots(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / SPACE_SHARE >= (rlim_t)MAX_SLOTS * SLOT_BYTES)
        return MAX_SLOTS;
    return limit.rlim_cur / SPACE_SHARE / SLOT_BYTES / STEP_SLOTS * STEP_SLOTS;
}

static bool reserve(void)
{
    size_t most = most_slots();

    for (size_t n = most > STEP_SLOTS ? most : STEP_SLOTS; n >= STEP_SLOTS; n /= 2) {
        unsigned char *base = mmap(NULL, n * SLOT_BYTES, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (base != MAP_FAILED) {
            table.n_reserved = n;
            home_init(&table.nowhere);
            atomic_store_explicit(&slot_region.base, base, memory_order_release);
            return true;
        }
    }
    return false;
}

static void make_immortal(size_t index)
{
    struct slot *slot = slot_at(index);

    slot->failure = failure_immortal(-(frit_status)index);
    slot->state = SLOT_FAILED;
    slot->owners = 1;
    atomic_store(&slot->handle, (frit_tensor *)(void *)slot);
    atomic_store(&slot->home, &table.nowhere);
}

/* Makes another step accessible and puts its slots on the free list. */
static bool grow(void)
{
    size_t from = n_open();
    unsigned char *base = atomic_load(&slot_region.base);

    if (from + STEP_SLOTS > table.n_reserved ||
        mprotect(base + from * SLOT_BYTES, (size_t)STEP_SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE))
        return false;
    for (size_t i = from + STEP_SLOTS; i-- > (from ? from : N_IMMORTAL);) {
        slot_at(i)->next_free = table.free;
        atomic_store(&slot_at(i)->handle, (frit_tensor *)(void *)slot_at(i));
        table.free = slot_at(i);
    }
    for (size_t i = 0; from == 0 && i < N_IMMORTAL; i++)
        make_immortal(i);
    atomic_store_explicit(&table.has_immortals, true, memory_order_release);
    atomic_store_explicit(&slot_region.bytes, (from + STEP_SLOTS) * SLOT_BYTES,
                          memory_order_release);
    return true;
}

static bool table_open(void)
{
    return atomic_load(&slot_region.base) || reserve();
}

struct slot *slot_refill(struct slot_home *home)
{
    pthread_mutex_lock(&table.lock);
    for (uint32_t i = 0; i < BATCH_SLOTS; i++) {
        struct slot *slot;

        if (!table.free && (!table_open() || !grow()))
            break;
        slot = table.free;
        table.free = slot->next_free;
        slot->next_free = home->free;
        home->free = slot;
        atomic_store(&slot->home, home);
    }
    pthread_mutex_unlock(&table.lock);
    return home->free;
}

/* ---- homes ---- */

void home_init(struct slot_home *home)
{
    owner_lock_init(&home->lock);
    atomic_init(&home->owner, NULL);
    atomic_init(&home->n_live, 0);
    home->free = home->dying = NULL;
}

void home_fini(struct slot_home *home)
{
    pthread_mutex_lock(&table.lock);
    while (home->free) {
        struct slot *slot = home->free;

        home->free = slot->next_free;
        atomic_store(&slot->home, NULL);
        slot->next_free = table.free;
        table.free = slot;
    }
    pthread_mutex_unlock(&table.lock);
}

enum { DROP_AT_ONCE = 16 };

/* Contents of some dying slots, which are free then. */
struct dropped {
    struct buffer *buffers[DROP_AT_ONCE];
    struct failure *failures[DROP_AT_ONCE];
    uint32_t count;
};

static void take_dying(struct slot_home *home, struct dropped *out)
{
    for (out->count = 0; home->dying && out->count < DROP_AT_ONCE; out->count++) {
        struct slot *slot = home->dying;

        home->dying = slot->next_free;
        out->buffers[out->count] = slot->value.buffer;
        out->failures[out->count] = slot->failure;
        slot->value.buffer = NULL;
        slot->failure = NULL;
        slot->next_free = home->free;
        home->free = slot;
    }
}

void home_drop(struct slot_home *home)
{
    HOLD_CANCEL; /* what is dropped may go back to a driver */
    struct dropped dropped;

    while (home->dying) {
        take_dying(home, &dropped);
        home_leave(home);
        for (uint32_t i = 0; i < dropped.count; i++) {
            buffer_disown(dropped.buffers[i]);
            failure_unref(dropped.failures[i]);
        }
        home_enter(home);
    }
    home_leave(home);
}

void home_set_owner(struct slot_home *home, const void *owner)
{
    owner_lock_take(&home->lock);
    atomic_store(&home->owner, owner);
    owner_lock_give(&home->lock);
}

/* ---- inside the lock ---- */

/* The contents are new: aliases of the old ones no longer match. */
static void new_version(struct slot *slot)
{
    uint64_t life = atomic_load_explicit(&slot->life, memory_order_relaxed);

    atomic_store_explicit(&slot->life, (life >> 32) << 32 | (uint32_t)((uint32_t)life + 1),
                          memory_order_release);
}

void slot_set_ready(struct slot *slot, const struct value *value)
{
    slot->value.layout = value->layout;
    slot->value.buffer = value->buffer;
    slot->state = SLOT_READY;
}

void slot_set_failed(struct slot *slot, struct failure *failure)
{
    if (slot->state == SLOT_FAILED) {
        failure_unref(failure);
        return;
    }
    slot->failure = failure;
    slot->state = SLOT_FAILED;
    new_version(slot);
}

struct buffer *slot_swap_buffer(struct slot *slot, struct buffer *buffer)
{
    struct buffer *old = slot->value.buffer;

    slot->value.buffer = buffer;
    layout_dense(&slot->value.type, &slot->value.layout);
    new_version(slot);
    return old;
}

/* ---- handles ---- */

frit_status slot_refuse(frit_tensor *tensor, frit_err *err)
{
    if (process_is_barred())
        return process_refuse(err);
    if (!tensor)
        return fail(err, FRIT_INVALID, "is NULL");
    if (!slot_of(tensor))
        return fail(err, FRIT_INVALID, "is not a tensor (%p)", (void *)tensor);
    return fail(err, FRIT_INVALID, "is a stale tensor: it was released or taken before");
}

/* The home may change until its lock is held, so it is read again inside.  A slot without owners
 * has a home, too. */
struct slot *slot_enter(frit_tensor *tensor, frit_err *err)
{
    struct slot *slot = slot_of(tensor);

    while (slot && slot_is(slot, tensor)) {
        struct slot_home *home = atomic_load(&slot->home);

        if (!home)
            break;
        home_enter(home);
        if (atomic_load(&slot->home) == home && slot_is(slot, tensor) && slot->owners)
            return slot;
        home_leave(home);
        if (atomic_load(&slot->home) == home)
            break;
    }
    slot_refuse(tensor, err);
    return NULL;
}

void slot_leave(struct slot *slot)
{
    home_leave(slot_home_of(slot));
}

frit_tensor *handle_immortal(frit_status status)
{
    const struct failure *failure = failure_immortal(status);
    bool open = atomic_load_explicit(&table.has_immortals, memory_order_acquire);

    if (!open && !process_is_barred()) {
        pthread_mutex_lock(&table.lock);
        open = n_open() || (table_open() && grow());
        pthread_mutex_unlock(&table.lock);
    }
    return open ? slot_handle(slot_at((size_t)-failure->status)) : NULL;
}

void slots_bar(void)
{
    atomic_store(&slot_region.bytes, 0);
}

bool slot_is_immortal(const struct slot *slot)
{
    return slot < slot_at(N_IMMORTAL);
}

void slot_each(const struct slot_home *home, void (*fn)(struct slot *slot, void *ctx), void *ctx)
{
    size_t n = n_open();

    for (size_t i = N_IMMORTAL; i < n; i++) {
        struct slot *slot = slot_at(i);

        if (atomic_load(&slot->home) == home && slot->owners)
            fn(slot, ctx);
    }
}
