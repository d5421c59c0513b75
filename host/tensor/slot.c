/* SPDX-License-Identifier: Apache-2.0 */
/* The region is reserved at the first tensor and made accessible a step at a time, so that an
 * untouched process pays nothing.  Free slots are kept in a list under the table's lock; resolving
 * takes no lock. */
#include "tensor/slot.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/fail.h"

enum {
    SLOT_BYTES = 256,
    STEP_SLOTS = 4096,        /* made accessible at once */
    MAX_SLOTS = 1 << 24,      /* reserved: 4 GiB of addresses */
    GENERATION_LOW_BITS = 6,  /* in bits 1..6 of a handle, 0 is the take bit */
    GENERATION_HIGH_BITS = 15 /* in bits 48..62 */
};

_Static_assert(sizeof(struct slot) <= SLOT_BYTES, "slots have a fixed size");

/* life: uses in bits 0..20, owners in bits 21..41, generation in bits 42..62. */
#define USE              ((uint64_t)1)
#define OWNER            ((uint64_t)1 << 21)
#define GENERATION       ((uint64_t)1 << 42)
#define USES(life)       ((life) & (OWNER - 1))
#define OWNERS(life)     ((life) >> 21 & (OWNER - 1))
#define GENERATION_OF(l) ((l) >> 42 & (OWNER - 1))
#define MOST             (OWNER - 2)
#define MOST_USES        (OWNER / 2 - 1) /* half: each use by a call may become one by its record */

