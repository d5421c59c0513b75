/* SPDX-License-Identifier: Apache-2.0 */
/* Scores. */
#ifndef SEARCH_SCORE_H
#define SEARCH_SCORE_H

#include <stdint.h>

struct block;
struct search_ctx;

/* Computes the tallies from op number `first` on.  The values must be marked as this block's for
 * the ops before, unless `first` is 0. */
void block_tally(struct search_ctx *ctx, struct block *block, uint32_t first);
/* The score of a program of quality 1000 for the block's first ops: 100 per tensor that is not read
 * or written, 10 per launch saved; 0 if it saves nothing. */
uint64_t block_score(const struct block *block, uint32_t n_ops);

#endif
