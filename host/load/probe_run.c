/* SPDX-License-Identifier: Apache-2.0 */
/* The child may end in any way, write anything, and leave processes of its own that hold the pipes:
 * so its end is noticed by waiting for it, not by the end of its output. */
#include "load/probe_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

/* LOOK_MS: between two looks at whether a child has ended that still holds its pipes open.
 * NOTICE_S: a user who waits for longer learns why. */
enum { LOOK_MS = 20, READS_AT_ONCE = 32, NOTICE_S = 1 };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- starting ---- */

static int add_actions(posix_spawn_file_actions_t *actions, int report, int output)
{
    int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);

    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, output, 2);
    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, report, PROBE_FD);
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(actions, PROBE_FD + 1);
    return error;
}

/* A process group of its own, so that what it starts can be ended with it; signals as in a fresh
 * program. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    int error;

    sigfillset(&all);
    sigemptyset(&none);
    error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error)
        error = posix_spawnattr_setflags(
            attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    return error;
}

static int spawn(pid_t *pid, char *const argv[], char *const environment[], int report, int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = add_actions(&actions, report, output);
        if (!error)
            error = set_attributes(&attributes);
        if (!error)
            error = posix_spawn(pid, argv[0], &actions, &attributes, argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Above PROBE_FD, so that no dup2 of the child closes an end that it still needs. */
static int make_pipe(int ends[2])
{
    int low[2];

    if (pipe2(low, O_CLOEXEC))
        return errno;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, PROBE_FD + 1);
        close(low[i]);
    }
    return ends[0] < 0 || ends[1] < 0 ? EMFILE : 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int probe_start(struct probe_run *run, char *const argv[], char *const environment[],
                const char *token)
{
    int report[2] = {-1, -1}, output[2] = {-1, -1};
    int error = make_pipe(report);

    *run = (struct probe_run){.report_fd = -1, .output_fd = -1, .started = now()};
    snprintf(run->report.token, sizeof(run->report.token), "%s", token);
    if (!error)
        error = make_pipe(output);
    if (!error)
        error = spawn(&run->pid, argv, environment, report[1], output[1]);
    close_end(&report[1]);
    close_end(&output[1]);
    if (error) {
        close_end(&report[0]);
        close_end(&output[0]);
        run->pid = 0;
        return error;
    }
    run->report_fd = report[0];
    run->output_fd = output[0];
    fcntl(run->report_fd, F_SETFL, O_NONBLOCK);
    fcntl(run->output_fd, F_SETFL, O_NONBLOCK);
    return 0;
}

/* ---- listening ---- */

static void take_byte(struct probe_run *run, char byte)
{
    if (byte != '\n') {
        if (run->n_line + 1 < PROBE_LINE)
            run->line[run->n_line++] = (char)(byte ? byte : '?');
        return;
    }
    run->line[run->n_line] = '\0';
    run->n_line = 0;
    probe_report_take(&run->report, run->line);
}

static void take_output(struct probe_run *run, const char *bytes, size_t n)
{
    size_t used = strlen(run->output), room = PROBE_OUTPUT - 1;
    size_t keep;

    if (n > room) {
        bytes += n - room;
        n = room;
    }
    keep = used + n > room ? room - n : used;
    memmove(run->output, run->output + (used - keep), keep);
    for (size_t i = 0; i < n; i++)
        run->output[keep + i] = (char)(bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : ' ');
    run->output[keep + n] = '\0';
}

/* Reads what is there, of one that never stops a part; closes an end that is over. */
static void drain(struct probe_run *run, int *fd)
{
    char bytes[4096];

    for (int i = 0; i < READS_AT_ONCE && *fd >= 0; i++) {
        ssize_t n = read(*fd, bytes, sizeof(bytes));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n <= 0) {
            close_end(fd);
            return;
        }
        for (ssize_t k = 0; fd == &run->report_fd && k < n; k++)
            take_byte(run, bytes[k]);
        if (fd == &run->output_fd)
            take_output(run, bytes, (size_t)n);
    }
}

static void finish(struct probe_run *run)
{
    drain(run, &run->report_fd);
    drain(run, &run->output_fd);
    close_end(&run->report_fd);
    close_end(&run->output_fd);
    run->pid = 0;
    run->seconds = now() - run->started;
}

/* Another thread of the program may have waited for all of its children.  What the child left
 * behind is ended while its number is still taken. */
static void look(struct probe_run *run, int flags)
{
    siginfo_t info = {0};
    int got;

    do
        got = waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOWAIT | flags);
    while (got < 0 && errno == EINTR);
    if (got == 0 && info.si_pid == 0)
        return;
    if (got == 0) {
        (void)kill(-run->pid, SIGKILL);
        run->has_exit = waitpid(run->pid, &run->exit, 0) == run->pid;
    }
    finish(run);
}

static unsigned poll_all(struct probe_run *runs, unsigned n)
{
    struct pollfd fds[2 * PROBE_FILES];
    unsigned n_fds = 0, alive = 0;

    for (unsigned i = 0; i < n; i++) {
        if (!runs[i].pid)
            continue;
        alive++;
        fds[n_fds++] = (struct pollfd){.fd = runs[i].report_fd, .events = POLLIN};
        fds[n_fds++] = (struct pollfd){.fd = runs[i].output_fd, .events = POLLIN};
    }
    if (alive)
        (void)poll(fds, n_fds, LOOK_MS);
    return alive;
}

void probe_wait(struct probe_run *runs, unsigned n, double seconds)
{
    const double started = now();
    bool said = false;

    while (poll_all(runs, n)) {
        const bool over = now() > started + seconds;

        if (!said && now() > started + NOTICE_S) {
            log_write(
                FRIT_LOG_WARN, "load",
                "plugins that are new are being tried, for up to %.0f s; what is found is kept",
                seconds);
            said = true;
        }

        for (unsigned i = 0; i < n; i++) {
            if (!runs[i].pid)
                continue;
            drain(&runs[i], &runs[i].report_fd);
            drain(&runs[i], &runs[i].output_fd);
            if (over) {
                runs[i].late = true;
                (void)kill(-runs[i].pid, SIGKILL);
                (void)kill(runs[i].pid, SIGKILL);
            }
            look(&runs[i], over ? 0 : WNOHANG);
        }
    }
}
