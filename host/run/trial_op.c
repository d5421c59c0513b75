/* SPDX-License-Identifier: Apache-2.0 */
#include "run/trial_op.h"

#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/fail.h"
#include "base/str.h"
#include "device/device.h"
#include "device/programs.h"
#include "graph/dtype.h"
#include "memory/buffer.h"
#include "plan/program.h"
#include "run/bind_args.h"
#include "run/launch_parts.h"
#include "run/trial_run.h"

/* ---- making one ---- */

static frit_status make_arrays(struct launch_trial *t, frit_err *err)
{
    const uint32_t n_values = t->graph.n_values + 1;

    t->given = arena_array(&t->arena, n_values, sizeof(*t->given));
    t->values = arena_array(&t->arena, n_values, sizeof(*t->values));
    t->at_once = arena_array(&t->arena, n_values, sizeof(*t->at_once));
    t->extra = arena_array(&t->arena, 1, sizeof(*t->extra));
    t->numbers = arena_array(&t->arena, 1, sizeof(*t->numbers));
    t->of_ops = arena_array(&t->arena, t->n_out + 1u, sizeof(*t->of_ops));
    t->of_first = arena_array(&t->arena, t->n_out + 1u, sizeof(*t->of_first));
    t->memories = arena_array(&t->arena, t->n_in + 1u, sizeof(*t->memories));
    if (!t->given || !t->values || !t->at_once || !t->extra || !t->numbers || !t->of_ops ||
        !t->of_first || !t->memories)
        return fail_memory(err, n_values * sizeof(*t->values));
    return FRIT_OK;
}

static frit_status make_graph(struct launch_trial *t, const struct trial_op *op, frit_err *err)
{
    struct graph_operand *in = arena_array(&t->arena, op->n_in, sizeof(*in));

    t->n_in = op->n_in;
    t->n_out = 1;
    t->in = arena_array(&t->arena, op->n_in, sizeof(*t->in));
    t->out = arena_array(&t->arena, FRIT_OP_MAX_OUT, sizeof(*t->out));
    if (!in || !t->in || !t->out)
        return fail_memory(err, op->n_in * sizeof(*in));
    for (uint32_t i = 0; i < op->n_in; i++) {
        TRY(graph_input(&t->graph, GRAPH_INPUT, NULL, &op->type, &t->in[i], err));
        in[i] = (struct graph_operand){.kind = FRIT_OPERAND_TENSOR, .value = t->in[i]};
    }
    return graph_append(
        &t->graph,
        &(struct graph_call){.op = op->op, .n_in = op->n_in, .in = in, .attrs = op->attrs}, t->out,
        err);
}

static frit_status find_program(struct launch_trial *t, frit_err *err)
{
    struct op_input in[FRIT_OP_MAX_IN];
    struct op_type out[FRIT_OP_MAX_OUT];
    struct program_call call = program_call_of(&t->graph, &t->graph.ops[0], in, out);

    TRY(programs_get(t->device, &call, &t->program, err));
    if (!t->program)
        return fail(err, FRIT_UNSUPPORTED, "%s has no program for %s", t->device->name, t->label);
    return programs_prepared_cache(t->device, t->program, &t->cache, err);
}

static frit_status make_operand(struct launch_trial *t, uint32_t i, frit_err *err)
{
    struct memory_pair *pair = &t->memories[t->n_memories++];
    struct value *value = &t->given[t->in[i]];

    value->type = t->graph.values[t->in[i]].type;
    layout_dense(&value->type, &value->layout);
    pair->bytes = pair->high = launch_extent(value).bytes;
    pair->dtype = value->type.dtype;
    TRY(buffer_create(t->device->memory, pair->bytes, false, &pair->own, err));
    value->buffer = pair->own;
    return FRIT_OK;
}

static frit_status init(struct launch_trial *t, const struct trial_op *op, frit_err *err)
{
    TRY(make_graph(t, op, err));
    TRY(make_arrays(t, err));
    TRY(find_program(t, err));
    for (uint32_t i = 0; i < op->n_in; i++)
        TRY(make_operand(t, i, err));
    return run_scratch_create(&t->scratch, err);
}

frit_status trial_create_op(frit_device *device, const struct trial_op *op,
                            struct launch_trial **out, frit_err *err)
{
    struct launch_trial *t = calloc(1, sizeof(*t));
    frit_status st;

    *out = NULL;
    if (!t)
        return fail_memory(err, sizeof(*t));
    t->device = device;
    t->label = op_row(op->op)->name;
    t->n_sets = 1;
    st = init(t, op, err);
    if (st)
        trial_destroy(t);
    else
        *out = t;
    return st;
}

/* ---- what it is ---- */

static void print_type(const struct op_type *type, struct str *out)
{
    str_addf(out, "%s[", dtype_name(type->dtype));
    for (uint32_t d = 0; d < type->rank; d++)
        str_addf(out, d ? ", %lld" : "%lld", (long long)type->dims[d]);
    str_addf(out, "]");
}

void trial_print(const struct launch_trial *trial, struct str *out)
{
    for (uint32_t i = 0; i < trial->n_in; i++) {
        str_add(out, " ", i > 0);
        print_type(&trial->graph.values[trial->in[i]].type, out);
    }
    str_addf(out, " -> ");
    print_type(&trial->graph.values[trial->out[0]].type, out);
}

uint64_t trial_least_bytes(const struct launch_trial *trial, uint32_t memory)
{
    const struct memory_pair *pair = &trial->memories[memory];
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < trial->graph.n_values; v++) {
        const struct value *value = &trial->given[v];
        uint64_t elements, spanned;

        if (trial->graph.values[v].kind != GRAPH_INPUT || value->buffer != pair->own)
            continue;
        elements = frit_storage_bytes(value->type.dtype, op_elements(&value->type));
        spanned = launch_extent(value).bytes;
        elements = elements < spanned ? elements : spanned;
        bytes = elements > bytes ? elements : bytes;
    }
    return bytes;
}
