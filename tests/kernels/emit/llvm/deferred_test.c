/* SPDX-License-Identifier: Apache-2.0 */
/* What a group leaves to the next one to store arrives, where and when it has to, whatever the
 * order of groups. */
#include <math.h>
#include <string.h>

#include "kernels/emit/llvm/rig.h"
#include "unit.h"

enum { GROUPS = 5, LANES = 64, MOST = BLOB_HELD / 4 + 4 * LANES, STEPS = 12 };
enum { FLOATS = 2 * (GROUPS + 1) * MOST };

/* Where a round stores: chunk by chunk, every other chunk, from the end on, or the third one
 * elsewhere. */
enum { ALONG, APART, DOWN, ASTRAY, PLACES };

struct shape {
    uint32_t isa;
    uint32_t columns; /* of a line */
    uint32_t to;      /* out's first element */
    uint32_t place;
    bool reads;  /* out is loaded as well */
    bool twice;  /* out is stored again, one more than before */
    bool within; /* the busy loop is in a branch */
    bool ragged; /* each line is shorter by a chunk than the one before */
    bool half;   /* the busy loop goes over half of the line */
    bool sparse; /* both loops leave out every other chunk */
    bool nested; /* the loop that stores has one around it */
    bool branch; /* the store is in a branch */
};

/* What a chunk of vectors has at most. */
static uint32_t lanes_of(const struct shape *shape)
{
    return 16u << shape->isa;
}

static uint32_t length_of(const struct shape *shape, uint32_t line)
{
    uint32_t less = shape->ragged ? line * lanes_of(shape) : 0;

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

static uint32_t number(struct kir_module *m, uint32_t value)
{
    return kir_const_i(m, KIR_I32, value);
}

static uint32_t open_loop(struct kir_module *m, const struct shape *shape, uint32_t end)
{
    return kir_for(m, number(m, 0), end, lanes_of(shape) << shape->sparse);
}

/* Each lane's sum over its line of roots of roots. */
static uint32_t emit_sum(struct kir_module *m, const struct shape *shape, uint32_t begin,
                         uint32_t end)
{
    uint32_t none = kir_const_f(m, KIR_F32, 0), at = open_loop(m, shape, end);
    uint32_t sum = kir_phi(m, none), value, next;

    value = load(m, 0, op2(m, KIR_add, begin, at));
    for (int i = 0; i < STEPS; i++)
        value = kir_emit(m, KIR_sqrt, value, KIR_NONE, KIR_NONE);
    next = op2(m, KIR_add, sum, value);
    kir_next(m, &next, 1);
    return sum;
}

/* Where a round of a line stores, by its counter, less where the line begins. */
static uint32_t emit_place(struct kir_module *m, const struct shape *shape, uint32_t line,
                           uint32_t counter)
{
    uint32_t lanes = lanes_of(shape), last = number(m, shape->columns - lanes), other;

    if (shape->place == APART)
        return op2(m, KIR_add, op2(m, KIR_add, counter, counter),
                   op2(m, KIR_mul, line, number(m, shape->columns)));
    if (shape->place == DOWN)
        return op2(m, KIR_sub, last, counter);
    if (shape->place == ALONG)
        return counter;
    other = op2(m, KIR_sub, number(m, GROUPS), line);
    other = op2(m, KIR_mul, other, number(m, shape->columns));
    other = op2(m, KIR_add, other, op2(m, KIR_mul, line, number(m, lanes)));
    return kir_emit(m, KIR_select, other, counter, op2(m, KIR_eq, counter, number(m, 2 * lanes)));
}

/* A round's stores, all of them as the shape says. */
static void emit_stores(struct kir_module *m, const struct shape *shape, uint32_t at,
                        uint32_t value)
{
    if (shape->reads)
        value = op2(m, KIR_add, value, load(m, 1, at));
    kir_emit_imm(m, KIR_store, 1, at, value, KIR_NONE);
    if (shape->twice)
        kir_emit_imm(m, KIR_store, 1, at, op2(m, KIR_add, value, kir_const_f(m, KIR_F32, 1)),
                     KIR_NONE);
}

/* out[line][i] = in[line][i] + the sum of the lane. */
static void emit_lines(struct kir_module *m, const struct shape *shape, uint32_t line,
                       uint32_t begin, uint32_t end, uint32_t sum)
{
    uint32_t again = shape->nested ? kir_for(m, number(m, 0), number(m, 2), 1) : KIR_NONE;
    uint32_t counter = open_loop(m, shape, end), at, value;

    value = op2(m, KIR_add, load(m, 0, op2(m, KIR_add, begin, counter)), sum);
    at = op2(m, KIR_add, begin, emit_place(m, shape, line, counter));
    at = op2(m, KIR_add, at, number(m, shape->to));
    if (shape->nested)
        at = op2(m, KIR_add, at, op2(m, KIR_mul, again, number(m, GROUPS * shape->columns)));
    if (shape->branch)
        kir_if(m, op2(m, KIR_lt, counter, number(m, shape->columns / 2)));
    emit_stores(m, shape, at, value);
    if (shape->branch)
        kir_end(m);
    kir_next(m, NULL, 0);
    if (shape->nested)
        kir_next(m, NULL, 0);
}

static void make(struct kir_module *m, const struct shape *shape)
{
    uint32_t lane, line, begin, end, sum;

    kir_init(m, "lines");
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, shape->reads ? KIR_READ | KIR_WRITE : KIR_WRITE);
    kir_phase(m, lanes_of(shape));
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    line = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    end = number(m, shape->columns);
    begin = op2(m, KIR_add, op2(m, KIR_mul, line, end), lane);
    if (shape->ragged)
        end = op2(m, KIR_sub, end, op2(m, KIR_mul, line, number(m, lanes_of(shape))));
    if (shape->within)
        kir_if(m, op2(m, KIR_lt, line, number(m, GROUPS)));
    sum = emit_sum(m, shape, begin, shape->half ? number(m, shape->columns / 2) : end);
    if (shape->within) {
        kir_end(m);
        sum = kir_const_f(m, KIR_F32, 0);
    }
    emit_lines(m, shape, line, begin, end, sum);
}

