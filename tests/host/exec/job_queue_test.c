/* SPDX-License-Identifier: Apache-2.0 */
/* Which job runs when, and that each ends once.  The first job of most tests holds a thread until
 * the others are queued. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/job_queue.h"
#include "failing_alloc.h"
#include "threads.h"

enum { MANY = 100, ADDERS = 4, EACH = 500 };

/* What jobs did, a letter each: small where it ran, large where it ended without. */
struct log {
    pthread_mutex_t lock;
    char text[2 * MANY + 8];
    uint32_t length, n_ended;
};

struct note {
    struct job job; /* first */
    struct log *log;
    char letter;
    atomic_bool *hold; /* NULL: it does not wait until this is false */
    atomic_bool entered;
};

static void add_letter(struct log *log, char letter)
{
    pthread_mutex_lock(&log->lock);
    if (log->length < sizeof(log->text) - 1)
        log->text[log->length++] = letter;
    pthread_mutex_unlock(&log->lock);
}

static void run(struct job *job)
{
    struct note *note = (struct note *)job;

    atomic_store(&note->entered, true);
    while (note->hold && atomic_load(note->hold) &&
           !__atomic_load_n(&job->cancel.requested, __ATOMIC_RELAXED))
        sched_yield();
    add_letter(note->log, note->letter);
}

static void end(struct job *job)
{
    const struct note *note = (struct note *)job;
    struct log *log = note->log;

    if (!job->begun)
        add_letter(log, (char)(note->letter - 'a' + 'A'));
    pthread_mutex_lock(&log->lock);
    log->n_ended++;
    pthread_mutex_unlock(&log->lock);
}

static struct note note_of(struct log *log, char letter, enum job_class class, uint64_t priority)
{
    return (struct note){
        .job = {.run = run, .end = end, .class = class, .priority = priority, .owner = log},
        .log = log,
        .letter = letter};
}

static struct job_queue *create(uint32_t limit)
{
    struct job_queue *queue;

    assert_int_equal(job_queue_create(limit, 0, &queue, NULL), FRIT_OK);
    return queue;
}

static void add(struct job_queue *queue, struct note *note)
{
    assert_int_equal(job_queue_add(queue, &note->job, NULL, NULL), FRIT_OK);
}

/* Until this many jobs have ended. */
static void await(struct log *log, uint32_t n)
{
    uint32_t ended = 0;

    while (ended < n) {
        sched_yield();
        pthread_mutex_lock(&log->lock);
        ended = log->n_ended;
        pthread_mutex_unlock(&log->lock);
    }
}

static void add_and_enter(struct job_queue *queue, struct note *note, atomic_bool *hold)
{
    note->hold = hold;
    add(queue, note);
    while (!atomic_load(&note->entered))
        sched_yield();
}

#define LOG_INIT                          \
    {                                     \
        .lock = PTHREAD_MUTEX_INITIALIZER \
    }

static void the_most_wanted_runs_first(void **state)
{
    struct log log = LOG_INIT;
    struct job_queue *queue = create(1);
    atomic_bool hold = true, hold_awaited = true;
    struct note first = note_of(&log, 'x', JOB_SPARE, 0),
                second = note_of(&log, 'y', JOB_AWAITED, 0);
    struct note notes[] = {
        note_of(&log, 'f', JOB_SPARE, 99),  note_of(&log, 'd', JOB_AWAITED, 1),
        note_of(&log, 'c', JOB_AWAITED, 5), note_of(&log, 'g', JOB_SPARE, 3),
        note_of(&log, 'b', JOB_AWAITED, 9), note_of(&log, 'h', JOB_SPARE, 3),
        note_of(&log, 'a', JOB_AWAITED, 1), note_of(&log, 'e', JOB_AWAITED, 1),
    };

    (void)state;
    add_and_enter(queue, &first, &hold);
    add_and_enter(queue, &second, &hold_awaited);
    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
        add(queue, &notes[i]);
    job_queue_raise(queue, &notes[6].job, 10);
    job_queue_raise(queue, &notes[0].job, UINT64_MAX);
    job_queue_raise(queue, &first.job, 1); /* it runs: nothing */
    atomic_store(&hold_awaited, false);
    await(&log, 6);
    assert_string_equal(log.text, "yabcde"); /* the spare one still has the other thread */
    atomic_store(&hold, false);
    await(&log, 10);
    assert_string_equal(log.text, "yabcdexfgh");
    job_queue_destroy(queue);
}

