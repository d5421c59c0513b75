/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side: it runs a child per row (or per case), several at a time, and reads the lines
 * in which each child reports its progress.  The parent never opens a host, so that every child is
 * forked from a process without one. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/conform.h"
#include "conform/find.h"
#include "term.h"

/* A child and the part of its output that is not handled yet. */
struct child {
    pid_t pid;
    int fd;
    char text[4096];
    size_t used;
    double last_line; /* when the last line came */
    bool timed_out;   /* it was killed because none came */
    size_t next, end; /* its cases that have no verdict yet: the first, and one past the last */
    char doing[CONFORM_NAME]; /* what the first one notes of itself */
};

/* The children that are running. */
struct workers {
    const struct conform_options *options;
    const struct conform_cases *cases;
    conform_on_verdict *on_verdict;
    void *ctx;
    size_t *lost; /* the case in which the device was lost */
    struct child child[CONFORM_JOBS];
    size_t n;
    bool stopped; /* no more outcomes are wanted */
};

static bool child_start(struct workers *workers, struct child *child, size_t first, size_t end)
{
    int ends[2];

    if (pipe(ends)) {
        perror("frit conform: pipe");
        return false;
    }
    fflush(NULL);
    *child = (struct child){
        .pid = fork(), .fd = ends[0], .last_line = term_clock(), .next = first, .end = end};
    if (child->pid < 0) {
        perror("frit conform: fork");
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (child->pid == 0) {
        FILE *out = fdopen(ends[1], "w");

        close(ends[0]);
        (void)signal(SIGPIPE, SIG_DFL); /* a driver that writes to nobody must not rely on it */
        if (out)
            conform_child(workers->options, workers->cases, first, end, out);
        _exit(out ? 0 : 1);
    }
    close(ends[1]);
    return true;
}

/* ---- the lines of a child ---- */

static void give_verdict(struct workers *workers, struct child *child, enum conform_verdict verdict,
                         const char *reason)
{
    size_t index = child->next++;

    *child->doing = '\0';
    if (!workers->stopped)
        workers->stopped = !workers->on_verdict(workers->ctx, index, verdict, reason);
}

static void take_line(struct workers *workers, struct child *child, const char *line)
{
    size_t index;
    int verdict, text = 0;

    if (strcmp(line, "lost") == 0 && !workers->stopped) {
        *workers->lost = child->next - 1;
        workers->stopped = true;
    }
    if (strncmp(line, "in ", strlen("in ")) == 0)
        snprintf(child->doing, sizeof(child->doing), "%.120s", line + strlen("in "));
    if (sscanf(line, "end %zu %d%n", &index, &verdict, &text) != 2 || index != child->next ||
        index >= child->end || verdict <= VERDICT_NONE || verdict >= N_VERDICTS)
        return;
    give_verdict(workers, child, (enum conform_verdict)verdict, line + text + (line[text] == ' '));
}

/* Reads the available output; false at its end. */
static bool child_read(struct workers *workers, struct child *child)
{
    ssize_t got = read(child->fd, child->text + child->used, sizeof(child->text) - child->used - 1);
    char *line = child->text, *end;

    if (got < 0 && errno == EINTR)
        return true;
    if (got <= 0)
        return false;
    child->used += (size_t)got;
    child->text[child->used] = '\0';
    child->last_line = term_clock();
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        take_line(workers, child, line);
    }
    child->used -= (size_t)(line - child->text);
    memmove(child->text, line, child->used);
    child->used %= sizeof(child->text) - 1; /* a full buffer without a line end is dropped */
    return true;
}

/* Waits until the child has exited; `reason` says in words how it ended, and in what. */
static void child_reap(struct child *child, double timeout, char reason[CONFORM_REASON])
{
    size_t used;
    int status = 0;

    close(child->fd);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (child->timed_out)
        snprintf(reason, CONFORM_REASON, "it hangs: no answer after %g s", timeout);
    else
        conform_ended(status, reason);
    used = strlen(reason);
    if (*child->doing)
        snprintf(reason + used, CONFORM_REASON - used, ": %s", child->doing);
}

/* ---- all children ---- */

/* The end of the cases that one child gets: all of a row, or one with --isolate. */
static size_t chunk_end(const struct workers *workers, size_t first)
{
    const struct conform_case *at = workers->cases->at;
    size_t end = first + 1;

    while (end < workers->cases->count && !workers->options->isolate &&
           strcmp(at[end].row.name, at[first].row.name) == 0)
        end++;
    return end;
}

/* Reaps a child.  The case in which it ended fails, and a new child continues with the next one. */
static bool replace(struct workers *workers, struct child *child)
{
    char reason[CONFORM_REASON];
    bool more;

    child_reap(child, workers->options->timeout, reason);
    if (child->next < child->end)
        give_verdict(workers, child, VERDICT_FAILED, reason);
    more = child->next < child->end && !workers->stopped;
    if (more && child_start(workers, child, child->next, child->end))
        return true;
    *child = workers->child[--workers->n];
    return !more;
}

/* Waits until a child has written something or has timed out; reads what all children have written.
 */
static bool read_lines(struct workers *workers)
{
    struct pollfd events[CONFORM_JOBS];
    double now = term_clock(), timeout = workers->options->timeout, left = timeout;

    for (size_t i = 0; i < workers->n; i++) {
        events[i] = (struct pollfd){.fd = workers->child[i].fd, .events = POLLIN};
        left = fmin(left, workers->child[i].last_line + timeout - now);
    }
    if (poll(events, workers->n, left > 0 ? (int)(left * 1e3) + 1 : 0) < 0)
        return errno == EINTR;
    now = term_clock();
    for (size_t i = workers->n;
         i-- > 0;) { /* backwards, since the last child replaces one that ends */
        struct child *child = &workers->child[i];

        if (events[i].revents ? child_read(workers, child) : now < child->last_line + timeout)
            continue;
        child->timed_out = !events[i].revents;
        if (child->timed_out)
            kill(child->pid, SIGKILL);
        if (!replace(workers, child))
            return false;
    }
    return true;
}

bool conform_run(const struct conform_options *options, const struct conform_cases *cases,
                 conform_on_verdict *on_verdict, void *ctx, size_t *lost)
{
    struct workers workers = {
        .options = options, .cases = cases, .on_verdict = on_verdict, .ctx = ctx, .lost = lost};
    size_t begun = 0;
    bool ok = true;

    *lost = SIZE_MAX;
    while (ok && !workers.stopped && (workers.n || begun < cases->count)) {
        while (ok && workers.n < options->jobs && begun < cases->count) {
            size_t end = chunk_end(&workers, begun);

            ok = child_start(&workers, &workers.child[workers.n], begun, end);
            workers.n += ok;
            begun = end;
        }
        ok = ok && read_lines(&workers);
    }
    for (size_t i = 0; i < workers.n; i++) {
        kill(workers.child[i].pid, SIGKILL);
        child_reap(&workers.child[i], 0, (char[CONFORM_REASON]){0});
    }
    return ok;
}
