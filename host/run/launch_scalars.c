/* SPDX-License-Identifier: Apache-2.0 */
#include "run/launch_scalars.h"

#include <math.h>
#include <string.h>

#include <frit/program.h>

#include "base/arena.h"
#include "base/fail.h"
#include "graph/graph.h"
#include "record/segment.h"
#include "run/run.h"

static uint8_t class_of_real(double x)
{
    if (x == 0)
        return signbit(x) ? FRIT_SCALAR_CLASS_OTHER : FRIT_SCALAR_CLASS_ZERO;
    if (x == 1)
        return FRIT_SCALAR_CLASS_ONE;
    if (x == -1)
        return FRIT_SCALAR_CLASS_MINUS_ONE;
    if (x == 2)
        return FRIT_SCALAR_CLASS_TWO;
    if (x == 0.5)
        return FRIT_SCALAR_CLASS_HALF;
    return isfinite(x) && x == nearbyint(x) && fabs(x) < 0x1p53 ? FRIT_SCALAR_CLASS_INTEGER
                                                                : FRIT_SCALAR_CLASS_OTHER;
}

static uint8_t scalar_class(const frit_scalar *scalar)
{
    double real;

    if (scalar->kind == FRIT_SCALAR_F64) {
        memcpy(&real, &scalar->bits, sizeof(real));
        return class_of_real(real);
    }
    switch (scalar->bits) {
    case 0:
        return FRIT_SCALAR_CLASS_ZERO;
    case 1:
        return FRIT_SCALAR_CLASS_ONE;
    case 2:
        return FRIT_SCALAR_CLASS_TWO;
    default:
        return scalar->kind == FRIT_SCALAR_I64 && scalar->bits == UINT64_MAX
                   ? FRIT_SCALAR_CLASS_MINUS_ONE
                   : FRIT_SCALAR_CLASS_INTEGER;
    }
}

static void add_scalar(struct launch_scalars *w, frit_scalar scalar, uint8_t cls)
{
    w->classes[w->n_scalars] = cls;
    w->scalars[w->n_scalars++] = scalar;
}

static void add_bounds(struct launch_scalars *w, const void *from, uint32_t count)
{
    memcpy(w->bounds + w->n_bounds, from, count * sizeof(int64_t));
    w->n_bounds += count;
}

/* `rank`: of operand 0. */
static void add_field(struct launch_scalars *w, const frit_field_info *field, const void *at,
                      uint32_t rank)
{
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};

    if (field->type == FRIT_ATTR_REAL) {
        memcpy(&scalar.bits, at, sizeof(scalar.bits));
        add_scalar(w, scalar, scalar_class(&scalar));
    } else if (field->type == FRIT_ATTR_SLICES) {
        add_bounds(w, ((const frit_slices *)at)->dim, rank * 3);
    } else if (field->type == FRIT_ATTR_DIMS) {
        add_bounds(w, ((const frit_dims *)at)->dim, rank);
    }
}

/* An op as its words see it. */
struct scalar_source {
    const frit_op_info *row;
    const void *attrs;
    uint32_t rank; /* of operand 0 */
    uint64_t seed, counter;
};

/* What comes after the scalar operands. */
static void add_rest(struct launch_scalars *w, const struct scalar_source *op)
{
    const frit_record_info *record = op_record(op->row);

    for (uint32_t i = 0; i < record->n_fields && op->attrs; i++) {
        if (record->field[i].use == FRIT_USE_LAUNCH)
            add_field(w, &record->field[i],
                      (const unsigned char *)op->attrs + record->field[i].offset, op->rank);
    }
    if (op->row->traits & FRIT_OP_SEEDED) {
        add_scalar(w, (frit_scalar){FRIT_SCALAR_U64, 0, op->seed}, FRIT_SCALAR_CLASS_OTHER);
        add_scalar(w, (frit_scalar){FRIT_SCALAR_U64, 0, op->counter}, FRIT_SCALAR_CLASS_OTHER);
    }
}

static uint32_t first_rank(const struct graph_op *op, const struct graph_value *values)
{
    return op->n_in && op->in[0].kind == FRIT_OPERAND_TENSOR ? values[op->in[0].value].type.rank
                                                             : 0;
}

static void add_op(struct launch_scalars *w, const struct graph *graph, const struct graph_op *op,
                   const struct run_op *extra)
{
    const struct scalar_source source = {.row = op_row(op->op),
                                         .attrs = op->attrs,
                                         .rank = first_rank(op, graph->values),
                                         .seed = extra->seed,
                                         .counter = extra->counter};

    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            add_scalar(w, op->in[i].scalar, scalar_class(&op->in[i].scalar));
    }
    add_rest(w, &source);
}