/* One thread more than the limit, for what is awaited alone. */
static void spare_jobs_never_hold_up_awaited_ones(void **state)
{
    const uint32_t before = count_threads();
    struct log log = LOG_INIT;
    struct job_queue *queue = create(2);
    atomic_bool hold = true;
    struct note spare[3], awaited[2];

    (void)state;
    for (int i = 0; i < 3; i++)
        spare[i] = note_of(&log, (char)('a' + i), JOB_SPARE, 9);
    for (int i = 0; i < 2; i++)
        awaited[i] = note_of(&log, (char)('p' + i), JOB_AWAITED, 0);
    assert_int_equal(count_threads(), before); /* none without a job */
    add_and_enter(queue, &spare[0], &hold);
    add_and_enter(queue, &spare[1], &hold);
    spare[2].hold = &hold;
    add(queue, &spare[2]);
    add(queue, &awaited[0]);
    add(queue, &awaited[1]);
    await(&log, 2);
    assert_string_equal(log.text, "pq");
    assert_int_equal(count_threads(), before + 3);
    assert_false(atomic_load(&spare[2].entered));
    atomic_store(&hold, false);
    await(&log, 5);
    job_queue_destroy(queue);
}

static void several_run_at_once(void **state)
{
    struct log log = LOG_INIT;
    struct job_queue *queue = create(4);
    atomic_bool hold = true;
    struct note notes[5];

    (void)state;
    for (int i = 0; i < 5; i++) {
        notes[i] = note_of(&log, 'a', JOB_AWAITED, 0);
        add_and_enter(queue, &notes[i], &hold);
    }
    atomic_store(&hold, false);
    await(&log, 5);
    job_queue_destroy(queue);
    assert_int_equal(job_queue_limit(1), 1);
    assert_int_equal(job_queue_limit(4), 3);
    assert_int_equal(job_queue_limit(11), 6);
    assert_int_equal(job_queue_limit(256), 8);
}

/* Of equal jobs one runs at a time, at the priority of all. */
static void equal_jobs_are_joined(void **state)
{
    struct log log = LOG_INIT;
    struct job_queue *queue = create(4);
    atomic_bool hold = true, hold_others = true;
    struct note holders[4], notes[5], late;

    (void)state;
    notes[0] = note_of(&log, 'a', JOB_AWAITED, 4);
    for (int i = 0; i < 4; i++)
        notes[1 + i] = note_of(&log, (char)('b' + i), JOB_AWAITED, 3);
    for (int i = 1; i < 4; i++) {
        notes[i].job.key = "same";
        notes[i].job.key_bytes = 4;
    }
    notes[4].job.key = "sane";
    notes[4].job.key_bytes = 4;
    for (int i = 0; i < 4; i++) {
        holders[i] = note_of(&log, (char)('w' + i), JOB_AWAITED, 9);
        add_and_enter(queue, &holders[i], i ? &hold_others : &hold);
    }
    late = note_of(&log, 'v', JOB_AWAITED, 9);
    add_and_enter(queue, &late, &hold_others); /* the fifth and last thread */
    for (int i = 0; i < 5; i++)
        add(queue, &notes[i]);
    atomic_store(&hold, false);
    await(&log, 6);
    assert_string_equal(log.text, "wbacde"); /* b has 9 */
    assert_false(notes[0].job.joined || notes[1].job.joined || notes[4].job.joined);
    assert_true(notes[2].job.joined && notes[3].job.joined);
    atomic_store(&hold_others, false);
    await(&log, 10);
    job_queue_destroy(queue);
}

