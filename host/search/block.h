/* SPDX-License-Identifier: Apache-2.0 */
/* A block: ops that could run as one program, and a clone of each fuser that is fed with them.
 *
 * Clones are reset and used again.  A fuser that breaks its contract is dropped for its block.
 * Threads: one at a time per context. */
#ifndef SEARCH_BLOCK_H
#define SEARCH_BLOCK_H

#include "search/search.h"

/* A value as the search knows it.  Blocks are bits, numbered as in pass.h. */
struct search_value {
    uint64_t readers, maker; /* blocks of the pass */
    uint32_t last;           /* 1 + last op that has it, 0: none */
    uint32_t read, made;     /* the last tally that met it as an operand, as a result */
    uint32_t seen;           /* the last op that a tally looked at it for */
    uint32_t from, to;       /* 1 + op of the range being ordered that makes it, ends it; 0: none */
    bool dead;
};

/* What all parts of a search share. */
struct search_ctx {
    struct search_config config;
    struct relative ops; /* as pushed: shallow copies, each death at the value's last use */
    struct search_value *values;
    uint32_t values_capacity;
    uint32_t tally, tallied; /* the last numbers given to tallies and to ops that they look at */
    uint64_t work;           /* pushes since the reset */
    uint32_t n_taken;        /* ops up to the furthest that a pass took since */
    struct spare *spares;    /* per fuser: clones in the prototype's state */
    struct arena arena;      /* of the results */
    struct search_stats stats;
};

struct spare {
    void **clones;
    uint32_t count, capacity;
};

/* A fuser of a block. */
struct feed {
    void *clone; /* NULL: not offered, or dropped */
    frit_fuser_state state;
};

/* Traffic, in full tensors, and launches: of ops one by one, and of one program for them. */
struct tally {
    int32_t apart, together, launches;
};

/* A smaller block that nothing joins with this one, and that it did not gain by.  Nor does it by a
 * larger one of that kind, while it has the same ops itself. */
struct refusal {
    uint32_t by; /* ops that it had, 0: it refused none */
    uint32_t n_ops;
    uint32_t cls; /* of the first op */
    bool alike;   /* in its first result */
};

struct block {
    uint32_t number;
    uint32_t *ops;         /* in the order in which fusers see them */
    struct tally *tallies; /* of the first ops, up to and with each */
    uint32_t n_ops, capacity;
    struct feed *feeds;
    bool open;              /* a fuser could take more */
    bool stale;             /* a death came after its op was fed */
    struct refusal refused; /* the latest */
    enum plan_end end;
};

/* Without ops; open if there is a fuser. */
frit_status block_create(struct search_ctx *ctx, uint32_t number, struct block **out,
                         frit_err *err);
void block_destroy(struct search_ctx *ctx, struct block *block); /* NULL does nothing */

/* Feeds one op more, before the values know that the block has it.  *taken: some fuser took it, or
 * it is the first.  An op that none takes, or that comes long after all that programs cover, is not
 * in the block, which is closed then. */
frit_status block_add(struct search_ctx *ctx, struct block *block, uint32_t op, bool *taken,
                      frit_err *err);
/* Feeds everything again if a death came late. */
void block_refresh(struct search_ctx *ctx, struct block *block);

/* Appends the ops of `tail`, which is left as it is; *merged: whether the block keeps them.  It
 * does not where that hides what the two could do apart, gains nothing and ends all fusers, or,
 * with `strict`, gains nothing.  A block that does not keep them is as before. */
frit_status block_append(struct search_ctx *ctx, struct block *block, struct block *tail,
                         bool strict, bool *merged, frit_err *err);
/* Likewise with all ops in program order. */
frit_status block_interleave(struct search_ctx *ctx, struct block *block, struct block *other,
                             bool strict, bool *merged, frit_err *err);

/* The score of the best fuser that is ready, 0 if none is worth it; *fuser is its number. */
uint32_t block_best(const struct search_ctx *ctx, const struct block *block, uint32_t *fuser);
/* The program of the best fuser; *program is NULL if there is none.  It covers the first *n_ops ops
 * of the block. */
frit_status block_finish(struct search_ctx *ctx, struct block *block, struct program **program,
                         uint32_t *n_ops, uint32_t *score, frit_err *err);

/* Fills the tallies of the block's ops from number `first` on, beside those before, which the
 * values know; 0: of all. */
void block_tally(struct search_ctx *ctx, struct block *block, uint32_t first);
/* What a program of quality 1000 for the block's first ops saves: 100 for each full tensor that is
 * not read or written, 10 for each launch; 0 if it is no gain. */
uint64_t block_score(const struct block *block, uint32_t n_ops);

#endif
