/* SPDX-License-Identifier: Apache-2.0 */
/* The process's table of custom ops: names, who has one, rows and records, memory. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <frit/custom.h>

#include "base/str.h"
#include "failing_alloc.h"
#include "graph/custom.h"
#include "graph/op.h"

static frit_status infer(const void *self, const frit_custom_call *call, frit_custom_type *out,
                         frit_err *err)
{
    (void)self;
    (void)err;
    *out = call->in->type;
    return FRIT_OK;
}

static const frit_custom_slot in[] = {{{"x", 1}, FRIT_ROLE_IN, FRIT_LETTER_F}};
static const frit_custom_slot out[] = {{{"y", 1}, FRIT_ROLE_OUT, FRIT_LETTER_F}};
static const frit_custom_field fields[] = {
    {{"axes", 4}, {"which", 5}, FRIT_ATTR_AXES, FRIT_USE_KEY, FRIT_PLACE_NAMED, 0},
    {{"eps", 3}, {"how near", 8}, FRIT_ATTR_REAL, FRIT_USE_LAUNCH, FRIT_PLACE_POS, 0}};

static frit_custom_op op_named(const char *name)
{
    return (frit_custom_op){.struct_size = sizeof(frit_custom_op),
                            .rev = 3,
                            .name = str_of(name),
                            .n_in = 1,
                            .n_out = 1,
                            .n_fields = 2,
                            .slot_stride = sizeof(in[0]),
                            .field_stride = sizeof(fields[0]),
                            .in = in,
                            .out = out,
                            .fields = fields,
                            .infer = infer};
}

static void names_have_a_form(void **state)
{
    static const char *const good[] = {"a.b/1", "org.example.op_2/17", "x1.y_.z/9"};
    static const char *const bad[] = {
        "",       "a/1",   "a.b",    "a.b/",   "a.b/0",   "a.b/01", ".a.b/1", "a..b/1",  "a.b./1",
        "a.1b/1", "a.B/1", "a.b/1x", "a.b/1 ", "a-b.c/1", "_a.b/1", "a.b/-1", "a.b/1/2", "a b.c/1"};
    char longest[66];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(custom_name_fits(str_of(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (custom_name_fits(str_of(bad[i])))
            fail_msg("'%s' is a name", bad[i]);
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "a.", 2);
    memcpy(longest + 61, "/1", 3);
    assert_true(custom_name_fits(str_of(longest)));
    memcpy(longest + 61, "a/1", 4);
    assert_false(custom_name_fits(str_of(longest)));
    assert_false(custom_name_fits((frit_str){NULL, 5}));
}

static void an_op_is_a_row_like_others(void **state)
{
    frit_custom_op op = op_named("org.frit.row/1");
    const frit_record_info *record;
    const frit_op_info *row;
    uint32_t id = 0, same = 0;

    (void)state;
    assert_null(op_find(op.name));
    assert_int_equal(custom_add("here", &op, &id, NULL), FRIT_OK);
    assert_true(id >= FRIT_OP_CUSTOM);
    row = op_row(id);
    assert_ptr_equal(row, op_find(op.name));
    assert_string_equal(row->name, "org.frit.row/1");
    assert_int_equal(row->rev, 3);
    assert_int_equal(row->level, FRIT_LEVEL_CORE);
    assert_int_equal(op_n_slots(row), 1);
    assert_int_equal(op_n_out(row), 1);
    record = op_record(row);
    assert_int_equal(record->n_fields, 2);
    assert_int_equal(record->field[0].offset, 8);
    assert_int_equal(record->field[1].offset, 8 + sizeof(frit_axes));
    assert_int_equal(record->size, 8 + sizeof(frit_axes) + 8);
    assert_int_equal(custom_add("here", &op, &same, NULL), FRIT_OK);
    assert_int_equal(same, id);
    assert_null(op_row(UINT32_MAX));
    assert_null(op_row(FRIT_OP_CUSTOM + 1023));
}

static void a_name_has_one_op(void **state)
{
    frit_custom_op op = op_named("org.frit.one/1");
    frit_err err = {.struct_size = sizeof(err)};
    uint32_t id;

    (void)state;
    assert_int_equal(custom_add("here", &op, &id, &err), FRIT_OK);
    assert_int_equal(custom_add("there", &op, &id, &err), FRIT_INVALID);
    assert_string_equal(err.text, "the name is taken by an op of plugin 'here', rev 3");
    op.rev = 4;
    assert_int_equal(custom_add("here", &op, &id, &err), FRIT_INVALID);
    assert_int_equal(op_find(op.name)->rev, 3);
}

static void unknown_names_report_the_known_ones(void **state)
{
    frit_custom_op op = op_named("org.frit.known/1");
    struct str text = {0};
    uint32_t id;

    (void)state;
    custom_explain_unknown(FRIT_STR("org.frit.other/1"), &text);
    assert_string_equal(text.text, "no plugin offers it; none was looked at, open a host first");
    str_fini(&text);
    assert_int_equal(custom_add("here", &op, &id, NULL), FRIT_OK);
    custom_note_plugin("here");
    custom_note_plugin("there");
    custom_note_plugin("here");
    custom_note_refusal("there", "org.frit.knows/1", "it is odd");
    custom_note_refusal("there", "org.frit.knows/1", "it is odd");
    custom_explain_unknown(FRIT_STR("org.frit.knows/1"), &text);
    assert_string_equal(text.text, "no plugin offers it; looked at: here, there; that of plugin "
                                   "'there' is refused: it is odd; did you mean "
                                   "'org.frit.known/1'?");
    str_fini(&text);
}

/* The arena allocates a chunk now and then: some of the many adds fail. */
static void without_memory_it_is_not_there(void **state)
{
    uint32_t n_failed = 0;

    (void)state;
    for (int n = 0; n < 200; n++) {
        char name[32];
        frit_custom_op op;
        frit_status status;
        uint32_t id;
        bool hit;

        snprintf(name, sizeof(name), "org.frit.memory.n%d/1", n);
        op = op_named(name);
        failing_alloc_arm(0);
        status = custom_add("here", &op, &id, NULL);
        hit = failing_alloc_disarm();
        n_failed += hit;
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        assert_true(hit ? !op_find(op.name) : op_find(op.name) == op_row(id));
        if (hit)
            assert_int_equal(custom_add("here", &op, &id, NULL), FRIT_OK);
    }
    assert_true(n_failed > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_a_form),
        cmocka_unit_test(unknown_names_report_the_known_ones),
        cmocka_unit_test(an_op_is_a_row_like_others),
        cmocka_unit_test(a_name_has_one_op),
        cmocka_unit_test(without_memory_it_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
