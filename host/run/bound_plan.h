/* SPDX-License-Identifier: Apache-2.0 */
/* A bound plan: the launches of one run of a plan with their arguments bound, to be run again.
 *
 * A run records what it does while it does it: buffers that it allocates, values that get one,
 * launches with their arguments, where submits end.  When it has ended, what a later run needs is
 * worked out once.  A later run whose operands have the same types, layouts and lifetimes writes
 * only addresses and scalars into the launches (replay.h).
 *
 * Every argument lies in an operand's buffer, in memory assigned to a value, or in a buffer of the
 * bound plan.  One such buffer serves values, workspaces and copies one after the other, as it did
 * in the recorded run, where BARRIERs stood between its users.
 *
 * What is out of the ordinary (a fallback, poisoned memory, a refused submit) spoils the recording.
 * Nothing here fails: what cannot be kept spoils it too.  Threads: one at a time. */
#ifndef RUN_BOUND_PLAN_H
#define RUN_BOUND_PLAN_H

#include <frit/backend.h>
#include <frit/program.h>

#include "base/arena.h"
#include "device/cache.h"
#include "graph/op.h"
#include "memory/derived.h"
#include "run/launch_scalars.h"
#include "tensor/layout.h"

#define BOUND_NOWHERE UINT32_MAX

/* Where something lies: `index` is a value's number or a buffer's. */
enum bound_place { BOUND_ABSENT, BOUND_OPERAND, BOUND_ASSIGNED, BOUND_BUFFER };

struct bound_ref {
    enum bound_place place;
    uint32_t index;
    uint64_t first;                /* byte in the buffer */
    struct buffer *const *current; /* during a replay: the pointer to the buffer; NULL: ABSENT */
};

struct bound_value {
    struct bound_ref at; /* whose buffer it has */
    bool external;
    uint32_t segment_value; /* its number in the segment; SEGMENT_EXTERNAL: inside a composite */
    uint32_t dies_after;    /* number of a submit, from 1; of made values that are not wanted */
    bool wanted, last;
    bool takes_owner; /* wanted: the replay's ownership of the buffer passes to it */
    bool buried;      /* its death is part of the plan's key */
    bool overwritten; /* external: by a launch */
    bool start;       /* external, assigned: the buffer lies at the start of its chunk */
    uint32_t align_log2;
    uint64_t bytes, tail; /* external, assigned: of the buffer */
    struct op_type type;
    struct layout layout;
    bool in_bucket; /* assigned: by the run, to a part of a buffer of the plan: */
    uint32_t bucket;
    uint64_t bucket_first;
    uint64_t writer;       /* external, overwritten: that of the buffer before the replay */
    struct buffer *buffer; /* external, assigned: while it is replayed */
};

/* Memory that a replay allocates. */
struct bound_buffer {
    uint64_t bytes;
    bool persistent;
    uint32_t made_in, dies_after; /* submits, from 1 */
    uint32_t taker;               /* wanted value that keeps it, BOUND_NOWHERE: nobody */
    uint32_t memory_of;    /* the buffer whose memory it uses: its own number, or that of another */
    const void *seen;      /* the recorded run's buffer */
    struct buffer *buffer; /* while it is replayed */
};

/* Scalars and bounds that come from a recorded op: of one op of a launch. */
struct bound_scalars {
    uint32_t record;
    uint32_t scalar, bound; /* the first ones in the launch */
    uint32_t
        only_operand; /* the operand with the op's only scalar, if no bounds; UINT32_MAX: none */
    struct scalar_counts count;
    bool in_composite; /* the op is decomposed: only its random words are written */
    bool seeded;
};

/* A frit_program_info.serial, and what it was when all launches were up to date; or that of the
 * device's decisions, whose change ends the bound plan. */
struct bound_serial {
    const uint64_t *at;
    uint64_t seen;
    bool decides;
};

/* Memory that a launch derives from an operand; see bind_derived.h for the first four. */
struct bound_derived {
    bool kept;
    bool fill; /* this and the next three: while it is replayed */
    uint32_t arg;
    uint64_t content;
    struct buffer *of, *memory;
    struct derived_key key;
};

struct bound_launch {
    frit_launch launch;
    struct prepared_cache *cache;
    struct prepared *prepared; /* one reference */
    struct bound_ref *args;
    uint32_t *ops; /* of the graph */
    struct bound_scalars *updates;
    uint8_t *classes;
    frit_scalar *scalars;
    int64_t *bounds;
    struct bound_ref *workspaces;  /* the workspace if any, then derived memory that is not kept */
    struct bound_derived *derived; /* launch.n_derived */
    uint32_t n_ops, n_in, n_updates, n_workspaces;
    uint32_t n_cmds;       /* of a program that records its own, else 1 */
    uint64_t zeroed_bytes; /* of the workspace */
    bool barrier;          /* before it */
    bool block;
    bool submit_after;
    bool effects; /* of an ORDERED op */
    /* Usually NULL.  Else the host runs this op, or waits, between two submits, and of all other
     * members only `workspaces` (its operands, then its result) and `submit_after` are used. */
    struct collective_call *collective;
};

