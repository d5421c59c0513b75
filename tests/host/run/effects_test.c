/* SPDX-License-Identifier: Apache-2.0 */
/* Effects on several queues: of two streams, on the fallback device, and of collective rows.  The
 * scripted driver runs everything inside submit; this test puts queues in front of it of which
 * nothing is known to have ended before somebody waits for it, and checks that each effect waits
 * for the one before it. */
#include "run/engine.h"
#include "run/fuser.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <frit/frit.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/wait.h"

enum { N = 6, ROUNDS = 6, QUEUES = 2 };

struct late {
    struct fusing f; /* first */
    frit_stream *stream[2];
    frit_tensor *results[2][ROUNDS]; /* by stream; kept, so that no memory is used again */
    uint32_t n_results[2];
    pthread_mutex_t lock; /* of what follows */
    frit_backend real;
    uint64_t ended[QUEUES];          /* the host has waited for it */
    uint64_t waited[QUEUES][QUEUES]; /* the first queue has waited for this value of the second */
    uint32_t last_queue;             /* of the last effect */
    uint64_t last_value;
    uint32_t overtaking; /* effects that did not wait for the last one */
    uint32_t n_waits;    /* points that submits waited for */
    uint32_t host_waits;
    atomic_int inside;    /* threads in submit */
    atomic_int together;  /* submits while another was inside */
    useconds_t submit_us; /* that each stays there */
};

/* ---- the queues ---- */

static uint32_t number_of(const struct late *late, const frit_queue *queue)
{
    return queue ? 1 + (uint32_t)((const char *)queue - late->f.driver.queues) : 0;
}

static bool is_over(const struct late *late)
{
    return late->last_value <= late->ended[late->last_queue];
}

static frit_status late_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                               uint32_t stride, const frit_point *waits, uint32_t n_waits,
                               uint64_t *value, frit_err *err)
{
    struct late *late = self;
    uint32_t number = number_of(late, queue), before;
    uint64_t *waited = late->waited[number];
    frit_status st;

    late->together += late->inside++ > 0;
    if (late->submit_us)
        usleep(late->submit_us);
    pthread_mutex_lock(&late->lock);
    before = late->f.driver.n_effects;
    for (uint32_t i = 0; i < n_waits; i++) {
        uint32_t other = number_of(late, waits[i].queue);

        assert_int_not_equal(other, number);
        waited[other] = waits[i].value > waited[other] ? waits[i].value : waited[other];
    }
    late->n_waits += n_waits;
    st = late->real.submit(self, queue, cmds, count, stride, waits, n_waits, value, err);
    if (late->f.driver.n_effects > before) {
        late->overtaking += late->last_queue != number &&
                            waited[late->last_queue] < late->last_value && !is_over(late);
        late->last_queue = number;
        late->last_value = *value;
    }
    pthread_mutex_unlock(&late->lock);
    late->inside--;
    return st;
}

static frit_status late_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                             frit_failure *out, frit_err *err)
{
    struct late *late = self;
    uint64_t *ended = &late->ended[number_of(late, queue)];
    bool pending;

    pthread_mutex_lock(&late->lock);
    pending = value > *ended;
    if (pending && timeout_ns > 0) {
        late->host_waits++;
        *ended = value;
    }
    pthread_mutex_unlock(&late->lock);
    return pending && timeout_ns == 0 ? fail(err, FRIT_TIMEOUT, "not yet")
                                      : late->real.wait(self, queue, value, timeout_ns, out, err);
}

static void open_late(struct late *late)
{
    pthread_mutex_init(&late->lock, NULL);
    late->f.driver.more_queues = QUEUES - 1;
    fusing_open(&late->f);
    late->real = late->f.driver.plugin.backend;
    late->f.driver.plugin.backend.submit = late_submit;
    late->f.driver.plugin.backend.wait = late_wait;
    for (int i = 0; i < 2; i++)
        assert_int_equal(frit_stream_open(late->f.device, &late->stream[i], NULL), FRIT_OK);
}

static void close_late(struct late *late)
{
    for (int i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < late->n_results[i]; k++)
            frit_release(late->results[i][k]);
        assert_int_equal(frit_stream_close(late->stream[i], NULL), FRIT_OK);
    }
    fusing_close(&late->f);
    pthread_mutex_destroy(&late->lock);
}

/* ---- effects ---- */

static frit_tensor *effect(frit_tensor *x)
{
    const frit_input in = {.tensor = x};
    const frit_call call = {
        .struct_size = sizeof(call), .op = driver_effect_op(), .n_in = 1, .in = &in};
    frit_tensor *out;

    frit_op(frit_tensor_device(x), &call, &out, 1);
    return out;
}

static frit_tensor *make(frit_device *device, uint32_t rank)
{
    float data[N] = {1};

    return frit_from_host(device, FRIT_F32, rank == 1 ? FRIT_SHAPE(N) : FRIT_SHAPE(N, 1), data,
                          sizeof(data));
}

/* Submits an op on one of the streams and waits for nothing. */
static void run_in(struct late *late, int stream, frit_tensor *x,
                   frit_tensor *(*op)(frit_tensor *x))
{
    frit_stream *before;
    frit_scope scope;

    assert_int_equal(frit_stream_enter(late->f.device, late->stream[stream], &before, NULL),
                     FRIT_OK);
    scope = frit_scope_begin(late->f.device);
    late->results[stream][late->n_results[stream]++] = frit_keep(op(x));
    frit_scope_end(scope);
    assert_int_equal(frit_stream_enter(late->f.device, before, NULL, NULL), FRIT_OK);
}

