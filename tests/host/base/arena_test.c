/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "unit.h"

#include <string.h>

#include "failing_alloc.h"

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
    enum { COUNT = 3000 };
    struct arena arena = {0};
    unsigned char *piece[COUNT];

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        size_t bytes = i % 97;

        piece[i] = arena_alloc(&arena, bytes);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % 16, 0);
        for (size_t k = 0; k < bytes; k++)
            assert_int_equal(piece[i][k], 0);
        memset(piece[i], (int)(i % 251 + 1), bytes);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < i % 97; k++)
            assert_int_equal(piece[i][k], i % 251 + 1);
    }
    arena_fini(&arena);
    assert_null(arena.chunk);
}

static void a_reset_arena_is_clean_and_keeps_its_chunk(void **state)
{
    struct arena arena = {0};
    unsigned char *first, *again;

    (void)state;
    arena_reset(&arena);
    first = arena_alloc(&arena, 100);
    memset(first, 0xff, 100);
    arena_reset(&arena);
    failing_alloc_arm(0);
    again = arena_alloc(&arena, 100);
    assert_false(failing_alloc_disarm());
    assert_ptr_equal(again, first);
    assert_int_equal(again[99], 0);
    arena_fini(&arena);
}

static void large_pieces_get_room(void **state)
{
    struct arena arena = {0};
    unsigned char *large = arena_alloc(&arena, 1000000);

    (void)state;
    assert_non_null(large);
    memset(large, 1, 1000000);
    assert_non_null(arena_alloc(&arena, 1));
    arena_fini(&arena);
}

static void too_much_is_null(void **state)
{
    struct arena arena = {0};

    (void)state;
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX / 2));
    assert_null(arena_array(&arena, SIZE_MAX / 4, 8)); /* overflows to a small number */
    assert_null(arena_array(&arena, (SIZE_MAX >> 3) + 2, 8));
    assert_null(arena_text(&arena, "", SIZE_MAX));
    assert_non_null(arena_array(&arena, SIZE_MAX, 0));
    arena_fini(&arena);
}

static void a_failed_chunk_leaves_the_arena_whole(void **state)
{
    struct arena arena = {0};
    char *text;

    (void)state;
    failing_alloc_arm(0);
    assert_null(arena_alloc(&arena, 1));
    assert_true(failing_alloc_disarm());
    text = arena_text(&arena, "abcdef", 3);
    assert_string_equal(text, "abc");
    failing_alloc_arm(0);
    assert_null(arena_alloc(&arena, 100000));
    assert_true(failing_alloc_disarm());
    assert_string_equal(text, "abc");
    assert_non_null(arena_alloc(&arena, 100000));
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(a_reset_arena_is_clean_and_keeps_its_chunk),
        cmocka_unit_test(large_pieces_get_room),
        cmocka_unit_test(too_much_is_null),
        cmocka_unit_test(a_failed_chunk_leaves_the_arena_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
