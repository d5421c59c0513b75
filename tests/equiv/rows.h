/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of ops: each makes one random op, or a short pattern of ops, and is false where nothing
 * fitted. */
#ifndef EQUIV_ROWS_H
#define EQUIV_ROWS_H

#include "generate.h"

/* Of a row with one result of its operands' type. */
struct map_row {
    uint16_t op;
    uint32_t dtypes;
    int8_t most;  /* level that an operand may have */
    int8_t level; /* of the result; -1: the operand's, -2: twice it */
    bool positive;
};

/* rows_map.c */
bool generate_unary(struct generator *g);
bool generate_root(struct generator *g);
bool generate_binary(struct generator *g);
bool generate_compare(struct generator *g);
bool generate_choose(struct generator *g);
bool generate_clamp(struct generator *g);
bool generate_cast(struct generator *g);
bool generate_chain(struct generator *g);
bool generate_quant(struct generator *g);
bool generate_step(struct generator *g);
/* rows_reduce.c */
bool generate_reduce(struct generator *g);
bool generate_along_axis(struct generator *g);
bool generate_norm(struct generator *g);
bool generate_pattern(struct generator *g);
/* rows_contract.c */
bool generate_matmul(struct generator *g);
bool generate_max_pool(struct generator *g);
bool generate_fft(struct generator *g);
/* rows_index.c */
bool generate_sort(struct generator *g);
bool generate_topk(struct generator *g);
bool generate_gather(struct generator *g);
bool generate_scatter(struct generator *g);
bool generate_cat(struct generator *g);

/* In a careful script: a value that is at least 1, made of `x`; else `x`. */
uint16_t away_from_zero(struct generator *g, uint16_t x);
/* Indices, output `k` of `action`, have a type that is not one of ours: they are cast at once. */
bool cast_index(struct generator *g, const struct action *action, uint32_t k);

bool has_elements(const struct var *var);
bool same_type(const struct var *a, const struct var *b);

#endif
