/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor slots, the handles that name them, and the homes they belong to.
 *
 * A handle is the address of a slot with the slot's generation and a take bit in the bits that an
 * aligned user-space address leaves free; it is never dereferenced before it was resolved.  All
 * slots of the process lie in one reserved region that is never unmapped, so that a stale or
 * foreign handle is distinguished from a live one by arithmetic and one load.
 *
 * Every slot has a home, the stream that computes it, whose lock guards all of the slot but what is
 * atomic.  A home is never freed either, so that a handle can be looked up while its slot dies.
 * `owners` are the handles that the program has to release; with the last one the generation
 * changes and the handle is stale for all threads.  `holds` are the queues that still need the
 * slot; without owners and holds its contents are dropped.  Threads: any. */
#ifndef TENSOR_SLOT_H
#define TENSOR_SLOT_H

#include <stdatomic.h>

#include <frit/frit.h>

#include "base/owner_lock.h"
#include "tensor/value.h"

struct failure;
struct alias;
struct slot;
struct scopes;

/* What slots belong to; the first member of a stream.  Zeroed and home_init'ed before use. */
struct slot_home {
    struct owner_lock lock;
    _Atomic(const void *) owner;  /* thread_token() of the owning thread; NULL: nobody */
    struct slot *free;            /* slots for later */
    struct slot *dying;           /* slots whose contents wait to be dropped outside of the lock */
    atomic_uint_least64_t n_live; /* slots with an owner; written under the lock */
};

void home_init(struct slot_home *home);
/* Gives the free slots back; none is alive. */
void home_fini(struct slot_home *home);

/* A byte per thread, whose address identifies the thread. */
extern _Thread_local char thread_token_byte __attribute__((tls_model("initial-exec")));

/* Identifies the calling thread, as the owner of homes. */
static inline const void *thread_token(void)
{
    return &thread_token_byte;
}

static inline bool home_is_mine(const struct slot_home *home)
{
    return atomic_load_explicit(&home->owner, memory_order_relaxed) == thread_token();
}

/* Its lock.  Never wait for another lock, or call a driver, while inside. */
static inline void home_enter(struct slot_home *home)
{
    if (home_is_mine(home))
        owner_lock_enter(&home->lock);
    else
        owner_lock_take(&home->lock);
}

static inline void home_leave(struct slot_home *home)
{
    if (home_is_mine(home))
        owner_lock_leave(&home->lock);
    else
        owner_lock_give(&home->lock);
}

/* home_leave, and then drops what died meanwhile: memory goes back outside of the lock. */
void home_drop(struct slot_home *home);
static inline void home_leave_drop(struct slot_home *home)
{
    if (home->dying)
        home_drop(home);
    else
        home_leave(home);
}

/* Changes the owner; the calling thread is not inside. */
void home_set_owner(struct slot_home *home, const void *owner);

/* EMPTY -> PENDING -> READY or FAILED; the last two are final but for frit_write, which keeps
 * READY, and for a device failure that is found later. */
enum slot_state { SLOT_EMPTY, SLOT_PENDING, SLOT_READY, SLOT_FAILED };

/* In the order in which an op that comes again touches it, so that it touches few cache lines. */
struct slot {
    _Alignas(128) atomic_uint_least64_t life; /* generation << 32 | version of the contents */
    _Atomic(frit_tensor *) handle;            /* of this generation */
    _Atomic(struct slot_home *) home;         /* NULL: in no home */
    struct slot *next_free;
    uint32_t owners, holds;
    uint32_t state : 2;    /* enum slot_state */
    uint32_t kept : 30;    /* how many of `owners` are the library's own (slot_keep) */
    uint32_t index;        /* its number in the home's segment */
    uint64_t epoch;        /* of the segment that numbers it, 0: none */
    struct alias *aliases; /* in other streams, to be dropped with the last owner */
    struct failure *failure;
    frit_device *device;  /* NULL only on failures without one */
    struct scopes *scope; /* whose owner is one of `owners`; NULL: none */
    uint32_t scope_index; /* in `scope`; changed by the scope's thread alone */
    uint32_t made_by;     /* FRIT_OP_*, of no op: 0 */
    uint64_t grad;        /* number of a history, and of the value there (grad/history.h) */
    struct value value;
};

/* ---- inside the home's lock ---- */

/* For slot_create when its home has none left. */
struct slot *slot_refill(struct slot_home *home);

/* Bits of a slot's generation: in a handle the low ones are bits 1.., the high ones 48.. */
enum {
    SLOT_LOW_BITS = 6,
    SLOT_HIGH_BITS = 15,
    SLOT_GENERATION_BITS = SLOT_LOW_BITS + SLOT_HIGH_BITS
};

/* A new generation: the handle is stale. */
static inline void slot_next_generation(struct slot *slot)
{
    uint64_t life = atomic_load_explicit(&slot->life, memory_order_relaxed);
    uint64_t generation = ((life >> 32) + 1) & ((1u << SLOT_GENERATION_BITS) - 1);
    uintptr_t handle = (uintptr_t)slot | (generation & ((1u << SLOT_LOW_BITS) - 1)) << 1 |
                       (generation >> SLOT_LOW_BITS) << 48;

    atomic_store_explicit(&slot->life, generation << 32, memory_order_release);
    atomic_store_explicit(&slot->handle, (frit_tensor *)handle, memory_order_release);
}

