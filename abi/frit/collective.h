/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Collective operations: what the ranks of a group compute together.  Offered by a plugin, with a
 * backend or without; such a plugin is an engine.
 *
 * Every rank of a group begins the same operations in the same order.  They run in that order, and
 * count a timeline of the rank's own: the first is value 1, each one more.  A rank is a thread, a
 * process or a device: the host decides, and says which by the buffers that it gives.
 *
 * The first failure of a group is its end: operations that every rank had finished stay so, all
 * others fail on each rank, with one and the same status and text, and so does what is begun later.
 * The host then makes a new group.
 *   FRIT_PEER_LOST  a rank is gone; the text says which
 *   FRIT_MISMATCH   two ranks began different operations at one place; the text has both.  Nothing
 *                   was written, where the engine can compare before it moves data
 *   FRIT_ABORTED    group_abort
 * Once wait has returned a failure the engine touches no buffer of the group any more. */
#ifndef FRIT_COLLECTIVE_H
#define FRIT_COLLECTIVE_H

#include <frit/status.h>

#define FRIT_COLLECTIVE_TABLE "frit.collective/1"

typedef struct frit_group_params {
    uint32_t struct_size;
    uint32_t rank; /* 0..size-1, each once */
    uint32_t size; /* >= 1, the same on all ranks */
    uint32_t reserved;
    const frit_group_id *id;
    uint64_t timeout_ns; /* until all ranks have come */
    frit_str space;      /* what pointers of buffers are, by a name of native.h: "host.ptr" */
    void *device;        /* native object of the device whose memory that is, what its driver gives
                          * for that name (native.h); NULL for the host's */
    frit_str name;       /* for texts */
    /* A store that all ranks see, where they are processes of one job; all NULL: there is none, and
     * the ranks have nothing in common but `id`.  Keys have at most 255 bytes, a value is set once.
     */
    void *store;
    /* [any] +mayblock */
    frit_status (*put)(void *store, frit_str key, const void *value, uint64_t bytes, frit_err *err);
    /* [any] +mayblock  Waits until the value is there; FRIT_TIMEOUT.  FRIT_INVALID with the size in
     * *bytes for a value of more than `capacity` bytes. */
    frit_status (*get)(void *store, frit_str key, void *value, uint64_t capacity, uint64_t *bytes,
                       uint64_t timeout_ns, frit_err *err);
} frit_group_params;

enum {
    FRIT_COLLECTIVE_BARRIER = 1,    /* no buffers */
    FRIT_COLLECTIVE_ALL_REDUCE = 2, /* into = the ranks' `from` combined */
    FRIT_COLLECTIVE_BROADCAST = 3,  /* into = `from` of the root */
    FRIT_COLLECTIVE_ALL_GATHER =
        4, /* into = the ranks' `from` in the order of ranks: count * size */
    FRIT_COLLECTIVE_REDUCE_SCATTER = 5 /* into = part `rank` of the ranks' `from`, count * size
                                        * elements, combined */
};

/* Dense elements, which are the engine's from begin until the value is reached.  `from` and `into`
 * are the same or do not overlap; the same for ALL_REDUCE and BROADCAST only. */
typedef struct frit_collective_buffer {
    const void *from; /* BROADCAST: of the root only */
    void *into;
    uint64_t count; /* elements of the shorter of the two; 0 is right */
    uint32_t dtype;
    uint32_t reserved;
} frit_collective_buffer;

enum { FRIT_COLLECTIVE_NOTE = 32 };

typedef struct frit_collective_op {
    uint32_t struct_size;
    uint32_t kind;      /* FRIT_COLLECTIVE_* */
    uint32_t combine;   /* ALL_REDUCE, REDUCE_SCATTER: FRIT_CHOICE_combine_* */
    uint32_t root;      /* BROADCAST: rank */
    uint32_t n_buffers; /* several are one operation, of which all or none fail */
    uint32_t buffer_stride;
    const frit_collective_buffer *buffers;
    void *stream; /* native stream of the device after which the operation runs; NULL: what it
                   * reads is there */
    /* What the operation is for, terminated: "step 12".  Ranks with different notes have begun
     * different operations, and the text has both.  An engine that cannot compare leaves it out. */
    char note[FRIT_COLLECTIVE_NOTE];
} frit_collective_op;

typedef struct frit_collective_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +mayblock  required.  An id that no other group has or had. */
    frit_status (*group_id)(void *instance, frit_group_id *out, frit_err *err);
    /* [any] +mayblock  required.  Returns when all ranks have come: each of them calls it, from
     * threads or processes of their own.  FRIT_TIMEOUT with the ranks that are missing,
     * FRIT_MISMATCH for another size, FRIT_UNSUPPORTED for a space that the engine cannot reach. */
    frit_status (*group_create)(void *instance, const frit_group_params *params, frit_group **out,
                                frit_err *err);
    /* [any] +mayblock  required.  The rank leaves.  What it has begun and not waited for ends
     * first, or fails; operations of others that still need it are FRIT_PEER_LOST.  NULL does
     * nothing. */
    void (*group_destroy)(frit_group *group);
    /* [any] +nonblock  required.  From any rank, beside any call but group_destroy: ends the group;
     * every wait on every rank returns FRIT_ABORTED with the words of `why`, or the failure that
     * was there before. */
    void (*group_abort)(frit_group *group, const frit_err *why);

    /* [object] +nonblock  required.  Takes the operation; `op` and its list are borrowed for the
     * call.  FRIT_UNSUPPORTED for an element type that the engine cannot combine.  Negative: it was
     * not begun. */
    frit_status (*begin)(frit_group *group, const frit_collective_op *op, uint64_t *value,
                         frit_err *err);
    /* [any] +mayblock  required.  FRIT_OK: all operations of this rank up to `value` are done and
     * seen by the host.  FRIT_TIMEOUT after `timeout_ns` (0: does not wait, UINT64_MAX: no limit);
     * FRIT_INVALID for a value that was never begun; else the group's failure. */
    frit_status (*wait)(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err);
} frit_collective_table;

FRIT_STATIC_ASSERT(FRIT_END_OF(frit_group_params, name) == 72, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_group_params, get) == 96, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_collective_buffer) == 32, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_collective_op, stream) == 40, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_collective_op, note) == 72, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_collective_table, wait) == 56, "0.2");

#endif
