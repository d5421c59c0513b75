/* SPDX-License-Identifier: Apache-2.0 */
/* The scatter schedule: one op that writes at positions given by an index, with elementwise ops and
 * views around.  Updates of an element are applied in order, so that results are those of one
 * thread; no atomics are used.  Two forms:
 *
 *   LINES: fills y with x; then one lane per line applies its updates to memory one after another.
 *     A lane's steps are serial, each with a read after a write where values are combined.  Ops
 *     after the scatter, and floating-point sums and products, which accumulate in a wider type,
 *     need a workspace of y's size and a last phase.
 *
 *   OWNER: one lane per element of y checks every step of its line and applies those that hit its
 *     element.  One phase, no workspace; the work is y's size times the sequence.
 *
 * Both give the same bits, so the choice may depend on the device's size. */
#include "lower/schedule/scatter.h"

#include <frit/op_table.h>

#include "base/fail.h"
#include "lower/rows/rows.h"

enum { QUALITY = 900, MIN_LANES = 16 };

/* ---- matching ---- */

static const struct {
    uint32_t id, index_form;
} rows[] = {{FRIT_OP_select_assign, SCATTER_LIST},
            {FRIT_OP_scatter, SCATTER_FULL},
            {FRIT_OP_scatter_nd, SCATTER_POINTS}};

/* The form of the op's index; UINT32_MAX: the op is not a scatter. */
static uint32_t index_form_of(uint32_t id)
{
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].id == id)
            return rows[i].index_form;
    return UINT32_MAX;
}

static bool takes(const struct block *block, uint32_t op)
{
    const struct block_op *o = &block->ops[op];

    if (index_form_of(o->id) == UINT32_MAX || o->n_in != 3)
        return false;
    for (uint32_t i = 0; i < 3; i++)
        if (o->in[i].kind != FRIT_OPERAND_TENSOR)
            return false;
    return true;
}

static bool scatter_match(struct matcher *m, const struct block *block)
{
    return anchor_match(m, block, takes);
}

/* ---- the op ---- */

static uint32_t rank_of(const struct scatter *sc, uint32_t operand)
{
    return sc->s->block->values[sc->op->in[operand].value].rank;
}

static void dims_of(const struct scatter *sc, uint32_t operand, int64_t *dims)
{
    const struct block_value *v = &sc->s->block->values[sc->op->in[operand].value];

    for (uint32_t d = 0; d < v->rank; d++)
        dims[d] = sc->s->extents[v->extent[d]];
}

/* Finds the indexed dims and the sequence.  False: attributes or dims do not fit. */
static bool find_indexed_dims(struct scatter *sc)
{
    uint32_t index_rank = rank_of(sc, 1), values_rank = rank_of(sc, 2);
    int64_t index[FRIT_MAX_RANK] = {0}, values[FRIT_MAX_RANK] = {0}, axis;

    dims_of(sc, 1, index);
    dims_of(sc, 2, values);
    if (sc->index_form == SCATTER_POINTS) {
        if (index_rank == 0 || index[index_rank - 1] < 1 || index[index_rank - 1] > sc->rank)
            return false;
        sc->n_indexed = (uint32_t)index[index_rank - 1];
        sc->n_seq = index_rank - 1;
    } else {
        axis = ((const frit_attrs_scatter *)sc->op->attrs)->axis;
        if (axis < 0 || axis >= sc->rank ||
            index_rank != (sc->index_form == SCATTER_LIST ? 1 : sc->rank))
            return false;
        sc->first_indexed = (uint32_t)axis;
        sc->n_indexed = sc->n_seq = 1;
    }
    if (values_rank != sc->rank - sc->n_indexed + sc->n_seq)
        return false;
    for (uint32_t i = 0; i < sc->n_seq; i++)
        sc->seq[i] = values[sc->first_indexed + i];
    for (uint32_t d = 0; d < sc->rank; d++) {
        bool after = d >= sc->first_indexed + sc->n_indexed;

        sc->lines[d] = d >= sc->first_indexed && !after
                           ? 1
                           : values[after ? d - sc->n_indexed + sc->n_seq : d];
        if (d < sc->first_indexed || after)
            if (sc->lines[d] > sc->dims[d])
                return false;
    }
    return true;
}

static int64_t product(uint32_t n, const int64_t *dims)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < n; d++)
        count *= dims[d];
    return count;
}

