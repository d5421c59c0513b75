/* SPDX-License-Identifier: Apache-2.0 */
/* What a group leaves to the next one to store arrives, where and when it has to, whatever the
 * order of groups. */
#include <math.h>
#include <string.h>

#include "kernels/emit/llvm/rig.h"
#include "unit.h"

enum { LANES = 64, GROUPS = 5, MOST = BLOB_HELD / 4 + 4 * LANES, STEPS = 12 };

struct shape {
    uint32_t columns; /* of a line */
    uint32_t to;      /* out's first element */
    bool reads;       /* out is loaded as well */
    bool twice;       /* out is stored again, one more than before */
    bool within;      /* the busy loop stands in a branch */
    bool ragged;      /* each line is shorter by LANES than the one before */
};

static uint32_t length_of(const struct shape *shape, uint32_t line)
{
    uint32_t less = shape->ragged ? line * LANES : 0;

    return shape->columns > less ? shape->columns - less : 0;
}

static uint32_t op2(struct kir_module *m, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(m, op, a, b, KIR_NONE);
}

static uint32_t load(struct kir_module *m, uint32_t arg, uint32_t at)
{
    return kir_emit_as(m, KIR_load, KIR_F32, arg, at, KIR_NONE, KIR_NONE);
}

/* Each lane's sum over its line of roots of roots. */
static uint32_t emit_sum(struct kir_module *m, uint32_t begin, uint32_t end)
{
    uint32_t none = kir_const_f(m, KIR_F32, 0);
    uint32_t at = kir_for(m, kir_const_i(m, KIR_I32, 0), end, LANES);
    uint32_t sum = kir_phi(m, none), value, next;

    value = load(m, 0, op2(m, KIR_add, begin, at));
    for (int i = 0; i < STEPS; i++)
        value = kir_emit(m, KIR_sqrt, value, KIR_NONE, KIR_NONE);
    next = op2(m, KIR_add, sum, value);
    kir_next(m, &next, 1);
    return sum;
}

/* out[line][i] = in[line][i] + the sum of lane i % LANES. */
static void make(struct kir_module *m, const struct shape *shape)
{
    uint32_t lane, line, begin, columns, end, sum, at, value;

    kir_init(m, "lines");
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, shape->reads ? KIR_READ | KIR_WRITE : KIR_WRITE);
    kir_phase(m, LANES);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    line = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    columns = kir_const_i(m, KIR_I32, shape->columns);
    begin = op2(m, KIR_add, op2(m, KIR_mul, line, columns), lane);
    end = columns;
    if (shape->ragged)
        end = op2(m, KIR_sub, end, op2(m, KIR_mul, line, kir_const_i(m, KIR_I32, LANES)));
    if (shape->within)
        kir_if(m, op2(m, KIR_lt, line, kir_const_i(m, KIR_I32, GROUPS)));
    sum = emit_sum(m, begin, end);
    if (shape->within) {
        kir_end(m);
        sum = kir_const_f(m, KIR_F32, 0);
    }
    at = kir_for(m, kir_const_i(m, KIR_I32, 0), end, LANES);
    at = op2(m, KIR_add, begin, at);
    value = op2(m, KIR_add, load(m, 0, at), sum);
    at = op2(m, KIR_add, at, kir_const_i(m, KIR_I32, shape->to));
    if (shape->reads)
        value = op2(m, KIR_add, value, load(m, 1, at));
    kir_emit_imm(m, KIR_store, 1, at, value, KIR_NONE);
    if (shape->twice)
        kir_emit_imm(m, KIR_store, 1, at, op2(m, KIR_add, value, kir_const_f(m, KIR_F32, 1)),
                     KIR_NONE);
    kir_next(m, NULL, 0);
}

static struct object *compile(const struct rig *rig, const struct shape *shape)
{
    struct kir_module m;
    struct object *object;

    make(&m, shape);
    object = rig_compile(rig, &m, &rig->best, LLVM_GOOD);
    kir_fini(&m);
    return object;
}

struct memory {
    float *in, *out, *expected;
};

static struct memory make_memory(void)
{
    size_t bytes = (GROUPS + 1) * MOST * sizeof(float);
    struct memory memory = {aligned_alloc(64, bytes), aligned_alloc(64, bytes),
                            aligned_alloc(64, bytes)};

