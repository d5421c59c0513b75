/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise part of a block over an iteration space: planned first, then emitted.
 *
 * Planning goes from the values that a schedule requests back to the arguments.  A node is a value
 * at a map (space.h): loaded from an argument, computed by an elementwise op kind (rows.def), or,
 * for other ops, bound by the schedule.  Views and reads by index change maps and make no nodes; a
 * value that is needed at two maps is computed twice.  expr_settle ends planning.
 *
 * In parts of the space where a value is not needed its map may be out of bounds: a JOIN's operand
 * outside of its own piece, and a GUARD's operand where a condition fails, where the GUARD yields a
 * fill value.  Loads are masked there.
 *
 * To emit, the schedule first sets the values of the space's dims with expr_set.  Emitted values
 * are cached and reused; expr_release drops those that were added after a mark, so that a value of
 * a loop body is not used after the loop:
 *
 *     expr_phase(e);                    the phase's parameters
 *     for each uniform dim: expr_set(e, dim, ...); expr_hoist(e)
 *     mark = expr_mark(e);
 *     kir_for ...; expr_set(e, dim, counter); expr_value(e, node) ...; kir_next
 *     expr_release(e, mark);
 *
 * Functions that return no status record their first error; expr_status reports it.
 * Not thread-safe. */
#ifndef LOWER_EXPR_H
#define LOWER_EXPR_H

#include <frit/op_table.h>

#include "lower/sched.h"
#include "lower/space/space.h"

enum { EXPR_MAX_SHIFT = 64 };

enum expr_kind { EXPR_LOAD, EXPR_OP, EXPR_JOIN, EXPR_EXTERNAL, EXPR_GUARD };

/* The value of a GUARD where its operand has no element. */
struct expr_fill {
    uint32_t scalar; /* scalar of the launch; BLOCK_NONE: `number` is used */
    double number;
};

/* The condition 0 <= at < end. */
struct expr_within {
    struct space_expr at;
    int64_t end;
};

struct expr_node {
    uint32_t kind; /* enum expr_kind */
    uint32_t value;
    uint32_t n_in;
    uint32_t in[FRIT_OP_MAX_IN]; /* OP, JOIN: nodes; BLOCK_NONE: a scalar, or an operand without
                                    elements */
    int64_t end[FRIT_OP_MAX_IN]; /* JOIN: the end of each operand's piece along the axis */
    const struct space_map *map; /* as planned: space_settle does not rewrite it */
    struct space_expr at;        /* LOAD: element offset; OP with `indexed`: row-major index; JOIN:
                                    coordinate along the axis */
    bool indexed;
    uint32_t n_within;
    struct expr_within *within; /* GUARD: where all hold it is in[0], a node of the same value, */
    struct expr_fill fill;      /* elsewhere in[1] or, if that is BLOCK_NONE, this */
    uint64_t
        inputs; /* bits of the block's first 64 inputs that it depends on; set by expr_settle */
};

/* The element of an output that is stored. */
struct expr_store {
    uint32_t node, output; /* output: index in block.outputs */
    struct space_expr at;
};

struct expr {
    struct sched *s;
    struct space space;
    struct arena arena;
    uint32_t n_maps, maps_capacity;
    const struct space_map **maps; /* without duplicates */
    uint32_t n_nodes, nodes_capacity;
    struct expr_node *nodes; /* in topological order */
    uint32_t n_stores, stores_capacity;
    struct expr_store *stores;
    uint32_t n_coords, coords_capacity;
    struct space_expr *coords; /* expressions that the schedule requested by expr_coord */
    const struct space_map *
        *seen; /* per value of the block: the first map at which it was planned, or NULL */
    struct expr_emitter *emit; /* state of emitting */
    uint32_t separate_tags; /* bits of tags whose dims the schedule never linearises together with
                               dims of other tags */
    int64_t const_factor;   /* factors of indices up to this are constants of the module */
    frit_status status;
};

/* Initialises `e` with an empty space, to which the caller appends dims before planning. */
void expr_init(struct expr *e, struct sched *s);
void expr_fini(struct expr *e);
/* Records a failure unless there is one already. */
void expr_fail(struct expr *e, frit_status status);
/* Returns the recorded failure and its message. */
frit_status expr_status(const struct expr *e, frit_err *err);

/* ---- planning ---- */

/* The sizes of a value's dims. */
void expr_dims(const struct expr *e, uint32_t value, int64_t *dims);
/* Argument number `argument` of the launch: inputs, then outputs. */
const frit_arg_sig *expr_arg(const struct expr *e, uint32_t argument);
/* The type in which a node is computed. */
enum kir_type expr_type(const struct expr *e, uint32_t node);
/* Returns the node of `value` at `map`; equal maps share a node.  BLOCK_NONE: it failed, see
 * expr_status. */
