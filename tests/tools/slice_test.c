/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in parts: which values a sequence of ops reads and leaves, and its text. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "doctor/slice.h"

static const char text[] = "input x : f32[4, 4] = \"x.npy\"\n"
                           "const w : f32[4]\n"
                           "a = add x, w\n"
                           "b, _, c = three a, none, axes=[0, 1], ends=[0:2, 1:]\n"
                           "r = random_uniform 0, 1, dtype=f32, dims=[4]\n"
                           "output d = mul b, 0.5\n"
                           "effect a\n"
                           "e = add c, r\n"
                           "output e\n";

static void expect_values(const struct slice_program *program, const uint32_t *values, size_t n,
                          const char *names)
{
    char found[64] = "";

    for (size_t i = 0; i < n; i++)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s ",
                 program->values[values[i]].name);
    assert_string_equal(found, names);
}

static void takes_a_program_apart(void **state)
{
    struct slice_program program;
    uint32_t list[8];

    (void)state;
    assert_true(slice_parse(&program, text));
    assert_int_equal(program.n_ops, 6);
    assert_int_equal(program.n_values, 8);
    assert_string_equal(program.values[0].type, "f32[4, 4]");
    assert_string_equal(program.values[1].type, "f32[4]");
    assert_true(program.ops[2].is_random && !program.ops[1].is_random);
    expect_values(&program, list, slice_inputs(&program, 0, 5, list), "x w ");
    expect_values(&program, list, slice_outputs(&program, 0, 5, list), "d e ");
    expect_values(&program, list, slice_inputs(&program, 1, 2, list), "a ");
    expect_values(&program, list, slice_outputs(&program, 1, 2, list), "b c r ");
    expect_values(&program, list, slice_inputs(&program, 5, 5, list), "c r ");
    expect_values(&program, list, slice_outputs(&program, 4, 4, list), "");
    slice_fini(&program);
}

static void prints_a_part(void **state)
{
    static const char *const types[8] = {"f32[4, 4]", "f32[4]", "f32[4, 4]", "f32[2]",
                                         "f32[3]",    "f32[4]", "f32[2]",    "f32[4]"};
    struct slice_program program;
    struct str out = {0};
    uint32_t list[8];
    size_t n;

    (void)state;
    assert_true(slice_parse(&program, text));
    n = slice_outputs(&program, 3, 5, list);
    slice_print(&program, 3, 5, list, n, types, &out);
    assert_string_equal(out.text, "input a : f32[4, 4]\n"
                                  "input b : f32[2]\n"
                                  "input c : f32[3]\n"
                                  "input r : f32[4]\n"
                                  "d = mul b, 0.5\n"
                                  "effect a\n"
                                  "e = add c, r\n"
                                  "output d\n"
                                  "output e\n");
    str_fini(&out);
    slice_fini(&program);
}

static void takes_names_in_quotes(void **state)
{
    static const char quoted[] = "input \"a : b\" : f32[2]\n"
                                 "const k : i64[2] = [1, 2]\n"
                                 "\"c, = \\\" d\" = add \"a : b\", k\n"
                                 "output out = \"c, = \\\" d\"\n"
                                 "output e = neg \"c, = \\\" d\"\n";
    struct slice_program program;
    uint32_t list[8];

    (void)state;
    assert_true(slice_parse(&program, quoted));
    assert_int_equal(program.n_ops, 2);
    assert_int_equal(program.n_values, 4);
    assert_string_equal(program.values[1].type, "i64[2]");
    expect_values(&program, list, slice_inputs(&program, 0, 0, list), "\"a : b\" k ");
    expect_values(&program, list, slice_outputs(&program, 0, 0, list), "\"c, = \\\" d\" ");
    assert_true(program.values[2].is_output && program.values[3].is_output);
    slice_fini(&program);
}

static void refuses_other_text(void **state)
{
    struct slice_program program;

    (void)state;
    assert_false(slice_parse(&program, "output nothing\n"));
    assert_false(slice_parse(&program, "input x\n"));
    assert_int_equal(program.n_values, 0);
    assert_true(slice_parse(&program, "# a comment\n\n"));
    assert_int_equal(program.n_ops, 0);
    slice_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_a_program_apart),
        cmocka_unit_test(prints_a_part),
        cmocka_unit_test(takes_names_in_quotes),
        cmocka_unit_test(refuses_other_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
