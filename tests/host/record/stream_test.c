/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and their threads: who gets what a thread left, which elements a queued op sees, what a
 * sync returns, which tensors a scope ends, what a new generation of known plans does. */
#include "device/retired.h"
#include "run/rig.h"

#include <pthread.h>
#include <string.h>

#include <frit/frit.h>

#include "base/fail.h"
#include "device/device.h"
#include "memory/buffer.h"
#include "plan/automaton.h"
#include "plan/program.h"
#include "record/binding.h"
#include "run/drain.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};
static const float big[1 << 16];

static frit_tensor *make(frit_device *device)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(2, 3), six, sizeof(six));
}

static void expect_negative(frit_tensor *tensor)
{
    float out[6];

    assert_int_equal(frit_read(tensor, out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < 6; i++)
        assert_true(out[i] == -six[i]);
}

/* ---- threads ---- */

static uint32_t count_streams(const frit_device *device)
{
    uint32_t count = 0;

    for (const struct stream *s = device->streams; s; s = s->next)
        count++;
    return count;
}

struct job {
    frit_device *device;
    frit_tensor *result;
};

static void in_thread(struct job *job, void *(*fn)(void *))
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, fn, job), 0);
    pthread_join(thread, NULL);
}

static void *queue_neg(void *arg)
{
    struct job *job = arg;

    job->result = frit_neg(frit_take(make(job->device)));
    return NULL;
}

static void *leave_persistent(void *arg)
{
    struct job *job = arg;

    frit_persistent_begin(job->device);
    return NULL;
}

static void *queue_wrong(void *arg)
{
    struct job *job = arg;

    job->result = frit_reshape(frit_take(make(job->device)), FRIT_SHAPE(5));
    return NULL;
}

static void *sync_it(void *arg)
{
    struct job *job = arg;

    assert_int_equal(frit_sync(job->device, NULL), FRIT_OK);
    return NULL;
}

static void *open_scope(void *arg)
{
    struct job *job = arg;

    frit_scope_begin(job->device);
    return queue_neg(arg);
}

static uint64_t plays_of(frit_device *device)
{
    struct stream_counters count;

    streams_sum_counters(device, &count);
    return atomic_load(&count.replays);
}

/* What comes after a failure and does not depend on it runs as before; what depends on it fails. */
static void test_bound_plans_replay_after_a_failure(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y, *z;
    uint64_t plays;
    uint32_t launches;

    (void)state;
    for (int i = 0; i < 4; i++)
        expect_negative(frit_take(frit_neg(x)));
    driver.complete_status = FRIT_INTERNAL;
    y = frit_neg(x);
    assert_int_equal(frit_sync(device, NULL), FRIT_INTERNAL);
    plays = plays_of(device);
    assert_true(plays > 0);
    for (int i = 0; i < 4; i++)
        expect_negative(frit_take(frit_neg(x)));
    assert_int_equal(plays_of(device), plays + 4);
    launches = driver.launches;
    z = frit_neg(y);
    assert_int_equal(frit_sync(device, NULL), FRIT_INTERNAL);
    assert_int_equal(frit_tensor_status(z), FRIT_INTERNAL);
    assert_int_equal(driver.launches, launches);
    expect_negative(frit_take(frit_neg(x)));
    assert_int_equal(plays_of(device), plays + 5);
    frit_release(z);
    frit_release(y);
    frit_release(x);
    device_close(device);
}

static struct {
    frit_device *device;
    struct stream *stream;
} newcomer;

static void *bind_thread(void *unused)
{
    struct binding *binding;

    (void)unused;
    assert_int_equal(binding_current(newcomer.device, &binding, NULL), FRIT_OK);
    newcomer.stream = binding->stream;
    return NULL;
}

static void another_thread_comes(struct driver *driver)
{
    pthread_t thread;

    driver->on_submit = NULL;
    assert_int_equal(pthread_create(&thread, NULL, bind_thread, NULL), 0);
    pthread_join(thread, NULL);
}

