/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of every row beside finite differences: random scripts of each row that rules.def calls
 * differentiable.  --long, or FRIT_TEST_LONG=1: hundreds of scripts a row; --row NAME: one row,
 * --first N, --count N: scripts.  FRIT_TEST_DEVICE: the device, reference:0 by default. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/inspect.h>
#include <frit/op_table.h>

#include "grad/rule.h"
#include "host/grad/check.h"
#include "host/grad/forms.h"

enum { SHORT = 40, LONG = 500, SHOWN = 3, KINKS_PER_CENT = 10 };

static struct {
    unsigned first, count; /* of scripts for a row */
    const char *row;       /* NULL: all */
} chosen = {0, SHORT, NULL};

/* ---- the table ---- */

/* How many entries of each kind rules.def has for a row. */
struct entries {
    unsigned kinds; /* STEPS, PARTS, NO_GRAD */
    unsigned rules[FRIT_OP_MAX_IN];
};

static const struct entries *entries_of(void)
{
    static struct entries entries[FRIT_OP_LIMIT];

    memset(entries, 0, sizeof(entries));
#define GRAD(op, operand, needs, rule)               entries[FRIT_OP_##op].rules[operand]++;
#define GRAD_FN(op, operand, needs, function, words) entries[FRIT_OP_##op].rules[operand]++;
#define GRAD_STEPS(op, why)                          entries[FRIT_OP_##op].kinds++;
#define GRAD_PARTS(op, why)                          entries[FRIT_OP_##op].kinds++;
#define NO_GRAD(op, why)                             entries[FRIT_OP_##op].kinds++;
#include "grad/rules.def"
    return entries;
}

/* The letters that a float tensor may have. */
static bool takes_float(const frit_slot_info *slot)
{
    static const uint32_t letters[] = {FRIT_LETTER_T, FRIT_LETTER_N, FRIT_LETTER_F, FRIT_LETTER_R};

    if (slot->role == FRIT_ROLE_NUM)
        return false;
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (slot->letter == letters[i])
            return true;
    }
    return false;
}

static unsigned check_entries(const frit_op_info *row, const struct entries *entries)
{
    unsigned wrong = 0, rules = 0;

    for (uint32_t i = 0; i < FRIT_OP_MAX_IN && row->in[i].name; i++)
        rules += entries->rules[i];
    if (row->cls == FRIT_CLASS_GRADIENT || row->cls == FRIT_CLASS_COLLECTIVE)
        return 0;
    if (entries->kinds + (rules > 0) != 1) {
        print_error("rules.def: %s has %u entries, not one\n", row->name,
                    entries->kinds + (rules > 0));
        return 1;
    }
    for (uint32_t i = 0; i < FRIT_OP_MAX_IN && row->in[i].name && rules; i++) {
        if (entries->rules[i] == takes_float(&row->in[i]))
            continue;
        print_error("rules.def: %s has %u rules for %s\n", row->name, entries->rules[i],
                    row->in[i].name);
        wrong++;
    }
    return wrong;
}

static void every_row_is_in_the_table_once(void **state)
{
    const struct entries *entries = entries_of();
    unsigned wrong = 0;

    (void)state;
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        if (frit_op_info_at(id))
            wrong += check_entries(frit_op_info_at(id), &entries[id]);
    }
    assert_int_equal(wrong, 0);
}

/* A row that cuts a path off must have no float on one of its sides. */
static void rows_without_gradient_have_no_floats(void **state)
{
    (void)state;
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);
        bool in = false, out = false;

        if (!row || grad_row_of(id)->kind != GRAD_NONE || id == FRIT_OP_dequantize ||
            id == FRIT_OP_broadcast_from)
            continue;
        for (uint32_t i = 0; i < FRIT_OP_MAX_IN && row->in[i].name; i++)
            in |= takes_float(&row->in[i]);
        for (uint32_t k = 0; k < FRIT_OP_MAX_OUT && row->out[k].name; k++)
            out |= takes_float(&row->out[k]);
        if (in && out)
            fail_msg("%s takes floats and gives floats, and rules.def has no gradient", row->name);
    }
}

/* ---- the rules ---- */

static bool is_differentiable(const frit_op_info *row)
{
    return row && row->cls != FRIT_CLASS_GRADIENT && row->cls != FRIT_CLASS_COLLECTIVE &&
           row->id != FRIT_OP_quantize && grad_row_of(row->id)->kind != GRAD_NONE;
}

struct totals {
    unsigned scripts, kinks, wrong;
};

static void check_row(frit_device *device, const frit_op_info *row, struct totals *all)
{
    const form_fn form = form_of(row->name);
    unsigned kinks = 0, wrong = 0;

    if (!form)
        fail_msg("%s is differentiable, and no form makes scripts of it", row->name);
    for (unsigned n = 0; n < chosen.count && wrong < SHOWN; n++) {
        struct script s;
        enum check_result result;

        script_init(&s, row, chosen.first + n);
        form(&s);
        result = check_script(device, &s);
        script_fini(&s);
        kinks += result == CHECK_KINK;
        wrong += result == CHECK_WRONG;
    }
    all->scripts += chosen.count;
    all->kinks += kinks;
    all->wrong += wrong;
    if (kinks * 100 > (chosen.count + 10) * KINKS_PER_CENT)
        fail_msg("%s: %u of %u scripts were at a kink", row->name, kinks, chosen.count);
}

static void rules_are_derivatives(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_host_params params = {.struct_size = sizeof(params)};
    struct totals all = {0};
    frit_host *host;
    frit_device *device;
    frit_stats stats = {.struct_size = sizeof(stats)};
    const char *name = getenv("FRIT_TEST_DEVICE");

    (void)state;
    if (frit_host_open(&params, &host, &err) ||
        frit_device_open(host, name ? name : "reference:0", &device, &err))
        fail_msg("%s", err.text);
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (is_differentiable(row) && (!chosen.row || strcmp(chosen.row, row->name) == 0))
            check_row(device, row, &all);
    }
    frit_stats_get(device, &stats);
    assert_int_equal(stats.tensors_now, 0);
    assert_int_equal(stats.queued_now, 0);
    frit_device_close(device);
    frit_host_close(host);
    print_message("%u scripts, %u at a kink\n", all.scripts, all.kinks);
    assert_true(all.scripts > 0);
    assert_int_equal(all.wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_in_the_table_once),
                                       cmocka_unit_test(rows_without_gradient_have_no_floats),
                                       cmocka_unit_test(rules_are_derivatives)};

    if (getenv("FRIT_TEST_LONG"))
        chosen.count = LONG;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--long") == 0)
            chosen.count = LONG;
        else if (strcmp(argv[i], "--row") == 0 && i + 1 < argc)
            chosen.row = argv[++i];
        else if (strcmp(argv[i], "--first") == 0 && i + 1 < argc)
            chosen.first = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            chosen.count = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
