/* SPDX-License-Identifier: Apache-2.0 */
/* Segments never overlap, neighbours merge, and the same requests find the same places. */
#include "unit.h"

#include "memory/pool.h"

enum { BLOCK = 1 << 20, UNIT = 64 };

static struct pool_block *insert(struct pool *pool, enum block_kind kind, uint64_t bytes)
{
    struct pool_block *block = pool_block_create(kind, (void *)1, bytes);

    assert_non_null(block);
    pool_insert(pool, block);
    return block;
}

static void drain(struct pool *pool)
{
    while (pool->blocks) {
        struct pool_block *block = pool->blocks;

        pool_remove(pool, block);
        pool_block_destroy(block);
    }
    assert_int_equal(pool->idle_bytes, 0);
}

/* The segments of a block tile it, and no two free ones are neighbours. */
static void check_block(const struct pool_block *block)
{
    uint64_t at = 0;
    uint32_t used = 0;

    for (const struct pool_piece *s = block->first; s; s = s->after) {
        assert_int_equal(s->offset, at);
        assert_true(s->bytes > 0);
        assert_true(!s->after || s->after->before == s);
        assert_true(s->used || !s->after || s->after->used);
        used += s->used;
        at += s->bytes;
    }
    assert_int_equal(at, block->bytes);
    assert_int_equal(used, block->n_used);
}

static void test_random_requests_tile(void **state)
{
    struct pool_piece *held[64] = {0};
    struct pool pool = {0};
    struct pool_block *block = insert(&pool, BLOCK_POOL, BLOCK);
    uint32_t seed = 1;

    (void)state;
    for (int step = 0; step < 20000; step++) {
        uint32_t i;

        seed = seed * 1664525u + 1013904223u;
        i = seed >> 8 & 63;
        if (held[i]) {
            pool_return(&pool, held[i]);
            held[i] = NULL;
        } else {
            uint64_t bytes = ((seed >> 14) % 500 + 1) * UNIT;

            held[i] = pool_take(&pool, BLOCK_POOL, bytes);
            assert_true(!held[i] || held[i]->bytes >= bytes);
        }
        if (step % 16 == 0)
            check_block(block);
    }
    for (int i = 0; i < 64; i++) {
        if (held[i])
            pool_return(&pool, held[i]);
    }
    check_block(block);
    assert_null(block->first->after);
    assert_int_equal(pool.idle_bytes, BLOCK);
    drain(&pool);
}

static void test_best_fit_leaves_the_large_hole(void **state)
{
    struct pool pool = {0};
    struct pool_piece *a, *wall, *b;

    (void)state;
    insert(&pool, BLOCK_POOL, BLOCK);
    a = pool_take(&pool, BLOCK_POOL, 1000 * UNIT);
    wall = pool_take(&pool, BLOCK_POOL, UNIT);
    b = pool_take(&pool, BLOCK_POOL, 600 * UNIT);
    pool_take(&pool, BLOCK_POOL, UNIT);
    pool_return(&pool, a); /* holes of 1000 and 600 units in one size class */
    pool_return(&pool, b);
    assert_ptr_equal(pool_take(&pool, BLOCK_POOL, 590 * UNIT)->block, wall->block);
    a = pool_take(&pool, BLOCK_POOL, 1000 * UNIT);
    assert_int_equal(a->offset, 0);
    for (struct pool_block *block = pool.blocks; block; block = block->next) {
        for (struct pool_piece *s = block->first; s;) {
            struct pool_piece *used = s->used ? s : NULL;

            s = used ? block->first : s->after;
            if (used)
                pool_return(&pool, used);
        }
    }
    drain(&pool);
}

static void test_repeated_work_finds_its_places(void **state)
{
    uint64_t first[8];
    struct pool pool = {0};

    (void)state;
    insert(&pool, BLOCK_POOL, BLOCK);
    for (int round = 0; round < 3; round++) {
        struct pool_piece *held[8];

        for (uint64_t i = 0; i < 8; i++) {
            held[i] = pool_take(&pool, BLOCK_POOL, (i * 37 % 11 + 1) * 1024);
            assert_non_null(held[i]);
            if (round == 0)
                first[i] = held[i]->offset;
            assert_int_equal(held[i]->offset, first[i]);
        }
        for (int i = 0; i < 8; i++)
            pool_return(&pool, held[i]);
    }
    drain(&pool);
}

static void test_whole_blocks_are_not_split(void **state)
{
    struct pool pool = {0};
    struct pool_piece *segment;

    (void)state;
    insert(&pool, BLOCK_WHOLE, 1000 * UNIT);
    assert_null(pool_take(&pool, BLOCK_WHOLE, 700 * UNIT)); /* would waste more than a quarter */
    assert_null(pool_take(&pool, BLOCK_POOL, UNIT));
    segment = pool_take(&pool, BLOCK_WHOLE, 800 * UNIT);
    assert_non_null(segment);
    assert_int_equal(segment->bytes, 1000 * UNIT);
    assert_null(pool_take(&pool, BLOCK_WHOLE, 800 * UNIT));
    pool_return(&pool, segment);
    drain(&pool);
}

static void test_persistent_blocks_serve_their_size_only(void **state)
{
    struct pool pool = {0};
    struct pool_piece *segment;

    (void)state;
    insert(&pool, BLOCK_PERSISTENT, 1000 * UNIT);
    assert_null(pool_take(&pool, BLOCK_PERSISTENT, 999 * UNIT));
    segment = pool_take(&pool, BLOCK_PERSISTENT, 1000 * UNIT);
    assert_non_null(segment);
    pool_return(&pool, segment);
    drain(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_requests_tile),
        cmocka_unit_test(test_best_fit_leaves_the_large_hole),
        cmocka_unit_test(test_repeated_work_finds_its_places),
        cmocka_unit_test(test_whole_blocks_are_not_split),
        cmocka_unit_test(test_persistent_blocks_serve_their_size_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
