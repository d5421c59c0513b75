/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise part of a block over a space: first planned, then emitted.
 *
 * Planning follows wanted values to what they are made of.  A node is a value at a map: loaded from
 * an argument, computed by a row of rows.def, or, where another kind of op makes it, bound by the
 * schedule.  Views and reads by index make no nodes, they only change maps; a value needed at two
 * maps is computed twice.  expr_settle ends planning.
 *
 * A map may lie outside of a value in parts of the space where nobody needs it: operands of a JOIN
 * before and behind their own part, and the operand of a GUARD, which is that element where the map
 * is inside of the value, else a number.  Those parts are masked out for what is below.
 *
 * Emitting needs the dims' values in the module: the schedule gives each by expr_set.  What was
 * emitted is remembered and used again; marks say for how long, so that a value made in a loop is
 * not used behind it:
 *
 *     expr_phase(e);                    the phase's parameters
 *     for each uniform dim: expr_set(e, dim, ...); expr_hoist(e)
 *     mark = expr_mark(e);
 *     kir_for ...; expr_set(e, dim, counter); expr_value(e, node) ...; kir_next
 *     expr_release(e, mark);
 *
 * Errors without a place of their own are kept until expr_status.  Not thread-safe. */
#ifndef LOWER_EXPR_H
#define LOWER_EXPR_H

#include <frit/op_table.h>

#include "lower/sched.h"
#include "lower/space/space.h"

enum expr_kind { EXPR_LOAD, EXPR_OP, EXPR_JOIN, EXPR_BOUND, EXPR_GUARD };

/* What stands for a value where it has no element. */
struct expr_fill {
    uint32_t scalar; /* of the launch, or BLOCK_NONE: `number` */
    double number;
};

/* 0 <= at < end */
struct expr_within {
    struct space_expr at;
    int64_t end;
};

struct expr_node {
    uint32_t kind; /* enum expr_kind */
    uint32_t value;
    uint32_t n_in;
    uint32_t in[FRIT_OP_MAX_IN]; /* OP, JOIN: nodes; BLOCK_NONE: a scalar, or no elements */
    int64_t end[FRIT_OP_MAX_IN]; /* JOIN: each operand's end along the axis */
    const struct space_map *map; /* as planned: not rewritten when the space settles */
    struct space_expr at; /* LOAD: element offset; OP: row-major index, where `indexed`; JOIN: the
                             coordinate along the axis */
    bool indexed;
    bool
        free; /* needed wherever the schedule's own mask is true: not under a JOIN or GUARD alone */
    uint32_t n_within;
    struct expr_within *within; /* GUARD: all hold where in[0], of the same value, is read; */
    struct expr_fill fill;      /* else it is in[1] or, where that is BLOCK_NONE, this */
    uint64_t inputs; /* of the block, the first 64, as bits: what it is made of.  When settled */
};

/* An element that is written. */
struct expr_store {
    uint32_t node, output; /* output: of the block */
    struct space_expr at;
};

struct expr {
    struct sched *s;
    struct space space;
    struct arena arena;
    uint32_t n_maps, maps_room;
    const struct space_map **maps; /* each once */
    uint32_t n_nodes, nodes_room;
    struct expr_node *nodes; /* operands before what uses them */
    uint32_t n_stores, stores_room;
    struct expr_store *stores;
    uint32_t n_places, places_room;
    struct space_expr *places; /* that the schedule wants to know itself */
    const struct space_map *
        *seen;                 /* per value of the block: the first map it was needed at, or NULL */
    struct expr_emitter *emit; /* expr_emit.c's */
    uint32_t apart; /* bits of tags: no points are numbered over dims of one and of others */
    frit_status status;
};

/* `e` has an empty space: its dims are appended by the caller before anything is planned. */
void expr_init(struct expr *e, struct sched *s);
void expr_fini(struct expr *e);
/* The first failure stays: what follows from it is no news. */
void expr_fail(struct expr *e, frit_status status);
/* What went wrong so far, with a text. */
frit_status expr_status(const struct expr *e, frit_err *err);

/* ---- planning ---- */

