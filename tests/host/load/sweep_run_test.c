/* SPDX-License-Identifier: Apache-2.0 */
/* Every sin of tests/fake/run in a program of its own, tests/fake/run/app.c: it goes on and says
 * what is wrong, or goes on without; where it cannot, since the plugin's code runs in it, it ends
 * or hangs, which is checked too.
 *
 *   FRIT_TEST_LONG   all rows; without it every seventh */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <frit/capture.h>
#include <frit/collective.h>
#include <frit/custom.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>
#include <frit/profile.h>

enum outcome { ENDS, HANGS, SAYS, WORKS, WRONG };

struct sin {
    enum inner { four, null, blocks, host, engine, ops } inner; /* which does the work */
    const char *name;
    enum outcome outcome;
    const char *words;
};

/* clang-format off */
static const struct sin sins[] = {
#define NAME(table, slot, act) #table "." #slot "." act
#define RUN_ENDS(inner, table, slot)                  \
    {inner, NAME(table, slot, "crash"), ENDS, ""},    \
    {inner, NAME(table, slot, "exit"), ENDS, ""},     \
    {inner, NAME(table, slot, "throw"), ENDS, ""},    \
    {inner, NAME(table, slot, "hang"), HANGS, ""},
#define RUN_ENDS_BY(inner, table, slot, act)     {inner, NAME(table, slot, #act), ENDS, ""},
#define RUN_SAYS(inner, table, slot, act, words) {inner, NAME(table, slot, #act), SAYS, words},
#define RUN_WORKS(inner, table, slot, act)       {inner, NAME(table, slot, #act), WORKS, ""},
#define RUN_WRONG(inner, table, slot, act)       {inner, NAME(table, slot, #act), WRONG, ""},
#include "fake/run/sins.def"
};
/* clang-format on */

enum {
    N_SINS = sizeof(sins) / sizeof(sins[0]),
    SAMPLE = 7,
    AT_ONCE = 4,
    PATH = 600,
    WORDS = 20,
    OUTPUT = 1 << 19
};

static const double hang_seconds = 0.5;    /* after it is reached */
static const double patience_seconds = 60; /* for everything else */

/* The plugins that do the work: id, device, file, and further settings. */
static const struct worker {
    const char *file, *id, *device;
    const char *setting[3];
    bool is_file; /* the setting's value is a file of the build */
} workers[] = {
    [four] = {"tests/wrong/libfrit-fake-four.so", "fake-four", "wrong:0", {NULL}, false},
    [null] = {"tests/fake/null/libfrit-null.so",
              "null",
              "null:0",
              {"plugin.null", "option.compile_ms", "0"},
              false},
    [blocks] = {"tests/outside/libfrit-blocks.so",
                "org.frit.blocks",
                "reference:0",
                {"plugin.reference", "library", "lib/frit/plugins/libfrit-reference.so"},
                true},
    [host] = {"lib/frit/plugins/libfrit-reference.so",
              "reference",
              "reference:0",
              {"plugin.org.frit.blocks", "library", "tests/outside/libfrit-blocks.so"},
              true},
    [engine] = {"lib/frit/plugins/libfrit-collective-local.so",
                "collective-local",
                "reference:0",
                {"plugin.reference", "library", "lib/frit/plugins/libfrit-reference.so"},
                true},
    [ops] = {"tests/fake/custom/libfrit-fake-ops.so",
             "fake-ops",
             "reference:0",
             {"plugin.reference", "library", "lib/frit/plugins/libfrit-reference.so"},
             true},
};

static char folder[] = "/tmp/frit-sins-XXXXXX";

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void built(char path[PATH], const char *file)
{
    snprintf(path, PATH, "%s/%s", getenv("FRIT_TEST_BUILD"), file);
}

/* ---- programs ---- */

struct run {
    const struct sin *sin; /* NULL: none */
    pid_t pid;
    int fd;
    double started, reached_at;
    bool reached;
    bool killed;
    int status;
    size_t n;
    char output[OUTPUT]; /* terminated */
};

static void become(const struct sin *sin)
{
    const struct worker *worker = &workers[sin->inner];
    char app[PATH], library[PATH], inner[PATH], store[PATH], value[PATH];
    char *words[WORDS] = {app, library, (char *)worker->id, (char *)worker->device, store};

    built(app, "tests/fake/run/fake-sin-app");
    built(library, "tests/fake/run/libfrit-fake-sin.so");
    built(inner, worker->file);
    snprintf(store, sizeof(store), "%s/plans-%d", folder, (int)getpid());
    if (worker->setting[0]) {
        snprintf(value, sizeof(value), "%s", worker->setting[2]);
        if (worker->is_file)
            built(value, worker->setting[2]);
        words[5] = (char *)worker->setting[0];
        words[6] = (char *)worker->setting[1];
        words[7] = value;
    }
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* what is not so is lost */
    setenv("SIN", sin->name, 1);
    setenv("SIN_PLUGIN", inner, 1);
    setenv("FRIT_PLUGIN_PATH", folder, 1);
    (void)execv(app, words);
    _exit(127);
}

static void start(struct run *run, const struct sin *sin)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    run->sin = sin;
    run->started = now();
    run->reached = false;
    run->killed = false;
    run->n = 0;
    run->output[0] = '\0';
    run->pid = fork();
    assert_true(run->pid >= 0);
    if (run->pid == 0) {
        (void)dup2(ends[1], 1);
        (void)dup2(ends[1], 2);
        become(sin);
    }
    close(ends[1]);
    run->fd = ends[0];
    (void)fcntl(run->fd, F_SETFL, O_NONBLOCK);
}

