/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that trains: every step reduces the gradients of seven parameters, a bucket each, and then
 * changes them.  Gradients are chosen so that all values are exact, so that the parameters say
 * which steps were made.
 *
 *   job_rank STEPS [PAUSE_MS [rejoin|aborts|late|forks]]
 *
 * rejoin: after a failure goes on with the ranks that are left; aborts: rank 1 aborts the group,
 * and all go on in a new one; late: joins with the folder
 * FRIT_TEST_OTHER, if it cannot join with the one it has; forks: a child of the process lives on
 * for a while. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frit/dist.h>
#include <frit/ops.h>

enum { PARAMS = 7, N = 1000, BYTES = 4 * N };
static const float rate = 0.5f;

struct training {
    frit_device *device;
    frit_job_desc job;
    frit_rank *rank;
    frit_replica *replica;
    frit_tensor *params[PARAMS];
    float sums; /* of the mean gradients of the steps that were made */
    uint32_t n_steps;
};

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int failed(const char *what, const frit_err *err)
{
    printf("%s at %lld ms: %s\n", what, now_ms(), err->text);
    return 3;
}

static float gradient(uint32_t step, uint32_t rank)
{
    return (float)(step % 8 + 6 * rank);
}

/* The mean over the ranks, an integer. */
static float mean(uint32_t step, uint32_t size)
{
    return (float)(step % 8 + 3 * (size - 1));
}

/* The parameters are those of the steps that were made. */
static bool check(struct training *t)
{
    frit_err err = {.struct_size = sizeof(err)};
    float values[N];

    for (int k = 0; k < PARAMS; k++) {
        if (frit_read(t->params[k], values, sizeof(values), &err))
            return failed("read", &err), false;
        for (int i = 0; i < N; i++) {
            if (values[i] != (float)k - rate * t->sums) {
                printf("parameter %d is %g, not %g\n", k, (double)values[i],
                       (double)((float)k - rate * t->sums));
                return false;
            }
        }
    }
    return true;
}

static frit_status step(struct training *t, frit_err *err)
{
    frit_tensor *grads[PARAMS], *next[PARAMS];
    frit_status st;

    for (int k = 0; k < PARAMS; k++)
        grads[k] = frit_full(t->device, FRIT_F32, FRIT_SHAPE(N),
                             (double)gradient(t->n_steps, t->job.rank));
    st = frit_replica_reduce(t->replica, grads, err);
    for (int k = 0; k < PARAMS && !st; k++)
        next[k] = frit_sub(t->params[k], frit_mul_f(grads[k], (double)rate));
    for (int k = 0; k < PARAMS && !st; k++) {
        float first[N];

        st = frit_read(next[k], first, sizeof(first), err);
    }
    for (int k = 0; k < PARAMS; k++)
        frit_release(grads[k]);
    for (int k = 0; k < PARAMS && !st; k++) {
        frit_release(t->params[k]);
        t->params[k] = next[k];
    }
    if (!st)
        t->sums += mean(t->n_steps++, t->job.size);
    return st;
}

static frit_status join(struct training *t, frit_err *err)
{
    static const char *const names[PARAMS] = {"w0", "w1", "w2", "w3", "w4", "w5", "w6"};
    const frit_replica_config config = {.struct_size = sizeof(config),
                                        .bucket_bytes = BYTES,
                                        .first_bucket_bytes = BYTES,
                                        .names = names};
    frit_group_config group = {.struct_size = sizeof(group), .engine = "fake-shared"};
    frit_status st;

    group.rank = t->job.rank;
    group.size = t->job.size;
    st = frit_group_join(t->device, &group, &t->rank, err);
    return st ? st : frit_replica_create(t->rank, &config, t->params, PARAMS, &t->replica, err);
}

static void leave(struct training *t)
{
    frit_replica_destroy(t->replica);
    t->replica = NULL;
    (void)frit_group_leave(t->rank, NULL);
    t->rank = NULL;
}

static int train(struct training *t, uint32_t steps, long pause_ms, frit_err *err)
{
    while (t->n_steps < steps) {
        const struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};

        if (step(t, err))
            return failed("failed", err);
        if (t->n_steps % 10 == 1)
            printf("step %u\n", t->n_steps);
        nanosleep(&pause, NULL);
    }
    printf("trained at %lld ms\n", now_ms());
    return 0;
}

/* The group failed: the ranks that are left make another one. */
static int go_on(struct training *t, frit_host *host, frit_status want, frit_err *err)
{
    frit_status st;

    leave(t);
    st = join(t, err);
    if (st != want)
        return failed("joined, or not", err);
    if (st && (frit_job_info(host, &t->job, err) || join(t, err)))
        return failed("not joined again", err);
    printf("rank %u of %u now\n", t->job.rank, t->job.size);
    return 0;
}

static bool has_word(char **args, const char *word)
{
    return args[2] && args[3] && strcmp(args[3], word) == 0;
}

static int run(frit_host *host, struct training *t, char **args, frit_err *err)
{
    const uint32_t steps = (uint32_t)atoi(args[1]);
    const long pause_ms = args[2] ? atol(args[2]) : 0;
    int status;

    for (int k = 0; k < PARAMS; k++)
        t->params[k] = frit_full(t->device, FRIT_F32, FRIT_SHAPE(N), k);
    if (frit_job_info(host, &t->job, err))
        return failed("no job", err);
    if (has_word(args, "late") && join(t, err)) {
        printf("not joined: %s\n", err->text);
        setenv("FRIT_TEST_SHARED", getenv("FRIT_TEST_OTHER"), 1);
    }
    if (!t->rank && join(t, err))
        return failed("not joined", err);
    printf("joined at %lld ms\n", now_ms());
    if (has_word(args, "forks") && fork() == 0) {
        sleep(3);
        _exit(0);
    }
    if (has_word(args, "aborts") && t->job.rank == 1) {
        (void)train(t, 5, pause_ms, err);
        (void)frit_group_abort(t->rank, "enough of it");
    }
    status = train(t, steps, pause_ms, err);
    if (!check(t))
        return 4;
    if (status && (has_word(args, "rejoin") || has_word(args, "aborts"))) {
        status = go_on(t, host, has_word(args, "rejoin") ? FRIT_PEER_LOST : FRIT_OK, err);
        if (!status)
            status = train(t, t->n_steps + 20, pause_ms, err);
        if (!check(t))
            return 4;
    }
    printf("parameters are those of %u steps\n", t->n_steps);
    leave(t);
    return status;
}

int main(int argc, char **argv)
{
    frit_host_params params = {.struct_size = sizeof(params)};
    struct training training = {.job = {.struct_size = sizeof(frit_job_desc)}};
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host;
    int status;

    if (argc < 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (frit_host_open(&params, &host, &err) ||
        frit_device_open(host, NULL, &training.device, &err))
        return failed("not open", &err);
    status = run(host, &training, argv, &err);
    frit_device_close(training.device);
    frit_host_close(host);
    return status;
}