/* ---- two streams ---- */

/* An operand for each stream; nothing is pending. */
static void make_two(struct late *late, frit_tensor **x)
{
    x[0] = make(late->f.device, 1), x[1] = make(late->f.device, 1);
    assert_int_equal(device_wait_all(late->f.device, NULL), FRIT_OK);
    late->host_waits = 0;
}

/* They have no memory in common. */
static void test_effects_of_streams_follow_each_other(void **state)
{
    struct late late = {.overtaking = 0};
    frit_tensor *x[2];

    (void)state;
    open_late(&late);
    make_two(&late, x);
    for (int round = 0; round < ROUNDS; round++) {
        run_in(&late, 0, x[0], effect);
        run_in(&late, 1, x[1], effect);
    }
    assert_int_equal(late.f.driver.n_effects, 2 * ROUNDS);
    assert_int_equal(late.overtaking, 0);
    assert_int_equal(late.host_waits, 0);
    frit_release(x[0]), frit_release(x[1]);
    close_late(&late);
}

struct part {
    struct late *late;
    int stream;
    frit_tensor *x;
};

static void *run_part(void *arg)
{
    const struct part *part = arg;

    for (int round = 1; round < ROUNDS; round++)
        run_in(part->late, part->stream, part->x, effect);
    return NULL;
}

/* What one of them has to wait for is known when the submit of the other has returned. */
static void test_effects_of_threads_are_submitted_in_turn(void **state)
{
    struct late late = {.submit_us = 1000};
    struct part parts[2];
    pthread_t threads[2];
    frit_tensor *x[2];

    (void)state;
    open_late(&late);
    make_two(&late, x);
    for (int i = 0; i < 2; i++) {
        parts[i] = (struct part){&late, i, x[i]};
        run_in(&late, i, x[i], effect);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_part, &parts[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(late.f.driver.n_effects, 2 * ROUNDS);
    assert_int_equal(late.together, 0);
    assert_int_equal(late.overtaking, 0);
    frit_release(x[0]), frit_release(x[1]);
    close_late(&late);
}

static void test_other_ops_do_not(void **state)
{
    struct late late = {.overtaking = 0};
    frit_tensor *x[2];

    (void)state;
    open_late(&late);
    make_two(&late, x);
    run_in(&late, 0, x[0], effect);
    run_in(&late, 1, x[1], frit_neg);
    assert_int_equal(late.n_waits, 0);
    assert_int_equal(late.host_waits, 0);
    frit_release(x[0]), frit_release(x[1]);
    close_late(&late);
}

/* ---- what the host runs ---- */

static struct late *the_late;

static void expect_over(void)
{
    assert_true(the_late->last_value > 0);
    assert_true(is_over(the_late));
}

static void on_submit(struct driver *helper)
{
    (void)helper;
    expect_over();
}

static void on_begin(struct engine *engine)
{
    (void)engine;
    expect_over();
}

/* An effect that no transfer of an operand of the first queue waits for. */
static void run_on_second_queue(struct late *late, frit_tensor *x)
{
    run_in(late, 0, x, frit_neg);
    run_in(late, 1, x, effect);
    assert_int_equal(late->last_queue, 1);
    assert_false(is_over(late));
}

/* The device has the op for one rank only. */
static void test_an_effect_elsewhere_comes_after_those_here(void **state)
{
    struct driver helper = {.inline_queue = true, .on_submit = on_submit};
    struct late late = {.overtaking = 0};
    frit_device *fallback = driver_device(&helper, 100);
    frit_tensor *x, *y;

    (void)state;
    the_late = &late;
    open_late(&late);
    late.f.device->fallback = fallback;
    x = make(late.f.device, 1), y = make(late.f.device, 2);
    run_on_second_queue(&late, x);
    late.f.driver.refuse[0] = driver_effect_op();
    run_in(&late, 0, y, effect);
    assert_int_equal(late.f.driver.n_effects, 1);
    assert_int_equal(helper.n_effects, 1);
    frit_release(x), frit_release(y);
    close_late(&late);
    device_close(fallback);
}

static void test_a_collective_comes_after_effects(void **state)
{
    struct engine engine = {.on_begin = on_begin};
    struct late late = {.overtaking = 0};
    frit_tensor *x, *y;

    (void)state;
    the_late = &late;
    open_late(&late);
    engine_join(&engine, late.f.device);
    x = make(late.f.device, 1), y = make(late.f.device, 1);
    run_on_second_queue(&late, x);
    frit_release(frit_all_reduce(y));
    assert_int_equal(frit_sync(late.f.device, NULL), FRIT_OK);
    assert_int_equal(engine.n_begun, 1);
    frit_release(x), frit_release(y);
    engine_leave(&engine);
    close_late(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_effects_of_streams_follow_each_other),
        cmocka_unit_test(test_effects_of_threads_are_submitted_in_turn),
        cmocka_unit_test(test_other_ops_do_not),
        cmocka_unit_test(test_an_effect_elsewhere_comes_after_those_here),
        cmocka_unit_test(test_a_collective_comes_after_effects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