/* A plan is replayed only if these are equal: the scalars of a recorded op that is expanded, and
 * the attributes on which sizes or positions depend. */
struct required_record {
    uint32_t record;
    uint32_t n_in;
    struct recorded_input *in;
    void *attrs;
    uint32_t attrs_bytes;
};

/* A plan is replayed only if these are equal: whether a value of the segment is wanted after the
 * run, for values that the plan makes and whose death is not part of its key. */
struct required_wanted {
    uint32_t segment_value;
    bool wanted;
};

/* Numbers of values or buffers. */
struct bound_list {
    uint32_t *list;
    uint32_t count;
};

struct collective_call;
struct plan;
struct capture;
struct explorer;
struct run_value;
struct segment;

struct bound_plan {
    struct cache_entry entry; /* first; of the device's cache, while a bound_cache has it */
    struct bound_cache *cache;
    struct plan *plan; /* a reference, once it is evicted */
    struct arena arena;
    bool spoiled;
    struct bound_value *values;
    struct bound_buffer *buffers;
    struct bound_list external, assigned, wanted;
    struct bound_list in_buckets; /* values assigned by the run */
    struct required_wanted *required_wanted;
    struct bound_list made;  /* buffers that do not share another's memory */
    struct bound_list dying; /* those of `made` that no value takes, in the order of their deaths */
    struct bound_launch *launches;
    struct required_record *required;
    uint32_t *contexts; /* of the recorded ops; NULL: all are 0 */
    uint32_t n_values, n_required_wanted, n_buffers, n_launches, n_required, n_submits, n_calls,
        n_blocks, n_in_parts;
    uint32_t buffers_capacity, launches_capacity;
    struct bound_serial *serials;
    uint32_t n_serials, serials_capacity;
    uint32_t n_collectives;  /* among the launches */
    struct frit_rank *ranks; /* of the stream, while it is replayed */
    uint32_t n_derived;      /* of all launches */
    uint64_t n_disabled;     /* programs of the device when the blocks were last looked at */
    uint32_t n_dropped;      /* of the dying, while it is replayed */
    frit_cmd *cmds;
    uint32_t cmds_capacity;
    struct capture *capture; /* NULL: nothing is recorded */
    uint64_t n_replays;
    uint32_t n_captured; /* launches of the last replay that were recorded */
    bool grew;           /* by a recording, since its bytes were counted */
    bool one_submit;     /* while it is replayed: all launches up to a collective are one submit */
};

/* NULL if out of memory. */
struct bound_plan *bound_plan_create(uint32_t n_values);
void bound_plan_destroy(struct bound_plan *bound); /* NULL does nothing */
/* Bytes of host memory. */
uint64_t bound_plan_bytes(const struct bound_plan *bound);

/* Into the bound plan's arena.  NULL if out of memory: it is spoiled then. */
void *bound_plan_copy(struct bound_plan *bound, const void *from, size_t count, size_t bytes);

/* ---- recording, from inside a run; NULL does nothing ---- */

void bound_plan_spoil(struct bound_plan *bound);
/* The run allocated a buffer. */
void bound_plan_add_buffer(struct bound_plan *bound, const struct buffer *buffer, bool persistent);
/* A value has a buffer now: one that was added, or that of the value `of`. */
void bound_plan_add_made(struct bound_plan *bound, uint32_t value, const struct buffer *buffer,
                         uint32_t of);
/* A launch will write a value where it is assigned to; `in_bucket`: to a part of a buffer that was
 * added. */
void bound_plan_add_assigned(struct bound_plan *bound, uint32_t value, const frit_arg *arg,
                             const struct buffer *memory, bool in_bucket);
/* A launch as it is added to the batch. */
struct bind_launch {
    const frit_launch *launch;
    struct prepared_cache *cache;
    struct prepared *prepared;
    const struct value *values; /* of the arguments: operands, then outputs */
    const uint32_t *in;         /* values of the plan whose buffers operands lie in */
    const uint32_t *out;        /* GRAPH_NO_VALUE: not wanted; NULL: a copy for another launch */
    const uint32_t *ops;        /* of the graph */
    struct buffer *const *workspaces;
    const struct derived_use *derived;
    uint32_t n_ops, n_in, n_out, n_workspaces, n_cmds;
    bool barrier; /* one stands before it */
    bool block;
    const uint8_t *classes;
    uint64_t decisions; /* serial of the device's, when the candidate was chosen */
};
void bound_plan_add_launch(struct bound_plan *bound, const struct bind_launch *launch);
/* The host did this; `values` are its operands and its result in the plan. */
void bound_plan_add_collective(struct bound_plan *bound, const struct collective_call *call,
                               const uint32_t *values, uint32_t n_values);
/* The launches added last are those of a block in parts. */
void bound_plan_add_parts(struct bound_plan *bound);
/* A submit went through. */
void bound_plan_add_submit(struct bound_plan *bound);
/* A value that was made died; its buffer is free after the next submit. */
void bound_plan_add_death(struct bound_plan *bound, uint32_t value);

#endif
