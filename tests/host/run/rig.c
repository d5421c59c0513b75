/* SPDX-License-Identifier: Apache-2.0 */
#include "run/rig.h"

#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/wait.h"
#include "graph/graph.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "plan/relative.h"
#include "run/transfer.h"
#include "tensor/failure.h"

void rig_open(struct rig *rig, struct driver *driver, int64_t n)
{
    *rig = (struct rig){.device = driver_device(driver, 100), .n = n};
    assert_int_equal(run_scratch_create(&rig->scratch, NULL), FRIT_OK);
}

/* Everything is given back: no buffer is left. */
void rig_close(struct rig *rig)
{
    frit_device *fallback = rig->device->fallback;
    struct memory_stats stats;

    for (uint32_t v = 0; v < rig->graph.n_values; v++) {
        buffer_disown(rig->values[v].value.buffer);
        if (!rig->values[v].external)
            failure_unref(rig->values[v].failure);
    }
    failure_unref(rig->run.first);
    memory_stats(rig->device->memory, &stats);
    assert_int_equal(stats.buffers_now, 0);
    assert_int_equal(device_wait_all(rig->device, NULL), FRIT_OK);
    plan_unref(rig->plan);
    run_scratch_destroy(rig->scratch);
    graph_fini(&rig->graph);
    device_close(rig->device);
    if (fallback) {
        memory_stats(fallback->memory, &stats);
        assert_int_equal(stats.buffers_now, 0);
        device_close(fallback);
    }
}

uint32_t rig_in(struct rig *rig, float number)
{
    struct op_type type = {.dtype = FRIT_F32, .rank = 1, .dims = {rig->n}};
    float *data = calloc((size_t)rig->n + 1, sizeof(*data));
    uint32_t value;

    assert_non_null(data);
    for (int64_t i = 0; i < rig->n; i++)
        data[i] = number;
    assert_int_equal(graph_input(&rig->graph, GRAPH_INPUT, NULL, &type, &value, NULL), FRIT_OK);
    rig->values[value] = (struct run_value){.external = true, .value.type = type};
    assert_int_equal(transfer_in(rig->device, data, false, &rig->values[value].value, NULL),
                     FRIT_OK);
    free(data);
    return value;
}

static uint32_t append(struct rig *rig, uint32_t op, uint32_t n_in, const struct graph_operand *in,
                       const void *attrs)
{
    struct graph_call call = {.op = op, .n_in = n_in, .in = in, .attrs = attrs};
    uint32_t out[FRIT_OP_MAX_OUT];
    frit_err err = ERR_INIT;

    assert_int_equal(graph_append(&rig->graph, &call, out, &err), FRIT_OK);
    assert_true(rig->graph.n_values <= RIG_VALUES);
    return out[0];
}

uint32_t rig_1(struct rig *rig, uint32_t op, uint32_t x)
{
    return append(rig, op, 1, &(struct graph_operand){.kind = FRIT_OPERAND_TENSOR, .value = x},
                  NULL);
}

uint32_t rig_2(struct rig *rig, uint32_t op, uint32_t x, uint32_t y)
{
    struct graph_operand in[2] = {{.kind = FRIT_OPERAND_TENSOR, .value = x},
                                  {.kind = FRIT_OPERAND_TENSOR, .value = y}};

    return append(rig, op, 2, in, NULL);
}

uint32_t rig_n(struct rig *rig, uint32_t op, uint32_t x, double number)
{
    struct graph_operand in[2] = {
        {.kind = FRIT_OPERAND_TENSOR, .value = x},
        {.kind = FRIT_OPERAND_SCALAR, .scalar = {.kind = FRIT_SCALAR_F64}}};

    memcpy(&in[1].scalar.bits, &number, sizeof(number));
    return append(rig, op, 2, in, NULL);
}

uint32_t rig_flip(struct rig *rig, uint32_t x)
{
    frit_attrs_axes attrs = {.struct_size = sizeof(attrs), .axes = {1, {0}}};

    return append(rig, FRIT_OP_flip, 1,
                  &(struct graph_operand){.kind = FRIT_OPERAND_TENSOR, .value = x}, &attrs);
}

void rig_want(struct rig *rig, uint32_t value)
{
    rig->values[value].wanted = true;
}

