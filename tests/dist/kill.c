/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"
#include "scenarios.h"

enum { ABORTED, LEFT, REJOINED, DONE, TIMES }; /* times in shared->numbers, ns */

static const uint64_t most_elements = 16u << 20; /* 64 MiB */

struct watch {
    struct rank *rank;
    pthread_t thread;
};

/* What a host's connection to the others is for: it hears that one has died, and ends the group. */
static void *watch_main(void *arg)
{
    const struct watch *watch = arg;
    const frit_err why = {.struct_size = sizeof why, .text = "a rank has died"};

    while (!shared->ended_at)
        usleep(500);
    watch->rank->table->group_abort(watch->rank->group, &why);
    return NULL;
}

static void go_on(struct rank *rank, uint32_t killed, uint64_t memory)
{
    const uint32_t number = rank->number - (rank->number > killed);
    float x = (float)(number + 1), expected = (float)(rank->size * (rank->size - 1)) / 2;
    uint64_t value;

    if (!CHECK(rank, join(rank, 2, number, rank->size - 1, 30000000000u) == FRIT_OK))
        return;
    shared->numbers[rank->number][REJOINED] = (double)now_ns();
    device_write(&rank->device, memory, &x, sizeof x);
    value = begin_reduce(rank, memory, 1, NULL);
    CHECK(rank, value && wait_for(rank, value) == FRIT_OK);
    device_read(&rank->device, &x, memory, sizeof x);
    CHECK(rank, x == expected);
    shared->numbers[rank->number][DONE] = (double)now_ns();
    leave(rank);
}

static void survive(struct rank *rank)
{
    const uint32_t killed = *(const uint32_t *)rank->arg;
    const uint64_t elements = scaled(most_elements), memory = device_alloc(elements * 4);
    struct watch watch = {.rank = rank};
    uint64_t value;

    if (!CHECK(rank, join(rank, 1, rank->number, rank->size, 60000000000u) == FRIT_OK))
        return;
    if (!CHECK(rank, pthread_create(&watch.thread, NULL, watch_main, &watch) == 0))
        return;
    while ((value = begin_reduce(rank, memory, elements, NULL)) && !wait_for(rank, value))
        shared->steps[rank->number]++;
    shared->numbers[rank->number][ABORTED] = (double)now_ns();
    CHECK(rank, rank->err.status == FRIT_ABORTED);
    CHECK(rank, strcmp(rank->err.text, "a rank has died") == 0);
    pthread_join(watch.thread, NULL);
    leave(rank);
    shared->numbers[rank->number][LEFT] = (double)now_ns();
    go_on(rank, killed, memory);
}

static double ms_since(uint64_t begun, uint32_t n, uint32_t killed, int time)
{
    double most = 0;

    for (uint32_t r = 0; r < n; r++) {
        const double ms = (shared->numbers[r][time] - (double)begun) / 1e6;

        if (r != killed && ms > most)
            most = ms;
    }
    return most;
}

/* False: they do not begin. */
static bool await_steps(uint32_t n, uint64_t steps)
{
    const uint64_t begun = now_ns();

    for (uint32_t r = 0; r < n; r++) {
        while (shared->steps[r] < steps) {
            if (shared->n_failed || now_ns() - begun > 60000000000u)
                return false;
            usleep(1000);
        }
    }
    return true;
}

static void kill_one(uint32_t n, uint32_t killed, uint32_t time)
{
    pid_t pids[MAX_RANKS];
    uint64_t killed_at, noticed_at;
    bool is_right;
    int status;

    start_ranks(n, survive, &killed, pids);
    is_right = await_steps(n, 3 + time * 7);
    killed_at = now_ns();
    (void)kill(pids[killed], SIGKILL);
    (void)waitpid(pids[killed], &status, 0);
    noticed_at = now_ns();
    shared->ended_at = noticed_at;
    for (uint32_t r = 0; r < n; r++) {
        if (r != killed)
            is_right &= waitpid(pids[r], &status, 0) > 0 && status == 0;
    }
    is_right &= !shared->n_failed && ms_since(noticed_at, n, killed, ABORTED) <= 2000;
    report(is_right,
           "kill -9 of rank %u of %u: noticed after %.2f ms, aborted %.0f ms later, left %.0f ms, "
           "group of %u %.0f ms, sum right at %.0f ms%s%s",
           killed, n, (double)(noticed_at - killed_at) / 1e6,
           ms_since(noticed_at, n, killed, ABORTED), ms_since(noticed_at, n, killed, LEFT), n - 1,
           ms_since(noticed_at, n, killed, REJOINED), ms_since(noticed_at, n, killed, DONE),
           shared->n_failed ? ": " : "", shared->fault);
}

void kill_run(uint32_t n, uint32_t times)
{
    for (uint32_t size = 2; size <= n; size *= 2)
        for (uint32_t i = 0; i < times; i++)
            kill_one(size, i % size, i);
}
