/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by products of fragments: what its two ways to make weights share.  A team of a group
 * has SIDE rows, or several times as many, which share the fragments of keys and values.  Scores
 * and results are sums of products, and fragments; between the two products a target either folds
 * rows of fragments (attention_fragment_fold.c), or scores and weights go through tiles
 * (attention_fragment_tile.c). */
#ifndef LOWER_ATTENTION_FRAGMENT_H
#define LOWER_ATTENTION_FRAGMENT_H

#include "lower/attention/attention.h"

enum {
    SIDE = ATTENTION_SIDE,
    CHUNK = 8,       /* lanes of a thread: what they load is one access */
    MOST_PARTS = 16, /* fragments of a team along a side, */
    MOST_ROWS = 2    /* along its rows */
};

struct fragmenter {
    struct attention_emitter w;
    uint32_t dtype;
    uint32_t teams, n_keys;          /* of a group; of a block */
    uint32_t n_slots;                /* blocks that are in tiles at a time */
    uint32_t rows, deep, keys, outs; /* fragments along each */
    uint32_t team;                   /* the team's number in the group, */
    uint32_t first_row;              /* and its first row */
    struct attention_source k, v;    /* in slots of tiles */
    uint32_t query[MOST_ROWS][MOST_PARTS], score[MOST_ROWS][MOST_PARTS]; /* fragments, */
    uint32_t sum[MOST_ROWS][MOST_PARTS], weight[MOST_ROWS], factor;      /* likewise */
};

static inline void fragment_emit(const struct fragmenter *f, enum kir_op op, uint64_t imm)
{
    kir_emit_imm(f->w.m, op, imm, KIR_NONE, KIR_NONE, KIR_NONE);
}

static inline uint32_t fragment_line(uint32_t chunks)
{
    return (chunks + 1) * CHUNK;
}

/* Fragments along `n` elements. */
uint32_t fragment_parts(int64_t n);
/* Chunks of lines of `n` elements, so that all threads have as many of a block of `lines`. */
uint32_t fragment_chunks(uint32_t threads, uint32_t lines, int64_t n);
/* A new fragment of sums with that in each element. */
uint32_t fragment_sum(const struct fragmenter *f, double value);
/* The operands' parts of the block at `key`, in tiles from line `line` on. */
struct attention_part fragment_keys(const struct fragmenter *f, uint32_t key, uint32_t line);
struct attention_part fragment_values(const struct fragmenter *f, uint32_t key, uint32_t line);
/* Loads the fragments of the team's queries, through the tile of keys. */
void fragment_load_queries(const struct fragmenter *f);
/* Makes the scores of number `j` of a block's fragments of keys, which begins at `line` of the
 * tile. */
void fragment_multiply_key(const struct fragmenter *f, uint32_t line, uint32_t j);
/* Adds the products of fragment `weight` and values, likewise. */
void fragment_multiply_value(const struct fragmenter *f, uint32_t line, uint32_t j);

/* Goes over the keys and finishes rows. */
void fragment_fold(struct fragmenter *f);
void fragment_tile(struct fragmenter *f);
/* Bytes of the tiles that they have beside those of operands: the first for results, `outs`
 * fragments, after those. */
uint64_t fragment_fold_bytes(const struct attention_sizes *sizes, uint32_t outs);
uint64_t fragment_tile_bytes(const struct attention_sizes *sizes);

#endif
