/* SPDX-License-Identifier: Apache-2.0 */
#include "run/explore.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "device/device.h"
#include "device/plan_saver.h"
#include "device/programs.h"
#include "graph/decompose/decompose.h"
#include "plan/program.h"
#include "record/alias.h"
#include "record/segment.h"
#include "run/choice.h"
#include "run/run.h"
#include "search/fuser.h"
#include "tensor/slot.h"

void explorer_fini(struct explorer *explorer)
{
    search_destroy(explorer->search); /* blocks of a search that broke off look at the ops */
    graph_fini(&explorer->graph);
    relative_fini(&explorer->relative);
    period_fini(&explorer->period);
    free(explorer->ops);
    free(explorer->call_end);
    free(explorer->value_of);
    *explorer = (struct explorer){0};
}

void explorer_reset(struct explorer *explorer)
{
    if (explorer->n_values == 0 && explorer->n_calls == 0)
        return;
    if (explorer->search)
        search_reset(explorer->search); /* blocks of a search that broke off look at the ops */
    graph_reset(&explorer->graph);
    relative_reset(&explorer->relative);
    period_reset(&explorer->period);
    explorer->n_calls = explorer->n_values = explorer->n_relative = 0;
    explorer->expanded = false;
}

/* ---- the concrete graph ---- */

/* One op on its way into the graph: `op` names its operands and, where they exist already, its
 * outputs by their numbers there. */
struct adding {
    struct explorer *explorer;
    frit_device *device;
    const struct run_op *beside;
    bool is_trial; /* nothing is counted */
    bool chosen;   /* they stand for an op that has a program */
};

static frit_status add_op(const struct adding *a, const struct graph_op *op, frit_err *err)
{
    struct explorer *e = a->explorer;

    if (!array_grow(&e->ops, &e->ops_capacity, e->graph.n_ops, 1, sizeof(*e->ops)))
        return fail_memory(err, sizeof(*e->ops));
    TRY(graph_add_op(&e->graph, op, err));
    e->ops[e->graph.n_ops - 1] = *a->beside;
    e->ops[e->graph.n_ops - 1].chosen = a->chosen;
    return FRIT_OK;
}

/* What a call in the graph is to a check and to a driver; `types` has room for FRIT_OP_MAX_OUT. */
static void types_of(const struct graph *graph, const struct graph_op *op, struct op_input *in,
                     struct op_type *types)
{
    graph_operands(graph, op->in, op->n_in, in);
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            in[i].type = (struct op_type){.dtype = op->in[i].dtype};
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        types[i] =
            op->out[i] == GRAPH_NO_VALUE ? (struct op_type){0} : graph->values[op->out[i]].type;
}

static bool has_elements(const struct graph_op *op, const struct op_type *types)
{
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k] != GRAPH_NO_VALUE && op_elements(&types[k]) > 0)
            return true;
    }
    return false;
}

/* Why a composite row runs as what it stands for. */
enum expansion { IS_ITSELF, HAS_NO_PROGRAM, IS_SLOWER };

/* One without elements stays itself: what it stands for does not use its operands, and would lose
 * their failures. */
static frit_status find_expansion(const struct adding *a, const struct graph_op *op,
                                  const struct op_input *in, const struct op_type *types,
                                  enum expansion *out, frit_err *err)
{
    const frit_op_info *row = op_row(op->op);
    struct program_call call = {.op = op->op,
                                .n_in = op->n_in,
                                .n_out = op->n_out,
                                .attrs = op->attrs,
                                .in = in,
                                .out = types};
    bool has;

    *out = decompose_has(op->op, op->n_in) && has_elements(op, types) ? HAS_NO_PROGRAM : IS_ITSELF;
    if (!has_elements(op, types) || row->cls == FRIT_CLASS_VIEW || a->device->config.decompose)
        return FRIT_OK;
    TRY(programs_have(a->device, &call, &has, err));
    if (has)
        *out = choice_is_decomposed(a->device, &call, a->beside->context) ? IS_SLOWER : IS_ITSELF;
    return FRIT_OK;
}

static frit_status add_call(const struct adding *a, const struct graph_op *op, frit_err *err);

/* The numbers in our graph of the values of a part: its inputs are the tensor operands in order,
 * its outputs the wanted outputs; an output that is an input comes through a copy. */