static void relative_of(struct rig *rig, struct relative *relative)
{
    uint32_t last[RIG_VALUES] = {0}, dead[RIG_VALUES];

    for (uint32_t i = 0; i < rig->graph.n_ops; i++) {
        const struct graph_op *op = &rig->graph.ops[i];

        last[op->out[0]] = i;
        for (uint32_t k = 0; k < op->n_in; k++) {
            if (op->in[k].kind == FRIT_OPERAND_TENSOR)
                last[op->in[k].value] = i;
        }
    }
    for (uint32_t i = 0; i < rig->graph.n_ops; i++) {
        uint32_t n = 0;

        for (uint32_t v = 0; v < rig->graph.n_values; v++) {
            if (!rig->values[v].external && !rig->values[v].wanted && last[v] == i)
                dead[n++] = v;
        }
        assert_int_equal(relative_append(relative, &rig->graph, i, dead, n, NULL), FRIT_OK);
    }
}

static bool is_in(const struct rig_block *block, uint32_t op)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        if (block->ops[i] == op)
            return true;
    }
    return false;
}

struct program *rig_program(struct driver *driver, const struct driver_op *ops, uint32_t n_ops,
                            const int *out, bool foreign)
{
    frit_program program = driver_block(driver, ops, n_ops, out, foreign);
    struct program *shared = program_create(&program, 0);

    assert_non_null(shared);
    return shared;
}

struct driver_program *rig_script(const struct program *program)
{
    return program->program.self;
}

void rig_plan(struct rig *rig, const struct rig_block *blocks, uint32_t n_blocks)
{
    struct relative relative = {0};
    struct plan_block all[RIG_VALUES] = {0};
    uint32_t singles[RIG_VALUES], n = 0;
    frit_err err = ERR_INIT;

    relative_of(rig, &relative);
    for (uint32_t op = 0; op < rig->graph.n_ops; op++) {
        bool taken = false;

        for (uint32_t i = 0; i < n_blocks; i++) {
            taken |= is_in(&blocks[i], op);
            if (blocks[i].ops[0] == op)
                all[n++] = (struct plan_block){
                    .program = blocks[i].program, .n_ops = blocks[i].n_ops, .ops = blocks[i].ops};
        }
        singles[op] = op;
        if (!taken)
            all[n++] = (struct plan_block){.n_ops = 1, .ops = &singles[op]};
    }
    if (plan_create(&relative, rig->graph.n_ops, all, n, &rig->plan, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n_blocks; i++)
        program_unref(blocks[i].program);
    relative_fini(&relative);
}

void rig_run(struct rig *rig)
{
    if (!rig->plan)
        rig_plan(rig, NULL, 0);
    rig->run = (struct run){.device = rig->device,
                            .scratch = rig->scratch,
                            .plan = rig->plan,
                            .graph = &rig->graph,
                            .values = rig->values,
                            .ops = rig->ops,
                            .notes = rig->notes,
                            .stream = 3};
    run_plan(&rig->run);
}

static void read_value(struct rig *rig, uint32_t value, float *out)
{
    const struct value *v = &rig->values[value].value;
    struct transfer_read read;
    frit_err err = ERR_INIT;
    frit_status st;

    if (!v->buffer)
        fail_msg("value %u was not made: %s", value,
                 rig->values[value].failure ? rig->values[value].failure->text
                                            : "nobody wanted it");
    buffer_pin(v->buffer);
    st = transfer_start(rig->device, v, out, &read, &err);
    if (transfer_finish(&read, st, &err))
        fail_msg("%s", err.text);
}

uint64_t rig_count(const atomic_uint_least64_t *counter)
{
    return atomic_load(counter);
}

float rig_at(struct rig *rig, uint32_t value, int64_t at)
{
    float *data = calloc((size_t)rig->n, sizeof(*data)), found;

    assert_non_null(data);
    read_value(rig, value, data);
    found = data[at];
    free(data);
    return found;
}

void rig_expect(struct rig *rig, uint32_t value, float number)
{
    float *data = calloc((size_t)rig->n, sizeof(*data));

    assert_non_null(data);
    read_value(rig, value, data);
    for (int64_t i = 0; i < rig->n; i++) {
        if (!(data[i] == number))
            fail_msg("value %u: element %d is %g, not %g", value, (int)i, (double)data[i],
                     (double)number);
    }
    free(data);
}

const char *rig_failure(struct rig *rig, uint32_t value)
{
    assert_null(rig->values[value].value.buffer);
    assert_non_null(rig->values[value].failure);
    return rig->values[value].failure->text;
}
