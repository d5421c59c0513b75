/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that wait in a stream, with the values that they name.
 *
 * Values are numbered in order of first appearance, operands before outputs: the relative form of
 * the ops.  A slot or alias stores its own number (epoch and index), so that no map is needed.
 * Deaths are added to the last op until the next one is recorded or the segment is drained.
 * Each value holds its slot or alias.
 *
 * A program's loop records the same ops again and again.  So a segment that has run keeps its ops
 * as predictions: an op that equals the one predicted at its place (row, attributes, the same
 * operands, new ones of the same type) only gets its new slots and scalars, and has the key and the
 * trie node that it had.  The first op that differs ends the prediction for the rest.
 *
 * Threads: a segment is guarded by the stream's lock; once detached, by the stream's baton. */
#ifndef RECORD_SEGMENT_H
#define RECORD_SEGMENT_H

#include <stdbool.h>

#include <frit/types.h>

#include "base/arena.h"

struct alias;
struct automaton_node;
struct key_type;
struct op_key;
struct op_type;
struct slot;
struct walker;

#define SEGMENT_EXTERNAL UINT32_MAX

struct seg_value {
    struct slot *slot;   /* of the stream, or NULL */
    struct alias *alias; /* of another stream's tensor, or NULL */
    uint32_t maker;      /* number of the record, or SEGMENT_EXTERNAL */
};

struct recorded_input {
    uint32_t kind;  /* FRIT_OPERAND_* */
    uint32_t dtype; /* SCALAR: type it is used as */
    uint32_t value; /* TENSOR */
    bool varies;    /* SCALAR: another number needs no check, only rounding */
    frit_scalar scalar;
    frit_scalar given; /* SCALAR that does not vary: before the check */
};

struct recorded_op {
    uint32_t op;
    uint32_t n_in, n_out;
    uint32_t attrs_id;   /* see key_attrs */
    uint32_t first, end; /* of the values that are new with it */
    uint32_t n_extents;  /* of the segment, after it */
    uint32_t n_dead, dead_capacity;
    uint32_t *dead;
    uint32_t context;          /* see context.h */
    bool simple;               /* can be predicted, see api/fast.c */
    bool seeded;               /* takes a number of the random sequence each time */
    bool confirmed;            /* was recorded as predicted */
    bool search_continues;     /* no plan ends with this op, whenever the search comes here */
    uint32_t n_confirmed_dead; /* length of the prefix of `dead` that was predicted */
    uint32_t raw_bytes;
    const void *raw;             /* attributes as the caller gave them */
    struct automaton_node *node; /* where the walker was after it */
    void *attrs;                 /* as op_check left them, NULL: the row has none */
    struct recorded_input *in;
    uint32_t *out; /* SEGMENT_EXTERNAL: not wanted */
    uint64_t seed, counter;
};

struct segment {
    struct arena arena;
    uint64_t epoch; /* marks slots and aliases that are numbered here */
    struct recorded_op **ops;
    struct seg_value *values;
    struct op_type *types;      /* of the values */
    struct key_type *key_types; /* the same in relative form, of matched ops */
    int64_t *extents;           /* extents[k] is number k + 2 */
    uint32_t n_ops, n_values, n_extents;
    uint32_t ops_capacity, values_capacity, types_capacity, key_types_capacity, extents_capacity;
    uint32_t n_matched;   /* ops whose key the walker has taken */
    uint32_t n_confirmed; /* length of the confirmed prefix, which the walker skips: all its ops and
                             their deaths were predicted, and no plan can end inside it (after each
                             op the search continues, or a scope was open) */
    uint32_t context;     /* the bits of all ops */
    bool in_scope;        /* a scope of the recording stream is open: no op runs before it ends */
    bool on_prediction; /* the last op was predicted, and all before it are the confirmed prefix */
    uint32_t n_predicted;     /* ops of the last run, predicted to be recorded again */
    uint32_t n_mispredicted;  /* runs that differed from the prediction since the arena was reset */
    uint64_t serial;          /* of the automaton's generation that the ops' nodes belong to */
    uint32_t joined_sequence; /* run/join.h: the sequence whose plans it runs as one; 0: none */
    const void *last_bound_plan; /* run/bound_cache.h: of its last run; may have been freed */
    /* Maintained by segments.c: */
    struct segment *successor; /* the segment that ran after this one the last time */
    uint64_t last_run;         /* number of its last run, see segments.n_runs */
    bool running;
};