/* Though threads are free. */
static void an_equal_job_waits_for_the_one_that_runs(void **state)
{
    struct log log = LOG_INIT;
    struct job_queue *queue = create(4);
    atomic_bool hold = true;
    struct note one = note_of(&log, 'a', JOB_AWAITED, 0), two = note_of(&log, 'b', JOB_AWAITED, 9);
    struct note other = note_of(&log, 'c', JOB_AWAITED, 0);

    (void)state;
    one.job.key = two.job.key = "key";
    one.job.key_bytes = two.job.key_bytes = 3;
    add_and_enter(queue, &one, &hold);
    add(queue, &two);
    add(queue, &other);
    await(&log, 1);
    assert_string_equal(log.text, "c");
    assert_true(two.job.joined);
    atomic_store(&hold, false);
    await(&log, 3);
    assert_string_equal(log.text, "cab");
    job_queue_destroy(queue);
}

static void jobs_are_taken_back(void **state)
{
    struct log log = LOG_INIT;
    struct job_queue *queue = create(1);
    atomic_bool hold = true;
    struct note first = note_of(&log, 'a', JOB_AWAITED, 0), b = note_of(&log, 'b', JOB_AWAITED, 0);
    struct note c = note_of(&log, 'c', JOB_AWAITED, 0), d = note_of(&log, 'd', JOB_AWAITED, 0);
    struct note second = note_of(&log, 'x', JOB_AWAITED, 0);

    (void)state;
    add_and_enter(queue, &first, &hold);
    add_and_enter(queue, &second, &hold);
    add(queue, &b);
    add(queue, &c);
    add(queue, &d);
    assert_true(job_queue_take(queue, &c.job));
    assert_false(job_queue_take(queue, &c.job));
    assert_true(job_queue_cancel(queue, &b.job));
    assert_false(job_queue_take(queue, &first.job));
    assert_false(first.job.cancel.requested);
    assert_false(job_queue_cancel(queue, &first.job)); /* it runs, and stops on request */
    await(&log, 2);
    assert_string_equal(log.text, "ad");
    add(queue, &c); /* once more */
    await(&log, 3);
    assert_string_equal(log.text, "adc");
    atomic_store(&hold, false);
    job_queue_destroy(queue);
}

/* The end waits for those that run and for no others. */
static void the_end_cancels(void **state)
{
    struct log log = LOG_INIT, others = LOG_INIT;
    struct job_queue *queue = create(1);
    atomic_bool hold = true;
    struct note first = note_of(&log, 'a', JOB_AWAITED, 0), notes[MANY];
    struct note other = note_of(&others, 'o', JOB_SPARE, 0);
    struct note third = note_of(&others, 'p', JOB_SPARE, 0);

    (void)state;
    add_and_enter(queue, &other, &hold);
    add_and_enter(queue, &first, &hold);
    add(queue, &third);
    for (int i = 0; i < MANY; i++) {
        notes[i] = note_of(&log, 'b', JOB_AWAITED, (uint64_t)i);
        add(queue, &notes[i]);
    }
    job_queue_cancel_all(queue, &log);
    assert_int_equal(log.n_ended, 1 + MANY);
    assert_null(strchr(log.text, 'b')); /* none of the queued ones ran */
    assert_true(first.job.cancel.requested);
    assert_int_equal(others.n_ended, 0);
    assert_false(other.job.cancel.requested);
    job_queue_destroy(queue);
    /* Only one of them ran; a thread ends it while this one ends the other. */
    assert_int_equal(others.length, 2);
    assert_true(strchr(others.text, 'P') && strchr(others.text, 'o'));
    assert_true(other.job.cancel.requested);
    job_queue_destroy(NULL);
}

struct adder {
    pthread_t thread;
    struct job_queue *queue;
    struct note *notes;
};

static void *add_all(void *ctx)
{
    struct adder *adder = ctx;

    for (uint32_t i = 0; i < EACH; i++) {
        add(adder->queue, &adder->notes[i]);
        if (i % 3 == 0 && job_queue_cancel(adder->queue, &adder->notes[i].job))
            end(&adder->notes[i].job);
        if (i % 5 == 0)
            job_queue_raise_id(adder->queue, adder->notes[i].log, i, 1);
    }
    return NULL;
}

