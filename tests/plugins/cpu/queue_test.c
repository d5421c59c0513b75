/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of the cpu driver: submits on two of them run at once, each on its caller's thread, and
 * one that waits for the other's point does not begin before that is reached. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "plugins/rig.h"

enum { PATIENCE_S = 20 };

struct setting {
    struct rig rig;
    frit_queue *queue; /* beside the first one */
    sem_t inside[2];   /* posted by the kernel of each queue when it has begun */
    atomic_uint ended; /* kernels */
    frit_launch_spec spec;
};

/* A kernel, on a queue of the setting. */
struct job {
    struct setting *setting;
    uint32_t number;    /* 0: on the first queue */
    bool meets;         /* ends when the other one has begun */
    bool was_met;       /* then: before its patience ended */
    uint32_t ended_yet; /* kernels that had ended when it began */
    const frit_point *after;
    frit_status status; /* of the submit */
    uint64_t value;
};

static struct timespec deadline(void)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += PATIENCE_S;
    return at;
}

static frit_status run(void *ctx, const frit_launch *launch, frit_err *err)
{
    const struct timespec end = deadline();
    struct job *job = ctx;
    struct setting *s = job->setting;

    (void)launch;
    (void)err;
    job->ended_yet = atomic_load(&s->ended);
    sem_post(&s->inside[job->number]);
    if (job->meets)
        job->was_met = !sem_timedwait(&s->inside[!job->number], &end);
    atomic_fetch_add(&s->ended, 1);
    return FRIT_OK;
}

/* Runs the job's kernel; for a thread. */
static void *submit(void *arg)
{
    struct job *job = arg;
    struct setting *s = job->setting;
    const frit_backend *backend = s->rig.backend;
    const frit_host_fn fn = {.struct_size = sizeof fn, .run = run, .ctx = job};
    const frit_launch launch = {.struct_size = sizeof launch, .spec = &s->spec};
    frit_cmd cmd = {.struct_size = sizeof cmd, .kind = FRIT_CMD_DISPATCH, .launch = &launch};
    frit_err err = {.struct_size = sizeof err};

    job->status = backend->kernel_load(s->rig.device, FRIT_STR(FRIT_FORMAT_HOST_FN), &fn, sizeof fn,
                                       &cmd.kernel, &err);
    if (job->status)
        return NULL;
    job->status = backend->submit(s->rig.device, job->number ? s->queue : NULL, &cmd, 1, sizeof cmd,
                                  job->after, job->after != NULL, &job->value, &err);
    backend->kernel_unload(s->rig.device, cmd.kernel);
    return NULL;
}

static int open_setting(void **state)
{
    static struct setting s;
    const frit_queue_desc desc = {.struct_size = sizeof desc, .kind = FRIT_QUEUE_COMPUTE};

    memset(&s, 0, sizeof s);
    rig_open(&s.rig);
    assert_int_equal(s.rig.backend->queue_create(s.rig.device, &desc, &s.queue, &s.rig.err),
                     FRIT_OK);
    sem_init(&s.inside[0], 0, 0);
    sem_init(&s.inside[1], 0, 0);
    *state = &s;
    return 0;
}

static int close_setting(void **state)
{
    struct setting *s = *state;

    sem_destroy(&s->inside[0]);
    sem_destroy(&s->inside[1]);
    s->rig.backend->queue_destroy(s->rig.device, s->queue);
    s->rig.backend->queue_destroy(s->rig.device, NULL);
    rig_close(&s->rig);
    return 0;
}

static void two_queues_run_at_once(void **state)
{
    struct job job[2] = {{.setting = *state, .number = 0, .meets = true},
                         {.setting = *state, .number = 1, .meets = true}};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, submit, &job[1]), 0);
    submit(&job[0]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job[i].status, FRIT_OK);
        assert_int_equal(job[i].value, 1); /* each has a timeline of its own */
        assert_true(job[i].was_met);
    }
}

/* The second queue waits for a value of the first that is being reached. */
static void a_wait_waits(void **state)
{
    const frit_point after = {NULL, 1};
    struct setting *s = *state;
    struct job first = {.setting = s, .number = 0, .meets = true};
    struct job second = {.setting = s, .number = 1, .after = &after};
    const struct timespec pause = {0, 20000000};
    pthread_t threads[2];

    assert_int_equal(pthread_create(&threads[0], NULL, submit, &first), 0);
    assert_int_equal(sem_wait(&s->inside[0]), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, submit, &second), 0);
    nanosleep(&pause, NULL);
    sem_post(&s->inside[1]); /* in the second's place */
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(first.status, FRIT_OK);
    assert_int_equal(second.status, FRIT_OK);
    assert_int_equal(second.ended_yet, 1);
}

static void points_to_come_are_refused(void **state)
{
    struct setting *s = *state;
    const frit_point later = {NULL, 1};
    struct job job = {.setting = s, .number = 1, .after = &later};

    submit(&job);
    assert_int_equal(job.status, FRIT_INVALID);
    assert_int_equal(atomic_load(&s->ended), 0);
}

/* What the device has room for, and no more; a handle ends with its queue. */
static void queues_come_and_go(void **state)
{
    enum { MOST = 64 };
    const frit_queue_desc desc = {.struct_size = sizeof desc, .kind = FRIT_QUEUE_COMPUTE};
    const frit_backend *backend = ((struct setting *)*state)->rig.backend;
    struct rig *rig = &((struct setting *)*state)->rig;
    frit_failure failure = {.struct_size = sizeof failure};
    frit_queue *queues[MOST];
    frit_status status = FRIT_OK;
    uint32_t n = 0;

    while (n < MOST && !status) {
        status = backend->queue_create(rig->device, &desc, &queues[n], &rig->err);
        n += !status;
    }
    assert_int_equal(status, FRIT_UNSUPPORTED);
    assert_true(n >= 7);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(backend->wait(rig->device, queues[i], 0, 0, &failure, &rig->err), FRIT_OK);
    backend->queue_destroy(rig->device, queues[0]);
    assert_int_equal(backend->queue_create(rig->device, &desc, &queues[0], &rig->err), FRIT_OK);
    for (uint32_t i = 0; i < n; i++)
        backend->queue_destroy(rig->device, queues[i]);
    assert_int_equal(backend->wait(rig->device, queues[1], 0, 0, &failure, &rig->err),
                     FRIT_INVALID);
}

/* On one processor the driver has its first queue only. */
static bool has_queues(void)
{
    struct rig rig = {0};
    bool has;

    rig_open(&rig);
    has = rig.backend->queue_create != NULL;
    rig_close(&rig);
    return has;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_queues_run_at_once, open_setting, close_setting),
        cmocka_unit_test_setup_teardown(a_wait_waits, open_setting, close_setting),
        cmocka_unit_test_setup_teardown(points_to_come_are_refused, open_setting, close_setting),
        cmocka_unit_test_setup_teardown(queues_come_and_go, open_setting, close_setting),
    };

    if (!has_queues()) {
        puts("one processor: no queues to test");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
