/* SPDX-License-Identifier: Apache-2.0 */
#include "host/plan/rig.h"

#include "base/str.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "plan/plan.h"
#include "plan/program.h"
#include "plan/relative.h"
#include "unit.h"

#include <string.h>

#include <frit/op_table.h>

atomic_int rig_live_programs;

enum { PATIENCE_MS = 20000 };

/* ---- plans ---- */

void rig_relative(uint32_t n_ops, uint32_t rows, struct relative *out)
{
    struct op_type type = {.dtype = FRIT_F32, .rank = 2, .dims = {3, 4}};
    struct graph graph = {0};
    uint32_t value;

    *out = (struct relative){0};
    assert_int_equal(graph_input(&graph, GRAPH_INPUT, NULL, &type, &value, NULL), FRIT_OK);
    for (uint32_t i = 0; i < n_ops; i++) {
        struct graph_operand in = {.kind = FRIT_OPERAND_TENSOR, .value = value};
        struct graph_call call = {
            .op = rows >> i % 32 & 1 ? FRIT_OP_exp : FRIT_OP_neg, .n_in = 1, .in = &in};
        uint32_t made[FRIT_OP_MAX_OUT];

        assert_int_equal(graph_append(&graph, &call, made, NULL), FRIT_OK);
        assert_int_equal(relative_append(out, &graph, i, &value, i > 0, NULL), FRIT_OK);
        value = made[0];
    }
    graph_fini(&graph);
}

struct plan *rig_plan(uint32_t n_ops, uint32_t rows, struct program *program)
{
    uint32_t *ops = calloc(n_ops, sizeof(*ops));
    struct plan_block block = {
        .program = program, .n_ops = n_ops, .ops = ops, .score = 7 * n_ops, .end = PLAN_END_CLOSED};
    struct relative relative;
    struct plan *plan;

    assert_non_null(ops);
    for (uint32_t i = 0; i < n_ops; i++)
        ops[i] = i;
    rig_relative(n_ops, rows, &relative);
    assert_int_equal(plan_create(&relative, n_ops, &block, 1, &plan, NULL), FRIT_OK);
    relative_fini(&relative);
    free(ops);
    return plan;
}

/* Form 1 without interned attributes, as key.h has it. */
struct op_key rig_key(uint64_t number)
{
    return (struct op_key){{UINT64_C(1) << 62 | 5, number, ~number, number * 77}};
}

static void count_freed(void *freed)
{
    atomic_fetch_add((atomic_uint *)freed, 1);
}

void rig_watch(struct plan *plan, atomic_uint *freed)
{
    static const frit_program_table table = {.struct_size = sizeof(table), .destroy = count_freed};
    const frit_program program = {
        .struct_size = sizeof(program), .table = &table, .self = (void *)freed};

    assert_null(plan->steps[0].program);
    plan->steps[0].program = program_create(&program, 0);
    assert_non_null(plan->steps[0].program);
}

/* ---- programs ---- */

struct fake {
    uint32_t n_bytes;
    uint8_t fill;
};

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    (void)self;
    (void)err;
    out->name = str_of("fake");
    return FRIT_OK;
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    (void)self;
    (void)candidate;
    (void)sig;
    (void)out;
    (void)variant;
    (void)err;
    return FRIT_UNSUPPORTED;
}

static void destroy(void *self)
{
    free(self);
    atomic_fetch_sub(&rig_live_programs, 1);
}

static frit_status to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    const struct fake *fake = self;
    uint64_t n = *n_bytes < fake->n_bytes ? *n_bytes : fake->n_bytes;

    (void)err;
    if (n)
        memset(bytes, fake->fill, n);
    *n_bytes = fake->n_bytes;
    return FRIT_OK;
}

static const frit_program_table saved_table = {.struct_size = sizeof(saved_table),
                                               .describe = describe,
                                               .prepare = prepare,
                                               .destroy = destroy,
                                               .to_state = to_state};

static const frit_program_table unsaved_table = {.struct_size =
                                                     FRIT_END_OF(frit_program_table, destroy),
                                                 .describe = describe,
                                                 .prepare = prepare,
                                                 .destroy = destroy};

static frit_status make_program(uint32_t n_bytes, uint8_t fill, bool saved, frit_program *out)
{
    struct fake *fake = malloc(sizeof(*fake));

    if (!fake)
        return FRIT_NO_HOST_MEMORY;
    *fake = (struct fake){n_bytes, fill};
    atomic_fetch_add(&rig_live_programs, 1);
    out->table = saved ? &saved_table : &unsaved_table;
    out->self = fake;
    return FRIT_OK;
}

struct program *rig_program(uint32_t n_bytes, uint8_t fill, bool saved)
{
    frit_program program = {.struct_size = sizeof(program)};
    struct program *shared;

    assert_int_equal(make_program(n_bytes, fill, saved, &program), FRIT_OK);
    shared = program_create(&program, 0);
    assert_non_null(shared);
    return shared;
}

/* The bytes are all equal, or not ours. */
static frit_status from_state(void *instance, const frit_fuser_device *device, frit_str name,
                              const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                              const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err)
{
    const uint8_t *state = bytes;

    (void)instance;
    (void)device;
    (void)err;
    assert_true(n_ops > 0);
    assert_true(op_stride >= sizeof(*ops));
    assert_true(ops->struct_size >= FRIT_END_OF(frit_op_desc, dead));
    if (!str_is(name, "fake"))
        return FRIT_INCOMPATIBLE;
    for (uint64_t i = 1; i < n_bytes; i++) {
        if (state[i] != state[0])
            return FRIT_INCOMPATIBLE;
    }
    return make_program((uint32_t)n_bytes, n_bytes ? state[0] : 0, true, out);
}

const frit_fuser_table rig_fuser_table = {.struct_size = sizeof(rig_fuser_table),
                                          .from_state = from_state};

struct store_context rig_context(struct store_fuser *fuser, const char *path)
{
    static const frit_fuser_device own = {.struct_size = sizeof(own), .same_plugin = 1};

    *fuser = (struct store_fuser){
        .plugin = "test", .name = "fake", .version = 3, .table = &rig_fuser_table, .device = &own};
    return (struct store_context){.path = path,
                                  .space = "host 1, driver test",
                                  .fusers = fuser,
                                  .n_fusers = 1,
                                  .wait_ms = PATIENCE_MS};
}