static struct {
    pthread_mutex_t lock;
    _Atomic(unsigned char *) base;
    atomic_size_t n_open; /* accessible slots */
    size_t n_reserved;
    struct slot *free;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The first slots are the immortal errors, one per status. */
enum { N_IMMORTAL = 16 };

static struct slot *slot_at(size_t index)
{
    return (struct slot *)(void *)(atomic_load_explicit(&table.base, memory_order_acquire) +
                                   index * SLOT_BYTES);
}

/* ---- the table ---- */

static bool reserve(void)
{
    for (size_t n = MAX_SLOTS; n >= STEP_SLOTS; n /= 2) {
        unsigned char *base = mmap(NULL, n * SLOT_BYTES, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (base != MAP_FAILED) {
            table.n_reserved = n;
            atomic_store_explicit(&table.base, base, memory_order_release);
            return true;
        }
    }
    return false;
}

static void make_immortal(size_t index)
{
    struct slot *slot = slot_at(index);

    slot->failure = failure_immortal(-(frit_status)index);
    atomic_store(&slot->state, SLOT_FAILED);
    atomic_store(&slot->life, OWNER + USE);
}

/* Makes another step accessible and puts its slots on the free list. */
static bool grow(void)
{
    size_t from = atomic_load(&table.n_open);
    unsigned char *base = atomic_load(&table.base);

    if (from + STEP_SLOTS > table.n_reserved ||
        mprotect(base + from * SLOT_BYTES, (size_t)STEP_SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE))
        return false;
    for (size_t i = from + STEP_SLOTS; i-- > (from ? from : N_IMMORTAL);) {
        slot_at(i)->next_free = table.free;
        table.free = slot_at(i);
    }
    for (size_t i = 0; from == 0 && i < N_IMMORTAL; i++)
        make_immortal(i);
    atomic_store_explicit(&table.n_open, from + STEP_SLOTS, memory_order_release);
    return true;
}

static struct slot *take_free(void)
{
    struct slot *slot = NULL;

    pthread_mutex_lock(&table.lock);
    if (atomic_load(&table.base) || reserve()) {
        if (table.free || grow()) {
            slot = table.free;
            table.free = slot->next_free;
        }
    }
    pthread_mutex_unlock(&table.lock);
    return slot;
}

frit_status slot_create(frit_device *device, struct stream *home, struct slot **out, frit_err *err)
{
    struct slot *slot = take_free();
    uint64_t life;

    *out = slot;
    if (!slot)
        return fail(err, FRIT_NO_HOST_MEMORY, "no memory for another tensor");
    atomic_store_explicit(&slot->device, device, memory_order_relaxed);
    slot->home = home;
    atomic_store_explicit(&slot->scope, NULL, memory_order_relaxed);
    slot->failure = NULL;
    slot->value = (struct value){0};
    atomic_store_explicit(&slot->state, SLOT_PENDING, memory_order_relaxed);
    life = atomic_load_explicit(&slot->life, memory_order_relaxed);
    atomic_store_explicit(&slot->life, life + OWNER + USE, memory_order_release);
    return FRIT_OK;
}

/* Nothing refers to the slot any more: `life` holds only its generation. */
static void recycle(struct slot *slot)
{
    buffer_disown(slot->value.buffer);
    failure_unref(slot->failure);
    slot->value.buffer = NULL;
    slot->failure = NULL;
    atomic_store_explicit(&slot->device, NULL, memory_order_relaxed);
    atomic_store_explicit(&slot->state, SLOT_EMPTY, memory_order_relaxed);
    pthread_mutex_lock(&table.lock);
    slot->next_free = table.free;
    table.free = slot;
    pthread_mutex_unlock(&table.lock);
}

/* ---- handles ---- */

static frit_tensor *handle_of(const struct slot *slot, uint64_t generation)
{
    uintptr_t bits = (uintptr_t)slot;

    bits |= (generation & ((1u << GENERATION_LOW_BITS) - 1)) << 1;
    bits |= (generation >> GENERATION_LOW_BITS) << 48;
    return (frit_tensor *)bits;
}

frit_tensor *slot_handle(const struct slot *slot)
{
    return handle_of(slot, GENERATION_OF(atomic_load_explicit(&slot->life, memory_order_relaxed)));
}

frit_tensor *handle_take(frit_tensor *tensor)
{
    return tensor ? (frit_tensor *)((uintptr_t)tensor | 1) : NULL;
}

bool handle_taken(const frit_tensor *tensor)
{
    return (uintptr_t)tensor & 1;
}

frit_tensor *handle_plain(frit_tensor *tensor)
{
    return (frit_tensor *)((uintptr_t)tensor & ~(uintptr_t)1);
}

/* The slot a handle may name and the generation it means; NULL for what never was a handle. */
static struct slot *decode(frit_tensor *tensor, uint64_t *generation)
{
    uintptr_t bits = (uintptr_t)tensor;
    uintptr_t base = (uintptr_t)atomic_load_explicit(&table.base, memory_order_acquire);
    uintptr_t address = bits & (((uintptr_t)1 << 48) - 128);

    if (!base || address < base || (address - base) % SLOT_BYTES ||
        (address - base) / SLOT_BYTES >= atomic_load_explicit(&table.n_open, memory_order_acquire))
        return NULL;
    *generation = (bits >> 1 & ((1u << GENERATION_LOW_BITS) - 1)) |
                  (bits >> 48 & ((1u << GENERATION_HIGH_BITS) - 1)) << GENERATION_LOW_BITS;
    return (struct slot *)address;
}

/* Adds to `life` if the handle is alive. */
static bool life_add(struct slot *slot, uint64_t generation, uint64_t what)
{
    uint64_t life = atomic_load_explicit(&slot->life, memory_order_relaxed);

    do {
        if (GENERATION_OF(life) != generation || OWNERS(life) == 0 || OWNERS(life) >= MOST ||
            USES(life) >= MOST_USES)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&slot->life, &life, life + what,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

struct slot *slot_use(frit_tensor *tensor, frit_err *err)
{
    uint64_t generation;
    struct slot *slot = decode(tensor, &generation);

    if (!tensor)
        fail(err, FRIT_INVALID, "is NULL");
    else if (!slot)
        fail(err, FRIT_INVALID, "is not a tensor (%p)", (void *)tensor);
    else if (life_add(slot, generation, USE))
        return slot;
    else if (USES(atomic_load_explicit(&slot->life, memory_order_relaxed)) >= MOST_USES)
        fail(err, FRIT_INVALID, "is used by too many queued ops; call frit_flush before");
    else
        fail(err, FRIT_INVALID, "is a stale tensor: it was released or taken before");
    return NULL;
}

void slot_use_again(struct slot *slot)
{
    atomic_fetch_add_explicit(&slot->life, USE, memory_order_relaxed);
}

void slot_unuse(struct slot *slot)
{
    uint64_t life = atomic_fetch_sub_explicit(&slot->life, USE, memory_order_acq_rel) - USE;

    if (USES(life) == 0 && OWNERS(life) == 0)
        recycle(slot);
}

static bool immortal(const struct slot *slot)
{
    return slot < slot_at(N_IMMORTAL);
}

bool slot_own(frit_tensor *tensor)
{
    uint64_t generation;
    struct slot *slot = decode(tensor, &generation);

    return slot && (immortal(slot) || life_add(slot, generation, OWNER));
}

bool slot_disown(frit_tensor *tensor)
{
    uint64_t generation, life, next;
    struct slot *slot = decode(tensor, &generation);

    if (!slot)
        return false;
    if (immortal(slot))
        return true;
    life = atomic_load_explicit(&slot->life, memory_order_relaxed);
    do {
        if (GENERATION_OF(life) != generation || OWNERS(life) == 0)
            return false;
        next = life - OWNER;
        if (OWNERS(next) == 0)
            next = (next + GENERATION) & ~((uint64_t)1 << 63);
    } while (!atomic_compare_exchange_weak_explicit(&slot->life, &life, next, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (OWNERS(next) == 0 && USES(next) == 0)
        recycle(slot);
    return true;
}

bool slot_owned(const struct slot *slot)
{
    return OWNERS(atomic_load_explicit(&slot->life, memory_order_acquire)) != 0;
}

bool slot_shared(const struct slot *slot)
{
    return USES(atomic_load_explicit(&slot->life, memory_order_acquire)) > 1;
}

bool slot_wanted(const struct slot *slot)
{
    return slot_owned(slot) || slot_shared(slot);
}

frit_tensor *handle_immortal(frit_status status)
{
    const struct failure *failure = failure_immortal(status);

    if (!atomic_load(&table.base)) {
        struct slot *slot = take_free(); /* opens the table */

        if (!slot)
            return NULL;
        recycle(slot);
    }
    return handle_of(slot_at((size_t)-failure->status), 0);
}

/* ---- state ---- */

enum slot_state slot_state(const struct slot *slot)
{
    return (enum slot_state)atomic_load_explicit(&slot->state, memory_order_acquire);
}

static void enter(struct slot *slot)
{
    while (atomic_flag_test_and_set_explicit(&slot->busy, memory_order_acquire))
        ;
}

static void leave(struct slot *slot)
{
    atomic_flag_clear_explicit(&slot->busy, memory_order_release);
}

void slot_set_ready(struct slot *slot, const struct value *value)
{
    slot->value.layout = value->layout;
    slot->value.buffer = value->buffer;
    atomic_store_explicit(&slot->state, SLOT_READY, memory_order_release);
}

void slot_set_failed(struct slot *slot, struct failure *failure)
{
    enter(slot);
    if (slot_state(slot) == SLOT_FAILED) {
        failure_unref(failure);
    } else {
        slot->failure = failure;
        atomic_store_explicit(&slot->state, SLOT_FAILED, memory_order_release);
    }
    leave(slot);
}

void slot_pin_value(struct slot *slot, struct value *out)
{
    enter(slot);
    *out = slot->value;
    buffer_pin(out->buffer);
    leave(slot);
}

void slot_swap_buffer(struct slot *slot, struct buffer *buffer)
{
    struct buffer *old;

    enter(slot);
    old = slot->value.buffer;
    slot->value.buffer = buffer;
    layout_dense(&slot->value.type, &slot->value.layout);
    leave(slot);
    buffer_disown(old);
}

/* ---- all slots of a device ---- */

uint64_t slot_count(const frit_device *device)
{
    size_t n = atomic_load(&table.n_open);
    uint64_t count = 0;

    pthread_mutex_lock(&table.lock);
    for (size_t i = N_IMMORTAL; i < n; i++)
        count += slot_at(i)->device == device && slot_owned(slot_at(i));
    pthread_mutex_unlock(&table.lock);
    return count;
}

void slot_end_device(const frit_device *device)
{
    size_t n = atomic_load(&table.n_open);

    for (size_t i = N_IMMORTAL; i < n; i++) {
        struct slot *slot = slot_at(i);

        while (slot->device == device && slot_owned(slot))
            slot_disown(slot_handle(slot));
    }
}
