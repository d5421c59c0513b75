/* SPDX-License-Identifier: Apache-2.0 */
/* The contract schedule, between contract_rows.c (what a row multiplies), contract.c (what is to be
 * done), contract_emit.c and contract_tile.c (the code).
 *
 * An element of the result is a sum over k of products of an element of side a and one of side b.
 * The space has dims of four tags, in this order: those that both sides have, those of a alone (m),
 * those of b alone (n), and those that are summed (k).  Lanes go along m or n, the side `across`;
 * each lane has several places along the other, the side `down`, and a sum for each. */
#ifndef LOWER_CONTRACT_H
#define LOWER_CONTRACT_H

#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"

enum contract_tag {
    CONTRACT_BOTH,
    CONTRACT_M,
    CONTRACT_N,
    CONTRACT_K,
    CONTRACT_PIECE,  /* of a byte of packed weights; see contract_blocks.c */
    CONTRACT_WINDOW, /* rows within a window, then columns; likewise: see contract_winograd.c */
    CONTRACT_RESULT = CONTRACT_WINDOW + 2, /* image, row, column, likewise */
    CONTRACT_TAGS = CONTRACT_RESULT + 3
};
enum { CONTRACT_SUMS = 16 }; /* of a lane at most */

enum contract_form {
    CONTRACT_LINES, /* lanes along `across`, each sums alone */
    CONTRACT_DOTS,  /* lanes along k, whose one dim is long: their sums are added up at the end */
    CONTRACT_TILES, /* lanes along both; elements of both sides go through tiles of the group */
    CONTRACT_FRAGMENTS, /* teams of lanes multiply fragments */
    CONTRACT_SLICES     /* lanes along `across` and along k, which groups may share too */
};

/* TILES: elements by which rows of a tile are longer where that avoids bank conflicts; elements
 * that a lane stages of a side at most. */
enum { TILE_PAD = 4, TILE_STAGED = 8 };

struct contract_side {
    uint32_t node;     /* elements */
    uint32_t tag;      /* of the dims that it alone has */
    const bool *loads; /* per node: one that loads what elements are made of */
    struct delinearizer points;
};

/* TILES: what a group sums, and how; slices.n_splits groups may share k. */
struct contract_tiles {
    uint32_t m, n;         /* sums of a group */
    uint32_t depth;        /* of k in a tile, a power of two */
    uint32_t unroll;       /* of k in code without a loop, likewise */
    int64_t part;          /* of k that a group sums */
    uint32_t thread_lanes; /* that make one access */
};

/* SLICES: a group is `wide` lanes along `across` times `deep` lanes along k.  LINES: n_splits and
 * partial alone. */
struct contract_slices {
    uint32_t wide, deep; /* powers of two */
    bool along_k;        /* neighbours lie along k, else along `across` */
    uint32_t steps;      /* of k whose elements are loaded before they are multiplied */
    bool loads_ahead;    /* those of the next steps are loaded before these are multiplied */
    uint32_t n_splits;   /* groups that share a sum; over 1: a phase of its own adds them up; LINES:
                            each has a block of products, 0: all */
    uint32_t partial;    /* argument: their sums */
};

/* FRAGMENTS: lanes of a thread. */
enum { FRAGMENT_CHUNK = 8 };

struct contract_fragments {
    uint32_t dtype;             /* of what is multiplied */
    uint32_t tile[2], teams[2]; /* of a group, down and across */
    uint32_t side[2];           /* of a fragment of sums */
    uint32_t threads;           /* of a team */
    bool from_blocks;           /* see struct kir_fragment_shape */
    uint32_t depth;             /* of k in a slot of the tile, a power of two */
    uint32_t stages;            /* slots, a power of two */
    int64_t part;               /* of k that a group sums, where slices.n_splits groups share it */
    bool in_pieces;             /* results are made of one fragment down of each team at a time */
};

/* A copy of side `across`, in the order in which the sums read it; see contract_pack.c. */
struct contract_pack {
    bool used;
    bool is_kept;     /* in memory derived from the operand; else in the workspace */
    bool is_numbered; /* `number` is planned; else k has one dim at most */
    uint32_t number;  /* coordinate of the contraction's expr: the row-major number of k */
    uint32_t width;   /* lanes whose elements lie together, at most those of a group */
    uint32_t arg;     /* argument: the copy */
    int64_t first;    /* element of the argument where it begins */
};

/* A copy of what side b is made of, with zeros around. */
struct contract_pad {
    bool used;
    struct expr e; /* of the copy */
    uint32_t node; /* of it: the elements */
    uint32_t at;   /* coordinate of the contraction's expr: where in the copy an element is */
    int64_t row,
        matrix;    /* elements from row to row and from matrix to matrix: see contract_pad.c */
    int64_t count; /* elements of the copy */
    uint32_t arg;  /* argument: the copy */
};

/* Packed weights, which are side `across`; see contract_blocks.c.  SLICES; LINES, or DOTS with
 * `along_k`. */
struct contract_blocks {
    bool used;
    bool along_k;       /* lanes lie along k; else a lane has the places of a byte's pieces */
    uint32_t node;      /* of dequantize */
    uint32_t pieces;    /* elements of a byte */
    uint32_t piece_dim; /* numbers them; SPACE_DIMS: a byte is an element */
    uint32_t block_dim; /* of k: those with scales of their own; SPACE_DIMS: all have one */
    uint32_t inner_dim; /* of k: within a block */
};

