/* SPDX-License-Identifier: Apache-2.0 */
/* What a bound holds: written by bound.c, played by replay.c, which only changes what is said to be
 * there "while the bound plays", launches' addresses and numbers, and `spoiled`. */
#ifndef RUN_BOUND_PLAN_H
#define RUN_BOUND_PLAN_H

#include "run/launch_scalars.h"
#include "run/replay.h"

enum bound_kind { BOUND_NONE, BOUND_EXTERNAL, BOUND_CREATED, BOUND_SHARED };

struct bound_value {
    enum bound_kind kind;
    uint32_t seg;        /* value of the segment, or SEGMENT_EXTERNAL: inside a composite */
    uint32_t of;         /* SHARED: whose buffer */
    uint32_t dies_after; /* submits; UINT32_MAX: wanted */
    bool wanted, last, persistent;
    bool buried;      /* its death is part of the plan's key */
    bool written;     /* SHARED: by a launch */
    bool overwritten; /* EXTERNAL: through a value that shares it */
    bool start;       /* EXTERNAL: the buffer lies at the start of its block */
    uint64_t bytes;
    struct op_type type;
    struct layout layout;
    uint64_t writer; /* EXTERNAL, overwritten: that of the buffer before the play */
    struct buffer
        *buffer; /* made ones: while the bound plays, else NULL; of an operand, the last */
};

/* An argument: where it lies in its buffer. */
struct bound_arg {
    uint32_t value; /* GRAPH_NO_VALUE: no tensor */
    uint64_t first;
};

/* Numbers that come from the records: of one op of a launch. */
struct bound_scalars {
    uint32_t record;
    uint32_t scalar, bound; /* the first ones in the launch */
    uint32_t alone;         /* operand whose scalar is all there is, or UINT32_MAX */
    struct scalar_counts count;
    bool inner; /* part of a composite: only its random words are written */
    bool seeded;
};

struct bound_launch {
    frit_launch launch;
    struct prepared_cache *cache;
    struct prepared *prepared;
    struct bound_arg *args;
    uint32_t *ops; /* of the graph */
    struct bound_scalars *updates;
    uint8_t *classes;
    frit_scalar *scalars;
    int64_t *bounds;
    uint32_t n_ops, n_in, n_updates;
    uint64_t workspace_bytes;
    struct buffer *workspace; /* while the bound plays */
    bool barrier;
    bool block;
    bool submit_after;
};

/* What must be the same to play: the numbers of a record that stands as its parts, attributes on
 * which sizes or places depend. */
struct same_record {
    uint32_t record;
    uint32_t n_in;
    struct recorded_input *in;
    void *attrs;
    uint32_t attrs_bytes;
};

/* Numbers of values, by what is to be done with them. */
struct bound_list {
    uint32_t *list;
    uint32_t count;
};

struct bound_plan {
    struct arena arena;
    bool spoiled;
    struct bound_value *values;
    struct bound_list external, created, shared, asked; /* asked: made, known to the
                                                             segment, and not buried */
    struct bound_list wanted;
    struct bound_list dying; /* in the order of the submits after which they go */
    struct bound_launch *launches;
    struct same_record *same;
    bool *persistent; /* by record; NULL: none is */
    uint32_t n_values, n_launches, launches_capacity, n_same, n_submits, n_calls;
    uint32_t n_seg; /* values of the segment */
    uint32_t plays;
    uint64_t n_disabled;          /* programs of the device when the blocks were last looked at */
    struct failure *late_failure; /* of a submit of this play, a reference; NULL: none is known */
    frit_cmd *cmds;
    uint32_t cmds_capacity;
};

#endif
