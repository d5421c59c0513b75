/* SPDX-License-Identifier: Apache-2.0 */
/* Printing and parsing out of memory, and of what no text gives; texts themselves are in text/. */
#include "unit.h"

#include <string.h>

#include "base/fail.h"
#include "failing_alloc.h"
#include "ir/text.h"
#include "kernels/ir/rig.h"

static void test_round_trip(void **state)
{
    struct str first = {0}, second = {0};
    struct kir_module m, again;

    (void)state;
    rig_row_sum(&m);
    kir_print(&m, &first);
    assert_int_equal(kir_parse(first.text, first.length, &again, NULL), FRIT_OK);
    kir_print(&again, &second);
    assert_string_equal(first.text, second.text);
    for (uint32_t i = 0; i < m.phases[0].n; i++) {
        const struct kir_inst *a = &m.phases[0].inst[i], *b = &again.phases[0].inst[i];

        assert_int_equal(a->level, b->level);
        assert_int_equal(a->pair, b->pair);
    }
    str_fini(&first);
    str_fini(&second);
    kir_fini(&m);
    kir_fini(&again);
}

static void test_parse_memory(void **state)
{
    struct str text = {0};
    struct kir_module m, again;

    (void)state;
    rig_row_sum(&m);
    kir_print(&m, &text);
    for (long n = 0, hit = 1; hit; n++) {
        frit_status st;

        failing_alloc_arm(n);
        st = kir_parse(text.text, text.length, &again, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        if (hit)
            assert_true(!again.phases && !again.name);
        kir_fini(&again);
    }
    str_fini(&text);
    kir_fini(&m);
}

static void test_print_memory(void **state)
{
    struct kir_module m;

    (void)state;
    rig_row_sum(&m);
    for (long n = 0, hit = 1; hit; n++) {
        struct str text = {0};

        failing_alloc_arm(n);
        kir_print(&m, &text);
        hit = failing_alloc_disarm();
        assert_true(text.failed == hit);
        str_fini(&text);
    }
    kir_fini(&m);
}

/* The builder: harmless if out of memory, whatever comes after. */
static void test_build_memory(void **state)
{
    (void)state;
    for (long n = 0, hit = 1; hit; n++) {
        struct kir_module m;

        failing_alloc_arm(n);
        rig_row_sum(&m);
        hit = failing_alloc_disarm();
        assert_true(m.failed == hit);
        kir_fini(&m);
    }
}

/* A text without a zero byte after it, cut anywhere. */
static void test_cut(void **state)
{
    struct str text = {0};
    struct kir_module m;

    (void)state;
    rig_row_sum(&m);
    kir_print(&m, &text);
    kir_fini(&m);
    for (size_t length = 0; length < text.length; length++) {
        char *cut = malloc(length ? length : 1);
        frit_err err = ERR_INIT;

        assert_non_null(cut);
        memcpy(cut, text.text, length);
        if (kir_parse(cut, length, &m, &err))
            assert_int_equal(strncmp(err.text, "line ", 5), 0);
        kir_fini(&m);
        free(cut);
    }
    str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_parse_memory),
        cmocka_unit_test(test_print_memory), cmocka_unit_test(test_build_memory),
        cmocka_unit_test(test_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
