/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces never overlap, neighbours merge, and the same requests find the same places. */
#include "unit.h"

#include "memory/pool.h"

enum { CHUNK = 1 << 20, UNIT = 64 };

static struct pool_chunk *insert(struct pool *pool, enum chunk_kind kind, uint64_t bytes)
{
    struct pool_chunk *chunk = pool_chunk_create(kind, (void *)1, bytes, 0);

    assert_non_null(chunk);
    pool_insert(pool, chunk);
    return chunk;
}

static void drain(struct pool *pool)
{
    while (pool->chunks) {
        struct pool_chunk *chunk = pool->chunks;

        pool_remove(pool, chunk);
        pool_chunk_destroy(chunk);
    }
    assert_int_equal(pool->idle_bytes, 0);
}

/* The pieces of a chunk tile it, and no two free ones are neighbours. */
static void check_chunk(const struct pool_chunk *chunk)
{
    uint64_t at = 0;
    uint32_t used = 0;

    for (const struct pool_piece *s = chunk->first; s; s = s->after) {
        assert_int_equal(s->offset, at);
        assert_true(s->bytes > 0);
        assert_true(!s->after || s->after->before == s);
        assert_true(s->used || !s->after || s->after->used);
        used += s->used;
        at += s->bytes;
    }
    assert_int_equal(at, chunk->bytes);
    assert_int_equal(used, chunk->n_used);
}

static void test_random_requests_tile(void **state)
{
    struct pool_piece *held[64] = {0};
    struct pool pool = {0};
    struct pool_chunk *chunk = insert(&pool, CHUNK_POOL, CHUNK);
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

            held[i] = pool_take(&pool, CHUNK_POOL, bytes);
            assert_true(!held[i] || held[i]->bytes >= bytes);
        }
        if (step % 16 == 0)
            check_chunk(chunk);
    }
    for (int i = 0; i < 64; i++) {
        if (held[i])
            pool_return(&pool, held[i]);
    }
    check_chunk(chunk);
    assert_null(chunk->first->after);
    assert_int_equal(pool.idle_bytes, CHUNK);
    drain(&pool);
}

static void test_best_fit_leaves_the_large_hole(void **state)
{
    struct pool pool = {0};
    struct pool_piece *a, *wall, *b;

    (void)state;
    insert(&pool, CHUNK_POOL, CHUNK);
    a = pool_take(&pool, CHUNK_POOL, 1000 * UNIT);
    wall = pool_take(&pool, CHUNK_POOL, UNIT);
    b = pool_take(&pool, CHUNK_POOL, 600 * UNIT);
    pool_take(&pool, CHUNK_POOL, UNIT);
    pool_return(&pool, a); /* holes of 1000 and 600 units in one size class */
    pool_return(&pool, b);
    assert_ptr_equal(pool_take(&pool, CHUNK_POOL, 590 * UNIT)->chunk, wall->chunk);
    a = pool_take(&pool, CHUNK_POOL, 1000 * UNIT);
    assert_int_equal(a->offset, 0);
    for (struct pool_chunk *chunk = pool.chunks; chunk; chunk = chunk->next) {
        for (struct pool_piece *s = chunk->first; s;) {
            struct pool_piece *used = s->used ? s : NULL;

            s = used ? chunk->first : s->after;
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
    insert(&pool, CHUNK_POOL, CHUNK);
    for (int round = 0; round < 3; round++) {
        struct pool_piece *held[8];

        for (uint64_t i = 0; i < 8; i++) {
            held[i] = pool_take(&pool, CHUNK_POOL, (i * 37 % 11 + 1) * 1024);
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

static void test_whole_chunks_are_not_split(void **state)
{
    struct pool pool = {0};
    struct pool_piece *piece;

    (void)state;
    insert(&pool, CHUNK_WHOLE, 1000 * UNIT);
    assert_null(pool_take(&pool, CHUNK_WHOLE, 700 * UNIT)); /* would waste more than a quarter */
    assert_null(pool_take(&pool, CHUNK_POOL, UNIT));
    piece = pool_take(&pool, CHUNK_WHOLE, 800 * UNIT);
    assert_non_null(piece);
    assert_int_equal(piece->bytes, 1000 * UNIT);
    assert_null(pool_take(&pool, CHUNK_WHOLE, 800 * UNIT));
    pool_return(&pool, piece);
    drain(&pool);
}

static void test_persistent_chunks_serve_their_size_only(void **state)
{
    struct pool pool = {0};
    struct pool_piece *piece;

    (void)state;
    insert(&pool, CHUNK_PERSISTENT, 1000 * UNIT);
    assert_null(pool_take(&pool, CHUNK_PERSISTENT, 999 * UNIT));
    piece = pool_take(&pool, CHUNK_PERSISTENT, 1000 * UNIT);
    assert_non_null(piece);
    pool_return(&pool, piece);
    drain(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_requests_tile),
        cmocka_unit_test(test_best_fit_leaves_the_large_hole),
        cmocka_unit_test(test_repeated_work_finds_its_places),
        cmocka_unit_test(test_whole_chunks_are_not_split),
        cmocka_unit_test(test_persistent_chunks_serve_their_size_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
