/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows have cases, and which rows of ops.def the reference driver does not run yet.  A row
 * that it starts to run must leave missing.txt and get a case; a new row of ops.def must stand in
 * either list. */
#include <stdio.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>
#include <frit/op_table.h>

#include "rows/cases.h"

/* What the cases are about: by row, then by element type. */
struct seen {
    bool pair[FRIT_OP_LIMIT][FRIT_DTYPE_LIMIT];
};

static const frit_op_info *find_row(const char *name)
{
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

/* Rows of the driver's list; views are the host's. */
static bool is_run(const frit_op_info *row)
{
    static const uint32_t ids[] = {
#define REF_ROW(name, needs) FRIT_OP_##name,
#include "plugins/reference/rows.def"
    };

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (ids[i] == row->id)
            return true;
    }
    return row->cls == FRIT_CLASS_VIEW;
}

static void note_case(const struct row_case *one, void *ctx)
{
    struct seen *seen = ctx;
    const frit_op_info *row = find_row(one->row);

    if (!row)
        fail_msg("%s:%u: no row of ops.def is called %s", one->file, one->line, one->row);
    if (!strstr(one->program, one->row))
        fail_msg("%s:%u: the program of %s does not call it", one->file, one->line, one->row);
    seen->pair[row->id][frit_dtype_of_name(one->dtype)] = true;
}

/* Whether operands of this letter may have this element type.  Of a row without operands, whose
 * type its attribute says, any case will do. */
static bool letter_takes(uint32_t letter, uint32_t dtype)
{
    uint32_t cls = frit_dtype_info_of(dtype).cls;
    bool is_float = cls == FRIT_DTYPE_FLOAT, is_bool = cls == FRIT_DTYPE_BOOL;
    bool is_integer = cls == FRIT_DTYPE_INT || cls == FRIT_DTYPE_UINT;

    switch (letter) {
    case FRIT_LETTER_T:
    case FRIT_LETTER_R:
        return is_float || is_integer || is_bool;
    case FRIT_LETTER_N:
        return is_float || is_integer;
    case FRIT_LETTER_F:
        return is_float;
    case FRIT_LETTER_Z:
        return is_integer;
    case FRIT_LETTER_L:
        return is_integer || is_bool;
    default:
        return false;
    }
}

/* The letter of the first tensor operand that is not a mask. */
static uint32_t row_letter(const frit_op_info *row)
{
    for (const frit_slot_info *slot = row->in; slot->name; slot++) {
        if (slot->role != FRIT_ROLE_NUM && slot->letter != FRIT_LETTER_BOOL)
            return slot->letter;
    }
    return FRIT_LETTER_NONE;
}

/* Complains about every element type that the row has no case of. */
static unsigned count_unseen(const frit_op_info *row, const bool *seen)
{
    unsigned unseen = 0, any = 0;

    for (uint32_t dtype = 0; dtype < FRIT_DTYPE_LIMIT; dtype++) {
        any += seen[dtype];
        if (seen[dtype] || !letter_takes(row_letter(row), dtype))
            continue;
        print_error("%s has no case of %s in tests/data/rows\n", row->name, frit_dtype_name(dtype));
        unseen++;
    }
    if (!any)
        print_error("%s has no case in tests/data/rows\n", row->name);
    return unseen + !any;
}

static void every_row_has_cases_of_its_types(void **state)
{
    struct seen seen = {{{false}}};
    unsigned without = 0;

    (void)state;
    cases_each(note_case, &seen);
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && is_run(row))
            without += count_unseen(row, seen.pair[id]);
    }
    assert_int_equal(without, 0);
}

static void missing_rows_are_listed(void **state)
{
    FILE *file = fopen("tests/rows/missing.txt", "r");
    bool listed[FRIT_OP_LIMIT] = {false};
    unsigned wrong = 0;
    char name[64];

    (void)state;
    assert_non_null(file);
    while (fscanf(file, "%63s", name) == 1) {
        const frit_op_info *row = find_row(name);

        if (!row)
            fail_msg("missing.txt: no row of ops.def is called %s", name);
        listed[row->id] = true;
    }
    fclose(file);
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && listed[id] == is_run(row)) {
            print_error("missing.txt: %s %s\n", row->name,
                        listed[id] ? "is run by now" : "is not listed");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static void listed_rows_are_claimed(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host = NULL;
    frit_device *device = NULL;
    unsigned wrong = 0;

    (void)state;
    if (frit_host_open(NULL, &host, &err) != FRIT_OK ||
        frit_device_open(host, "reference:0", &device, &err) != FRIT_OK)
        fail_msg("%s", err.text);
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);
        uint32_t support = row ? frit_op_support(device, id) : FRIT_SUPPORT_NONE;

        if (row && row->cls == FRIT_CLASS_COLLECTIVE && support == FRIT_SUPPORT_HOST)
            continue;
        if (!row || is_run(row) == (support == FRIT_SUPPORT_NATIVE || support == FRIT_SUPPORT_HOST))
            continue;
        print_error("%s: support %u, and rows.def says otherwise\n", row->name, support);
        wrong++;
    }
    frit_device_close(device);
    frit_host_close(host);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_cases_of_its_types),
        cmocka_unit_test(missing_rows_are_listed),
        cmocka_unit_test(listed_rows_are_claimed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
