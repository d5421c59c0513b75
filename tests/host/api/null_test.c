/* SPDX-License-Identifier: Apache-2.0 */
/* Every public function with what is not a tensor, no device, no number: it says so and lives on.
 */
#include "api/calls.h"
#include "api/rig.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static const float six[6] = {1, 2, 3, 4, 5, 6};

/* ---- nothing is left out ---- */

static bool has_entry(const char *name, size_t length)
{
    for (size_t i = 0; i < N_ENTRIES; i++) {
        if (strlen(entries[i].name) == length && memcmp(entries[i].name, name, length) == 0)
            return true;
    }
    return false;
}

static char *skip_comment(char *at)
{
    char *end = strstr(at, "*/");

    assert_non_null(end);
    return end + 2;
}

/* The functions that a header declares: a name of ours before a parenthesis at the end of what
 * stands left of it on a line that begins a declaration. */
static size_t check_header(const char *path)
{
    static char text[1 << 18];
    FILE *file = fopen(path, "r");
    size_t count = 0;

    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    for (char *line = text, *next; line; line = next) {
        char *name, *end;

        if (strncmp(line, "/*", 2) == 0)
            line = skip_comment(line);
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        end = strchr(line, '(');
        if (!islower((unsigned char)line[0]) && strncmp(line, "FRIT_NODISCARD ", 15) != 0)
            continue;
        if (!end || strncmp(line, "inline", 6) == 0 || strncmp(line, "template", 8) == 0 ||
            strncmp(line, "typedef", 7) == 0)
            continue;
        for (name = end; isalnum((unsigned char)name[-1]) || name[-1] == '_'; name--)
            ;
        if (!has_entry(name, (size_t)(end - name)))
            fail_msg("%s: calls.def has no line for %.*s", path, (int)(end - name), name);
        count++;
    }
    return count;
}

static void test_every_function_is_called(void **state)
{
    (void)state;
    assert_int_equal(
        check_header("host/include/frit/frit.h") + check_header("host/include/frit/dlpack.h") +
            check_header("host/include/frit/grad.h") + check_header("host/include/frit/inspect.h") +
            check_header("host/include/frit/ops.h"),
        N_ENTRIES);
}

/* ---- what is not a tensor ---- */

static void call_bad(const struct entry *entry, const struct arguments *w, frit_status want)
{
    if (entry->tensor) {
        frit_tensor *tensor = entry->tensor(w);

        if (frit_tensor_status(tensor) != want || !frit_tensor_error(tensor)[0])
            fail_msg("%s: %d '%s', not %d", entry->name, frit_tensor_status(tensor),
                     frit_tensor_error(tensor), want);
        frit_release(tensor);
    } else if (entry->status) {
        frit_status st = entry->status(w);

        if (st >= 0)
            fail_msg("%s: gives %d", entry->name, st);
    } else {
        entry->other(w);
    }
}

static void call_all_bad(frit_tensor *tensor)
{
    struct arguments w = {.tensor = tensor, .list = {tensor, tensor}};

    for (size_t i = 0; i < N_ENTRIES; i++)
        call_bad(&entries[i], &w, FRIT_INVALID);
}

static void test_null(void **state)
{
    struct rig rig;

    (void)state;
    call_all_bad(NULL);
    rig_open(&rig, NULL, 0); /* the table of slots is there now */
    call_all_bad(NULL);
    rig_close(&rig);
}

static void test_foreign_handles(void **state)
{
    struct rig rig;
    frit_tensor *live, *stale;
    uint64_t local[32] = {0};

    (void)state;
    rig_open(&rig, NULL, 0);
    live = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    stale = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_release(stale);
    frit_tensor *const handles[] = {
        stale,
        frit_take(stale),
        (frit_tensor *)local,
        (frit_tensor *)six,
        (frit_tensor *)rig.dev,
        (frit_tensor *)(uintptr_t)1,
        (frit_tensor *)UINTPTR_MAX,
        (frit_tensor *)((uintptr_t)live + 128),               /* within a slot */
        (frit_tensor *)((uintptr_t)live + 2),                 /* another generation */
        (frit_tensor *)((uintptr_t)live + ((size_t)1 << 30)), /* beyond the slots that are open */
    };
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
        call_all_bad(handles[i]);
    assert_int_equal(frit_tensor_status(live), FRIT_OK);
    frit_release(live);
    rig_close(&rig);
}