static inline void home_count_live(struct slot_home *home, uint64_t by)
{
    atomic_store_explicit(&home->n_live,
                          atomic_load_explicit(&home->n_live, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

/* A slot with one owner and no hold, state PENDING.  NULL where there is no memory. */
static inline struct slot *slot_create(struct slot_home *home, frit_device *device)
{
    struct slot *slot = home->free ? home->free : slot_refill(home);

    if (!slot)
        return NULL;
    home->free = slot->next_free;
    slot->owners = 1;
    slot->holds = 0;
    slot->state = SLOT_PENDING;
    slot->kept = 0;
    slot->epoch = 0;
    slot->grad = 0;
    slot->device = device;
    slot->scope = NULL;
    home_count_live(home, 1);
    return slot;
}

static inline frit_tensor *slot_handle(const struct slot *slot)
{
    return atomic_load_explicit(&((struct slot *)slot)->handle, memory_order_relaxed);
}

static inline struct slot_home *slot_home_of(const struct slot *slot)
{
    return atomic_load_explicit(&((struct slot *)slot)->home, memory_order_relaxed);
}

/* Gives an owner back.  True if it was the last: the handle is stale now; the caller takes
 * `aliases` off and drops them outside of the lock, then calls slot_end.  When the program has
 * given its last owner back, that was the scope's, too: the scope has none to give back any more.
 */
static inline bool slot_disown(struct slot *slot)
{
    if (--slot->owners > 0) {
        if (slot->owners == slot->kept)
            slot->scope = NULL;
        return false;
    }
    slot_next_generation(slot);
    home_count_live(slot_home_of(slot), (uint64_t)-1);
    return true;
}

/* Sees that the contents are dropped if neither owners nor holds are left. */
static inline void slot_end(struct slot *slot)
{
    struct slot_home *home = slot_home_of(slot);

    if (slot->owners || slot->holds)
        return;
    slot->state = SLOT_EMPTY;
    if (slot->value.buffer || slot->failure) {
        slot->next_free = home->dying;
        home->dying = slot;
    } else {
        slot->next_free = home->free;
        home->free = slot;
    }
}

/* Adds an owner that is the library's own: slot_unkeep, then slot_disown.  Not of an immortal one.
 */
static inline void slot_keep(struct slot *slot)
{
    slot->owners++;
    slot->kept++;
}

static inline void slot_unkeep(struct slot *slot)
{
    slot->kept--;
}

static inline void slot_hold(struct slot *slot)
{
    slot->holds++;
}

static inline void slot_unhold(struct slot *slot) /* and slot_end */
{
    slot->holds--;
    slot_end(slot);
}

/* Ends PENDING; the type was set before the handle went out.  The value's buffer is taken over. */
void slot_set_ready(struct slot *slot, const struct value *value);
/* Ends PENDING, or spoils a READY slot; takes over one reference. */
void slot_set_failed(struct slot *slot, struct failure *failure);
/* Replaces the buffer of a READY slot by one with a dense layout, taking it over; gives the old one
 * back to the caller. */
struct buffer *slot_swap_buffer(struct slot *slot, struct buffer *buffer);

/* ---- outside ---- */

enum { SLOT_BYTES = 384 };

/* Where all slots lie. */
struct slot_region {
    _Atomic(unsigned char *) base;
    atomic_size_t bytes; /* accessible */
};
extern struct slot_region slot_region;

/* The slot at the handle's address, NULL if there is none.  The handle may be stale: see slot_is.
 */
static inline struct slot *slot_of(frit_tensor *tensor)
{
    uintptr_t address = (uintptr_t)tensor & (((uintptr_t)1 << 48) - 128);
    uintptr_t offset =
        address - (uintptr_t)atomic_load_explicit(&slot_region.base, memory_order_acquire);

    if (offset >= atomic_load_explicit(&slot_region.bytes, memory_order_acquire) ||
        offset % SLOT_BYTES)
        return NULL;
    return (struct slot *)address;
}

/* Whether the handle names the slot and is not stale.  Outside of the lock it may become stale at
 * any time. */
static inline bool slot_is(const struct slot *slot, frit_tensor *tensor)
{
    return slot_handle(slot) == (frit_tensor *)((uintptr_t)tensor & ~(uintptr_t)1);
}

/* Why a handle was refused: FRIT_INVALID with a text. */
frit_status slot_refuse(frit_tensor *tensor, frit_err *err);
/* Resolves a handle and enters its home's lock.  NULL, and no lock: `err` says whether it is stale,
 * foreign or NULL. */
struct slot *slot_enter(frit_tensor *tensor, frit_err *err);
void slot_leave(struct slot *slot);

/* What a handle names now. */
static inline uint64_t slot_life(const struct slot *slot)
{
    return atomic_load_explicit(&slot->life, memory_order_acquire);
}

/* The handle with the take bit, whether it is set, and the handle without. */
static inline frit_tensor *handle_take(frit_tensor *tensor)
{
    return tensor ? (frit_tensor *)((uintptr_t)tensor | 1) : NULL;
}

static inline bool handle_taken(const frit_tensor *tensor)
{
    return (uintptr_t)tensor & 1;
}

static inline frit_tensor *handle_plain(frit_tensor *tensor)
{
    return (frit_tensor *)((uintptr_t)tensor & ~(uintptr_t)1);
}

/* An error tensor that needs no memory and survives any release.  NULL only if there never was
 * memory for one. */
frit_tensor *handle_immortal(frit_status status);
bool slot_is_immortal(const struct slot *slot);

/* In the child of a fork (base/process.h): no handle resolves any more. */
void slots_bar(void);

/* Calls `fn` for each slot of a home that has an owner; no other call on it is under way. */
void slot_each(const struct slot_home *home, void (*fn)(struct slot *slot, void *ctx), void *ctx);

#endif
