/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of ops: each makes one random op, or a short pattern of ops, and is false where nothing
 * fitted. */
#ifndef EQUIV_OPS_H
#define EQUIV_OPS_H

#include "generate.h"

/* Exponents of a result (see struct var): the operand's, or that of the operand squared. */
enum { OF_OPERAND = -1, OF_SQUARE = -2 };

/* An op with one result, of its operands' type. */
struct simple_op {
    uint16_t id;
    uint32_t dtypes;
    int8_t most;     /* largest exponent that an operand may have */
    int8_t exponent; /* of the result; in ops_reduce.c: what it adds to the operand's */
    bool positive;   /* the result is not negative */
};

/* ops_map.c */
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
/* ops_reduce.c */
bool generate_reduce(struct generator *g);
bool generate_along_axis(struct generator *g);
bool generate_norm(struct generator *g);
bool generate_pattern(struct generator *g);
/* ops_contract.c */
bool generate_matmul(struct generator *g);
bool generate_conv(struct generator *g);
bool generate_attention(struct generator *g);
bool generate_max_pool(struct generator *g);
bool generate_fft(struct generator *g);
/* ops_product.c */
bool generate_product(struct generator *g);
/* ops_index.c */
bool generate_sort(struct generator *g);
bool generate_topk(struct generator *g);
bool generate_gather(struct generator *g);
bool generate_scatter(struct generator *g);
bool generate_cat(struct generator *g);

/* In a well-conditioned script: a value that is at least 1, made of `x`; else `x`. */
uint16_t away_from_zero(struct generator *g, uint16_t x);
/* Weights, a mask: data of this shape; NO_VAR if they were too many. */
uint16_t generate_fresh(struct generator *g, uint32_t dtype, const struct shape *shape);
/* Indices, output `k` of `action`, have a type that is not one of ours: they are cast at once. */
bool cast_index(struct generator *g, const struct action *action, uint32_t k);

bool has_elements(const struct var *var);
bool same_type(const struct var *a, const struct var *b);

#endif
