/* SPDX-License-Identifier: Apache-2.0 */
/* A block: ops that may become one program, and for each fuser a clone to which they are pushed.
 *
 * Clones are reset and reused.  A fuser that violates its contract is not used for the block any
 * more.  One thread at a time per context. */
#ifndef SEARCH_BLOCK_H
#define SEARCH_BLOCK_H

#include <stdbool.h>

#include "plan/relative.h"
#include "search/search.h"

/* State of a value during a search.  Blocks are bits, numbered as in pass.h. */
struct search_value {
    uint64_t readers, maker; /* blocks that read it, and the block that makes it */
    uint32_t last;           /* 1 + the last op that uses or makes it; 0: none */
    uint32_t read;           /* the last tally that counted it as an operand */
    uint32_t made;           /* the last tally that counted it as a result */
    uint32_t seen;           /* the last tallied op that read it */
    uint32_t from; /* while ops are ordered: 1 + the op that makes it; 0: none in the range */
    uint32_t to;   /* likewise: 1 + the last op that uses it */
    bool dead;
};

/* State that all parts of a search share. */
struct search_ctx {
    struct search_config config;
    struct relative ops; /* pushed ops: shallow copies, each death at the value's last use */
    struct search_value *values;
    uint32_t values_capacity;
    uint32_t tally;       /* tallies are numbered: the last number */
    uint32_t tallied;     /* tallied ops likewise */
    uint64_t work;        /* pushes to fusers since the reset */
    uint32_t n_taken;     /* 1 + the last op that a pass took since the reset */
    struct spare *spares; /* per fuser: unused clones, in the prototype's state */
    struct arena arena;   /* for results */
    struct search_stats stats;
};

struct spare {
    void **clones;
    uint32_t count, capacity;
};

/* A fuser's clone, and its state after the block's ops. */
struct block_fuser {
    void *clone; /* NULL: no clone, or dropped */
    frit_fuser_state state;
};

/* The costs of some ops.  Only tensors with more than one element count. */
struct tally {
    int32_t apart;    /* tensors that are read and written if each op runs by itself */
    int32_t together; /* the same if the ops run as one program */
    int32_t launches; /* if each op runs by itself */
};

/* The last attempt to merge this block with an unrelated smaller one that did not pay.  As long as
 * this block has the same ops, larger blocks of the same kind are not tried. */
struct merge_refusal {
    uint32_t by; /* number of this block's ops then; 0: there was no refusal */
    uint32_t n_ops;
    uint32_t cls; /* class of the refused block's first op */
    bool alike;   /* the first results had equal type and shape */
};

struct block {
    uint32_t number;
    uint32_t *ops;         /* in the order in which they are pushed */
    struct tally *tallies; /* per op: of all ops up to this one */
    uint32_t n_ops, capacity;
    struct block_fuser *fusers;
    bool open;   /* a fuser may accept more ops */
    bool stale;  /* a death was added to an op that was pushed already */
    bool placed; /* a program that was found before; takes part in the order only */
    struct merge_refusal refused; /* the latest refusal */
    enum plan_end end;
};

/* Creates a block without ops; it is open if there are fusers. */
frit_status block_create(struct search_ctx *ctx, uint32_t number, struct block **out,
                         frit_err *err);
/* Creates a closed block of a program's ops, which no fuser sees. */
frit_status block_create_placed(struct search_ctx *ctx, uint32_t number, const uint32_t *ops,
                                uint32_t n_ops, struct block **out, frit_err *err);
void block_destroy(struct search_ctx *ctx, struct block *block); /* NULL does nothing */

/* Pushes an op.  Must be called before the op's values are marked as this block's.  *taken: a fuser
 * accepted it, or it is the first op.  The block is closed without the op if no fuser accepts it,
 * or if too many ops already follow those that programs cover. */
frit_status block_add(struct search_ctx *ctx, struct block *block, uint32_t op, bool *taken,
                      frit_err *err);
/* Pushes all ops again if a death was added late. */
void block_refresh(struct search_ctx *ctx, struct block *block);

/* Tries to append the ops of `tail`, which is not changed; *merged: whether the block keeps them.
 * It does if the merged block saves more than both separately, or as much while a fuser is still
 * open and `strict` is false.  Otherwise the block is as before. */
frit_status block_append(struct search_ctx *ctx, struct block *block, struct block *tail,
                         bool strict, bool *merged, frit_err *err);
/* As block_append, with all ops in program order. */
frit_status block_interleave(struct search_ctx *ctx, struct block *block, struct block *other,
                             bool strict, bool *merged, frit_err *err);
/* The block without the views of values from outside of it, which then may run before it; *out is
 * NULL if there are none, or nothing else. */
frit_status block_without_views(struct search_ctx *ctx, struct block *block, struct block **out,
                                frit_err *err);

/* Returns the score of the best ready fuser, whose number is *fuser; 0 if none saves anything. */
uint32_t block_best(const struct search_ctx *ctx, const struct block *block, uint32_t *fuser);
/* Makes the program of the best fuser, which covers the block's first *n_ops ops; *program is NULL
 * if there is none. */
frit_status block_finish(struct search_ctx *ctx, struct block *block, struct program **program,
                         uint32_t *n_ops, uint32_t *score, frit_err *err);

#endif
