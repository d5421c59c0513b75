/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "term.h"

enum { LINE_BYTES = 4096, NOT_STARTED = 127 };
enum {
    END_SECONDS = 2,  /* between SIGTERM and SIGKILL */
    DRAIN_SECONDS = 1 /* for what is printed last */
};
static const double grace_seconds = 0.5; /* for the others to say what they know of a failure */

/* A pipe from a rank, and the line that has not ended yet. */
struct stream {
    int from, to; /* `from` -1: closed */
    size_t used;
    char line[LINE_BYTES];
};

struct rank_process {
    pid_t pid; /* 0: ended */
    uint32_t rank;
    bool has_ended; /* with `status`, which is not reported yet */
    int status;
    struct stream streams[2]; /* standard output and error */
};

struct job {
    const struct ranks *ranks;
    struct rank_process *children;
    struct pollfd *polled; /* two per child, then that of signals */
    uint32_t n_running;
    int code;                        /* of the first failure */
    bool is_ending;                  /* the ranks were sent SIGTERM */
    double end_at, kill_at, stop_at; /* 0: not yet */
};

/* ---- lines ---- */

static void write_all(int to, const char *bytes, size_t n)
{
    while (n) {
        const ssize_t written = write(to, bytes, n);

        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        }
    }
}

/* In one piece, so that lines of different ranks stay whole. */
static void print_line(const struct rank_process *child, struct stream *stream)
{
    char text[LINE_BYTES + 32];
    const int head = snprintf(text, sizeof(text), "[%u] ", child->rank);

    memcpy(text + head, stream->line, stream->used);
    text[(size_t)head + stream->used] = '\n';
    write_all(stream->to, text, (size_t)head + stream->used + 1);
    stream->used = 0;
}

static void take_bytes(const struct rank_process *child, struct stream *stream, const char *bytes,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n')
            stream->line[stream->used++] = bytes[i];
        if (bytes[i] == '\n' || stream->used == LINE_BYTES)
            print_line(child, stream);
    }
}

static void read_stream(const struct rank_process *child, struct stream *stream)
{
    char bytes[LINE_BYTES];
    const ssize_t n = read(stream->from, bytes, sizeof(bytes));

    if (n > 0)
        take_bytes(child, stream, bytes, (size_t)n);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return;
    if (stream->used)
        print_line(child, stream);
    close(stream->from);
    stream->from = -1;
}

/* ---- processes ---- */

static void set_number(const char *name, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    setenv(name, text, 1);
}

/* Does not return.  The rank ends with this process. */
static void become_rank(const struct ranks *ranks, uint32_t rank, int pipes[2][2],
                        const sigset_t *signals)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, signals, NULL);
    if (ranks->size) {
        setpgid(0, 0);
        set_number("RANK", rank);
        set_number("WORLD_SIZE", ranks->size);
        set_number("LOCAL_RANK", rank - ranks->first);
    }
    for (int i = 0; i < 2; i++)
        dup2(pipes[i][1], i + 1);
    execvp(ranks->words[0], (char *const *)ranks->words);
    fprintf(stderr, "frit launch: %s: %s\n", ranks->words[0], strerror(errno));
    _exit(NOT_STARTED);
}

static bool start_rank(struct job *job, uint32_t index, const sigset_t *signals)
{
    struct rank_process *child = &job->children[index];
    int pipes[2][2];

    child->rank = job->ranks->first + index;
    if (pipe2(pipes[0], O_CLOEXEC))
        return false;
    if (pipe2(pipes[1], O_CLOEXEC)) {
        close(pipes[0][0]);
        close(pipes[0][1]);
        return false;
    }
    child->pid = fork();
    if (child->pid == 0)
        become_rank(job->ranks, child->rank, pipes, signals);
    for (int i = 0; i < 2; i++) {
        child->streams[i].from = pipes[i][0];
        child->streams[i].to = i + 1;
        close(pipes[i][1]);
    }
    job->n_running += child->pid > 0;
    return child->pid > 0;
}

/* With what it has started; mpirun has made a group of its own for that. */
static void signal_rank(const struct job *job, pid_t pid, int number)
{
    kill(job->ranks->size ? -pid : pid, number);
}

static void signal_all(struct job *job, int number)
{
    for (uint32_t i = 0; i < job->ranks->n; i++) {
        if (job->children[i].pid > 0)
            signal_rank(job, job->children[i].pid, number);
    }
}

static void end_all(struct job *job)
{
    if (job->is_ending)
        return;
    job->is_ending = true;
    job->kill_at = term_clock() + END_SECONDS;
    signal_all(job, SIGTERM);
}

