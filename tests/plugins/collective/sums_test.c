/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations compute: every kind in every element type, compared bit for bit with a plain
 * loop over the ranks in their order. */
#include "plugins/collective/world.h"

#include <stdio.h>
#include <string.h>

#include "reference/value.h"

enum { GUARD = 16 };

static const uint32_t dtypes[] = {FRIT_F64, FRIT_F32, FRIT_F16, FRIT_BF16, FRIT_I64, FRIT_I32,
                                  FRIT_I16, FRIT_I8,  FRIT_U64, FRIT_U32,  FRIT_U16, FRIT_U8};

/* ---- the plain loop ---- */

static uint64_t scramble(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 29;
}

/* Element `i` of the rank's operand: sums of such reals round differently in another order, and
 * such integers overflow. */
static void put_operand(char *into, uint32_t dtype, uint32_t rank, uint64_t i)
{
    const uint64_t bits = scramble((rank + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u);
    union value value = {.uint = bits};

    if (value_kind(dtype) == VALUE_REAL)
        value.real = (double)((int64_t)(bits % 2000001) - 1000000) / 64 / (double)(1 + bits % 977);
    value_put(dtype, into, value);
}

/* The ranks' elements `i` combined. */
static void put_expected(char *into, uint32_t dtype, bool mean, uint32_t size, uint64_t i)
{
    union value sum = {0};
    float narrow = 0;

    for (uint32_t r = 0; r < size; r++) {
        union value value;
        char element[8];

        put_operand(element, dtype, r, i);
        value = value_get(dtype, element);
        if (value_kind(dtype) != VALUE_REAL) {
            sum.uint += value.uint;
        } else {
            sum.real = r ? sum.real + value.real : value.real;
            narrow = r ? narrow + (float)value.real : (float)value.real;
        }
    }
    if (value_kind(dtype) == VALUE_REAL && dtype != FRIT_F64)
        sum.real = (double)(mean ? narrow / (float)size : narrow);
    else if (mean && value_kind(dtype) == VALUE_REAL)
        sum.real /= size;
    else if (mean && value_kind(dtype) == VALUE_SINT)
        sum.sint /= size;
    else if (mean)
        sum.uint /= size;
    value_put(dtype, into, sum);
}

/* ---- one operation on a rank ---- */

struct task {
    uint32_t dtype;
    uint64_t count;
    char *expected[2]; /* sum and mean of count * size elements */
};

static uint64_t elements_of(uint32_t size, uint64_t count)
{
    return count * size;
}

static size_t bytes_of(const struct task *task, uint64_t elements)
{
    return (size_t)elements * (size_t)value_size(task->dtype);
}

static char *make_operand(const struct task *task, uint32_t rank, uint64_t elements)
{
    char *operand = malloc(bytes_of(task, elements) + GUARD);

    for (uint64_t i = 0; operand && i < elements; i++)
        put_operand(operand + bytes_of(task, i), task->dtype, rank, i);
    return operand;
}

/* Runs it into memory of `elements` elements and compares. */
static void expect(struct rank *rank, uint32_t kind, uint32_t combine, const char *from,
                   const char *expected, uint64_t elements)
{
    const struct task *task = rank->arg;
    const size_t bytes = bytes_of(task, elements);
    char *into = malloc(bytes + GUARD);
    uint64_t value;

    CHECK(rank, into);
    if (!into)
        return;
    memset(into, 0x5a, bytes + GUARD);
    value = rank_begin(rank, kind, combine, task->dtype, from, into, task->count);
    CHECK(rank, value && rank_wait(rank, value) == FRIT_OK);
    CHECK(rank, memcmp(into, expected, bytes) == 0);
    for (int i = 0; i < GUARD; i++)
        CHECK(rank, into[bytes + (size_t)i] == 0x5a);
    free(into);
}

static void expect_in_place(struct rank *rank, uint32_t combine, char *operand,
                            const char *expected)
{
    const struct task *task = rank->arg;
    const uint64_t value = rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, combine, task->dtype,
                                      operand, operand, task->count);

    CHECK(rank, value && rank_wait(rank, value) == FRIT_OK);
    CHECK(rank, memcmp(operand, expected, bytes_of(task, task->count)) == 0);
}

static void expect_copies(struct rank *rank, const char *operand)
{
    const struct task *task = rank->arg;
    const uint64_t count = task->count;
    const uint32_t root = rank->size / 2;
    char *all = malloc(bytes_of(task, elements_of(rank->size, count)) + GUARD);

    CHECK(rank, all);
    if (!all)
        return;
    for (uint64_t i = 0; i < elements_of(rank->size, count); i++)
        put_operand(all + bytes_of(task, i), task->dtype, (uint32_t)(i / count), i % count);
    expect(rank, FRIT_COLLECTIVE_ALL_GATHER, 0, operand, all, elements_of(rank->size, count));
    expect(rank, FRIT_COLLECTIVE_BROADCAST, 0, rank->number == root ? operand : NULL,
           all + bytes_of(task, root * count), count);
    free(all);
}

static void each_kind(struct rank *rank)
{
    const struct task *task = rank->arg;
    const uint64_t count = task->count;

    for (uint32_t combine = 0; combine < 2; combine++) {
        const char *expected = task->expected[combine];
        char *operand = make_operand(task, rank->number, elements_of(rank->size, count));

        CHECK(rank, operand);
        if (!operand)
            return;
        expect(rank, FRIT_COLLECTIVE_ALL_REDUCE, combine, operand, expected, count);
        expect(rank, FRIT_COLLECTIVE_REDUCE_SCATTER, combine, operand,
               expected + bytes_of(task, rank->number * count), count);
        if (combine == 0)
            expect_copies(rank, operand);
        expect_in_place(rank, combine, operand, expected);
        free(operand);
    }
}