static void drain(struct run *run)
{
    char rest[4096];
    ssize_t n;

    do {
        const size_t room = OUTPUT - 1 - run->n;

        n = room ? read(run->fd, run->output + run->n, room) : read(run->fd, rest, sizeof(rest));
        if (n > 0 && room)
            run->n += (size_t)n;
    } while (n > 0);
    run->output[run->n] = '\0';
    if (!run->reached && strstr(run->output, "reached\n")) {
        run->reached = true;
        run->reached_at = now();
    }
}

/* Whether it has ended by now; kills one that takes too long. */
static bool has_ended(struct run *run)
{
    const bool hangs = run->reached && run->sin->outcome == HANGS;

    drain(run);
    if (!run->killed && (hangs ? now() > run->reached_at + hang_seconds
                               : now() > run->started + patience_seconds)) {
        run->killed = true;
        (void)kill(run->pid, SIGKILL);
    }
    if (waitpid(run->pid, &run->status, WNOHANG) != run->pid)
        return false;
    drain(run);
    close(run->fd);
    return true;
}

/* ---- outcomes ---- */

static unsigned n_wrong;

static const char *fault_of(const struct run *run)
{
    const bool ended =
        strstr(run->output, "\nend\n") && WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0;
    const bool wrong = strstr(run->output, "wrong: ");

    if (!run->reached)
        return "it was not reached";
    if (run->sin->outcome == HANGS)
        return run->killed ? NULL : "it does not hang";
    if (run->killed)
        return "it hangs";
    if (run->sin->outcome == ENDS)
        return ended ? "it goes on" : NULL;
    if (!ended)
        return "it does not go on";
    if (wrong != (run->sin->outcome == WRONG))
        return wrong ? "a result is wrong" : "no result is wrong";
    if (strstr(run->output, "\nleft: "))
        return "something is left";
    return strstr(run->output, run->sin->words) ? NULL : "other words";
}

static void finish(struct run *run)
{
    const char *fault = fault_of(run);

    if (fault) {
        print_error("%s: %s, status %#x; expected '%s', it wrote:\n%.2000s\n", run->sin->name,
                    fault, (unsigned)run->status, run->sin->words, run->output);
        n_wrong++;
    }
    run->sin = NULL;
}

static size_t next_of(size_t row)
{
    return row + (getenv("FRIT_TEST_LONG") ? 1 : SAMPLE);
}

static void what_a_plugin_does_while_it_is_used(void **state)
{
    static struct run runs[AT_ONCE];
    size_t row = 0;
    bool busy = true;

    (void)state;
    while (busy) {
        busy = false;
        for (int i = 0; i < AT_ONCE; i++) {
            if (!runs[i].sin && row < N_SINS) {
                start(&runs[i], &sins[row]);
                row = next_of(row);
            }
            if (runs[i].sin && has_ended(&runs[i]))
                finish(&runs[i]);
            busy = busy || runs[i].sin || row < N_SINS;
        }
        (void)poll(NULL, 0, 2);
    }
    assert_int_equal(n_wrong, 0);
}

/* ---- all slots ---- */

static bool has_sin(const char *prefix)
{
    for (size_t i = 0; i < N_SINS; i++)
        if (strncmp(sins[i].name, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static const char *const slots[] = {
#define SLOT_STATUS(table, slot, parameters, arguments)            #table "." #slot ".crash",
#define SLOT_VOID(table, slot, parameters, arguments)              #table "." #slot ".crash",
#define SLOT_VALUE(table, slot, type, none, parameters, arguments) #table "." #slot ".crash",
#include "fake/run/slots.def"
};

enum { N_SLOTS = sizeof(slots) / sizeof(slots[0]) };

static size_t count_slots(const char *table)
{
    size_t n = 0;

    for (size_t i = 0; i < N_SLOTS; i++)
        n += strncmp(slots[i], table, strlen(table)) == 0;
    return n;
}

/* Of a table whose slots begin with `first` and end it. */
#define N_OF(type, first) ((sizeof(type) - offsetof(type, first)) / sizeof(void (*)(void)))

static void every_slot_sins(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SLOTS; i++)
        if (!has_sin(slots[i]))
            fail_msg("no row has %s", slots[i]);
    assert_int_equal(count_slots("plugin.") + 1, N_OF(frit_plugin, open)); /* get_interface */
    assert_int_equal(count_slots("backend."), N_OF(frit_backend, enumerate));
    assert_int_equal(count_slots("fuser."), N_OF(frit_fuser_table, prototypes));
    assert_int_equal(count_slots("program."), N_OF(frit_program_table, describe));
    assert_int_equal(count_slots("native."),
                     N_OF(frit_native_table, get) - N_OF(frit_native_table, space));
    assert_int_equal(count_slots("capture."), N_OF(frit_capture_table, record));
    assert_int_equal(count_slots("profile."), N_OF(frit_profile_table, clock));
    assert_int_equal(count_slots("collective."), N_OF(frit_collective_table, group_id));
    assert_int_equal(count_slots("ops."), N_OF(frit_custom_op, infer));
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slot_sins),
        cmocka_unit_test(what_a_plugin_does_while_it_is_used),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