/* Concrete dims of a value of the block. */
void expr_dims(const struct expr *e, uint32_t value, int64_t *dims);
/* The launch's argument: the block's inputs, then its outputs. */
const frit_arg_sig *expr_arg(const struct expr *e, uint32_t argument);
/* Of a node's values. */
enum kir_type expr_type(const struct expr *e, uint32_t node);
/* The node of `value` at `map`; the same one for the same map.  BLOCK_NONE: see expr_status. */
uint32_t expr_node(struct expr *e, uint32_t value, const struct space_map *map);
/* As expr_node, but `map` may lie outside of the value's dims, where it is `fill` instead.  What no
 * coordinate can be costs nothing; a map that stays inside makes the node of expr_node. */
uint32_t expr_guard(struct expr *e, uint32_t value, const struct space_map *map,
                    struct expr_fill fill);
/* Likewise, and the fill also where one of `n` more conditions does not hold. */
uint32_t expr_guard_where(struct expr *e, uint32_t value, const struct space_map *map,
                          struct expr_fill fill, const struct expr_within *more, uint32_t n);
/* The number of an expression that expr_place_value gives. */
uint32_t expr_place(struct expr *e, const struct space_expr *at);
/* As expr_node, and the element goes to the block's output that `value` is.  The store's number. */
uint32_t expr_store(struct expr *e, uint32_t value, const struct space_map *map);
/* The first map that a value was planned at, views included; NULL: it was not. */
const struct space_map *expr_seen(const struct expr *e, uint32_t value);
/* Ends planning: the space is rewritten, its dims split and merged, each where it was among those
 * of other tags; and it is known whether the module is wide. */
void expr_settle(struct expr *e);
/* Of the block's output `output`: bit i where its store writes just what loads of input i read. */
uint64_t expr_alias(const struct expr *e, uint32_t output);

/* ---- emitting ---- */

/* A new phase was begun: forgets everything, and emits the parameters of all nodes and stores. */
void expr_phase(struct expr *e);
void expr_set(struct expr *e, uint32_t dim, uint32_t value);
/* The row-major number of the point, for the offsets that are just that. */
void expr_set_number(struct expr *e, uint32_t value);
/* Loads and stores only where this B is true; KIR_NONE: everywhere. */
void expr_mask(struct expr *e, uint32_t mask);
/* Emits now, for every offset, what depends on the dims that are set, for use in deeper loops. */
void expr_hoist(struct expr *e);
void expr_bind(struct expr *e, uint32_t node, uint32_t value);
/* What was emitted or bound for a node, or KIR_NONE. */
uint32_t expr_known(const struct expr *e, uint32_t node);
uint32_t expr_value(struct expr *e, uint32_t node);
/* Whether a node of expr_guard is not its fill; KIR_NONE: everywhere. */
uint32_t expr_inside(struct expr *e, uint32_t node);
uint32_t expr_place_value(struct expr *e, uint32_t place);
/* Emits store number `store`; the value is its node's. */
void expr_emit_store(struct expr *e, uint32_t store);
/* The coordinate along a join that is stored, and how many pieces it has; NULL: it is no join. */
const struct space_expr *expr_joined(const struct expr *e, uint32_t store, uint32_t *n_pieces);
/* Where that is with the dims that are set. */
uint32_t expr_joined_at(struct expr *e, uint32_t store);
/* Whether the coordinates from `first` to `last` are all in a piece; KIR_NONE: it has none. */
uint32_t expr_piece_has(struct expr *e, uint32_t store, uint32_t piece, uint32_t first,
                        uint32_t last);
/* As expr_emit_store where only elements of this piece are stored. */
void expr_emit_piece(struct expr *e, uint32_t store, uint32_t piece);
uint32_t expr_mark(const struct expr *e);
/* Forgets what was set, bound, hoisted and emitted since. */
void expr_release(struct expr *e, uint32_t mark);

/* The schedules' arguments: the kernel's argument number of an input or output of the block is its
 * number there, inputs first; declared in every module before anything else. */
void expr_args(struct sched *s);

/* ---- accepting ---- */

/* Whether expr_node goes through this op. */
bool expr_knows(const struct block *block, uint32_t op);

#endif