static void each_job_ends_once(void **state)
{
    static struct note notes[ADDERS][EACH];
    struct log log = LOG_INIT;
    struct job_queue *queue = create(2);
    struct adder adders[ADDERS];

    (void)state;
    for (uint32_t a = 0; a < ADDERS; a++) {
        adders[a] = (struct adder){.queue = queue, .notes = notes[a]};
        for (uint32_t i = 0; i < EACH; i++)
            notes[a][i] = note_of(&log, 'a', i % 2 ? JOB_AWAITED : JOB_SPARE, i);
        assert_int_equal(pthread_create(&adders[a].thread, NULL, add_all, &adders[a]), 0);
    }
    for (uint32_t a = 0; a < ADDERS; a++)
        pthread_join(adders[a].thread, NULL);
    job_queue_destroy(queue);
    assert_int_equal(log.n_ended, ADDERS * EACH);
}

struct context {
    struct job job; /* first */
    sigset_t mask;
    int niceness, wanted;
    atomic_bool begun, ended;
};

static void look_around(struct job *job)
{
    struct context *context = (struct context *)job;

    pthread_sigmask(SIG_BLOCK, NULL, &context->mask);
    context->niceness = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

static void note_end(struct job *job)
{
    atomic_store(&((struct context *)job)->ended, true);
}

static void threads_hear_no_signal_and_yield(void **state)
{
    struct context context = {.job = {.run = look_around, .end = note_end}};
    int mine = getpriority(PRIO_PROCESS, 0);
    struct job_queue *queue;

    (void)state;
    assert_int_equal(job_queue_create(1, 3, &queue, NULL), FRIT_OK);
    assert_int_equal(job_queue_add(queue, &context.job, NULL, NULL), FRIT_OK);
    while (!atomic_load(&context.ended))
        sched_yield();
    job_queue_destroy(queue);
    assert_int_equal(sigismember(&context.mask, SIGTERM), 1);
    assert_int_equal(context.niceness, mine + 3 < 19 ? mine + 3 : 19);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), mine);
}

enum { PATIENCE_MS = 60000 };

static void wait_for_raise(struct job *job)
{
    struct context *context = (struct context *)job;

    atomic_store(&context->begun, true);
    for (int i = 0; i < PATIENCE_MS && (look_around(job), context->niceness > context->wanted); i++)
        usleep(1000);
}

/* One who waits for a job lends it the priority, which it has until it ends. */
static void a_job_that_is_awaited_hurries(void **state)
{
    const int mine = getpriority(PRIO_PROCESS, 0);

    (void)state;
    if (geteuid() || mine + 3 > 19)
        skip(); /* the system refuses, or there is no lower priority */
    for (int way = 0; way < 2; way++) {
        struct context context = {.job = {.run = wait_for_raise, .end = note_end}, .wanted = mine};
        struct context next = {.job = {.run = look_around, .end = note_end}};
        struct job_queue *queue;

        assert_int_equal(job_queue_create(1, 3, &queue, NULL), FRIT_OK);
        assert_int_equal(job_queue_add(queue, &context.job, NULL, NULL), FRIT_OK);
        while (!atomic_load(&context.begun))
            sched_yield();
        if (way)
            job_queue_cancel_all(queue, NULL);
        else
            job_queue_hurry(queue, &context.job);
        while (!atomic_load(&context.ended))
            sched_yield();
        assert_int_equal(context.niceness, mine);
        assert_int_equal(job_queue_add(queue, &next.job, NULL, NULL), FRIT_OK);
        while (!atomic_load(&next.ended))
            sched_yield();
        assert_int_equal(next.niceness, mine + 3);
        job_queue_destroy(queue);
    }
}

static void no_memory(void **state)
{
    struct job_queue *queue;

    (void)state;
    failing_alloc_arm(0);
    assert_int_equal(job_queue_create(1, 0, &queue, NULL), FRIT_NO_HOST_MEMORY);
    assert_true(failing_alloc_disarm());
    assert_null(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_wanted_runs_first),
        cmocka_unit_test(spare_jobs_never_hold_up_awaited_ones),
        cmocka_unit_test(several_run_at_once),
        cmocka_unit_test(equal_jobs_are_joined),
        cmocka_unit_test(an_equal_job_waits_for_the_one_that_runs),
        cmocka_unit_test(jobs_are_taken_back),
        cmocka_unit_test(the_end_cancels),
        cmocka_unit_test(each_job_ends_once),
        cmocka_unit_test(threads_hear_no_signal_and_yield),
        cmocka_unit_test(a_job_that_is_awaited_hurries),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
