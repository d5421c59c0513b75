/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring process says what it does on its standard error, at level debug; its silence is how
 * its parent sees that it hangs.  What it says at other levels is for people. */
#include "measure.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "invocation.h"
#include "program.h"
#include "session.h"
#include "term.h"

extern char **environ;

enum { MAX_PROCESSES = 64, USUAL_PATIENCE_S = 10, LINE = 1024, RUNS = 2 };
#define USUAL_BUDGET_MS "2000"
#define DEBUG_LINE      "frit debug "
#define STEP_LINE       DEBUG_LINE "tune: %*s step %" SCNu64 " of %" SCNu64

/* ---- in this process ---- */

static int open_measuring(struct session *session, const struct invocation *in)
{
    const char *budget = invocation_value(in, "--budget");
    const frit_setting settings[] = {{"fusion", "compile", "wait"},
                                     {"fusion", "store_wait", "600000"}, /* nobody waits for us */
                                     {"tune", "when", "any"},
                                     {"tune", "deterministic", "no"}, /* it would not measure */
                                     {"tune", "budget", budget ? budget : USUAL_BUDGET_MS},
                                     {"tune", "idle", "0"},
                                     {"frit", "log", "warn,tune=debug"}};

    return session_open_with(session, in, settings, sizeof(settings) / sizeof(*settings));
}

static int run_once(struct program *program, const struct invocation *in,
                    const struct session *session)
{
    frit_tensor **outputs = calloc(program->n_outputs + 1, sizeof(*outputs));
    int status =
        outputs ? program_run(program, in, session, outputs) : fail_command(in, "no memory");

    for (uint64_t i = 0; outputs && i < program->n_outputs; i++)
        frit_release(outputs[i]);
    free(outputs);
    return status;
}

/* The second run is the one that programs repeat: its tensors take memory that was used before. */
int tune_here(const struct invocation *in)
{
    struct program program = {0};
    struct session session;
    int status = open_measuring(&session, in);

    if (status == CLI_FINE)
        status = program_begin(&program, in, in->args[0], program_shapes);
    if (status == CLI_FINE)
        status = session_device(&session, in);
    if (status == CLI_FINE)
        status = program_feed(&program, in, &session);
    for (int i = 0; i < RUNS && status == CLI_FINE; i++)
        status = run_once(&program, in, &session);
    program_close(&program);
    session_close(&session);
    return status;
}

/* ---- in others ---- */

/* One measuring process. */
struct measurer {
    pid_t pid;
    int lines; /* its standard error */
    char line[LINE];
    size_t length;
    bool silent; /* for too long: it was killed */
    struct progress *progress;
    uint64_t done; /* steps of the program's plan */
};

/* The same command line with --here. */
static char **argv_of(const struct invocation *in)
{
    char **argv = calloc(2 * (size_t)in->n_given + (size_t)in->n_args + 4, sizeof(*argv));
    int n = 0;

    if (!argv)
        return NULL;
    argv[n++] = (char *)(uintptr_t) "frit";
    argv[n++] = (char *)(uintptr_t) "tune";
    for (int i = 0; i < in->n_given; i++) {
        argv[n++] = (char *)(uintptr_t)in->given[i].option->name;
        if (in->given[i].value)
            argv[n++] = (char *)(uintptr_t)in->given[i].value;
    }
    argv[n++] = (char *)(uintptr_t) "--here";
    argv[n] = (char *)(uintptr_t)in->args[0];
    return argv;
}

static int start(struct measurer *m, const struct invocation *in, struct progress *progress)
{
    char **argv = argv_of(in);
    posix_spawn_file_actions_t actions;
    int ends[2], error;

    *m = (struct measurer){.lines = -1, .progress = progress};
    if (!argv || pipe(ends)) {
        free(argv);
        return fail_command(in, "no memory, or no descriptor");
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    error = posix_spawn(&m->pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    free(argv);
    m->lines = ends[0];
    if (error) {
        close(ends[0]);
        return fail_command(in, "cannot start a process: %s", strerror(error));
    }
    return CLI_FINE;
}

/* A step of the program's plan is measured: those before it are done.  What the second run finds
 * to measure does not move the bar back. */
static void note_step(struct measurer *m)
{
    uint64_t step, of;

    if (sscanf(m->line, STEP_LINE, &step, &of) == 2 && step && step <= of &&
        (of != m->progress->total || step > m->done)) {
        m->progress->total = of;
        m->done = step - 1;
    }
    if (m->progress->total)
        progress_step(m->progress, m->done);
}

static void end_line(struct measurer *m)
{
    m->line[m->length] = '\0';
    if (strncmp(m->line, DEBUG_LINE, sizeof(DEBUG_LINE) - 1) == 0) {
        note_step(m);
    } else {
        progress_hide(m->progress);
        fprintf(stderr, "%s\n", m->line);
    }
    m->length = 0;
}

/* False: it has ended. */
static bool take_lines(struct measurer *m)
{
    char bytes[LINE];
    ssize_t n = read(m->lines, bytes, sizeof(bytes));

    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || m->length == LINE - 1)
            end_line(m);
        if (bytes[i] != '\n')
            m->line[m->length++] = bytes[i];
    }
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Returns the status that waitpid gave. */
static int follow(struct measurer *m, int patience_ms)
{
    struct pollfd poll_for = {.fd = m->lines, .events = POLLIN};
    int status = 0, ready = 1;

    while (ready > 0 || (ready < 0 && errno == EINTR)) {
        ready = poll(&poll_for, 1, patience_ms);
        if (ready > 0 && !take_lines(m))
            break;
    }
    if (ready == 0) {
        m->silent = true;
        (void)kill(m->pid, SIGKILL);
    }
    progress_hide(m->progress);
    close(m->lines);
    while (waitpid(m->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static int patience_of(const struct invocation *in, int *ms)
{
    const char *text = invocation_value(in, "--patience");
    char *end = NULL;
    long seconds = text ? strtol(text, &end, 10) : USUAL_PATIENCE_S;

    if (text && (*end || end == text || seconds < 1 || seconds > 86400))
        return fail_usage(in, "--patience %s: must be a number of seconds from 1 to 86400", text);
    *ms = (int)seconds * 1000;
    return CLI_FINE;
}

int tune_program(const struct invocation *in)
{
    int patience_ms = 0, status = patience_of(in, &patience_ms);
    struct progress progress;

    progress_begin(&progress, NULL, 0);
    for (int n = 0; n < MAX_PROCESSES && status == CLI_FINE; n++) {
        struct measurer measurer;
        int how;

        status = start(&measurer, in, &progress);
        if (status)
            return status;
        how = follow(&measurer, patience_ms);
        if (WIFEXITED(how))
            return WEXITSTATUS(how);
        if (measurer.silent)
            fprintf(stderr, "frit tune: a trial did not end in %d s; its process was ended\n",
                    patience_ms / 1000);
        else
            fprintf(stderr, "frit tune: a process died in a trial: %s\n", strsignal(WTERMSIG(how)));
    }
    return status ? status
                  : fail_command(in,
                                 "%d processes died; the folder of [frit] artefacts keeps what "
                                 "they died of: is there one?",
                                 MAX_PROCESSES);
}