struct scalar_counts launch_scalars_count(const struct graph_op *op,
                                          const struct graph_value *values)
{
    const frit_op_info *row = op_row(op->op);
    const frit_record_info *record = op_record(row);
    struct scalar_counts count = {.rank = first_rank(op, values)};

    for (uint32_t i = 0; i < op->n_in; i++)
        count.n_scalars += op->in[i].kind == FRIT_OPERAND_SCALAR;
    for (uint32_t i = 0; i < record->n_fields && op->attrs; i++) {
        const frit_field_info *field = &record->field[i];

        if (field->use != FRIT_USE_LAUNCH)
            continue;
        count.n_scalars += field->type == FRIT_ATTR_REAL;
        count.n_bounds += field->type == FRIT_ATTR_SLICES ? count.rank * 3
                          : field->type == FRIT_ATTR_DIMS ? count.rank
                                                          : 0;
    }
    if (row->traits & FRIT_OP_SEEDED)
        count.n_scalars += 2;
    return count;
}

frit_status launch_scalars_gather(const struct graph *graph, const uint32_t *ops, uint32_t n_ops,
                                  const struct run_op *extra, struct arena *arena,
                                  struct launch_scalars *out, frit_err *err)
{
    uint32_t scalars = 0, bounds = 0;

    for (uint32_t i = 0; i < n_ops; i++) {
        struct scalar_counts count = launch_scalars_count(&graph->ops[ops[i]], graph->values);

        scalars += count.n_scalars;
        bounds += count.n_bounds;
    }
    *out =
        (struct launch_scalars){.scalars = arena_array(arena, scalars + 1, sizeof(*out->scalars)),
                                .classes = arena_alloc(arena, scalars + 1),
                                .bounds = arena_array(arena, bounds + 1, sizeof(*out->bounds)),
                                .bound_classes = arena_alloc(arena, bounds + 1)};
    if (!out->scalars || !out->classes || !out->bounds || !out->bound_classes)
        return fail_memory(err, scalars * sizeof(*out->scalars));
    for (uint32_t i = 0; i < n_ops; i++)
        add_op(out, graph, &graph->ops[ops[i]], &extra[ops[i]]);
    for (uint32_t i = 0; i < out->n_bounds; i++)
        out->bound_classes[i] =
            scalar_class(&(frit_scalar){FRIT_SCALAR_I64, 0, (uint64_t)out->bounds[i]});
    return FRIT_OK;
}

/* ---- once more ---- */

static bool put_again(struct launch_scalars *to, frit_scalar scalar)
{
    if (to->scalars[to->n_scalars].bits != scalar.bits &&
        to->classes[to->n_scalars] != scalar_class(&scalar))
        return false;
    to->scalars[to->n_scalars++] = scalar;
    return true;
}

/* The words of the attributes, of which `rest` are scalars. */
static bool rest_again(const struct recorded_op *record, const struct scalar_counts *count,
                       struct launch_scalars *to, uint32_t rest)
{
    const struct scalar_source source = {.row = op_row(record->op),
                                         .attrs = record->attrs,
                                         .rank = count->rank,
                                         .seed = record->seed,
                                         .counter = record->counter};
    uint8_t before[16], *classes = to->classes + to->n_scalars;

    if (rest > sizeof(before))
        return false;
    memcpy(before, classes, rest);
    add_rest(to, &source);
    if (memcmp(before, classes, rest) == 0)
        return true;
    memcpy(classes, before, rest);
    return false;
}

bool launch_scalars_update(const struct recorded_op *record, const struct scalar_counts *count,
                           struct launch_scalars *to)
{
    uint32_t rest;

    for (uint32_t i = 0; i < record->n_in; i++) {
        if (record->in[i].kind == FRIT_OPERAND_SCALAR && !put_again(to, record->in[i].scalar))
            return false;
    }
    rest = count->n_scalars - to->n_scalars;
    return rest + count->n_bounds == 0 || rest_again(record, count, to, rest);
}

void launch_scalars_update_random(const struct recorded_op *record,
                                  const struct scalar_counts *count, struct launch_scalars *to)
{
    to->scalars[count->n_scalars - 2].bits = record->seed;
    to->scalars[count->n_scalars - 1].bits = record->counter;
}