/* A stream of its own with an op that waits. */
static struct stream *open_busy(frit_device *device, frit_tensor *x, frit_tensor **y)
{
    struct stream *stream, *before;

    assert_int_equal(stream_open(device, &stream, NULL), FRIT_OK);
    assert_int_equal(binding_set_stream(device, stream, &before, NULL), FRIT_OK);
    *y = frit_neg(x);
    assert_int_equal(binding_set_stream(device, before, &before, NULL), FRIT_OK);
    return stream;
}

/* A thread that comes while a stream is being closed does not get it: what is queued there, and its
 * errors, are not the thread's. */
static void test_a_stream_is_empty_before_it_serves_again(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y;
    struct stream *closing = open_busy(device, x, &y);

    (void)state;
    newcomer.device = device;
    driver.on_submit = another_thread_comes;
    assert_int_equal(stream_close(closing, NULL), FRIT_OK);
    assert_null(driver.on_submit);
    assert_ptr_not_equal(newcomer.stream, closing);
    assert_null(atomic_load(&closing->home.owner));
    assert_int_equal(stream_close(closing, NULL), FRIT_INVALID);
    expect_negative(frit_take(y));
    frit_release(x);
    device_close(device);
}

static struct stream *to_close;

static void close_inside(struct driver *driver)
{
    driver->on_submit = NULL;
    assert_int_equal(stream_close(to_close, NULL), FRIT_BUSY);
}

static void test_a_driver_s_call_closes_no_stream(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y;

    (void)state;
    to_close = open_busy(device, x, &y);
    driver.on_submit = close_inside;
    expect_negative(frit_take(frit_neg(x)));
    assert_null(driver.on_submit);
    assert_int_equal(frit_tensor_status(y), FRIT_OK);
    assert_int_equal(stream_close(to_close, NULL), FRIT_OK);
    expect_negative(frit_take(y));
    frit_release(x);
    device_close(device);
}

static void test_threads_one_after_another_share_a_stream(void **state)
{
    struct driver driver = {0};
    struct job first = {.device = driver_device(&driver, 100)}, second = first;

    (void)state;
    in_thread(&first, queue_neg);
    in_thread(&second, queue_neg);
    assert_int_equal(count_streams(first.device), 1);
    assert_int_equal(streams_queued(first.device), 1); /* the first op ran when it was closed */
    expect_negative(frit_take(second.result));
    expect_negative(frit_take(first.result));
    device_close(first.device);
}

static void *queue_add(void *arg)
{
    struct job *job = arg;
    frit_tensor *x = make(job->device);
    struct binding *binding = binding_peek(job->device);

    assert_int_equal(frit_sync(job->device, NULL), FRIT_OK);
    job->result = frit_add_f(frit_take(x), 1);
    assert_int_equal(binding->stream->segment->n_ops, 1); /* the old op is not before it */
    assert_int_equal(frit_sync(job->device, NULL), FRIT_OK);
    return NULL;
}

/* What a thread left runs before another one has its stream; its error comes from frit_sync_all. */
static void test_left_ops_are_not_the_next_thread_s(void **state)
{
    struct driver driver = {.refuse_neg = true};
    struct job old = {.device = driver_device(&driver, 100)}, next = old;

    (void)state;
    in_thread(&old, queue_neg);
    in_thread(&next, queue_add);
    assert_int_equal(count_streams(old.device), 1);
    assert_int_equal(frit_tensor_status(old.result), FRIT_UNSUPPORTED);
    assert_int_equal(frit_tensor_status(next.result), FRIT_OK);
    assert_int_equal(frit_sync_all(old.device, NULL), FRIT_UNSUPPORTED);
    assert_int_equal(frit_sync_all(old.device, NULL), FRIT_OK);
    frit_release(old.result);
    frit_release(next.result);
    device_close(old.device);
}

