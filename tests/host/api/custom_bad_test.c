/* SPDX-License-Identifier: Apache-2.0 */
/* Custom ops that cannot be: refused with a reason where a plugin is loaded, failing with one where
 * they are called, never a crash, and no harm to others. */
#include "api/custom_rig.h"

struct bad {
    const char *word, *words;
};

static const struct bad bad_ops[] = {
#define BAD_OP(word, words, ...) {#word, words},
#include "fake/custom/badops.def"
};

static const struct bad bad_calls[] = {
#define BAD_CALL(word, words, ...) {#word, words},
#include "fake/custom/badops.def"
};

enum {
    N_OPS = sizeof(bad_ops) / sizeof(bad_ops[0]),
    N_CALLS = sizeof(bad_calls) / sizeof(bad_calls[0])
};

static struct logged logged;

static void open_bad(struct plugin_rig *rig, const char *enabled)
{
    logged = (struct logged){.load = ""};
    rig_set(rig, "fusion", "enabled", enabled);
    rig_plugin(rig, "plugin.fake-badops", RIG_BAD);
    rig->log = custom_log;
    rig->log_ctx = &logged;
    rig_open(rig, "reference:0");
}

static void expect_load(const char *name, const char *words)
{
    char line[512];

    snprintf(line, sizeof(line), "plugin fake-badops: op '%s' is not used: ", name);
    if (!strstr(logged.load, line))
        fail_msg("'%s' is used", name);
    snprintf(line, sizeof(line), "%s", strstr(logged.load, line));
    *strchr(line, '\n') = '\0';
    if (!strstr(line, words))
        fail_msg("'%s' does not contain '%s'", line, words);
}

static void bad_descriptions_are_refused(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x;

    (void)state;
    open_bad(&rig, "yes");
    x = filled(rig.dev, 1);
    for (int i = 0; i < N_OPS; i++) {
        char name[64], words[512];

        snprintf(name, sizeof(name), "org.frit.bad.%s/1", bad_ops[i].word);
        expect_load(name, bad_ops[i].words);
        snprintf(words, sizeof(words), "that of plugin 'fake-badops' is refused: ");
        expect_error(call_op(rig.dev, name, x, NULL, NULL, 0), FRIT_INVALID, words);
    }
    frit_release(x);
    (void)frit_sync(rig.dev, NULL);
    rig_close(&rig);
}

static void bad_names_are_refused(void **state)
{
    static const char *const names[] = {
        "bad/1",
        "org.Frit/1",
        "org.frit.bad.none",
        "org.frit.bad/0",
        "org..bad/1",
        "org.bad./1",
        "org.bad/1x",
        "",
        "org.frit.bad.a_name_of_which_nobody_can_say_that_it_is_not_too_long/1"};
    struct plugin_rig rig = {0};

    (void)state;
    open_bad(&rig, "yes");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char start[64];

        snprintf(start, sizeof(start), "%s", names[i]);
        expect_load(start, "the name is not like 'org.example.op/1'");
    }
    expect_load("org.frit.bad.twice/1", "the plugin lists it twice");
    rig_close(&rig);
}

static void bad_answers_fail_the_call(void **state)
{
    static const char *const enabled[] = {"yes", "no"};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct plugin_rig rig = {0};
        frit_tensor *x;

        open_bad(&rig, enabled[k]);
        x = filled(rig.dev, 2);
        for (int i = 0; i < N_CALLS; i++) {
            char name[64];
            frit_tensor *y;

            if (k == 1 && strcmp(bad_calls[i].word, "fickle") == 0)
                continue; /* its two results are cached */
            snprintf(name, sizeof(name), "org.frit.bad.%s/1", bad_calls[i].word);
            y = call_op(rig.dev, name, x, NULL, NULL, 0);
            (void)frit_sync(rig.dev, NULL);
            if (frit_tensor_status(y) == FRIT_OK)
                fail_msg("%s does not fail", name);
            expect_error(y, frit_tensor_status(y), bad_calls[i].words);
        }
        expect_filled(frit_neg(x), -2);
        frit_release(x);
        (void)frit_sync(rig.dev, NULL);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_descriptions_are_refused),
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(bad_answers_fail_the_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