    assert_true(memory.in && memory.out && memory.expected);
    for (uint32_t i = 0; i < (GROUPS + 1) * MOST; i++)
        memory.in[i] = (float)(i % 1009);
    return memory;
}

static void free_memory(struct memory *memory)
{
    free(memory->in);
    free(memory->out);
    free(memory->expected);
}

static void run_groups(const struct object *object, const struct memory *memory,
                       const uint32_t *order, void *scratch)
{
    void *args[2] = {memory->in, memory->out};

    for (uint32_t i = 0; i < GROUPS; i++)
        object->phases[0].run(NULL, args, (const uint32_t[4]){order[i], 0, 0, true}, scratch);
}

static void check_shape(const struct rig *rig, const struct shape *shape, const uint32_t *order)
{
    size_t bytes = (GROUPS + 1) * MOST * sizeof(float);
    struct object *object = compile(rig, shape);
    struct memory memory = make_memory();
    void *scratch = rig_scratch(object, 0);

    memset(memory.expected, 0, bytes);
    memset(memory.out, 0, bytes);
    rig_run(object, 0, (const uint32_t[3]){GROUPS, 1, 1}, NULL,
            (void *[]){memory.in, memory.expected}, false);
    object_begin(&object->phases[0], scratch);
    run_groups(object, &memory, order, scratch);
    object_finish(&object->phases[0], scratch);
    assert_memory_equal(memory.out, memory.expected, bytes);
    free(scratch);
    free_memory(&memory);
    object_unload(object);
}

static void all_that_is_held_arrives(void **state)
{
    static const uint32_t orders[][GROUPS] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}};
    static const uint32_t columns[] = {LANES, 4 * LANES, BLOB_HELD / 4, MOST};
    const struct rig *rig = rig_of(state);

    for (uint32_t i = 0; i < 3 * 4 * 32; i++)
        check_shape(rig,
                    &(struct shape){.columns = columns[i / 3 % 4],
                                    .to = i / 12 & 1 ? 3 : 16,
                                    .reads = i / 12 & 2,
                                    .within = i / 12 & 4,
                                    .ragged = i / 12 & 8,
                                    .twice = i / 12 & 16},
                    orders[i % 3]);
}

/* How many elements of the last line are there before the end. */
static uint32_t count_early(const struct rig *rig, const struct shape *shape)
{
    struct object *object = compile(rig, shape);
    struct memory memory = make_memory();
    void *scratch = rig_scratch(object, 0);
    float *line = memory.out + shape->to + (GROUPS - 1) * shape->columns;
    uint32_t early = 0, n = length_of(shape, GROUPS - 1);

    memset(memory.out, 0, (GROUPS + 1) * MOST * sizeof(float));
    object_begin(&object->phases[0], scratch);
    run_groups(object, &memory, (const uint32_t[GROUPS]){0, 1, 2, 3, 4}, scratch);
    for (uint32_t i = 0; i < n; i++)
        early += line[i] != 0;
    object_finish(&object->phases[0], scratch);
    for (uint32_t i = 0; i < n; i++)
        assert_true(line[i] != 0);
    free(scratch);
    free_memory(&memory);
    object_unload(object);
    return early;
}

static void only_what_may_wait_is_held(void **state)
{
    const struct rig *rig = rig_of(state);

    assert_int_equal(count_early(rig, &(struct shape){.columns = 256, .to = 16}), 0);
    assert_int_equal(count_early(rig, &(struct shape){.columns = MOST, .to = 16}),
                     MOST - BLOB_HELD / 4);
    assert_int_equal(count_early(rig, &(struct shape){.columns = 256, .to = 3}), 256);
    assert_int_equal(count_early(rig, &(struct shape){.columns = 256, .to = 16, .reads = true}),
                     256);
    assert_int_equal(count_early(rig, &(struct shape){.columns = 256, .to = 16, .within = true}),
                     256);
    assert_int_equal(count_early(rig, &(struct shape){.columns = 512, .to = 16, .ragged = true}),
                     256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_held_arrives),
        cmocka_unit_test(only_what_may_wait_is_held),
    };

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
