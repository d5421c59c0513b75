/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the search share: segments from text, results as text. */
#ifndef TESTS_SEARCH_RIG_H
#define TESTS_SEARCH_RIG_H

#include "unit.h"

#include "fusers.h"

/* Appends an op; all tensors are f32[a], values are numbers of the caller's choice. */
void rig_op(struct relative *relative, const char *name, const uint32_t *in, uint32_t n_in,
            uint32_t out, const uint32_t *dead, uint32_t n_dead);

/* Ops from text, separated by ';': "exp 0 > 1; add 1 2 > 3 ! 1 2" is exp of value 0 giving 1, then
 * an add in which 1 and 2 die. */
void rig_parse(struct relative *relative, const char *text);

/* Ops [first, end) as a segment of its own: the same value numbers. */
void rig_cut(const struct relative *from, uint32_t first, uint32_t end, struct relative *to);

/* A result: for each block the fuser's name and its ops, "chain(0 1 2) 3 4". */
char *rig_blocks_text(const struct rig_fusers *fusers, const struct plan_block *blocks,
                      uint32_t n_blocks, char *text, size_t size);
void rig_drop(const struct plan_block *blocks, uint32_t n_blocks);

/* Searches a segment in one go and compares with the text; every program's ops are those it was
 * given, and the blocks make a plan. */
void rig_expect(struct rule *rules, uint32_t n_rules, uint32_t max_blocks, const char *segment,
                const char *expected);
/* Likewise without `all`: "chain(0 1) of 2" says how many ops are covered. */
void rig_expect_some(struct rule *rules, uint32_t n_rules, uint32_t max_blocks, const char *segment,
                     const char *expected);

/* The numbers of the last rig_expect. */
extern struct search_stats rig_stats;

#endif
