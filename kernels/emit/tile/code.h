/* SPDX-License-Identifier: Apache-2.0 */
/* What translation makes and running reads: steps over scratch memory.
 *
 * Scratch, from 0: the group's coordinates, the words of the launch, constants, single elements,
 * tiles, registers.  A register has a lane per element, from a multiple of 64 on, after a head of
 * 64 bytes: the head keeps registers off each other by a multiple of 4096, and is where a B that is
 * true in one range of lanes has that range instead of lanes. */
#ifndef EMIT_TILE_CODE_H
#define EMIT_TILE_CODE_H

#include <stdbool.h>

#include "emit/tile/loops.h"
#include "emit/tile/range.h"
#include "emit/tile/tile.h"

enum step_kind {
    STEP_LOOP,
    STEP_ADD_I32, /* of single elements, as are most offsets: out = a + b */
    STEP_MUL_I32,
    STEP_LOAD,
    STEP_STORE,
    STEP_ATOMIC,
    STEP_RANGE,      /* out: the lanes where a comparison of a line holds */
    STEP_RANGE_AND,  /* out: of two masks, ranges or single ones */
    STEP_RANGE_FILL, /* makes lanes of a range, in place */
    STEP_PRODUCT, /* does what is left of the loop, imm: number of its tile_product; `to`: the step
                     after its NEXT; where it cannot the steps that follow do */
    STEP_FOR,     /* out: the counter; a, b: begin, end; `to`: the step after its NEXT */
    STEP_NEXT,    /* out, b: as FOR has them; `to`: the first step inside */
    STEP_IF       /* a; `to`: the step to go to when it is false */
};

/* What says which lanes take part. */
enum step_mask { MASK_NONE, MASK_ONE, MASK_RANGE, MASK_LANES };

struct tile_step {
    uint8_t kind;     /* enum step_kind */
    uint8_t mask;     /* enum step_mask, of `c`; RANGE_AND: of a */
    uint8_t mask_b;   /* RANGE_AND: of b */
    uint8_t op, type; /* RANGE: the comparison; type of its operands, the counter, the elements */
    bool swapped;     /* RANGE: b is the line */
    bool wide;        /* LOAD, STORE: offset a is 64 bits */
    bool in_tile;     /* LOAD, STORE: `base` is in scratch, else an argument's number */
    bool one_b;       /* LOAD: b is a single element */
    uint8_t way;      /* LOAD, STORE: enum tile_way */
    uint8_t bytes;    /* LOAD, STORE, not in a tile: of an element in memory */
    uint32_t n;
    uint32_t out, a, b, c; /* in scratch; STORE: b is what is stored; LOAD: b what the others get */
    uint32_t base;
    uint32_t to;
    uint32_t scale;  /* LOAD, STORE: of the offset of lane 0 */
    uint64_t imm;    /* LOOP: its own; RANGE, LOAD, STORE: the line's step; FOR, NEXT: the step */
    tile_loop *loop; /* LOOP; LOAD with mask: copies b; RANGE: for lanes */
    tile_move *move;
};

/* Lanes first .. end - 1; `first` < 0: the lanes themselves say. */
struct tile_range {
    int32_t first, end;
};

enum { TILE_HEAD = 64 };

/* A load of a product loop.  Its offset grows by times * *by for each that the counter does. */
struct tile_product_load {
    struct tile_step step;
    uint32_t
        spread;   /* if not 0, a register that is added to the offset, which is a single element */
    uint32_t run; /* aligned lanes that have neighbours */
    int64_t times;
    uint32_t by;    /* in scratch, as wide as the offset; KIR_NONE: 1 */
    uint32_t panel; /* where its elements are put in order if they are not so in memory, or 0 */
};

/* A loop that adds products to sums and does nothing else, see tile_products. */
struct tile_product {
    tile_multiply *multiply;
    uint8_t type; /* of sums, enum kir_type */
    bool dots;
    uint32_t rows, columns;
    uint32_t counter, end; /* in scratch */
    bool wide;             /* they are 64 bits */
    int64_t step;
    uint32_t sums[TILE_SUMS]; /* registers */
    struct tile_product_load down[TILE_SUMS], across[TILE_SUMS];
    bool even_down, even_across; /* the offsets of that side's loads grow alike */
    uint32_t depth;              /* rounds in a panel */
};

struct tile_code {
    uint32_t n_steps, steps_capacity;
    struct tile_step *steps;
    uint32_t lanes;
    uint32_t n_words, words; /* where they are in scratch */
    uint32_t n_consts, consts_capacity, consts;
    uint64_t *const_bits;
    uint32_t n_products, products_capacity;
    struct tile_product *products;
    size_t scratch;
};

static inline struct tile_range *tile_range_of(void *reg)
{
    return (struct tile_range *)((char *)reg - TILE_HEAD);
}

#endif