static frit_status place_values(const struct adding *a, const struct graph_op *op,
                                const struct graph *part, uint32_t *number, frit_err *err)
{
    uint32_t input = 0, output = 0;

    for (uint32_t v = 0; v < part->n_values; v++)
        number[v] = GRAPH_NO_VALUE;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        while (part->values[input].kind != GRAPH_INPUT)
            input++;
        number[input++] = op->in[i].value;
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        uint32_t v;

        if (op->out[k] == GRAPH_NO_VALUE)
            continue;
        v = part->outputs[output++];
        if (number[v] == GRAPH_NO_VALUE)
            number[v] = op->out[k];
    }
    for (uint32_t v = 0; v < part->n_values; v++) {
        if (number[v] == GRAPH_NO_VALUE)
            TRY(graph_add_value(&a->explorer->graph, GRAPH_RESULT, &part->values[v].type,
                                &number[v], err));
    }
    return FRIT_OK;
}

static frit_status add_part_op(const struct adding *a, const struct graph_op *from,
                               const uint32_t *number, frit_err *err)
{
    struct graph_op op = *from;
    frit_status st;

    op.in = calloc((size_t)from->n_in + 1, sizeof(*op.in));
    if (!op.in)
        return fail_memory(err, from->n_in * sizeof(*op.in));
    for (uint32_t i = 0; i < from->n_in; i++) {
        op.in[i] = from->in[i];
        if (op.in[i].kind == FRIT_OPERAND_TENSOR)
            op.in[i].value = number[from->in[i].value];
    }
    for (uint32_t k = 0; k < from->n_out; k++)
        op.out[k] = from->out[k] == GRAPH_NO_VALUE ? GRAPH_NO_VALUE : number[from->out[k]];
    st = add_call(a, &op, err);
    free(op.in);
    return st;
}

/* Outputs that another number stands for: an operand that is given back, or the same value twice.
 */
static frit_status copy_outputs(const struct adding *a, const struct graph_op *op,
                                const struct graph *part, const uint32_t *number, frit_err *err)
{
    uint32_t output = 0;

    for (uint32_t k = 0; k < op->n_out; k++) {
        struct graph_operand in = {.kind = FRIT_OPERAND_TENSOR};
        struct graph_op copy = {.op = FRIT_OP_copy, .n_in = 1, .n_out = 1, .in = &in};

        if (op->out[k] == GRAPH_NO_VALUE)
            continue;
        in.value = number[part->outputs[output++]];
        copy.out[0] = op->out[k];
        if (in.value != op->out[k])
            TRY(add_call(a, &copy, err));
    }
    return FRIT_OK;
}

static frit_status add_parts(const struct adding *a, const struct graph_op *op,
                             const struct graph *part, frit_err *err)
{
    uint32_t *number = calloc((size_t)part->n_values + 1, sizeof(*number));
    frit_status st;

    if (!number)
        return fail_memory(err, part->n_values * sizeof(*number));
    st = place_values(a, op, part, number, err);
    for (uint32_t i = 0; i < part->n_ops && !st; i++)
        st = add_part_op(a, &part->ops[i], number, err);
    if (!st)
        st = copy_outputs(a, op, part, number, err);
    free(number);
    return st;
}

static frit_status expand(const struct adding *a, const struct graph_op *op, struct op_input *in,
                          frit_err *err)
{
    struct op_call checked = {.op = op->op, .n_in = op->n_in, .in = in};
    size_t attrs = op_record(op_row(op->op))->size;
    struct graph part = {0};
    frit_status st = FRIT_OK;

    for (uint32_t k = 0; k < op->n_out; k++)
        checked.wanted |= (uint32_t)(op->out[k] != GRAPH_NO_VALUE) << k;
    if (op->attrs) {
        checked.attrs = malloc(attrs);
        if (!checked.attrs)
            return fail_memory(err, attrs);
        memcpy(checked.attrs, op->attrs, attrs);
    }
    st = decompose(&checked, &part, err);
    if (!st)
        st = decompose_fits(&part, &a->explorer->graph, op, err);
    a->explorer->expanded = true;
    if (!st)
        st = add_parts(a, op, &part, err);
    atomic_fetch_add(&a->device->count.decomposed, !a->is_trial);
    graph_fini(&part);
    free(checked.attrs);
    return st;
}

/* Adds the op, or what it stands for. */
static frit_status add_call(const struct adding *a, const struct graph_op *op, frit_err *err)
{
    struct op_type types[FRIT_OP_MAX_OUT];
    struct adding part = *a;
    struct op_input *in;
    enum expansion how = IS_ITSELF;
    frit_status st;

    if (!decompose_has(op->op, op->n_in) && !decompose_has_other(op->op))
        return add_op(a, op, err);
    in = calloc((size_t)op->n_in + 1, sizeof(*in));
    if (!in)
        return fail_memory(err, op->n_in * sizeof(*in));
    types_of(&a->explorer->graph, op, in, types);
    st = find_expansion(a, op, in, types, &how, err);
    part.chosen |= how == IS_SLOWER;
    if (!st)
        st = how ? expand(&part, op, in, err) : add_op(a, op, err);
    free(in);
    return st;
}

