/* SPDX-License-Identifier: Apache-2.0 */
#include "device/support.h"

#include "device/device.h"
#include "device/programs.h"
#include "graph/decompose/decompose.h"

static bool claims(frit_device *device, const struct program_call *call)
{
    struct op_form form;
    uint64_t claimed = 0;

    if (op_form_init(call, &form, NULL))
        return false;
    if (device->backend->supports(device->self, &form.desc, 1, sizeof(form.desc), &claimed, NULL) !=
        FRIT_OK)
        claimed = 0;
    op_form_fini(&form);
    return claimed & 1;
}

/* ---- rows ---- */

static bool is_of_host(const frit_op_info *row)
{
    return row->cls == FRIT_CLASS_VIEW || row->cls == FRIT_CLASS_COLLECTIVE;
}

/* A type that a letter of the table allows. */
static uint32_t some_dtype(uint32_t letter)
{
    switch (letter) {
    case FRIT_LETTER_Z:
    case FRIT_LETTER_L:
        return FRIT_I32;
    case FRIT_LETTER_I:
    case FRIT_LETTER_I64:
        return FRIT_I64;
    case FRIT_LETTER_BOOL:
        return FRIT_BOOL;
    case FRIT_LETTER_P:
        return FRIT_Q8;
    default:
        return FRIT_F32;
    }
}

static struct op_type some_type(uint32_t letter)
{
    return (struct op_type){.dtype = some_dtype(letter), .rank = 2, .dims = {2, 2}};
}

/* Queries the driver about a row with operands of a usual kind; shapes need not fit together. */
uint32_t support_of_row(frit_device *device, const frit_op_info *row)
{
    const uint32_t op = row->id;
    struct op_input in[FRIT_OP_MAX_IN] = {0};
    struct op_type out[FRIT_OP_MAX_OUT] = {0};
    uint64_t attrs[64] = {0};
    struct program_call call = {.op = op, .attrs = attrs, .in = in, .out = out};

    if (is_of_host(row))
        return FRIT_SUPPORT_HOST;
    call.n_in = op_n_slots(row);
    call.n_out = op_n_out(row);
    for (uint32_t i = 0; i < call.n_in; i++) {
        in[i].kind = row->in[i].role == FRIT_ROLE_NUM ? FRIT_OPERAND_SCALAR : FRIT_OPERAND_TENSOR;
        in[i].type = some_type(row->in[i].letter);
    }
    for (uint32_t i = 0; i < call.n_out; i++)
        out[i] = some_type(row->out[i].letter);
    if (claims(device, &call))
        return FRIT_SUPPORT_NATIVE;
    return decompose_has(op, call.n_in) ? FRIT_SUPPORT_DECOMPOSED : FRIT_SUPPORT_NONE;
}

/* ---- graphs ---- */

/* The less direct of two ways. */
static uint32_t lesser(uint32_t a, uint32_t b)
{
    static const uint32_t order[] = {[FRIT_SUPPORT_NONE] = 0,
                                     [FRIT_SUPPORT_FALLBACK] = 1,
                                     [FRIT_SUPPORT_DECOMPOSED] = 2,
                                     [FRIT_SUPPORT_NATIVE] = 3,
                                     [FRIT_SUPPORT_HOST] = 4};

    return order[a] < order[b] ? a : b;
}

static bool has_program(frit_device *device, const struct graph *graph, const struct graph_op *op)
{
    struct op_type out[FRIT_OP_MAX_OUT];
    struct arena arena = {0};
    struct op_input *in = arena_array(&arena, op->n_in + 1, sizeof(*in));
    bool has = false;

    if (in) {
        struct program_call call = program_call_of(graph, op, in, out);

        has = claims(device, &call);
    }
    arena_fini(&arena);
    return has;
}

static uint32_t of_core_ops(frit_device *device, const struct graph *graph,
                            const struct graph_op *op)
{
    struct graph core = {0};
    uint32_t how = FRIT_SUPPORT_NONE;

    if (!decompose_op(graph, op, &core, NULL))
        how = support_of_graph(device, &core);
    graph_fini(&core);
    return how == FRIT_SUPPORT_NATIVE || how == FRIT_SUPPORT_HOST ? FRIT_SUPPORT_DECOMPOSED : how;
}

/* In the order in which a run tries. */
static uint32_t of_op(frit_device *device, const struct graph *graph, const struct graph_op *op)
{
    const frit_op_info *row = op_row(op->op);
    uint32_t how = FRIT_SUPPORT_NONE;

    if (is_of_host(row))
        return FRIT_SUPPORT_HOST;
    if (!(device->config.decompose && decompose_has(op->op, op->n_in)) &&
        has_program(device, graph, op))
        return FRIT_SUPPORT_NATIVE;
    if (decompose_has(op->op, op->n_in))
        how = of_core_ops(device, graph, op);
    if (how == FRIT_SUPPORT_NONE && device->fallback &&
        of_op(device->fallback, graph, op) != FRIT_SUPPORT_NONE)
        how = FRIT_SUPPORT_FALLBACK;
    return how;
}

uint32_t support_of_graph(frit_device *device, const struct graph *graph)
{
    uint32_t how = FRIT_SUPPORT_HOST;

    for (uint32_t i = 0; i < graph->n_ops; i++)
        how = lesser(how, of_op(device, graph, &graph->ops[i]));
    return how;
}