static struct object *compile(const struct rig *rig, const struct shape *shape)
{
    const struct llvm_cpu cpu = {(enum llvm_isa)shape->isa, false, false};
    struct kir_module m;
    struct object *object;

    make(&m, shape);
    object = rig_compile(rig, &m, &cpu, LLVM_GOOD);
    kir_fini(&m);
    return object;
}

struct memory {
    float *in, *out, *expected;
};

static struct memory make_memory(void)
{
    size_t bytes = FLOATS * sizeof(float);
    struct memory memory = {aligned_alloc(64, bytes), aligned_alloc(64, bytes),
                            aligned_alloc(64, bytes)};

    assert_true(memory.in && memory.out && memory.expected);
    for (uint32_t i = 0; i < FLOATS; i++)
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

static void check_order(const struct object *object, const struct memory *memory,
                        const uint32_t *order)
{
    size_t bytes = FLOATS * sizeof(float);
    void *scratch = rig_scratch(object, 0);

    memset(memory->out, 0, bytes);
    object_begin(&object->phases[0], scratch);
    run_groups(object, memory, order, scratch);
    object_finish(&object->phases[0], scratch);
    assert_memory_equal(memory->out, memory->expected, bytes);
    free(scratch);
}

/* In all orders. */
static void check_shape(const struct rig *rig, const struct shape *shape)
{
    static const uint32_t orders[][GROUPS] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}};
    struct object *object = compile(rig, shape);
    struct memory memory = make_memory();

    memset(memory.expected, 0, FLOATS * sizeof(float));
    rig_run(object, 0, (const uint32_t[3]){GROUPS, 1, 1}, NULL,
            (void *[]){memory.in, memory.expected}, false);
    for (uint32_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        check_order(object, &memory, orders[i]);
    free_memory(&memory);
    object_unload(object);
}