frit_status explorer_add(struct explorer *e, frit_device *device, const struct graph_op *op,
                         bool expanded, frit_err *err)
{
    const struct run_op beside = {0};
    const struct adding adding = {
        .explorer = e, .device = device, .beside = &beside, .is_trial = true};
    struct op_type types[FRIT_OP_MAX_OUT];
    struct op_input *in;
    frit_status st;

    if (!expanded)
        return add_op(&adding, op, err);
    in = calloc((size_t)op->n_in + 1, sizeof(*in));
    if (!in)
        return fail_memory(err, op->n_in * sizeof(*in));
    types_of(&e->graph, op, in, types);
    st = expand(&adding, op, in, err);
    free(in);
    return st;
}

static const struct op_type *value_type(const struct seg_value *value)
{
    return value->slot ? &value->slot->value.type : &value->alias->value.type;
}

/* Numbers for the values that appear with a record. */
static frit_status add_values(struct explorer *e, const struct segment *segment, uint32_t end,
                              frit_err *err)
{
    if (!array_grow(&e->value_of, &e->value_capacity, e->n_values, end - e->n_values,
                    sizeof(*e->value_of)))
        return fail_memory(err, end * sizeof(*e->value_of));
    for (; e->n_values < end; e->n_values++) {
        const struct seg_value *value = &segment->values[e->n_values];
        enum graph_kind kind = value->maker == SEGMENT_EXTERNAL ? GRAPH_INPUT : GRAPH_RESULT;

        TRY(graph_add_value(&e->graph, kind, value_type(value), &e->value_of[e->n_values], err));
    }
    return FRIT_OK;
}

static frit_status add_record(struct explorer *e, frit_device *device,
                              const struct segment *segment, uint32_t number, frit_err *err)
{
    const struct recorded_op *record = segment->ops[number];
    struct run_op beside = {
        .seed = record->seed, .counter = record->counter, .context = record->context};
    struct adding adding = {.explorer = e, .device = device, .beside = &beside};
    struct graph_op op = {
        .op = record->op, .n_in = record->n_in, .n_out = record->n_out, .attrs = record->attrs};
    frit_status st;

    TRY(add_values(e, segment, record->end, err));
    op.in = calloc((size_t)record->n_in + 1, sizeof(*op.in));
    if (!op.in)
        return fail_memory(err, record->n_in * sizeof(*op.in));
    for (uint32_t i = 0; i < record->n_in; i++) {
        const struct recorded_input *in = &record->in[i];

        op.in[i] =
            (struct graph_operand){.kind = in->kind, .dtype = in->dtype, .scalar = in->scalar};
        if (in->kind == FRIT_OPERAND_TENSOR)
            op.in[i].value = e->value_of[in->value];
    }
    for (uint32_t k = 0; k < record->n_out; k++)
        op.out[k] =
            record->out[k] == SEGMENT_EXTERNAL ? GRAPH_NO_VALUE : e->value_of[record->out[k]];
    st = add_call(&adding, &op, err);
    free(op.in);
    return st;
}

frit_status explorer_graph(struct explorer *e, frit_device *device, const struct segment *segment,
                           uint32_t n_calls, frit_err *err)
{
    while (e->n_calls < n_calls) {
        if (!array_grow(&e->call_end, &e->call_capacity, e->n_calls, 1, sizeof(*e->call_end)))
            return fail_memory(err, sizeof(*e->call_end));
        TRY(add_record(e, device, segment, e->n_calls, err));
        e->call_end[e->n_calls++] = e->graph.n_ops;
    }
    return FRIT_OK;
}

/* ---- the relative form ---- */

