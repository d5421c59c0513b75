/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side: a child per row (or case), several at a time, whose lines report how far
 * each came.  The parent never opens a host, so that a child is a clean copy of it. */
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

/* A child and what was read of its lines. */
struct child {
    pid_t pid;
    int from;
    char text[4096];
    size_t used;
    double last_line; /* when the last line came */
    bool late;        /* it was ended because none came */
    size_t next, end; /* cases: the next one to get a verdict, and after the last */
};

/* All that are under way. */
struct crowd {
    const struct conform_options *options;
    const struct conform_cases *cases;
    conform_take *take;
    void *ctx;
    struct child at[CONFORM_JOBS];
    size_t n;
    bool stopped; /* no more outcomes are wanted */
};

static bool child_start(struct crowd *crowd, struct child *child, size_t first, size_t end)
{
    int ends[2];

    if (pipe(ends)) {
        perror("frit conform: pipe");
        return false;
    }
    fflush(NULL);
    *child = (struct child){
        .pid = fork(), .from = ends[0], .last_line = term_clock(), .next = first, .end = end};
    if (child->pid < 0) {
        perror("frit conform: fork");
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (child->pid == 0) {
        FILE *out = fdopen(ends[1], "w");

        close(ends[0]);
        if (out)
            conform_child(crowd->options, crowd->cases, first, end, out);
        _exit(out ? 0 : 1);
    }
    close(ends[1]);
    return true;
}

/* ---- what it says ---- */

static void give_verdict(struct crowd *crowd, struct child *child, enum conform_verdict verdict,
                         const char *reason)
{
    size_t index = child->next++;

    if (!crowd->stopped)
        crowd->stopped = !crowd->take(crowd->ctx, index, verdict, reason);
}

static void take_line(struct crowd *crowd, struct child *child, const char *line)
{
    size_t index;
    int verdict, text = 0;

    if (sscanf(line, "end %zu %d%n", &index, &verdict, &text) != 2 || index != child->next ||
        index >= child->end || verdict <= VERDICT_NONE || verdict >= N_VERDICTS)
        return;
    give_verdict(crowd, child, (enum conform_verdict)verdict, line + text + (line[text] == ' '));
}

/* Reads what is there; false once nothing more comes. */
static bool child_read(struct crowd *crowd, struct child *child)
{
    ssize_t got =
        read(child->from, child->text + child->used, sizeof(child->text) - child->used - 1);
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
        take_line(crowd, child, line);
    }
    child->used -= (size_t)(line - child->text);
    memmove(child->text, line, child->used);
    child->used %= sizeof(child->text) - 1; /* what fills it is not a line of ours */
    return true;
}

/* Ends it; says in words how it went. */
static void child_end(struct child *child, double timeout, char reason[CONFORM_REASON])
{
    int status = 0;

    close(child->from);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (child->late)
        snprintf(reason, CONFORM_REASON, "it hangs: no answer after %g s", timeout);
    else
        conform_ended(status, reason);
}

/* ---- all of them ---- */

static size_t chunk_end(const struct crowd *crowd, size_t first)
{
    const struct conform_case *at = crowd->cases->at;
    size_t end = first + 1;

    while (end < crowd->cases->count && !crowd->options->isolate &&
           strcmp(at[end].row.name, at[first].row.name) == 0)
        end++;
    return end;
}

/* Ends a child; another goes on after the case in which it ended. */
static bool replace(struct crowd *crowd, struct child *child)
{
    char reason[CONFORM_REASON];
    bool more;

    child_end(child, crowd->options->timeout, reason);
    if (child->next < child->end)
        give_verdict(crowd, child, VERDICT_FAILED, reason);
    more = child->next < child->end && !crowd->stopped;
    if (more && child_start(crowd, child, child->next, child->end))
        return true;
    *child = crowd->at[--crowd->n];
    return !more;
}

/* Waits until a child has written something or is late; reads what all children have written. */
static bool read_lines(struct crowd *crowd)
{
    struct pollfd events[CONFORM_JOBS];
    double now = term_clock(), timeout = crowd->options->timeout, left = timeout;

    for (size_t i = 0; i < crowd->n; i++) {
        events[i] = (struct pollfd){.fd = crowd->at[i].from, .events = POLLIN};
        left = fmin(left, crowd->at[i].last_line + timeout - now);
    }
    if (poll(events, crowd->n, left > 0 ? (int)(left * 1e3) + 1 : 0) < 0)
        return errno == EINTR;
    now = term_clock();
    for (size_t i = crowd->n; i-- > 0;) { /* backwards: the last takes the place of who ends */
        struct child *child = &crowd->at[i];

        if (events[i].revents ? child_read(crowd, child) : now < child->last_line + timeout)
            continue;
        child->late = !events[i].revents;
        if (child->late)
            kill(child->pid, SIGKILL);
        if (!replace(crowd, child))
            return false;
    }
    return true;
}

bool conform_run(const struct conform_options *options, const struct conform_cases *cases,
                 conform_take *take, void *ctx)
{
    struct crowd crowd = {.options = options, .cases = cases, .take = take, .ctx = ctx};
    size_t begun = 0;
    bool fine = true;

    while (fine && !crowd.stopped && (crowd.n || begun < cases->count)) {
        while (fine && crowd.n < options->jobs && begun < cases->count) {
            size_t end = chunk_end(&crowd, begun);

            fine = child_start(&crowd, &crowd.at[crowd.n], begun, end);
            crowd.n += fine;
            begun = end;
        }
        fine = fine && read_lines(&crowd);
    }
    for (size_t i = 0; i < crowd.n; i++) {
        kill(crowd.at[i].pid, SIGKILL);
        child_end(&crowd.at[i], 0, (char[CONFORM_REASON]){0});
    }
    return fine;
}