/* Lines within the room for what is held and beyond it. */
static void check_lines(const struct rig *rig, struct shape shape)
{
    static const uint32_t columns[] = {LANES, 4 * LANES, BLOB_HELD / 4, MOST};

    for (shape.isa = 0; shape.isa <= (uint32_t)rig->best.isa; shape.isa++)
        for (uint32_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
            shape.columns = columns[i];
            check_shape(rig, &shape);
        }
}

static void all_that_is_held_arrives(void **state)
{
    const struct rig *rig = rig_of(state);

    for (uint32_t i = 0; i < 32; i++)
        check_lines(rig, (struct shape){.to = i & 1 ? 3 : 16,
                                        .reads = i & 2,
                                        .within = i & 4,
                                        .ragged = i & 8,
                                        .twice = i & 16});
    for (uint32_t place = 0; place < PLACES; place++)
        check_lines(rig, (struct shape){.to = 16, .place = place});
    check_lines(rig, (struct shape){.to = 16, .half = true});
    check_lines(rig, (struct shape){.to = 16, .sparse = true});
    check_lines(rig, (struct shape){.to = 16, .nested = true});
    check_lines(rig, (struct shape){.to = 16, .branch = true});
}

/* How many elements of the last line are there before the end. */
static uint32_t count_early(const struct rig *rig, const struct shape *shape)
{
    struct object *object = compile(rig, shape);
    struct memory memory = make_memory();
    void *scratch = rig_scratch(object, 0);
    float *line = memory.out + shape->to + (GROUPS - 1) * shape->columns;
    uint32_t early = 0, n = length_of(shape, GROUPS - 1);

    memset(memory.out, 0, FLOATS * sizeof(float));
    object_begin(&object->phases[0], scratch);
    run_groups(object, &memory, (const uint32_t[GROUPS]){0, 1, 2, 3, 4}, scratch);
    for (uint32_t i = 0; i < n; i++)
        early += line[i] != 0;
    object_finish(&object->phases[0], scratch);
    for (uint32_t i = 0; i < n; i++)
        assert_true(line[i] != 0 || shape->sparse || shape->branch);
    free(scratch);
    free_memory(&memory);
    object_unload(object);
    return early;
}

static void check_early(const struct rig *rig, uint32_t isa)
{
    const uint32_t lanes = 16u << isa;
    const struct {
        struct shape shape;
        uint32_t early;
    } cases[] = {
        {{.columns = 256, .to = 16}, 0},
        {{.columns = MOST, .to = 16}, MOST - BLOB_HELD / 4},
        {{.columns = 256, .to = 3}, 256},
        {{.columns = 256, .to = 16, .reads = true}, 256},
        {{.columns = 256, .to = 16, .twice = true}, 256},
        {{.columns = 256, .to = 16, .within = true}, 256},
        {{.columns = 256, .to = 16, .half = true}, 256},
        {{.columns = 256, .to = 16, .sparse = true}, 128},
        {{.columns = 256, .to = 16, .branch = true}, 128},
        {{.columns = 256, .to = 16, .nested = true}, 256},
        {{.columns = 8 * lanes, .to = 16, .ragged = true}, 4 * lanes},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shape shape = cases[i].shape;

        shape.isa = isa;
        assert_int_equal(count_early(rig, &shape), cases[i].early);
    }
}

static void only_what_may_wait_is_held(void **state)
{
    const struct rig *rig = rig_of(state);

    for (uint32_t isa = 0; isa <= (uint32_t)rig->best.isa; isa++)
        check_early(rig, isa);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_held_arrives),
        cmocka_unit_test(only_what_may_wait_is_held),
    };

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