/* Whether the walker has taken the key of every op. */
static inline bool segment_is_settled(const struct segment *segment)
{
    return segment->n_matched == segment->n_ops;
}

void segment_fini(struct segment *segment);
/* Forgets everything.  The values must have been released (segment_release). */
void segment_reset(struct segment *segment, uint64_t epoch);
/* The same, but predicts that the ops, or the first `max_predicted` of them, are recorded again. */
void segment_rewind(struct segment *segment, uint64_t max_predicted);
/* Begins recording into an empty segment under an epoch that no slot or alias has. */
static inline void segment_begin(struct segment *segment, uint64_t epoch)
{
    segment->epoch = epoch;
}

/* An operand of an op to append. */
struct segment_input {
    uint32_t kind;
    uint32_t dtype;
    struct slot *slot; /* TENSOR: one of the two */
    struct alias *alias;
    const struct op_type *type;
    frit_scalar scalar, given; /* after and before the check */
    bool varies;               /* see recorded_input */
};

/* What to append; everything is borrowed. */
struct segment_call {
    uint32_t op;
    uint32_t n_in, n_out;
    uint32_t attrs_id;
    uint32_t context;
    uint64_t seed, counter;
    const struct segment_input *in;
    const void *attrs;
    const struct op_type *types; /* n_out */
    struct slot *const *out;     /* NULL where the type has no dtype */
    const void *raw;             /* attributes as the caller gave them; NULL: never predicted */
    bool simple;                 /* can be predicted */
    bool seeded;
};

/* The op that is predicted next, or NULL. */
static inline struct recorded_op *segment_predicted(const struct segment *segment)
{
    return segment->n_ops < segment->n_predicted ? segment->ops[segment->n_ops] : NULL;
}
/* False if out of memory, and nothing changed. */
bool segment_append(struct segment *segment, const struct segment_call *call);
/* Notes with the last op that a value which this segment makes has died.  Does nothing if the key
 * of that op is taken already, as after a failed call: the value is then computed, and dropped
 * after the run. */
void segment_bury_slow(struct segment *segment, struct recorded_op *record, uint32_t value);
static inline void segment_bury(struct segment *segment, uint32_t value)
{
    struct recorded_op *record = segment->ops[segment->n_ops - 1];

    if (segment_is_settled(segment))
        return;
    if (record->confirmed && record->n_confirmed_dead < record->n_dead &&
        record->dead[record->n_confirmed_dead] == value)
        record->n_confirmed_dead++;
    else
        segment_bury_slow(segment, record, value);
}
/* What a composite op that the driver does not claim is expanded into: its relative form, and the
 * extents above 1 that appear in the expanded ops so far. */
struct segment_expansion {
    const void *bytes; /* see key_form */
    size_t n_bytes;
    const int64_t *extents;
    uint32_t n_extents;
};
/* Op `number` gets no key: keys of later ops find nothing in place of its types. */
void segment_skip_key(struct segment *segment, uint32_t number);
/* The exact key of op `number`, which has got its last death; the keys of the ops before it are
 * taken.  `form` NULL: the op is not expanded.  False if out of memory. */
bool segment_key(struct segment *segment, uint32_t number, const struct segment_expansion *form,
                 struct walker *walker, struct op_key *key);
/* Appends the ops of `from` from number `first` on, with new numbers; values that earlier ops make
 * become external.  False if out of memory, and `to` is as before. */
bool segment_move(struct segment *to, const struct segment *from, uint32_t first);
/* Gives back the holds of all values. */
void segment_release(struct segment *segment);

#endif