static void test_what_nothing_is(void **state)
{
    (void)state;
    assert_int_equal(frit_tensor_dtype(NULL), FRIT_NO_DTYPE);
    assert_int_equal(frit_tensor_dims(NULL).rank, 0);
    assert_int_equal(frit_tensor_bytes(NULL), 0);
    assert_null(frit_tensor_device(NULL));
    assert_null(frit_keep(NULL));
    assert_null(frit_ref(NULL));
    assert_null(frit_take(NULL));
    assert_string_equal(frit_device_name(NULL), "");
    assert_int_equal(frit_dtype_of_name(NULL), FRIT_NO_DTYPE);
    assert_int_equal(frit_dtype_of_name("f33"), FRIT_NO_DTYPE);
    assert_non_null(frit_dtype_name(UINT32_MAX));
    assert_non_null(frit_status_name(INT32_MIN));
    assert_int_equal(frit_op_support(NULL, 1), FRIT_SUPPORT_NONE);
    assert_int_equal(frit_graph_op_count(NULL), 0);
    assert_null(frit_graph_print(NULL));
    assert_int_equal(frit_graph_support(NULL, NULL), FRIT_SUPPORT_NONE);
    assert_non_null(frit_tensor_error(NULL));
}

static void test_op_without_capacity(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct rig rig;
    frit_tensor *out = NULL;
    frit_input in = {0};
    frit_call call = {.struct_size = sizeof(call), .op = FRIT_OP_neg, .n_in = 1, .in = &in};

    (void)state;
    rig_open(&rig, NULL, 0);
    in.tensor = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_op(rig.dev, &call, NULL, 1);
    assert_int_equal(frit_sync(rig.dev, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "NULL"));
    frit_op(rig.dev, NULL, &out, 1);
    rig_expect_error(out, FRIT_INVALID, "frit_op: the call is NULL or its struct_size is not set");
    call.in = NULL;
    frit_op(rig.dev, &call, &out, 1);
    rig_expect_error(out, FRIT_INVALID, "frit_op: 1 operands at NULL");
    call.op = UINT32_MAX;
    frit_op(rig.dev, &call, &out, 1);
    rig_expect_error(out, FRIT_INVALID, "frit_op: there is no op 4294967295");
    frit_release(in.tensor);
    rig_close(&rig);
}

/* ---- tensors that are, numbers that cannot be ---- */

/* Whatever comes of it; what is queued runs. */
static void call_any(const struct entry *entry, const struct arguments *w)
{
    frit_tensor *tensor = entry->tensor(w);

    assert_non_null(tensor);
    (void)frit_sync(w->device, NULL);
    if (frit_tensor_status(tensor))
        assert_true(frit_tensor_error(tensor)[0]);
    frit_release(tensor);
}

static void fill_words(struct arguments *w, int64_t integer)
{
    w->integer = integer;
    w->dims.rank = integer == 0 ? FRIT_MAX_RANK : integer;
    w->axes.count = w->dims.rank;
    w->slices.count = w->dims.rank;
    for (size_t i = 0; i < FRIT_MAX_RANK; i++) {
        w->dims.dim[i] = w->axes.axis[i] = integer < 0 ? integer : INT64_MAX - integer;
        w->slices.dim[i] = (frit_range){integer, ~integer, integer};
    }
}

static void test_numbers_that_cannot_be(void **state)
{
    static const int64_t integers[] = {INT64_MIN, INT64_MAX, -1, 0, 2, FRIT_MAX_RANK + 1};
    uint64_t record[128];
    struct rig rig;
    struct arguments w = {0};

    (void)state;
    rig_open(&rig, NULL, 0);
    w.device = rig.dev;
    w.tensor = w.list[0] = w.list[1] = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    w.attrs = record;
    w.word = FRIT_F32;
    w.number = NAN;
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        fill_words(&w, integers[i]);
        for (size_t k = 0; k < 128; k++)
            record[k] = (uint64_t)integers[i];
        record[0] = sizeof(record);
        for (size_t k = 0; k < N_ENTRIES; k++) {
            if (entries[k].tensor)
                call_any(&entries[k], &w);
        }
    }
    frit_release(w.tensor);
    rig_close(&rig);
}

static void test_attributes_without_size(void **state)
{
    static const uint64_t none[128];
    struct rig rig;
    struct arguments w = {.attrs = none, .word = FRIT_F32};

    (void)state;
    rig_open(&rig, NULL, 0);
    w.device = rig.dev;
    w.tensor = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    for (size_t i = 0; i < N_ENTRIES; i++) {
        if (entries[i].tensor && strstr(entries[i].arguments, "ATTRS"))
            call_bad(&entries[i], &w, FRIT_INVALID);
    }
    frit_release(w.tensor);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_every_function_is_called),
        cmocka_unit_test(test_foreign_handles),
        cmocka_unit_test(test_what_nothing_is),
        cmocka_unit_test(test_op_without_capacity),
        cmocka_unit_test(test_numbers_that_cannot_be),
        cmocka_unit_test(test_attributes_without_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