static void test_a_new_thread_does_not_get_old_errors(void **state)
{
    struct driver driver = {0};
    struct job job = {.device = driver_device(&driver, 100)};

    (void)state;
    in_thread(&job, queue_wrong);
    in_thread(&job, sync_it);
    assert_int_equal(count_streams(job.device), 1);
    frit_release(job.result);
    device_close(job.device);
}

static void test_a_new_thread_makes_ordinary_tensors(void **state)
{
    struct driver driver = {0};
    struct job job = {.device = driver_device(&driver, 100)};
    struct slot *slot;

    (void)state;
    in_thread(&job, leave_persistent);
    in_thread(&job, queue_neg);
    assert_int_equal(frit_sync_all(job.device, NULL), FRIT_OK);
    slot = slot_enter(job.result, NULL);
    assert_non_null(slot);
    assert_false(buffer_is_persistent(slot->value.buffer));
    slot_leave(slot);
    frit_release(job.result);
    device_close(job.device);
}

/* Nobody may end the scope that the thread left open, so what it holds lives until the device
 * closes. */
static void test_an_open_scope_is_not_handed_on(void **state)
{
    struct driver driver = {0};
    struct job scoped = {.device = driver_device(&driver, 100)}, other = scoped;

    (void)state;
    in_thread(&scoped, open_scope);
    in_thread(&other, queue_neg);
    assert_int_equal(count_streams(scoped.device), 2);
    expect_negative(scoped.result);
    expect_negative(frit_take(other.result));
    device_close(scoped.device);
    assert_int_equal(frit_tensor_status(scoped.result), FRIT_INVALID);
}

/* ---- writes ---- */

