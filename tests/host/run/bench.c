/* SPDX-License-Identifier: Apache-2.0 */
#include "run/bench.h"

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

void bench_open(struct bench *b, struct driver *driver, int64_t n)
{
    *b = (struct bench){.device = driver_device(driver, 100), .n = n};
    assert_int_equal(run_scratch_create(&b->scratch, NULL), FRIT_OK);
}

/* Everything is given back: no buffer is left. */
void bench_close(struct bench *b)
{
    frit_device *fallback = b->device->fallback;
    struct memory_stats stats;

    for (uint32_t v = 0; v < b->graph.n_values; v++) {
        buffer_disown(b->values[v].value.buffer);
        if (!b->values[v].external)
            failure_unref(b->values[v].failure);
    }
    failure_unref(b->run.first);
    memory_stats(b->device->memory, &stats);
    assert_int_equal(stats.buffers_now, 0);
    assert_int_equal(device_wait_all(b->device, NULL), FRIT_OK);
    plan_unref(b->plan);
    run_scratch_destroy(b->scratch);
    graph_fini(&b->graph);
    device_close(b->device);
    if (fallback) {
        memory_stats(fallback->memory, &stats);
        assert_int_equal(stats.buffers_now, 0);
        device_close(fallback);
    }
}

uint32_t bench_in(struct bench *b, float number)
{
    struct op_type type = {.dtype = FRIT_F32, .rank = 1, .dims = {b->n}};
    float *data = calloc((size_t)b->n + 1, sizeof(*data));
    uint32_t value;

    assert_non_null(data);
    for (int64_t i = 0; i < b->n; i++)
        data[i] = number;
    assert_int_equal(graph_input(&b->graph, GRAPH_INPUT, NULL, &type, &value, NULL), FRIT_OK);
    b->values[value] = (struct run_value){.external = true, .value.type = type};
    assert_int_equal(transfer_in(b->device, data, false, &b->values[value].value, NULL), FRIT_OK);
    free(data);
    return value;
}

static uint32_t append(struct bench *b, uint32_t op, uint32_t n_in, const struct graph_operand *in,
                       const void *attrs)
{
    struct graph_call call = {.op = op, .n_in = n_in, .in = in, .attrs = attrs};
    uint32_t out[FRIT_OP_MAX_OUT];
    frit_err err = ERR_INIT;

    assert_int_equal(graph_append(&b->graph, &call, out, &err), FRIT_OK);
    assert_true(b->graph.n_values <= BENCH_VALUES);
    return out[0];
}

uint32_t bench_1(struct bench *b, uint32_t op, uint32_t x)
{
    return append(b, op, 1, &(struct graph_operand){.kind = FRIT_OPERAND_TENSOR, .value = x}, NULL);
}

uint32_t bench_2(struct bench *b, uint32_t op, uint32_t x, uint32_t y)
{
    struct graph_operand in[2] = {{.kind = FRIT_OPERAND_TENSOR, .value = x},
                                  {.kind = FRIT_OPERAND_TENSOR, .value = y}};

    return append(b, op, 2, in, NULL);
}

uint32_t bench_n(struct bench *b, uint32_t op, uint32_t x, double number)
{
    struct graph_operand in[2] = {
        {.kind = FRIT_OPERAND_TENSOR, .value = x},
        {.kind = FRIT_OPERAND_SCALAR, .scalar = {.kind = FRIT_SCALAR_F64}}};

    memcpy(&in[1].scalar.bits, &number, sizeof(number));
    return append(b, op, 2, in, NULL);
}

uint32_t bench_flip(struct bench *b, uint32_t x)
{
    frit_attrs_axes attrs = {.struct_size = sizeof(attrs), .axes = {1, {0}}};

    return append(b, FRIT_OP_flip, 1,
                  &(struct graph_operand){.kind = FRIT_OPERAND_TENSOR, .value = x}, &attrs);
}

void bench_want(struct bench *b, uint32_t value)
{
    b->values[value].wanted = true;
}