/* Values that die with a record: those that it lists, and those that are only inside of it. */
static frit_status list_deaths(const struct explorer *e, const struct segment *segment,
                               uint32_t call, struct arena *arena, uint32_t **dead,
                               uint32_t *n_dead, frit_err *err)
{
    const struct recorded_op *record = segment->ops[call];
    uint32_t from = call ? e->call_end[call - 1] : 0, most = record->n_dead;

    for (uint32_t i = from; i < e->call_end[call]; i++)
        most += e->graph.ops[i].n_out;
    *dead = arena_array(arena, most + 1, sizeof(**dead));
    *n_dead = 0;
    if (!*dead)
        return fail_memory(err, most * sizeof(**dead));
    for (uint32_t i = 0; i < record->n_dead; i++)
        (*dead)[(*n_dead)++] = e->value_of[record->dead[i]];
    for (uint32_t i = from; i < e->call_end[call]; i++) {
        for (uint32_t k = 0; k < e->graph.ops[i].n_out; k++) {
            uint32_t value = e->graph.ops[i].out[k];
            bool inner = value != GRAPH_NO_VALUE;

            for (uint32_t o = 0; o < record->n_out && inner; o++)
                inner = record->out[o] == SEGMENT_EXTERNAL || e->value_of[record->out[o]] != value;
            if (inner)
                (*dead)[(*n_dead)++] = value;
        }
    }
    return FRIT_OK;
}

static frit_status add_relative(struct explorer *e, const struct segment *segment, uint32_t call,
                                frit_err *err)
{
    uint32_t end = e->call_end[call], n_dead, *dead;
    struct arena arena = {0};
    frit_status st = list_deaths(e, segment, call, &arena, &dead, &n_dead, err);

    while (!st && e->relative.n_ops < end) {
        bool last = e->relative.n_ops + 1 == end;

        st = relative_append(&e->relative, &e->graph, e->relative.n_ops, dead, last ? n_dead : 0,
                             err);
    }
    arena_fini(&arena);
    return st;
}

static frit_status explorer_relative(struct explorer *e, frit_device *device,
                                     const struct segment *segment, uint32_t n_calls, frit_err *err)
{
    TRY(explorer_graph(e, device, segment, n_calls, err));
    for (; e->n_relative < n_calls; e->n_relative++)
        TRY(add_relative(e, segment, e->n_relative, err));
    return FRIT_OK;
}

static bool is_expanded(const struct explorer *e, const struct segment *segment, uint32_t number)
{
    uint32_t from = number ? e->call_end[number - 1] : 0;

    return e->call_end[number] != from + 1 || e->graph.ops[from].op != segment->ops[number]->op;
}

frit_status explorer_form(struct explorer *e, frit_device *device, const struct segment *segment,
                          uint32_t number, struct str *bytes, struct segment_expansion *form,
                          frit_err *err)
{
    bytes->length = 0;
    *form = (struct segment_expansion){0};
    TRY(explorer_graph(e, device, segment, number + 1, err));
    if (!is_expanded(e, segment, number))
        return FRIT_OK;
    TRY(explorer_relative(e, device, segment, number + 1, err));
    relative_write(&e->relative, number ? e->call_end[number - 1] : 0, e->call_end[number], bytes);
    if (bytes->failed)
        return fail_memory(err, bytes->length);
    *form = (struct segment_expansion){.bytes = bytes->text,
                                       .n_bytes = bytes->length,
                                       .extents = e->relative.extents,
                                       .n_extents = e->relative.n_extents};
    return FRIT_OK;
}

/* ---- calling the search ---- */

static frit_status search_begin(struct explorer *e, frit_device *device, frit_err *err)
{
    struct search_config config = {.fusers = device->fusers->list,
                                   .n_fusers = device->config.fusion ? device->fusers->count : 0,
                                   .max_blocks = device->config.max_blocks};

    return e->search ? FRIT_OK : search_create(&config, &e->search, err);
}

/* The plan over the blocks and, where they end inside a composite, the rest of it op by op. */
static frit_status make_plan(struct explorer *e, const struct plan_block *blocks, uint32_t n_blocks,
                             uint32_t n_ops, struct plan **plan, frit_err *err)
{
    uint32_t n_calls = 0, rest = 0;
    struct plan_block *all;
    uint32_t *ops;
    frit_status st;

    while (e->call_end[n_calls] < n_ops)
        n_calls++;
    rest = e->call_end[n_calls] - n_ops;
    all = calloc(n_blocks + 1, sizeof(*all));
    ops = calloc(rest + 1, sizeof(*ops));
    if (all && ops) {
        memcpy(all, blocks, n_blocks * sizeof(*all));
        for (uint32_t i = 0; i < rest; i++)
            ops[i] = n_ops + i;
        all[n_blocks] = (struct plan_block){.n_ops = rest, .ops = ops, .end = PLAN_END_SINGLE};
        st = plan_create(&e->relative, n_calls + 1, all, n_blocks + (rest > 0), plan, err);
    } else {
        st = fail_memory(err, n_blocks * sizeof(*all));
    }
    free(all);
    free(ops);
    return st;
}

