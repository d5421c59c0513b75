/* SPDX-License-Identifier: Apache-2.0 */
/* Every sin of tests/fake/probe is noticed before it harms this process, with its reason and the
 * words that its row promises.
 *
 *   FRIT_TEST_LONG   also one that keeps a processor busy until its time is over */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "host/load/rig.h"
#include "load/elf.h"
#include "load/find.h"
#include "load/probe.h"
#include "load/probe_report.h"
#include "load/reason.h"

struct sin {
    const char *file;
    uint32_t reason, driver_reason;
    const char *words;
};

static const struct sin sins[] = {
#define PROBE_SIN(place, act, REASON, words) \
    {"libfrit-sin-" #place "-" #act ".so", FRIT_REASON_##REASON, FRIT_REASON_NONE, words},
#include "fake/probe/sins.def"
};

static const struct sin lies[] = {
#define PROBE_LIE(place, act, REASON, DRIVER_REASON, words)                                   \
    {"libfrit-sin-" #place "-" #act ".so", FRIT_REASON_##REASON, FRIT_REASON_##DRIVER_REASON, \
     words},
#include "fake/probe/sins.def"
};

enum {
    N_SINS = sizeof(sins) / sizeof(sins[0]),
    N_LIES = sizeof(lies) / sizeof(lies[0]),
    AT_ONCE = 16, /* processes, but of those that hang, which do nothing */
    PATIENCE = 10 /* seconds of a probe, on a loaded machine with sanitizers too */
};

static const char *built(const char *folder)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", getenv("FRIT_TEST_BUILD"), folder);
    return path;
}

static int set_up(void **state)
{
    static char library[512];

    if (rig_setup(state))
        return -1;
    snprintf(library, sizeof(library), "%s", built("lib"));
    find_set_own_folder(library);
    probe_set_limit(PATIENCE);
    return 0;
}

static bool is_chosen(const struct sin *sin)
{
    return getenv("FRIT_TEST_LONG") || !strstr(sin->file, "-spill");
}

static unsigned n_wrong;

static void complain(const struct sin *sin, const char *what, const char *found)
{
    print_error("%s: %s: '%s'\n", sin->file, what, found);
    n_wrong++;
}

static void expect_none_wrong(void)
{
    const unsigned n = n_wrong;

    n_wrong = 0;
    assert_int_equal(n, 0);
}

/* ---- tried in a process of their own ---- */

struct subject {
    const struct sin *sin;
    struct plugin plugin;
    struct elf_facts facts;
    char path[600];
};

static void fill(struct subject *subject, const struct sin *sin)
{
    memset(subject, 0, sizeof(*subject));
    subject->sin = sin;
    snprintf(subject->path, sizeof(subject->path), "%s/%s", built("tests/probe"), sin->file);
    subject->plugin.path = subject->path;
    assert_int_equal(elf_read(subject->path, &subject->facts, subject->plugin.detail,
                              sizeof(subject->plugin.detail)),
                     0);
    assert_true(subject->facts.has_note && subject->facts.has_entry &&
                subject->facts.n_exports == 1);
}

