/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of attention's gradients, between attention_backward.c (what is to be done) and its
 * forms, attention_backward_fragment.c and attention_backward_tile.c (the code).
 *
 * With w the weights, g the results' gradients: dv = w' g, and with slopes dw = g v',
 * ds = w * (dw - the sum of w * dw along the row), dq = scale * ds k, dk = scale * ds' q.  No
 * scores are in memory: weights are computed again from scores and what the softmax of a row has
 * subtracted (Dao 2023, FlashAttention-2).
 *
 *   1   groups have rows of queries, go over the keys, and find each row's base, by which weights
 *       are e^(score - base), and its sum of w * dw, which they keep in the workspace
 *   2   groups have rows of queries, go over the keys, and add up dq
 *   3   groups have rows of keys, go over the queries, and add up dk and dv
 *
 * Fragments do 1 and 2 in one phase; tiles have a phase for each, as compilers take long for them.
 * Nothing is added up by two groups, so that results are the same in each run. */
#ifndef LOWER_ATTENTION_BACKWARD_H
#define LOWER_ATTENTION_BACKWARD_H

#include "lower/attention/attention.h"

enum { DQ, DK, DV, GRADIENTS };

/* Of a row of queries: its base, its sum of w * dw. */
enum { ROW_BASE, ROW_SUM, ROW_NUMBERS };

/* Pairs of operands with rows of equal length: queries and keys, whose products are scores;
 * results' gradients and values, whose products are slopes. */
enum { SCORES, SLOPES, PAIRS };

struct gradients {
    struct attention a;
    uint32_t grad;             /* node */
    uint32_t store[GRADIENTS]; /* BLOCK_NONE: it is not used */
};

/* Of a phase, where groups have `rows` rows of ROW or KEY, and go over those of the other tag by
 * blocks of `lines`. */
struct gradient_phase {
    struct attention_emitter w;
    const struct gradients *g;
    uint32_t rows, lines;
    uint32_t own_tag, other_tag;
    uint32_t row_count, all_rows; /* parameters: queries of each of BOTH, and of all */
    uint32_t numbers; /* tile of the numbers of a block's queries: `lines` of each, in slots */
    uint32_t n_slots; /* blocks in tiles at a time */
};

/* Begins it: the group's rows, and the others that it goes over. */
void gradient_begin(struct gradient_phase *p, uint32_t own_tag, uint32_t threads, uint32_t chunk);
/* The operand of a pair that groups have rows of, and the other one. */
uint32_t gradient_own(const struct gradient_phase *p, uint32_t pair);
uint32_t gradient_other(const struct gradient_phase *p, uint32_t pair);
/* The first line in tiles of the block that begins at `first`. */
uint32_t gradient_line(const struct gradient_phase *p, uint32_t first);
/* The score of an own row and one of a block from the sum of products; -infinity where the query
 * does not see the key. */
uint32_t gradient_score(const struct gradient_phase *p, uint32_t own, uint32_t other, uint32_t sum);
/* The base by which weights are final ones, from the largest score and the sum of weights relative
 * to it.  Of a row that sees no key it is infinite. */
uint32_t gradient_base(const struct gradient_phase *p, uint32_t largest, uint32_t total);
/* Whether there is such a key, where the last block or group may not be full; KIR_NONE: surely. */
uint32_t gradient_is_key(const struct gradient_phase *p, uint32_t key);
/* A row's number, ROW_BASE or ROW_SUM, that was kept. */
uint32_t gradient_kept(const struct gradient_phase *p, uint32_t row, uint32_t number);
/* Keeps a row's numbers where `ok`, and where there is such a row. */
void gradient_keep(const struct gradient_phase *p, uint32_t row, uint32_t base, uint32_t sum,
                   uint32_t ok);
/* Stages the numbers of a block's queries; beyond the end weights become 0. */
void gradient_stage(const struct gradient_phase *p, uint32_t first);
/* Stores a gradient's element, or those of a thread's lanes if `chunked`, at `column`, from a sum
 * of products. */
void gradient_store(const struct gradient_phase *p, uint32_t result, uint32_t row, uint32_t column,
                    bool chunked, uint32_t sum);

/* ---- forms ---- */

/* Bytes of a group's tiles, and the phases. */
uint64_t gradient_fragment_bytes(struct gradients *g);
void gradient_fragments(struct gradients *g);
uint64_t gradient_tile_bytes(struct gradients *g);
void gradient_tiles(struct gradients *g);
/* Rows of a group, which are few where they are long: registers hold what a block makes. */
uint32_t gradient_fragment_rows(struct gradients *g);
uint32_t gradient_tile_rows(struct gradients *g);

#endif