/* Winograd's convolution: LINES, of matrices that are made in other phases. */
struct contract_winograd {
    bool used;
    int64_t rows, columns; /* of results */
    uint32_t n_lines;      /* rows of patches that have planes of their own in the copy: 2 or 4 */
    int64_t plane, tiles;  /* elements of such a plane; tiles side by side */
    uint32_t weights;      /* argument: transformed ones, in memory derived from the operand */
    uint32_t sums;         /* argument: of products */
    int64_t first_sum;     /* element of it where they begin */
};

struct contract_workspace {
    uint32_t arg;  /* where count > 0 */
    int64_t count; /* elements of the sums' type */
};

struct contract {
    bool is_alone; /* the device has a library for products */
    struct expr e;
    struct anchor anchor;
    struct space_map root; /* of the result */
    struct contract_side a, b;
    const struct contract_side *weights; /* the side that is likely to be multiplied again */
    uint32_t bias;                       /* node: what a sum begins with; BLOCK_NONE: 0 */
    uint32_t result;                     /* node */
    int64_t n_k;                         /* 0 too */
    bool in_pairs;                       /* packed LINES: by dot2, see contract_pairs.c */
    bool sums_inside;                    /* LINES: blocks of products lie along the last dim of k */
    enum contract_form form;
    struct contract_side *across, *down;
    struct delinearizer both, k;
    uint32_t lanes;
    bool across_first; /* packed LINES: groups that follow each other have the same places down,
                          else the same lanes */
    uint32_t n_down, n_across; /* places of a lane along each side; LINES: 1 across; SLICES: a power
                                  of two across */
    uint32_t rounds;           /* LINES: of k, that all lanes do before any does the next; 0: all */
    bool down_by_line; /* LINES: a lane's places along `down` lie on one line of its last dim, and
                          are shifts of the first one; the last tiles of a line have one less */
    bool turns;        /* then: results are stored with lanes along `down`; see contract_turn.c */
    struct contract_pack pack; /* LINES */
    struct contract_blocks blocks;
    struct contract_winograd winograd;
    struct contract_pad pad;             /* b.node is BLOCK_NONE then */
    struct contract_workspace workspace; /* of copies */
    struct contract_slices slices;
    struct contract_tiles tiles;
    struct contract_fragments fragments;
};

/* One row of ops.def: dims are appended to the space, root and the nodes of a, b and bias planned.
 * False: attributes that make no sense. */
struct contract_row {
    uint32_t id;
    bool (*plan)(struct contract *c, const struct block_op *op);
};

static inline int64_t tiles_of(int64_t n, uint32_t each)
{
    return (n + each - 1) / each;
}

/* NULL: the op is none. */
const struct contract_row *contract_row_of(uint32_t op);

/* Whether lanes are parts of a processor's vectors, which read neighbours alone well. */
bool contract_has_vectors(const struct contract *c);
/* What loading elements of a side costs a line of lanes along a dim, 1 where they are neighbours:
 * the worst of its loads. */
uint32_t contract_line_cost(const struct contract *c, const struct contract_side *side,
                            uint32_t dim);
/* Whether a side's neighbours in memory lie along k: so should lanes that stage it. */
bool contract_runs_along_k(const struct contract *c, const struct contract_side *side);
/* The innermost dim of a tag; SPACE_DIMS: there is none. */
uint32_t contract_last_dim(const struct space *space, uint32_t tag);
int64_t contract_points(const struct space *space, uint32_t tag);
/* Leaves the innermost dim of `across` to lanes, those around it to groups, if it has `line`
 * points. */
void contract_cut_line(struct contract *c, int64_t line);
/* Steps of k: of products, or of bytes of packed weights whose pieces lie along it. */
static inline int64_t contract_steps(const struct contract *c)
{
    return c->blocks.used && c->blocks.along_k ? c->n_k / c->blocks.pieces : c->n_k;
}
/* Places across of a lane that are points of that side: pieces of a byte are one. */
static inline uint32_t contract_points_across(const struct contract *c)
{
    return c->blocks.used && !c->blocks.along_k ? 1 : c->n_across;
}
/* Whether SLICES is the form: a long sum, and few places along one side. */
bool contract_fits_slices(const struct contract *c);
void contract_choose_slices(struct contract *c);
/* The node of a side's elements as they are multiplied by fragments: without a cast to F32. */
uint32_t contract_factor_node(const struct contract *c, const struct contract_side *side);
/* Of the sums. */
enum kir_type contract_type(const struct contract *c);
/* Tiles of places along `down`. */
int64_t contract_down_tiles(const struct contract *c);
/* Places of a group along each side. */
uint32_t contract_height(const struct contract *c);
uint32_t contract_width(const struct contract *c);
/* The dtype that sums have in memory. */
uint32_t contract_dtype(const struct contract *c);
/* Reserves elements of the sums' type in the workspace, of which *arg is the argument; returns the
 * number of the first one, which begins a line of a cache. */
int64_t contract_reserve(struct contract *c, int64_t count, uint32_t *arg);
/* Sets the grid of the phase that is begun next. */
void contract_set_grid(const struct contract *c, int64_t groups);
/* Emits the phase that sums. */
void contract_emit(struct contract *c);

#endif