/* Finds how a value is combined with an element. */
static void find_fold(struct scatter *sc)
{
    static const uint32_t folds[] = {[FRIT_CHOICE_update_add] = FRIT_OP_sum,
                                     [FRIT_CHOICE_update_mul] = FRIT_OP_prod,
                                     [FRIT_CHOICE_update_min] = FRIT_OP_min,
                                     [FRIT_CHOICE_update_max] = FRIT_OP_max};
    int64_t update = sc->index_form == SCATTER_POINTS
                         ? ((const frit_attrs_update *)sc->op->attrs)->update
                         : ((const frit_attrs_scatter *)sc->op->attrs)->update;
    bool rounds = update == FRIT_CHOICE_update_add || update == FRIT_CHOICE_update_mul;

    sc->fold = (struct fold){.m = sc->s->module, .dtype = sc->dtype};
    if (update != FRIT_CHOICE_update_assign)
        sc->fold.kind = fold_kind_of(folds[update]);
    if (rounds && lower_is_float(sc->dtype))
        sc->fold.dtype = sc->dtype == FRIT_F64 || sc->s->target->f64 ? FRIT_F64 : FRIT_F32;
}

/* Whether y can be updated in place: it is an output, no other output depends on it, and it has the
 * accumulated type. */
static bool can_update_in_place(const struct scatter *sc)
{
    const struct block *block = sc->s->block;
    uint32_t y = sc->op->out[0];

    for (uint32_t i = 0; i < block->n_outputs; i++)
        if (block->outputs[i] != y && sc->anchor.lineage[block->outputs[i]])
            return false;
    return block->values[y].output != BLOCK_NONE && sc->fold.dtype == sc->dtype;
}

/* How many rounds all units together need for n lanes.  On targets that cache rows a group is a
 * loop over vectors. */
static int64_t groups_of(const struct scatter *sc, int64_t n)
{
    const struct kir_target *target = sc->s->target;
    int64_t at_once =
        (int64_t)target->units * (target->rereads_are_cached ? MIN_LANES : target->lanes);

    return (n + at_once - 1) / at_once;
}

static enum scatter_form choose_form(const struct scatter *sc)
{
    const struct kir_tuning cost = sched_tuning(sc->s);
    int64_t steps = sc->n_lines ? sc->n_steps : 0;
    int64_t pass = groups_of(sc, sc->n_y) * cost.scatter_pass;
    int64_t lines = groups_of(sc, sc->n_lines) * cost.scatter_step + pass / (steps + 1);

    return groups_of(sc, sc->n_y) * cost.scatter_check <= lines ? SCATTER_OWNER : SCATTER_LINES;
}

/* ---- planning ---- */

static void plan_root(const struct scatter *sc, struct expr *e, bool apart, struct space_map *root)
{
    *root = (struct space_map){.rank = sc->rank};
    for (uint32_t d = 0; d < sc->rank; d++)
        root->at[d] = space_dim(&e->space, sc->dims[d], apart ? d : SCATTER_ALL);
}

static void plan_stores(struct scatter *sc, struct expr *e, const struct space_map *root)
{
    anchor_stores(&sc->anchor, e, root);
    sc->result = anchor_result(&sc->anchor, e, 0);
}

static uint32_t plan_read(const struct scatter *sc, struct expr *e, uint32_t operand,
                          const struct space_map *map, double outside)
{
    const struct expr_fill fill = {BLOCK_NONE, outside};

    return expr_guard(e, sc->op->in[operand].value, map, fill);
}

/* Plans the index and the values at the coordinates `at` of y, of which those along indexed dims
 * are ignored.  Where y is larger than the values, the index hits nothing. */
static void plan_updates(struct scatter *sc, struct expr *e, const struct space_map *at)
{
    struct space_map seq = {.rank = sc->n_seq}, values = {0}, index;

    for (uint32_t i = 0; i < sc->n_seq; i++)
        seq.at[i] = space_dim(&e->space, sc->seq[i], SCATTER_SEQ);
    for (uint32_t d = 0; d < sc->first_indexed; d++)
        values.at[values.rank++] = at->at[d];
    for (uint32_t i = 0; i < sc->n_seq; i++)
        values.at[values.rank++] = seq.at[i];
    for (uint32_t d = sc->first_indexed + sc->n_indexed; d < sc->rank; d++)
        values.at[values.rank++] = at->at[d];
    index = sc->index_form == SCATTER_FULL ? values : seq;
    if (sc->index_form == SCATTER_POINTS)
        index.rank++;
    for (uint32_t i = 0; i < sc->n_indexed; i++) {
        if (sc->index_form == SCATTER_POINTS)
            index.at[sc->n_seq] = (struct space_expr){.c = i};
        sc->updates.index[i] = plan_read(sc, e, 1, &index, -1);
    }
    sc->updates.value = plan_read(sc, e, 2, &values, 0);
}

static void plan_lines(struct scatter *sc)
{
    struct space_map root, at = {.rank = sc->rank};

    plan_root(sc, &sc->fill, false, &root);
    sc->x = expr_node(&sc->fill, sc->op->in[0].value, &root);
    if (!sc->in_place)
        plan_root(sc, &sc->finish, false, &root);
    plan_stores(sc, sc->in_place ? &sc->fill : &sc->finish, &root);
    for (uint32_t d = 0; d < sc->rank; d++)
        at.at[d] = space_dim(&sc->update.space, sc->lines[d] ? sc->lines[d] : 1, d);
    if (sc->n_lines && sc->n_steps)
        plan_updates(sc, &sc->update, &at);
}

