/* SPDX-License-Identifier: Apache-2.0 */
/* What a tape holds: written by tape.c, played by replay.c, which only changes what is said to be
 * there "while the tape plays", launches' addresses and numbers, and `spoiled`. */
#ifndef STREAM_TAPE_H
#define STREAM_TAPE_H

#include "stream/replay.h"
#include "stream/words.h"

enum tape_kind { TAPE_NONE, TAPE_EXTERNAL, TAPE_CREATED, TAPE_SHARED };

struct tape_value {
    enum tape_kind kind;
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
    struct buffer *buffer; /* made ones: while the tape plays, else NULL; of an operand, the last */
};

/* An argument: where it lies in its buffer. */
struct tape_arg {
    uint32_t value; /* GRAPH_NO_VALUE: no tensor */
    uint64_t first;
};

/* Numbers that come from the records: of one op of a launch. */
struct tape_words {
    uint32_t record;
    uint32_t scalar, bound; /* the first ones in the launch */
    uint32_t alone;         /* operand whose scalar is all there is, or UINT32_MAX */
    struct words_count count;
    bool inner; /* part of a composite: only its random words are written */
    bool seeded;
};

struct played_launch {
    frit_launch launch;
    struct answers *answers;
    struct prepared *prepared;
    struct tape_arg *args;
    uint32_t *ops; /* of the graph */
    struct tape_words *words;
    uint8_t *classes;
    frit_scalar *scalars;
    int64_t *bounds;
    uint32_t n_ops, n_in, n_words;
    uint64_t workspace_bytes;
    struct buffer *workspace; /* while the tape plays */
    bool barrier;
    bool block;
    bool submit_after;
};

/* What must be the same to play: the numbers of a record that stands as its parts, attributes on
 * which sizes or places depend. */
struct same_record {
    uint32_t record;
    uint32_t n_in;
    struct record_input *in;
    void *attrs;
    uint32_t attrs_bytes;
};

/* Numbers of values, by what is to be done with them. */
struct tape_list {
    uint32_t *list;
    uint32_t count;
};

struct tape {
    struct arena arena;
    bool spoiled;
    struct tape_value *values;
    struct tape_list external, created, shared, asked; /* asked: made, known to the
                                                             segment, and not buried */
    struct tape_list wanted;
    struct tape_list dying; /* in the order of the submits after which they go */
    struct played_launch *launches;
    struct same_record *same;
    bool *persistent; /* by record; NULL: none is */
    uint32_t n_values, n_launches, launches_room, n_same, n_submits, n_calls;
    uint32_t n_seg; /* values of the segment */
    uint32_t plays;
    frit_cmd *cmds;
    uint32_t cmds_room;
};

#endif
