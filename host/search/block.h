/* SPDX-License-Identifier: Apache-2.0 */
/* A block: ops that could run as one program, and a clone of each fuser that is fed with them.
 *
 * Clones are reset and used again.  A fuser that breaks its word is dropped for its block.
 * Threads: one at a time per context. */
#ifndef SEARCH_BLOCK_H
#define SEARCH_BLOCK_H

#include "search/search.h"

/* A value as the search knows it. */
struct search_value {
    uint32_t last; /* 1 + last op that has it, 0: none */
    uint32_t mark; /* the last round that met it */
    bool dead;
};

/* What all parts of a search share. */
struct search_ctx {
    struct search_config config;
    struct relative ops; /* as pushed: shallow copies, each death at the value's last use */
    struct search_value *values;
    uint32_t values_room;
    uint32_t round;
    struct spare *spares; /* per fuser: clones in the prototype's state */
    bool *tired;          /* per fuser: not offered to new blocks */
    struct arena arena;   /* of the results */
    struct search_stats stats;
};

struct spare {
    void **clones;
    uint32_t count, room;
};

/* A fuser of a block. */
struct feed {
    void *clone; /* NULL: not offered, or dropped */
    frit_fuser_state state;
};

struct block {
    uint32_t *ops; /* in the order in which fusers see them */
    uint32_t n_ops, room;
    struct feed *feeds;
    bool open;  /* a fuser could take more */
    bool stale; /* a death came after its op was fed */
    enum plan_end end;
};

/* Without ops; open if there is a fuser. */
frit_status block_create(struct search_ctx *ctx, struct block **out, frit_err *err);
void block_destroy(struct search_ctx *ctx, struct block *block); /* NULL does nothing */

/* Feeds one op more; *taken: some fuser took it, or it is the first.  An op that none takes is not
 * in the block, which is closed then. */
frit_status block_add(struct search_ctx *ctx, struct block *block, uint32_t op, bool *taken,
                      frit_err *err);
/* Feeds everything again if a death came late. */
void block_refresh(struct search_ctx *ctx, struct block *block);

enum { BLOCK_MERGE_SORTED, BLOCK_MERGE_AFTER, BLOCK_MERGE_BEFORE };

/* A block of the ops of both, in program order or b's after or before a's; *out is NULL where that
 * hides what they could do apart, or gains nothing and ends all fusers. */
frit_status block_merge(struct search_ctx *ctx, struct block *a, struct block *b, int how,
                        struct block **out, frit_err *err);

/* The score of the best fuser that is ready, 0 if none is worth it; *fuser is its number. */
uint32_t block_best(struct search_ctx *ctx, const struct block *block, uint32_t *fuser);
/* The program of the best fuser; *program is NULL if there is none.  It covers the first *n_ops ops
 * of the block. */
frit_status block_finish(struct search_ctx *ctx, struct block *block, struct plan_program **program,
                         uint32_t *n_ops, uint32_t *score, frit_err *err);

/* What a program of quality 1000 for these ops saves: 100 for each full tensor that is not read or
 * written, 10 for each launch; 0 if it is no gain. */
uint64_t block_score(struct search_ctx *ctx, const uint32_t *ops, uint32_t n_ops);

#endif
