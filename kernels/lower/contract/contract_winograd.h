/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's convolution: which convs are done so, and in which form. */
#ifndef LOWER_CONTRACT_WINOGRAD_H
#define LOWER_CONTRACT_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

struct block_op;
struct contract;

enum {
    WINOGRAD_WINDOW = 3,
    WINOGRAD_RESULT = 2,                                    /* of a tile, along each dim */
    WINOGRAD_PATCH = WINOGRAD_WINDOW + WINOGRAD_RESULT - 1, /* elements of x likewise */
    WINOGRAD_MATRICES = WINOGRAD_PATCH * WINOGRAD_PATCH,
    WINOGRAD_WIDTH = 16 /* tiles of a panel that are computed together */
};

/* Tags of the space of a patch's lines: see contract_winograd.c. */
enum winograd_tag { WINOGRAD_CHANNEL, WINOGRAD_COLUMN, WINOGRAD_LINE, WINOGRAD_TILE };

/* Plans a conv this way where that is predicted to cost less than its products; false: it is not.
 */
bool winograd_plan(struct contract *c, const struct block_op *op);
/* Chooses the form of the products. */
void winograd_choose(struct contract *c);
/* Reserves memory for transformed weights, which is kept, and for the rest in the workspace. */
void winograd_reserve(struct contract *c);

/* Whether registers are many, and hold WINOGRAD_WIDTH numbers each. */
bool winograd_is_wide(const struct contract *c);
/* Whether some results are computed twice, of which the second one must not read what the first one
 * has written. */
bool winograd_repeats(const struct contract *c);

/* Tiles of all groups of products, and groups' tiles of outputs. */
int64_t winograd_panel_tiles(const struct contract *c);
int64_t winograd_output_tiles(const struct contract *c);
/* Elements of one matrix of transformed weights. */
int64_t winograd_weights_size(const struct contract *c);

#endif