static void test_queued_ops_keep_the_old_elements(void **state)
{
    static const float zeros[6] = {0};
    struct driver driver = {0};
    struct job job = {.device = driver_device(&driver, 100)};
    frit_tensor *x = make(job.device), *y = frit_neg(x), *view = frit_reshape(x, FRIT_SHAPE(6));
    float out[6];

    (void)state;
    assert_int_equal(frit_write(x, zeros, sizeof(zeros), NULL), FRIT_OK);
    expect_negative(frit_take(y));
    assert_int_equal(frit_read(frit_take(view), out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, six, sizeof(six));
    assert_int_equal(frit_read(frit_take(x), out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, zeros, sizeof(zeros));
    device_close(job.device);
}

static void *queue_neg_of(void *arg)
{
    struct job *job = arg;

    job->result = frit_neg(job->result);
    return NULL;
}

static void test_another_queue_keeps_them_too(void **state)
{
    static const float zeros[6] = {0};
    struct driver driver = {0};
    struct job job = {.device = driver_device(&driver, 100)};
    frit_tensor *x = make(job.device);

    (void)state;
    job.result = x;
    in_thread(&job, queue_neg_of);
    assert_int_equal(frit_write(x, zeros, sizeof(zeros), NULL), FRIT_OK);
    expect_negative(frit_take(job.result));
    frit_release(x);
    device_close(job.device);
}

/* ---- failures ---- */

static void expect_reason(frit_tensor *tensor)
{
    assert_int_equal(frit_tensor_status(tensor), FRIT_DEVICE_LOST);
    if (!strstr(frit_tensor_error(tensor), "the server closed the connection"))
        fail_msg("%s", frit_tensor_error(tensor));
    frit_release(tensor);
}

/* The driver says once why the device is lost. */
static void test_each_error_of_a_lost_device_has_the_reason(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y;
    float out[6];
    frit_err err = ERR_INIT;

    (void)state;
    driver.lose = true;
    assert_int_equal(frit_sync(device, NULL), FRIT_DEVICE_LOST);
    assert_int_equal(device_check_loss(device, &err), FRIT_DEVICE_LOST);
    assert_string_equal(err.text, "scripted:0 is lost: the server closed the connection");
    y = frit_neg(x);
    (void)frit_sync(device, NULL);
    expect_reason(y);            /* no submit */
    expect_reason(make(device)); /* no write */
    y = frit_from_host(device, FRIT_F32, FRIT_SHAPE(1 << 16), big, sizeof(big));
    expect_reason(y); /* no alloc */
    assert_int_equal(frit_read(x, out, sizeof(out), NULL), FRIT_DEVICE_LOST);
    frit_release(x);
    device_close(device);
}

static void test_sync_reports_a_late_failure_once(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *bad = frit_neg(frit_take(make(device)));

    (void)state;
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    driver.complete_status = FRIT_TIMEOUT;
    frit_tensor *again = frit_neg(frit_take(make(device)));
    assert_int_equal(frit_sync_all(device, NULL), FRIT_TIMEOUT);
    frit_release(bad);
    frit_release(again);
    device_close(device);
}

/* What is made of spoiled elements after the failure is known is spoiled too. */
static void test_a_copy_of_spoiled_elements_fails(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *bad = frit_neg(frit_take(make(device)));
    frit_tensor *view = frit_permute(bad, FRIT_AXES(1, 0));
    float out[6];

    (void)state;
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    assert_int_equal(frit_read(view, out, sizeof(out), NULL), FRIT_TIMEOUT);
    frit_release(bad);
    frit_release(view);
    device_close(device);
}

/* ---- scopes ---- */

/* A tensor that another owner keeps is not a scope's any more: keeping it moves nothing. */
static void test_what_outlives_its_scope_has_none(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *kept = frit_ref(make(device)), *scoped;

    (void)state;
    frit_scope_end(scope);
    assert_int_equal(frit_tensor_status(kept), FRIT_OK);
    scope = frit_scope_begin(device);
    scoped = make(device);
    frit_keep(kept);
    frit_scope_end(scope);
    assert_int_equal(frit_tensor_status(scoped), FRIT_INVALID);
    assert_int_equal(frit_tensor_status(kept), FRIT_OK);
    frit_release(kept);
    assert_int_equal(streams_tensors(device), 0);
    device_close(device);
}

static void *keep_it(void *arg)
{
    struct job *job = arg;

    assert_ptr_equal(frit_keep(job->result), job->result);
    return NULL;
}

static void test_only_its_thread_moves_out_of_a_scope(void **state)
{
    struct driver driver = {0};
    struct job job = {.device = driver_device(&driver, 100)};
    frit_scope scope = frit_scope_begin(job.device);

    (void)state;
    job.result = make(job.device);
    in_thread(&job, keep_it);
    frit_scope_end(scope);
    assert_int_equal(frit_tensor_status(job.result), FRIT_INVALID);
    device_close(job.device);
}

/* An error without a device belongs to a scope as well, and ends with the device of that. */
static void test_closing_ends_open_scopes(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *error;

    (void)state;
    frit_scope_begin(device);
    error = frit_add(NULL, NULL);
    assert_non_null(strstr(frit_tensor_error(error), "add: a"));
    device_close(device);
    assert_non_null(strstr(frit_tensor_error(error), "not a tensor"));
}

/* ---- records that come again ---- */

/* x, y = -x, z = exp(y), w = -z, all of it kept but what dies: y, if `dies`. */
static void queue_three(frit_tensor *x, bool dies, frit_tensor *out[3])
{
    out[0] = frit_neg(x);
    out[1] = frit_exp(dies ? frit_take(out[0]) : out[0]);
    out[2] = frit_neg(out[1]);
}

static void release_three(bool dies, frit_tensor *out[3])
{
    for (int i = dies; i < 3; i++)
        frit_release(out[i]);
}

/* Records pile up while somebody has the baton.  One of them has other deaths than before: those
 * after it, though they came again, do not stand where they stood. */
static void test_records_behind_another_one(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *out[3];
    struct stream *stream;
    uint64_t misses;

    (void)state;
    for (int i = 0; i < 4; i++) {
        frit_scope scope = frit_scope_begin(device);

        queue_three(x, true, out);
        for (int k = 1; k < 3; k++)
            frit_keep(out[k]);
        frit_scope_end(scope);
        release_three(true, out);
    }
    stream = binding_peek(device)->stream;
    misses = atomic_load(&device->count.plan_misses);
    pthread_mutex_lock(&stream->baton);
    queue_three(x, false, out);
    pthread_mutex_unlock(&stream->baton);
    assert_true(stream_drain(stream, DRAIN_SYNC));
    assert_int_equal(atomic_load(&device->count.plan_misses), misses + 1);
    expect_negative(out[0]);
    release_three(false, out);
    frit_release(x);
    device_close(device);
}

/* ---- what begins a block of memory ---- */

/* Values inside of a plan do not lie where they lay when it ran first; the driver checks the
 * places that it gets. */
static void test_places_inside_of_a_known_plan(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x, *blocks[8];
    uint32_t n = 0;

    (void)state;
    frit_persistent_begin(device);
    x = make(device);
    frit_persistent_end(device);
    for (int i = 0; i < 8; i++) {
        frit_scope scope = frit_scope_begin(device);
        frit_tensor *y = frit_keep(frit_neg(frit_take(frit_neg(x))));

        frit_scope_end(scope);
        frit_release(y);
        if (i % 2)
            blocks[n++] = make(device);
    }
    while (n)
        frit_release(blocks[--n]);
    frit_release(x);
    device_close(device);
}

/* A command of a known plan fails after submit: what it wrote is spoiled, as on the first run. */
static void test_a_late_failure_of_a_known_plan(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y;
    float out[6];

    (void)state;
    for (int i = 0; i < 4; i++)
        expect_negative(frit_take(frit_neg(x)));
    driver.complete_status = FRIT_INTERNAL;
    y = frit_neg(x);
    frit_flush(device, NULL);
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_INTERNAL);
    assert_int_equal(frit_tensor_status(y), FRIT_INTERNAL);
    frit_release(y);
    frit_release(x);
    device_close(device);
}

/* ---- waits ---- */

/* What was begun first is there when what was begun last is. */
static void test_many_reads_wait_once(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y = frit_neg(x), *z = frit_neg(y);
    float out[3][6];
    frit_read_item items[3] = {{.tensor = x, .data = out[0], .bytes = sizeof(out[0])},
                               {.tensor = y, .data = out[1], .bytes = sizeof(out[1])},
                               {.tensor = z, .data = out[2], .bytes = sizeof(out[2])}};

    (void)state;
    assert_int_equal(frit_read_many(items, 3, NULL), FRIT_OK);
    assert_int_equal(atomic_load(&driver.waits), 1);
    for (int i = 0; i < 6; i++)
        assert_true(out[0][i] == six[i] && out[1][i] == -six[i] && out[2][i] == six[i]);
    frit_release(x), frit_release(y), frit_release(z);
    device_close(device);
}

/* ---- generations of known plans ---- */

static void next_generation(frit_device *device)
{
    static uint32_t bytes[1024];
    struct automaton_stats before, now;
    struct walker walker;

    automaton_stats(device->automaton, &before);
    walker_init(&walker, device->automaton);
    do {
        bytes[0]++;
        assert_int_not_equal(walker_intern(&walker, bytes, sizeof(bytes)), 0);
        automaton_stats(device->automaton, &now);
    } while (now.generations == before.generations);
    walker_fini(&walker);
}

/* A program of a plan that is forgotten ends when its launches have, and nobody waits for them; the
 * driver checks that. */
static void test_forgotten_plans_end_after_their_launches(void **state)
{
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int out[] = {1};
    struct driver driver = {0};
    struct rig_block block = {.n_ops = 1, .ops = {0}};
    const struct op_key key = {{1}};
    frit_program program;
    struct walker walker;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 6);
    rig_want(&rig, rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1)));
    program = driver_block(&driver, neg, 1, out, false);
    block.program = program_create(&program, 0);
    assert_non_null(block.program);
    rig_plan(&rig, &block, 1);
    rig_run(&rig);
    walker_init(&walker, rig.device->automaton);
    walker_step(&walker, &key);
    walker_set_sync(&walker, rig.plan);
    walker_fini(&walker);
    plan_unref(rig.plan);
    rig.plan = NULL;
    for (int i = 0; i < 4; i++) { /* a queue stays in its generation until it runs */
        frit_tensor *x = make(rig.device), *y = frit_neg(x);

        assert_int_equal(frit_flush(rig.device, NULL), FRIT_OK);
        frit_release(x), frit_release(y);
        next_generation(rig.device);
    }
    assert_int_equal(atomic_load(&driver.waits), 0);
    assert_int_equal(driver.programs_alive, 2);
    assert_int_equal(frit_sync(rig.device, NULL), FRIT_OK);
    retired_reap(rig.device);
    assert_int_equal(driver.programs_alive, 1); /* of neg alone */
    rig_close(&rig);
}