/* The others end, too.  What ends after that was not the reason. */
static void report(struct job *job, const struct rank_process *child, int status)
{
    char host[128] = "?";
    const bool killed = WIFSIGNALED(status);

    if (job->code || job->is_ending || (!killed && WEXITSTATUS(status) == 0))
        return;
    (void)gethostname(host, sizeof(host) - 1);
    if (killed)
        fprintf(stderr, "frit launch: rank %u (host %s, pid %ld) was ended by signal %d (%s)\n",
                child->rank, host, (long)child->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        fprintf(stderr, "frit launch: rank %u (host %s, pid %ld) failed with exit code %d\n",
                child->rank, host, (long)child->pid, WEXITSTATUS(status));
    job->code = killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    job->end_at = term_clock() + grace_seconds;
}

/* Of ranks that ended meanwhile, one that was killed is the reason why others failed. */
static void reap(struct job *job)
{
    for (uint32_t i = 0; i < job->ranks->n; i++) {
        struct rank_process *child = &job->children[i];

        child->has_ended =
            child->pid > 0 && waitpid(child->pid, &child->status, WNOHANG) == child->pid;
        if (child->has_ended && WIFSIGNALED(child->status))
            report(job, child, child->status);
    }
    for (uint32_t i = 0; i < job->ranks->n; i++) {
        struct rank_process *child = &job->children[i];

        if (!child->has_ended)
            continue;
        report(job, child, child->status);
        if (job->code && job->ranks->size)
            signal_rank(job, child->pid, SIGKILL);
        child->pid = 0;
        job->n_running--;
    }
    if (!job->n_running && job->stop_at <= 0)
        job->stop_at = term_clock() + DRAIN_SECONDS;
}

static void take_signal(struct job *job, int from)
{
    struct signalfd_siginfo info;

    if (read(from, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGCHLD) {
        reap(job);
        return;
    }
    job->code = job->code ? job->code : 128 + (int)info.ssi_signo;
    end_all(job);
}

/* ---- running ---- */

/* mpirun ends the other ranks when this process has ended. */
static bool is_held(const struct job *job)
{
    return !job->ranks->size && term_clock() < job->end_at;
}

/* True: a rank runs, or may still print. */
static bool prepare_poll(struct job *job, int signals, int *timeout_ms)
{
    const uint32_t n = job->ranks->n;
    bool is_open = false;

    for (uint32_t i = 0; i < 2 * n; i++) {
        const int from = job->children[i / 2].streams[i % 2].from;

        job->polled[i] = (struct pollfd){.fd = from, .events = POLLIN};
        is_open |= from >= 0;
    }
    job->polled[2 * n] = (struct pollfd){.fd = signals, .events = POLLIN};
    *timeout_ms = job->end_at > 0 || job->kill_at > 0 || job->stop_at > 0 ? 100 : -1;
    return job->n_running || (is_open && term_clock() < job->stop_at) || is_held(job);
}

static void run_ranks(struct job *job, int signals)
{
    const uint32_t n = job->ranks->n;
    int timeout_ms;

    while (prepare_poll(job, signals, &timeout_ms)) {
        if (poll(job->polled, 2 * n + 1, timeout_ms) < 0 && errno != EINTR)
            return;
        for (uint32_t i = 0; i < 2 * n; i++) {
            if (job->polled[i].revents)
                read_stream(&job->children[i / 2], &job->children[i / 2].streams[i % 2]);
        }
        if (job->polled[2 * n].revents)
            take_signal(job, signals);
        if (job->end_at > 0 && term_clock() > job->end_at)
            end_all(job);
        if (job->kill_at > 0 && term_clock() > job->kill_at)
            signal_all(job, SIGKILL);
    }
}

int supervise(const struct ranks *ranks)
{
    struct job job = {.ranks = ranks,
                      .children = calloc(ranks->n, sizeof(*job.children)),
                      .polled = calloc(2 * (size_t)ranks->n + 1, sizeof(*job.polled))};
    sigset_t watched, before;
    int signals;

    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigprocmask(SIG_BLOCK, &watched, &before);
    signals = signalfd(-1, &watched, SFD_CLOEXEC);
    for (uint32_t i = 0; job.children && job.polled && i < ranks->n && !job.code; i++) {
        if (signals < 0 || !start_rank(&job, i, &before)) {
            fprintf(stderr, "frit launch: rank %u is not started: %s\n", ranks->first + i,
                    strerror(errno));
            job.code = NOT_STARTED;
            end_all(&job);
        }
    }
    if (job.children && job.polled)
        run_ranks(&job, signals);
    else
        job.code = NOT_STARTED;
    if (signals >= 0)
        close(signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(job.children);
    free(job.polled);
    return job.code;
}