static void log_plan(const frit_device *device, const struct plan *plan)
{
    uint32_t n_blocks = 0;
    uint64_t score = 0;

    for (uint32_t s = 0; s < plan->n_steps; s++) {
        n_blocks += plan->steps[s].program != NULL;
        score += plan->steps[s].score;
    }
    log_write(FRIT_LOG_DEBUG, "fusion",
              "%s: a new plan of %u ops: %u steps, %u of them blocks, score %llu", device->name,
              plan->n_ops, plan->n_steps, n_blocks, (unsigned long long)score);
}

static frit_status finish(struct explorer *e, frit_device *device, bool all, struct plan **plan,
                          frit_err *err)
{
    const struct plan_block *blocks;
    uint32_t n_blocks, n_ops;
    frit_status st;

    atomic_fetch_add(&device->count.explorations, 1);
    TRY(search_finish(e->search, &e->relative, all, &blocks, &n_blocks, &n_ops, err));
    st = make_plan(e, blocks, n_blocks, n_ops, plan, err);
    if (!st)
        (*plan)->passing = search_is_flawed(e->search);
    if (!st && log_enabled(FRIT_LOG_DEBUG, "fusion"))
        log_plan(device, *plan);
    for (uint32_t i = 0; i < n_blocks; i++)
        program_unref(blocks[i].program);
    search_reset(e->search);
    return st;
}

frit_status explorer_lazy(struct explorer *e, frit_device *device, const struct segment *segment,
                          uint32_t n_calls, struct plan **plan, frit_err *err)
{
    *plan = NULL;
    TRY(explorer_relative(e, device, segment, n_calls, err));
    TRY(search_begin(e, device, err));
    TRY(search_push(e->search, &e->relative, err));
    if (!search_open(e->search))
        return finish(e, device, false, plan, err);
    return period_ends(&e->period, segment, n_calls) ? finish(e, device, true, plan, err) : FRIT_OK;
}

frit_status explorer_whole(struct explorer *e, frit_device *device, const struct segment *segment,
                           struct plan **plan, frit_err *err)
{
    *plan = NULL;
    TRY(explorer_relative(e, device, segment, segment->n_ops, err));
    TRY(search_begin(e, device, err));
    return finish(e, device, true, plan, err);
}

frit_status explorer_rebuild(struct explorer *e, frit_device *device, const struct segment *segment,
                             const struct plan *saved, struct plan **plan, frit_err *err)
{
    *plan = NULL;
    if (saved->n_calls > segment->n_matched)
        return fail(err, FRIT_INCOMPATIBLE, "a saved plan of more ops than there are");
    TRY(explorer_relative(e, device, segment, segment->n_matched, err));
    return plan_saver_rebuild(device->saver, saved, &e->relative, e->call_end[saved->n_calls - 1],
                              plan, err);
}

frit_status explorer_plan_unfused(struct explorer *e, frit_device *device,
                                  const struct segment *segment, uint32_t n_calls,
                                  struct plan **plan, frit_err *err)
{
    struct plan_block block = {.end = PLAN_END_SINGLE};
    uint32_t *ops;
    frit_status st;

    *plan = NULL;
    TRY(explorer_relative(e, device, segment, n_calls, err));
    block.n_ops = e->call_end[n_calls - 1];
    ops = calloc((size_t)block.n_ops + 1, sizeof(*ops));
    if (!ops)
        return fail_memory(err, block.n_ops * sizeof(*ops));
    for (uint32_t i = 0; i < block.n_ops; i++)
        ops[i] = i;
    block.ops = ops;
    st = plan_create(&e->relative, n_calls, &block, 1, plan, err);
    free(ops);
    return st;
}

/* A plan may have been made when an op was expanded by choice (choice.h). */
static frit_status fits_unexpanded(const struct explorer *e, const struct plan *plan, bool *fits)
{
    *fits = plan->n_ops == plan->n_calls;
    for (uint32_t i = 0; i < plan->n_ops && *fits; i++)
        *fits = plan->ops[i].id == e->graph.ops[i].op;
    return FRIT_OK;
}

frit_status explorer_fits(struct explorer *e, frit_device *device, const struct segment *segment,
                          const struct plan *plan, bool *fits, frit_err *err)
{
    *fits = true;
    if (!e->expanded)
        return fits_unexpanded(e, plan, fits);
    TRY(explorer_relative(e, device, segment, plan->n_calls, err));
    *fits = plan->n_ops == e->call_end[plan->n_calls - 1];
    for (uint32_t i = 0; i < plan->n_ops && *fits; i++)
        *fits = relative_same_op(&plan->ops[i], &e->relative.ops[i]);
    return FRIT_OK;
}