/* What was logged of the plugin; lives until the next call. */
static const char *line_of(const char *path)
{
    static char line[1024];
    const char *at = strstr(rig_log(), path);

    snprintf(line, sizeof(line), "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
    return line;
}

static void check(const struct subject *subject)
{
    const struct sin *sin = subject->sin;
    const struct plugin *plugin = &subject->plugin;
    const char *words = plugin->reason ? plugin->detail : line_of(subject->path);

    if (plugin->reason != sin->reason)
        complain(sin, reason_name(plugin->reason), plugin->detail);
    else if (!strstr(words, sin->words) || (!sin->words[0] && words[0]))
        complain(sin, "other words", words);
}

static void try(struct subject *subjects, uint32_t n)
{
    static const frit_setting settings[] = {{"search", "probe", "auto"}};
    struct probe_subject list[PROBE_FILES];
    frit_err err = {.struct_size = sizeof(err)};
    struct conf *conf = NULL;

    if (conf_load(settings, 1, &conf, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct probe_subject){&subjects[i].plugin, &subjects[i].facts.identity, NULL};
    probe_all(conf, list, n);
    conf_destroy(conf);
    for (uint32_t i = 0; i < n; i++)
        check(&subjects[i]);
}

/* Those with this reason, side by side. */
static void try_reason(uint32_t reason)
{
    const uint32_t at_once = reason == FRIT_REASON_HANGS ? PROBE_FILES : AT_ONCE;
    static struct subject subjects[PROBE_FILES];
    uint32_t n = 0;

    for (size_t i = 0; i < N_SINS; i++) {
        if (sins[i].reason != reason || !is_chosen(&sins[i]))
            continue;
        fill(&subjects[n++], &sins[i]);
        if (n == at_once) {
            try(subjects, n);
            n = 0;
        }
    }
    if (n)
        try(subjects, n);
}

static void what_ends_or_hangs_is_refused(void **state)
{
    (void)state;
    try_reason(FRIT_REASON_HANGS);
    try_reason(FRIT_REASON_CRASHES);
    try_reason(FRIT_REASON_EXITS);
    expect_none_wrong();
}

/* Each alone: two that are left would be tried together. */
static void what_changes_the_process_is_named(void **state)
{
    struct subject subject;

    (void)state;
    for (size_t i = 0; i < N_SINS; i++) {
        if (sins[i].reason)
            continue;
        fill(&subject, &sins[i]);
        rig_forget_log();
        try(&subject, 1);
    }
    expect_none_wrong();
}

static void what_fails_beside_others_is_refused(void **state)
{
    static struct subject pair[2];
    uint32_t n = 0;

    (void)state;
    for (size_t i = 0; i < N_SINS && n < 2; i++)
        if (strstr(sins[i].file, "-clash"))
            fill(&pair[n++], &sins[i]);
    assert_int_equal(n, 2);
    rig_forget_log();
    try(pair, 2);
    expect_none_wrong();
}

/* ---- loaded here ---- */

static bool is_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
            return false;
    return true;
}

/* All texts that a lie may have come through; lives until the next call. */
static const char *texts_of(const struct plugin *plugin)
{
    static char texts[16384];
    size_t used =
        (size_t)snprintf(texts, sizeof(texts), "%s %s %s %s %s", plugin->id, plugin->version,
                         plugin->driver, plugin->detail, plugin->driver_detail);

    for (uint32_t i = 0; i < plugin->n_devices && used < sizeof(texts); i++)
        used += (size_t)snprintf(texts + used, sizeof(texts) - used, " %.5000s %.100s %.100s",
                                 plugin->devices[i].name.ptr, plugin->devices[i].stable_id.ptr,
                                 plugin->devices[i].fingerprint.ptr);
    return texts;
}

static void check_lie(const struct rig *rig, const struct sin *lie)
{
    const struct plugin *plugin = rig_plugin(rig, lie->file);
    const char *texts = texts_of(plugin);

    if (plugin->reason != lie->reason)
        complain(lie, reason_name(plugin->reason), plugin->detail);
    else if (plugin->driver_reason != lie->driver_reason)
        complain(lie, reason_name(plugin->driver_reason), plugin->driver_detail);
    else if (!strstr(texts, lie->words))
        complain(lie, "other words", texts);
    else if (!is_text(texts))
        complain(lie, "not printable", texts);
    if (plugin->reason || plugin->driver_reason)
        assert_int_equal(plugin->n_devices, 0);
}

static void link_here(const char *file)
{
    char source[700], target[700];

    snprintf(source, sizeof(source), "%s/%s", built("tests/probe"), file);
    snprintf(target, sizeof(target), "%s/%s", rig_dir(), file);
    assert_int_equal(symlink(source, target), 0);
}

/* All of them are loaded: none is so wrong that it could not be looked at. */
static void what_is_not_so_is_found_or_cleaned(void **state)
{
    static const frit_setting settings[] = {{"search", "probe", "auto"}, {NULL, NULL, NULL}};
    char command[128];
    struct rig rig;

    (void)state;
    assert_true((int)N_LIES <= (int)PROBE_FILES);
    for (size_t i = 0; i < N_LIES; i++)
        link_here(lies[i].file);
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(registry_n_plugins(rig.registry), N_LIES);
    for (size_t i = 0; i < N_LIES; i++)
        check_lie(&rig, &lies[i]);
    rig_close(&rig);
    snprintf(command, sizeof(command), "rm %s/*.so", rig_dir());
    assert_int_equal(system(command), 0);
    expect_none_wrong();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_or_hangs_is_refused),
        cmocka_unit_test(what_changes_the_process_is_named),
        cmocka_unit_test(what_fails_beside_others_is_refused),
        cmocka_unit_test(what_is_not_so_is_found_or_cleaned),
    };

    return cmocka_run_group_tests(tests, set_up, rig_teardown);
}