uint32_t expr_node(struct expr *e, uint32_t value, const struct space_map *map);
/* As expr_node, but where `map` is outside of the value's dims the node is `fill`.  Coordinates
 * that cannot be outside are not checked; if none can, the result is that of expr_node. */
uint32_t expr_guard(struct expr *e, uint32_t value, const struct space_map *map,
                    struct expr_fill fill);
/* As expr_guard; the node is `fill` also where one of `n` more conditions fails. */
uint32_t expr_guard_where(struct expr *e, uint32_t value, const struct space_map *map,
                          struct expr_fill fill, const struct expr_within *more, uint32_t n);
/* Adds an expression whose value the schedule needs; returns its number for expr_coord_value. */
uint32_t expr_coord(struct expr *e, const struct space_expr *at);
/* As expr_node; also plans storing the element to the block's output `value`.  Returns the store's
 * number. */
uint32_t expr_store(struct expr *e, uint32_t value, const struct space_map *map);
/* The first map at which a value, or a view, was planned; NULL: none. */
const struct space_map *expr_first_map(const struct expr *e, uint32_t value);
/* Ends planning: settles the space, which splits and merges dims but keeps the order of those with
 * different tags, and decides whether the module needs 64-bit indices. */
void expr_settle(struct expr *e);
/* The inputs that output number `output` may overwrite, as bits: every load of such an input reads
 * the element that the store writes. */
uint64_t expr_alias(const struct expr *e, uint32_t output);

/* ---- emitting ---- */

/* Call after kir_phase.  Drops all cached values and emits the parameters of all nodes and stores.
 */
void expr_phase(struct expr *e);
/* Sets the value of a dim of the space. */
void expr_set(struct expr *e, uint32_t dim, uint32_t value);
/* Whether nothing but offsets depends on a dim. */
bool expr_can_shift(const struct expr *e, uint32_t dim);
/* Makes the coordinate of a dim, which is set and can be shifted, larger by a number below
 * EXPR_MAX_SHIFT than its value; undone by expr_release.  Offsets are those at the value plus a
 * constant, so that accesses share an address. */
void expr_shift(struct expr *e, uint32_t dim, uint32_t by);
/* Sets the row-major number of the point, which is reused as the offset of contiguous arguments. */
void expr_set_number(struct expr *e, uint32_t value);
/* Masks later loads and stores with this B; KIR_NONE: no mask. */
void expr_mask(struct expr *e, uint32_t mask);
/* Emits the terms of all offsets that depend only on dims already set, so that inner loops reuse
 * them. */
void expr_hoist(struct expr *e);
/* Sets the value of a node, e.g. of one that is EXPR_EXTERNAL. */
void expr_bind(struct expr *e, uint32_t node, uint32_t value);
/* The cached value of a node, or KIR_NONE. */
uint32_t expr_emitted(const struct expr *e, uint32_t node);
/* The value of a node; emits it unless it is cached. */
uint32_t expr_value(struct expr *e, uint32_t node);
/* Where in its argument a LOAD node's element is. */
uint32_t expr_load_at(struct expr *e, uint32_t node);
/* KIR_B: all conditions of a GUARD node hold; KIR_NONE: it has none. */
uint32_t expr_inside(struct expr *e, uint32_t node);
uint32_t expr_coord_value(struct expr *e, uint32_t place);
/* Emits store number `store` of its node's value. */
void expr_emit_store(struct expr *e, uint32_t store);
/* If the stored node is a JOIN, returns its coordinate along the axis and sets the number of its
 * pieces; else NULL. */
const struct space_expr *expr_join_coord(const struct expr *e, uint32_t store, uint32_t *n_pieces);
/* The value of that coordinate at the dims that are set. */
uint32_t expr_join_value(struct expr *e, uint32_t store);
/* KIR_B: the coordinates `first` to `last` are in one piece of a stored JOIN; KIR_NONE: the piece
 * is empty. */
uint32_t expr_piece_contains(struct expr *e, uint32_t store, uint32_t piece, uint32_t first,
                             uint32_t last);
/* As expr_emit_store, for elements that all come from this piece. */
void expr_emit_piece(struct expr *e, uint32_t store, uint32_t piece);
/* A mark for expr_release. */
uint32_t expr_mark(const struct expr *e);
/* Undoes everything that was set, bound, hoisted and emitted since the mark. */
void expr_release(struct expr *e, uint32_t mark);

/* Declares the kernel's arguments: the block's inputs, then its outputs, under their numbers in the
 * block.  To be called before any other argument is added. */
void expr_args(struct sched *s);

/* ---- matching ---- */

/* Whether expr_node can plan this op of the block. */
bool expr_supports(const struct block *block, uint32_t op);

#endif