static void relative_of(struct bench *b, struct relative *relative)
{
    uint32_t last[BENCH_VALUES] = {0}, dead[BENCH_VALUES];

    for (uint32_t i = 0; i < b->graph.n_ops; i++) {
        const struct graph_op *op = &b->graph.ops[i];

        last[op->out[0]] = i;
        for (uint32_t k = 0; k < op->n_in; k++) {
            if (op->in[k].kind == FRIT_OPERAND_TENSOR)
                last[op->in[k].value] = i;
        }
    }
    for (uint32_t i = 0; i < b->graph.n_ops; i++) {
        uint32_t n = 0;

        for (uint32_t v = 0; v < b->graph.n_values; v++) {
            if (!b->values[v].external && !b->values[v].wanted && last[v] == i)
                dead[n++] = v;
        }
        assert_int_equal(relative_append(relative, &b->graph, i, dead, n, NULL), FRIT_OK);
    }
}

static bool is_in(const struct bench_block *block, uint32_t op)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        if (block->ops[i] == op)
            return true;
    }
    return false;
}

struct program *bench_program(struct driver *driver, const struct driver_op *ops, uint32_t n_ops,
                              const int *out, bool foreign)
{
    frit_program program = driver_block(driver, ops, n_ops, out, foreign);
    struct program *shared = program_create(&program, 0);

    assert_non_null(shared);
    return shared;
}

struct driver_program *bench_script(const struct program *program)
{
    return program->program.self;
}

void bench_plan(struct bench *b, const struct bench_block *blocks, uint32_t n_blocks)
{
    struct relative relative = {0};
    struct plan_block all[BENCH_VALUES] = {0};
    uint32_t singles[BENCH_VALUES], n = 0;
    frit_err err = ERR_INIT;

    relative_of(b, &relative);
    for (uint32_t op = 0; op < b->graph.n_ops; op++) {
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
    if (plan_create(&relative, b->graph.n_ops, all, n, &b->plan, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n_blocks; i++)
        program_unref(blocks[i].program);
    relative_fini(&relative);
}

void bench_run(struct bench *b)
{
    if (!b->plan)
        bench_plan(b, NULL, 0);
    b->run = (struct run){.device = b->device,
                          .scratch = b->scratch,
                          .plan = b->plan,
                          .graph = &b->graph,
                          .values = b->values,
                          .ops = b->ops,
                          .notes = b->notes,
                          .stream = 3};
    run_plan(&b->run);
}

static void read_value(struct bench *b, uint32_t value, float *out)
{
    const struct value *v = &b->values[value].value;
    struct transfer_read read;
    frit_err err = ERR_INIT;
    frit_status st;

    if (!v->buffer)
        fail_msg("value %u was not made: %s", value,
                 b->values[value].failure ? b->values[value].failure->text : "nobody wanted it");
    buffer_pin(v->buffer);
    st = transfer_start(b->device, v, out, &read, &err);
    if (transfer_finish(&read, st, &err))
        fail_msg("%s", err.text);
}

uint64_t bench_count(const atomic_uint_least64_t *counter)
{
    return atomic_load(counter);
}

float bench_at(struct bench *b, uint32_t value, int64_t at)
{
    float *data = calloc((size_t)b->n, sizeof(*data)), found;

    assert_non_null(data);
    read_value(b, value, data);
    found = data[at];
    free(data);
    return found;
}

void bench_expect(struct bench *b, uint32_t value, float number)
{
    float *data = calloc((size_t)b->n, sizeof(*data));

    assert_non_null(data);
    read_value(b, value, data);
    for (int64_t i = 0; i < b->n; i++) {
        if (!(data[i] == number))
            fail_msg("value %u: element %d is %g, not %g", value, (int)i, (double)data[i],
                     (double)number);
    }
    free(data);
}

const char *bench_failure(struct bench *b, uint32_t value)
{
    assert_null(b->values[value].value.buffer);
    assert_non_null(b->values[value].failure);
    return b->values[value].failure->text;
}