static void plan_owner(struct scatter *sc)
{
    struct space_map root;

    plan_root(sc, &sc->finish, true, &root);
    sc->x = expr_node(&sc->finish, sc->op->in[0].value, &root);
    plan_stores(sc, &sc->finish, &root);
    if (sc->n_steps)
        plan_updates(sc, &sc->finish, &root);
}

/* Settles all spaces; the module is wide if any of them needs it. */
static frit_status settle(struct scatter *sc, frit_err *err)
{
    struct expr *const all[] = {&sc->fill, &sc->update, &sc->finish};
    bool wide = false;

    for (uint32_t i = 0; i < 3; i++) {
        expr_settle(all[i]);
        TRY(expr_status(all[i], err));
        wide |= sc->s->module->wide;
    }
    sc->s->module->wide = wide;
    return FRIT_OK;
}

static void init_delinearizers(struct scatter *sc)
{
    const struct expr *e = sc->form == SCATTER_OWNER ? &sc->finish : &sc->update;

    delinearize_init(&sc->fill_at, &sc->fill, SCATTER_ALL);
    delinearize_init(&sc->finish_at, &sc->finish, SCATTER_ALL);
    for (uint32_t d = 0; d < sc->rank; d++)
        delinearize_init(&sc->updates.at[d], e, d);
    delinearize_init(&sc->updates.seq, e, SCATTER_SEQ);
}

/* ---- aliases ---- */

/* The inputs that are loaded, as bits. */
static uint64_t inputs_of(const struct expr *e)
{
    uint64_t inputs = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        uint32_t input = e->s->block->values[e->nodes[i].value].input;

        if (e->nodes[i].kind == EXPR_LOAD && input < 64)
            inputs |= 1ull << input;
    }
    return inputs;
}

static void find_aliases(const struct scatter *sc)
{
    const struct expr *e = sc->in_place ? &sc->fill : &sc->finish;
    uint64_t later = sc->in_place ? inputs_of(&sc->update) : 0;

    for (uint32_t i = 0; i < sc->s->block->n_outputs; i++)
        sc->s->numbers->alias[i] = expr_alias(e, i) & ~later;
}

/* ---- building ---- */

static frit_status plan(struct scatter *sc, frit_err *err)
{
    sc->op = &sc->s->block->ops[sc->anchor.op];
    sc->index_form = index_form_of(sc->op->id);
    sc->rank = rank_of(sc, 0);
    sc->dtype = sc->s->block->values[sc->op->out[0]].dtype;
    dims_of(sc, 0, sc->dims);
    if (!find_indexed_dims(sc))
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s has dims that do not fit",
                    sc->s->module->name);
    find_fold(sc);
    sc->n_y = product(sc->rank, sc->dims);
    sc->n_lines = product(sc->rank, sc->lines);
    sc->n_steps = product(sc->n_seq, sc->seq);
    if (sc->n_y == 0)
        return FRIT_OK;
    sc->form = choose_form(sc);
    sc->in_place = sc->form == SCATTER_LINES && can_update_in_place(sc);
    if (sc->form == SCATTER_OWNER)
        plan_owner(sc);
    else
        plan_lines(sc);
    return settle(sc, err);
}

static frit_status build(struct scatter *sc, frit_err *err)
{
    struct sched *s = sc->s;

    TRY(plan(sc, err));
    expr_args(s);
    if (sc->n_y == 0) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&sc->finish, err);
    }
    if (sc->n_y / s->target->lanes >= INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", s->module->name);
    TRY(sched_check_rounds(s, sc->n_steps, err));
    init_delinearizers(sc);
    scatter_emit(sc);
    find_aliases(sc);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = (uint64_t)(sc->n_lines * sc->n_steps + sc->n_y * s->block->n_ops);
    return expr_status(&sc->finish, err);
}

static frit_status scatter_build(struct sched *s, frit_err *err)
{
    struct scatter scatter = {.s = s};
    frit_status status;

    expr_init(&scatter.fill, s);
    expr_init(&scatter.update, s);
    expr_init(&scatter.finish, s);
    scatter.update.separate_tags = scatter.finish.separate_tags = 1u << SCATTER_SEQ;
    if (anchor_init(&scatter.anchor, s->block, takes)) {
        status = scatter.anchor.found && scatter.anchor.n_ops == s->block->n_ops
                     ? build(&scatter, err)
                     : fail(err, FRIT_UNSUPPORTED, "kernels: %s does not fit the scatter schedule",
                            s->module->name);
        anchor_fini(&scatter.anchor);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(*scatter.anchor.lineage));
    }
    expr_fini(&scatter.fill);
    expr_fini(&scatter.update);
    expr_fini(&scatter.finish);
    return status;
}

const struct schedule sched_scatter = {
    .name = "scatter",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = scatter_match,
    .fits = anchor_fits,
    .build = scatter_build,
};