static void run_task(struct world *world, uint32_t dtype, uint32_t size, uint64_t count)
{
    struct task task = {.dtype = dtype, .count = count};
    const uint64_t elements = elements_of(size, count);

    for (int mean = 0; mean < 2; mean++) {
        task.expected[mean] = malloc(bytes_of(&task, elements) + 1);
        assert_non_null(task.expected[mean]);
        for (uint64_t i = 0; i < elements; i++)
            put_expected(task.expected[mean] + bytes_of(&task, i), dtype, mean, size, i);
    }
    run_ranks(world, size, each_kind, &task);
    free(task.expected[0]);
    free(task.expected[1]);
}

static void test_each_kind_type_and_size(void **state)
{
    static const uint64_t counts[] = {0, 1, 5, 2049};
    static const uint32_t sizes[] = {1, 2, 3, 7};
    struct world world;

    (void)state;
    world_open(&world);
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(*dtypes); d++) {
        if (value_size(dtypes[d]) == 2 && value_kind(dtypes[d]) != VALUE_REAL &&
            !world_engine.combines_16_bit_integers)
            continue;
        for (size_t s = world_engine.scale > 1; s < (world_engine.scale > 1 ? 3 : 4); s++) {
            for (size_t c = 0; c < 4; c++)
                run_task(&world, dtypes[d], sizes[s], counts[c]);
        }
    }
    world_close(&world);
}

/* Several portions, which the ranks share as it comes. */
static void test_many_portions(void **state)
{
    struct world world;

    (void)state;
    world_open(&world);
    run_task(&world, FRIT_F32, 2, 200003);
    if (world_engine.scale == 1) {
        run_task(&world, FRIT_F32, 3, 100003);
        run_task(&world, FRIT_BF16, 2, 300001);
        run_task(&world, FRIT_U8, 3, 300001);
    }
    world_close(&world);
}

/* ---- the order of ranks ---- */

/* In f32 (1e8 + 1) - 1e8 is 0, and (1e8 - 1e8) + 1 is 1. */
static void order_matters(struct rank *rank)
{
    const float terms[3] = {1e8f, 1, -1e8f};
    float x;

    for (int i = 0; i < 50; i++) {
        x = terms[rank->number];
        CHECK(rank,
              rank_wait(rank, rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum,
                                         FRIT_F32, &x, &x, 1)) == FRIT_OK);
        CHECK(rank, x == 0);
    }
}

static void test_the_order_of_ranks(void **state)
{
    (void)state;
    run_alone(3, order_matters, NULL);
}

/* The sum of four f16 values of 60000 is no f16. */
static void no_overflow(struct rank *rank)
{
    uint16_t x = 0x7b53;

    CHECK(rank,
          rank_wait(rank, rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean,
                                     FRIT_F16, &x, &x, 1)) == FRIT_OK);
    CHECK(rank, x == 0x7b53);
}

static void test_means_of_f16_do_not_overflow(void **state)
{
    (void)state;
    run_alone(4, no_overflow, NULL);
}

/* ---- buckets ---- */

enum { TOTAL = 10007, TOTAL_BYTES = 4 * TOTAL };

/* The same elements in one operation with many buffers of different sizes, and not aligned. */
static void in_buffers(struct rank *rank, const char *in, const char *expected, uint64_t step)
{
    static const uint32_t odd = 1;
    const uint64_t n = (TOTAL + step - 1) / step;
    frit_collective_buffer *buffers = calloc((size_t)n + 1, sizeof(*buffers));
    char *into = malloc(TOTAL_BYTES + odd);
    frit_collective_op op = {.struct_size = sizeof(op),
                             .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                             .n_buffers = (uint32_t)n + 1,
                             .buffer_stride = sizeof(*buffers),
                             .buffers = buffers};
    uint64_t value = 0;

    CHECK(rank, buffers && into);
    if (!rank->fault) {
        buffers[n].dtype = FRIT_I8; /* an empty one at the end */
        for (uint64_t b = 0; b < n; b++) {
            const uint64_t at = b * step, rest = TOTAL - at;

            buffers[b] = (frit_collective_buffer){in + 4 * at, into + odd + 4 * at,
                                                  rest < step ? rest : step, FRIT_F32, 0};
        }
        CHECK(rank, rank->world->table->begin(rank->group, &op, &value, &rank->err) == FRIT_OK);
        memset(buffers, 0, n * sizeof(*buffers)); /* the list was borrowed for the call */
        CHECK(rank, rank_wait(rank, value) == FRIT_OK);
        CHECK(rank, memcmp(into + odd, expected, TOTAL_BYTES) == 0);
    }
    free(buffers);
    free(into);
}

static void each_division(struct rank *rank)
{
    static const uint64_t steps[] = {1, 7, 1000, TOTAL};
    struct task task = {.dtype = FRIT_F32};
    char *in = make_operand(&task, rank->number, TOTAL);
    char *expected = malloc(TOTAL_BYTES);

    CHECK(rank, in && expected);
    for (uint64_t i = 0; i < TOTAL && !rank->fault; i++)
        put_expected(expected + 4 * i, FRIT_F32, false, rank->size, i);
    for (size_t s = world_engine.scale > 1; s < 4 && !rank->fault; s++)
        in_buffers(rank, in, expected, steps[s]);
    free(in);
    free(expected);
}

static void test_any_division_gives_the_same_bits(void **state)
{
    (void)state;
    run_alone(3, each_division, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_type_and_size),
        cmocka_unit_test(test_many_portions),
        cmocka_unit_test(test_the_order_of_ranks),
        cmocka_unit_test(test_means_of_f16_do_not_overflow),
        cmocka_unit_test(test_any_division_gives_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