/* Attributes are interned in each generation, whichever way an op is recorded: as one
 * that comes again, or (`strays`) after others than before. */
static void keep_numbers(bool strays)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);
    const struct stream *stream = binding_peek(device)->stream;
    uint32_t number = 0;

    for (int i = 0; i < 8; i++) {
        frit_scope scope = frit_scope_begin(device);
        const struct segment *segment;
        const struct recorded_op *flip;
        frit_tensor *y;
        size_t n_bytes;

        if (strays && i % 2)
            frit_neg(x);
        y = frit_flip(x, .axes = FRIT_AXES(0));
        frit_neg(y);
        segment = stream->segment;
        flip = segment->ops[segment->n_ops - 2];
        assert_int_equal(flip->op, FRIT_OP_flip);
        assert_non_null(walker_interned(&stream->walker, flip->attrs_id, &n_bytes));
        number = i ? number : flip->attrs_id;
        assert_int_equal(flip->attrs_id, number);
        frit_scope_end(scope);
        next_generation(device);
    }
    frit_release(x);
    device_close(device);
}

static void test_attributes_keep_their_numbers(void **state)
{
    (void)state;
    keep_numbers(false);
    keep_numbers(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_behind_another_one),
        cmocka_unit_test(test_places_inside_of_a_known_plan),
        cmocka_unit_test(test_a_late_failure_of_a_known_plan),
        cmocka_unit_test(test_bound_plans_replay_after_a_failure),
        cmocka_unit_test(test_a_stream_is_empty_before_it_serves_again),
        cmocka_unit_test(test_a_driver_s_call_closes_no_stream),
        cmocka_unit_test(test_threads_one_after_another_share_a_stream),
        cmocka_unit_test(test_left_ops_are_not_the_next_thread_s),
        cmocka_unit_test(test_a_new_thread_does_not_get_old_errors),
        cmocka_unit_test(test_a_new_thread_makes_ordinary_tensors),
        cmocka_unit_test(test_an_open_scope_is_not_handed_on),
        cmocka_unit_test(test_queued_ops_keep_the_old_elements),
        cmocka_unit_test(test_another_queue_keeps_them_too),
        cmocka_unit_test(test_each_error_of_a_lost_device_has_the_reason),
        cmocka_unit_test(test_sync_reports_a_late_failure_once),
        cmocka_unit_test(test_a_copy_of_spoiled_elements_fails),
        cmocka_unit_test(test_what_outlives_its_scope_has_none),
        cmocka_unit_test(test_only_its_thread_moves_out_of_a_scope),
        cmocka_unit_test(test_closing_ends_open_scopes),
        cmocka_unit_test(test_many_reads_wait_once),
        cmocka_unit_test(test_forgotten_plans_end_after_their_launches),
        cmocka_unit_test(test_attributes_keep_their_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
