/* SPDX-License-Identifier: Apache-2.0 */
/* Collective rows between submits: each runs once and in order, whoever reads its result, and ends
 * nothing else; what is around it is fused and replayed.  The engine is one inside the test. */
#include "run/engine.h"
#include "run/fuser.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include <frit/frit.h>
#include <frit/inspect.h>

#include "device/device.h"
#include "failing_alloc.h"
#include "run/drain.h"

enum { N = 6, ROUNDS = 6 };

struct world {
    struct fusing f;
    struct engine engine;
};

static void open_world(struct world *w)
{
    fusing_open(&w->f);
    engine_join(&w->engine, w->f.device);
}

static frit_tensor *make(frit_device *device, float value)
{
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = value;
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data));
}

static void expect(frit_tensor *tensor, float value)
{
    float out[N];

    assert_int_equal(frit_read(frit_take(tensor), out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == value);
}

static void expect_failure(frit_tensor *tensor, frit_status status, const char *part)
{
    if (frit_tensor_status(tensor) != status || !strstr(frit_tensor_error(tensor), part))
        fail_msg("%d: '%s' is not '%s'", frit_tensor_status(tensor), frit_tensor_error(tensor),
                 part);
    frit_release(tensor);
}

static void expect_begun(const struct engine *engine, uint32_t n, const float *effects)
{
    assert_int_equal(engine->n_begun, n);
    for (uint32_t i = 0; i < n; i++)
        assert_true(engine->first_elements[i] == effects[i]);
}

#define EFFECTS(engine, ...) \
    expect_begun(engine, sizeof((float[]){__VA_ARGS__}) / sizeof(float), (float[]){__VA_ARGS__})

static uint64_t replays(frit_device *device)
{
    struct stream_counters count;

    streams_sum_counters(device, &count);
    return atomic_load(&count.replays);
}

/* ---- never dropped, never doubled ---- */

static void test_it_runs_though_nobody_reads_it(void **state)
{
    struct world w = {.f.most = 0};
    frit_tensor *x;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 3);
    frit_release(frit_floor(x));
    frit_release(frit_all_reduce(frit_take(frit_neg(x))));
    frit_release(frit_floor(x));
    assert_int_equal(frit_sync(w.f.device, NULL), FRIT_OK);
    EFFECTS(&w.engine, -3);
    assert_int_equal(atomic_load(&w.f.device->count.skipped), 2);
    frit_release(x);
    fusing_close(&w.f);
}

static void test_the_end_of_a_device_runs_it(void **state)
{
    struct world w = {.f.most = 0};

    (void)state;
    open_world(&w);
    frit_release(frit_all_reduce(frit_take(make(w.f.device, 5))));
    assert_int_equal(w.engine.n_begun, 0);
    fusing_close(&w.f);
    EFFECTS(&w.engine, 5);
    assert_int_equal(w.engine.n_aborts, 0);
}

static frit_tensor *negated_twice(frit_device *device, frit_tensor *x)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y = frit_keep(frit_neg(frit_all_reduce(frit_neg(x))));

    frit_scope_end(scope);
    return y;
}

static void test_a_refused_submit_runs_it_once(void **state)
{
    struct world w = {.f.most = 0};
    frit_tensor *x;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2);
    for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
        w.f.driver.submit_status = FRIT_NO_DEVICE_MEMORY;
        w.f.driver.submit_after = i % 2;
        expect(negated_twice(w.f.device, x), 2);
        assert_int_equal(w.engine.n_begun, i + 1);
    }
    fusing_close(&w.f);
}

/* ---- ends nothing else ---- */

/* The block of neg, add and neg is one launch, whatever was recorded between them. */
static void test_blocks_go_on_around_it(void **state)
{
    struct world w = {.f.most = 0};
    frit_tensor *x, *z, *y;
    frit_scope scope;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2), z = make(w.f.device, 4);
    for (int i = 1; i <= ROUNDS; i++) {
        scope = frit_scope_begin(w.f.device);
        y = frit_neg(x);
        frit_all_reduce(z);
        y = frit_add_f(y, 1);
        frit_all_reduce(z);
        y = frit_keep(frit_neg(y));
        frit_scope_end(scope);
        assert_int_equal(w.f.driver.launches, i);
        assert_int_equal(w.f.driver.submits, i);
        assert_int_equal(w.engine.n_begun, 2 * i);
        expect(y, 1);
    }
    assert_int_equal(replays(w.f.device), ROUNDS - 1);
    frit_release(x), frit_release(z);
    fusing_close(&w.f);
}

/* Two blocks and the op between them: two launches and two submits, replayed or not. */
static void test_what_is_around_it_is_replayed(void **state)
{
    struct world w = {.f.most = 0};
    uint64_t counted;
    frit_stats stats = {.struct_size = sizeof(stats)};
    frit_tensor *x;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2);
    for (int i = 1; i <= ROUNDS; i++) {
        expect(negated_twice(w.f.device, x), 2);
        assert_int_equal(w.engine.n_begun, i);
        assert_int_equal(w.f.driver.launches, 2 * i);
        assert_int_equal(w.f.driver.submits, 2 * i);
    }
    counted = replays(w.f.device);
    assert_true(counted >= ROUNDS - 2);
    frit_stats_get(w.f.device, &stats);
    assert_int_equal(stats.launches, 2 * ROUNDS);
    assert_int_equal(stats.bound_launches, 2 * counted);
    frit_release(x);
    fusing_close(&w.f);
}

/* A replay that writes over an operand is one submit as a rule. */
static void test_an_operand_that_is_overwritten(void **state)
{
    struct world w = {.f.driver.alias = 1};

    (void)state;
    open_world(&w);
    for (int i = 1; i <= ROUNDS; i++) {
        frit_tensor *x = make(w.f.device, (float)i), *y;
        frit_scope scope = frit_scope_begin(w.f.device);

        y = frit_keep(frit_neg(frit_all_reduce(frit_neg(frit_take(x)))));
        frit_scope_end(scope);
        expect(y, (float)i);
        assert_int_equal(w.engine.n_begun, i);
        assert_int_equal(w.f.driver.submits, 2 * i);
    }
    assert_true(replays(w.f.device) > 0);
    assert_true(atomic_load(&w.f.device->count.in_place) > 0);
    fusing_close(&w.f);
}

static void test_two_stay_in_order_when_replayed(void **state)
{
    struct world w = {.f.driver.reverse = true};
    frit_tensor *x[4];

    (void)state;
    open_world(&w);
    for (int i = 0; i < 4; i++)
        x[i] = make(w.f.device, (float)i);
    for (int k = 0; k < ROUNDS; k++) {
        frit_scope scope = frit_scope_begin(w.f.device);

        for (int i = 0; i < 4; i++)
            frit_all_reduce(i % 2 ? frit_neg(x[i]) : x[i]);
        frit_scope_end(scope);
        w.engine.n_begun -= k ? 4 : 0;
        memmove(w.engine.first_elements, w.engine.first_elements + (k ? 4 : 0), sizeof(float[4]));
        EFFECTS(&w.engine, 0, -1, 2, -3);
    }
    assert_true(replays(w.f.device) > 0);
    for (int i = 0; i < 4; i++)
        frit_release(x[i]);
    fusing_close(&w.f);
}

/* ---- where the elements are ---- */

/* The engine works on the device's memory where the host sees it. */
static void test_visible_memory_is_not_copied(void **state)
{
    struct world w = {.f.driver = {.inline_queue = true, .host_visible = true}};
    frit_tensor *x;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2);
    for (int i = 0; i < ROUNDS; i++)
        frit_release(negated_twice(w.f.device, x));
    assert_int_equal(w.f.driver.reads, 0);
    assert_int_equal(w.f.driver.writes, 1);
    expect(negated_twice(w.f.device, x), 2);
    frit_release(x);
    fusing_close(&w.f);
}

static void test_other_memory_is_staged(void **state)
{
    struct world w = {.f.most = 0};
    frit_tensor *x;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2);
    for (int i = 0; i < ROUNDS; i++)
        frit_release(negated_twice(w.f.device, x));
    assert_int_equal(w.f.driver.reads, ROUNDS);
    assert_int_equal(w.f.driver.writes, ROUNDS + 1);
    expect(negated_twice(w.f.device, x), 2);
    frit_release(x);
    fusing_close(&w.f);
}

/* ---- several operands as one operation ---- */

struct coalescing {
    struct world w;
    frit_tensor *x[3];
    uint64_t begun;
};

static void open_coalescing(struct coalescing *c)
{
    open_world(&c->w);
    for (int i = 0; i < 3; i++)
        c->x[i] = make(c->w.f.device, (float)i + 1);
}

static void close_coalescing(struct coalescing *c)
{
    for (int i = 0; i < 3; i++)
        frit_release(c->x[i]);
    fusing_close(&c->w.f);
}

/* One operation of 3 * N elements, whose parts are -1, -2, -3, and what is made from them. */
static void reduce_three(struct coalescing *c, frit_tensor *const x[3])
{
    frit_device *device = c->w.f.device;
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y[3], *flat;

    flat = frit_all_reduce_coalesced(x, 3);
    for (int64_t i = 0; i < 3; i++)
        y[i] = frit_keep(frit_neg(frit_slice(flat, FRIT_SLICES({i * N, i * N + N, 1}))));
    frit_scope_end(scope);
    for (int i = 0; i < 3; i++)
        expect(y[i], (float)i + 1);
    c->begun++;
    assert_int_equal(atomic_load(&device->count.collectives), c->begun);
}

/* What ends with the op is computed into its place, recorded and replayed. */
static void coalesce(struct coalescing *c)
{
    frit_device *device;

    open_coalescing(c);
    device = c->w.f.device;
    for (int i = 0; i < ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(device);

        reduce_three(c,
                     (frit_tensor *[]){frit_take(frit_neg(c->x[0])), frit_take(frit_neg(c->x[1])),
                                       frit_take(frit_neg(c->x[2]))});
        frit_scope_end(scope);
        assert_int_equal(atomic_load(&device->count.bytes_coalesced), 0);
        assert_ptr_equal(c->w.engine.last_from, c->w.engine.last_into);
    }
    assert_true(replays(device) > 0);
    close_coalescing(c);
}

static void test_several_are_one_operation(void **state)
{
    (void)state;
    coalesce(&(struct coalescing){.w.f.most = 0});
    coalesce(&(struct coalescing){.w.f.driver = {.inline_queue = true, .host_visible = true}});
    coalesce(&(struct coalescing){.w.f.driver = {.more_queues = 2}});
}

/* What is there already, has a further use or stands twice is copied, and stays as it is. */
static void coalesce_copies(struct coalescing *c)
{
    frit_tensor *made[3];
    frit_device *device;

    open_coalescing(c);
    device = c->w.f.device;
    for (int i = 1; i <= ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(device);

        for (int k = 0; k < 3; k++)
            made[k] = frit_keep(frit_neg(c->x[k]));
        frit_scope_end(scope);
        reduce_three(c, made);
        assert_int_equal(atomic_load(&device->count.bytes_coalesced),
                         (uint64_t)i * 3 * N * sizeof(float));
        for (int k = 0; k < 3; k++)
            expect(made[k], -(float)k - 1);
    }
    close_coalescing(c);
}

static void test_other_operands_are_copied(void **state)
{
    (void)state;
    coalesce_copies(&(struct coalescing){.w.f.most = 0});
    coalesce_copies(
        &(struct coalescing){.w.f.driver = {.inline_queue = true, .host_visible = true}});
}

static void test_an_operand_that_stands_twice(void **state)
{
    struct coalescing c = {.w.f.most = 0};
    float out[2 * N];

    (void)state;
    open_coalescing(&c);
    for (int i = 0; i < ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(c.w.f.device);
        frit_tensor *x = frit_neg(c.x[0]);
        frit_tensor *y = frit_keep(frit_all_reduce_coalesced(((frit_tensor *[]){x, x}), 2));

        frit_scope_end(scope);
        assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
        for (int k = 0; k < 2 * N; k++)
            assert_true(out[k] == -1);
    }
    assert_int_equal(atomic_load(&c.w.f.device->count.bytes_coalesced), ROUNDS * N * sizeof(float));
    close_coalescing(&c);
}

/* The program keeps a view of an operand, whose elements stay those of this rank. */
static void test_a_view_of_an_operand_is_kept(void **state)
{
    struct coalescing c = {.w.f.driver = {.inline_queue = true, .host_visible = true}};

    (void)state;
    open_coalescing(&c);
    for (int i = 0; i < ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(c.w.f.device);
        frit_tensor *x = frit_neg(c.x[0]), *view = frit_keep(frit_reshape(x, FRIT_SHAPE(2, N / 2)));
        frit_tensor *y = frit_keep(frit_all_reduce_coalesced(((frit_tensor *[]){x, c.x[1]}), 2));

        frit_scope_end(scope);
        assert_int_equal(frit_sync(c.w.f.device, NULL), FRIT_OK);
        assert_ptr_not_equal(c.w.engine.last_into, NULL);
        expect(view, -1);
        frit_release(y);
    }
    assert_int_equal(atomic_load(&c.w.f.device->count.bytes_coalesced),
                     ROUNDS * 2 * N * sizeof(float));
    close_coalescing(&c);
}

static void test_refused_submits_before_several(void **state)
{
    struct coalescing c = {.w.f.most = 0};

    (void)state;
    open_coalescing(&c);
    for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(c.w.f.device);

        c.w.f.driver.submit_status = FRIT_NO_DEVICE_MEMORY;
        c.w.f.driver.submit_after = i % 3;
        reduce_three(&c, (frit_tensor *[]){frit_neg(c.x[0]), frit_neg(c.x[1]), frit_neg(c.x[2])});
        frit_scope_end(scope);
    }
    close_coalescing(&c);
}

/* ---- nobody waits for it ---- */

struct overlap {
    struct world w;
    uint64_t before;    /* submits, when the round began */
    bool went_on;       /* the submit between the op and its reader came while the engine worked */
    bool read_too_soon; /* so did the reader's */
};

static void watch_submits(struct engine *engine)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct overlap *o = engine->ctx;

    for (int i = 0; i < 5000 && device_submits(o->w.f.device) < o->before + 2; i++)
        nanosleep(&pause, NULL);
    nanosleep(&pause, NULL);
    o->went_on = device_submits(o->w.f.device) >= o->before + 2;
    o->read_too_soon = device_submits(o->w.f.device) > o->before + 2;
}

/* What needs no result is submitted while the engine works, what needs it afterwards: recorded,
 * and replayed. */
static void go_on(struct overlap *o)
{
    frit_device *device;
    frit_tensor *x, *other, *z, *y;

    open_world(&o->w);
    device = o->w.f.device;
    o->w.engine.ctx = o;
    o->w.engine.on_wait = watch_submits;
    x = make(device, 2), other = make(device, 5);
    for (int i = 0; i < ROUNDS; i++) {
        frit_scope scope;

        o->before = device_submits(o->w.f.device);
        scope = frit_scope_begin(device);
        y = frit_all_reduce(frit_neg(x));
        z = frit_keep(frit_floor(other));
        y = frit_keep(frit_neg(y));
        frit_scope_end(scope);
        expect(y, 2);
        assert_true(o->went_on && !o->read_too_soon);
        frit_release(z);
    }
    assert_true(replays(device) > 0);
    frit_release(x), frit_release(other);
    fusing_close(&o->w.f);
}

static void test_the_stream_goes_on(void **state)
{
    (void)state;
    go_on(&(struct overlap){.w.f.most = 0});
    go_on(&(struct overlap){.w.f.driver = {.inline_queue = true, .host_visible = true}});
}

static void wait_for_another(struct engine *engine)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    uint32_t n = 0;

    for (int i = 0; i < 5000 && n < 2 && engine->n_begun == 0; i++) {
        pthread_mutex_lock(&engine->rank->lock);
        n = engine->rank->n_operations;
        pthread_mutex_unlock(&engine->rank->lock);
        nanosleep(&pause, NULL);
    }
}

static void expect_two_begun(struct engine *engine)
{
    assert_int_equal(engine->n_begun, 2);
}

/* An operation that is ready is begun before the one before it has ended. */
static void test_the_engine_has_several(void **state)
{
    struct world w = {.f.driver = {.inline_queue = true, .host_visible = true},
                      .engine = {.on_begin = wait_for_another, .on_wait = expect_two_begun}};
    frit_tensor *x, *y, *sums[2];

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2), y = make(w.f.device, 3);
    sums[0] = frit_all_reduce(x), sums[1] = frit_all_reduce(y);
    assert_int_equal(frit_sync(w.f.device, NULL), FRIT_OK);
    EFFECTS(&w.engine, 2, 3);
    frit_release(x), frit_release(y);
    frit_release(sums[0]), frit_release(sums[1]);
    fusing_close(&w.f);
}

/* The operand that ends with the op is the result's memory. */
static void test_an_operand_that_ends_is_reduced_in_place(void **state)
{
    struct world w = {.f.driver = {.inline_queue = true, .host_visible = true}};
    frit_tensor *x;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2);
    for (int i = 0; i < ROUNDS; i++) {
        expect(negated_twice(w.f.device, x), 2);
        assert_ptr_equal(w.engine.last_from, w.engine.last_into);
        expect(frit_all_reduce(x), 2);
        assert_ptr_not_equal(w.engine.last_from, w.engine.last_into);
    }
    frit_release(x);
    fusing_close(&w.f);
}

static void *read_elsewhere(void *device)
{
    expect(frit_neg(frit_take(make(device, 1))), -1);
    return NULL;
}

static void let_another_stream_run(struct engine *engine)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, read_elsewhere, engine->ctx), 0);
    pthread_join(thread, NULL);
}

/* A thread that records and reads on the same device while the engine works. */
static void test_other_streams_go_on_meanwhile(void **state)
{
    struct world w = {.engine.on_begin = let_another_stream_run};
    frit_tensor *x;

    (void)state;
    open_world(&w);
    w.engine.ctx = w.f.device;
    x = make(w.f.device, 2);
    for (int i = 0; i < 3; i++)
        expect(negated_twice(w.f.device, x), 2);
    frit_release(x);
    fusing_close(&w.f);
}

static void *join_and_end(void *arg)
{
    struct world *w = arg;

    engine_join(&w->engine, w->f.device);
    frit_release(frit_all_reduce(frit_take(make(w->f.device, 5))));
    return NULL;
}

/* The next thread gets a stream of its own: it may be one of the other ranks. */
static void test_a_ranks_stream_is_not_taken_over(void **state)
{
    struct world w = {.f.most = 0};
    pthread_t thread;

    (void)state;
    fusing_open(&w.f);
    assert_int_equal(pthread_create(&thread, NULL, join_and_end, &w), 0);
    pthread_join(thread, NULL);
    frit_release(make(w.f.device, 1));
    assert_int_equal(w.engine.n_begun, 0);
    assert_int_equal(streams_count(w.f.device), 2);
    engine_leave(&w.engine);
    EFFECTS(&w.engine, 5);
    fusing_close(&w.f);
}

/* ---- failures ---- */

static void test_without_a_group(void **state)
{
    struct fusing f = {.most = 0};
    frit_tensor *y;

    (void)state;
    fusing_open(&f);
    assert_int_equal(frit_sync_collective(f.device), FRIT_OK);
    assert_int_equal(frit_sync(f.device, NULL), FRIT_OK);
    y = frit_all_reduce(frit_take(make(f.device, 1)), .group = 2);
    assert_int_equal(frit_sync(f.device, NULL), FRIT_INVALID);
    expect_failure(y, FRIT_INVALID, "all_reduce: its stream is in no group 2; frit_group_join");
    fusing_close(&f);
}

/* What the engine does wrong in round `round`, and what comes of it in that round and the next. */
static void fail_in_round(int round, const struct engine *script, frit_status status,
                          const char *text)
{
    struct world w = {.f.most = 0};
    frit_tensor *x, *y;
    uint32_t n;

    open_world(&w);
    x = make(w.f.device, 2);
    for (int i = 0; i < round; i++)
        expect(negated_twice(w.f.device, x), 2);
    w.engine.begin_status = script->begin_status;
    w.engine.wait_status = script->wait_status;
    w.engine.skip = script->skip;
    y = negated_twice(w.f.device, x);
    assert_int_equal(frit_sync(w.f.device, NULL), status);
    expect_failure(y, status, text);
    assert_int_equal(w.engine.n_aborts, 1);
    assert_int_equal(w.engine.abort_seen, script->wait_status == FRIT_TIMEOUT);
    n = w.engine.n_begun;
    w.engine.skip = 0;
    y = negated_twice(w.f.device, x);
    expect(frit_neg(x), -2);
    assert_int_equal(frit_sync(w.f.device, NULL), status);
    expect_failure(y, status, text);
    assert_int_equal(w.engine.n_begun, n);
    assert_int_equal(frit_sync_collective(w.f.device), FRIT_OK);
    assert_int_equal(frit_sync(w.f.device, NULL), status);
    frit_release(x);
    fusing_close(&w.f);
}

static void test_what_the_engine_does_wrong(void **state)
{
    static const int rounds[] = {0, ROUNDS};

    (void)state;
    for (int i = 0; i < 2; i++) {
        fail_in_round(rounds[i], &(struct engine){.begin_status = FRIT_PEER_LOST}, FRIT_PEER_LOST,
                      "all_reduce: group test, rank 0 of 1, operation ");
        fail_in_round(rounds[i], &(struct engine){.wait_status = FRIT_MISMATCH}, FRIT_MISMATCH,
                      ": the wire is cut");
        fail_in_round(rounds[i], &(struct engine){.wait_status = FRIT_TIMEOUT}, FRIT_TIMEOUT,
                      ": not done after 1000 ms: the wire is cut");
        fail_in_round(rounds[i], &(struct engine){.wait_status = 7}, FRIT_INTERNAL, "wait");
        fail_in_round(rounds[i], &(struct engine){.begin_status = 7}, FRIT_INTERNAL, "begin");
        fail_in_round(rounds[i], &(struct engine){.skip = 1}, FRIT_INTERNAL,
                      ": the engine gives it the value ");
    }
}

/* Whatever error it reports, of whichever call: that is the result's. */
static void test_each_error_of_the_engine(void **state)
{
    static const frit_status errors[] = {
#define FRIT_STATUS(value, NAME, name, meaning) FRIT_##NAME,
#include <frit/status.def>
    };

    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
        if (errors[i] >= 0)
            continue;
        if (errors[i] != FRIT_UNSUPPORTED)
            fail_in_round(0, &(struct engine){.begin_status = errors[i]}, errors[i],
                          ": the wire is cut");
        fail_in_round(0, &(struct engine){.wait_status = errors[i]}, errors[i],
                      ": the wire is cut");
    }
}

/* Each rank finds out by itself, so that the group goes on. */
static void test_what_the_engine_cannot_do_ends_nothing(void **state)
{
    struct world w = {.f.most = 0};
    frit_tensor *x, *y;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2);
    w.engine.begin_status = FRIT_UNSUPPORTED;
    y = negated_twice(w.f.device, x);
    assert_int_equal(frit_sync(w.f.device, NULL), FRIT_UNSUPPORTED);
    expect_failure(y, FRIT_UNSUPPORTED, "all_reduce: the wire is cut");
    assert_int_equal(w.engine.n_aborts, 0);
    expect(negated_twice(w.f.device, x), 2);
    frit_release(x);
    fusing_close(&w.f);
}

/* The driver reports the failure when the host waits for the operand. */
static void test_an_operand_that_failed_late(void **state)
{
    static const int rounds[] = {0, ROUNDS};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct world w = {.f.driver = {.inline_queue = i / 2, .host_visible = i / 2}};
        frit_tensor *x, *y;

        open_world(&w);
        x = make(w.f.device, 2);
        for (int k = 0; k < rounds[i % 2]; k++)
            expect(negated_twice(w.f.device, x), 2);
        w.f.driver.complete_status = FRIT_INTERNAL;
        y = negated_twice(w.f.device, x);
        assert_int_equal(frit_sync(w.f.device, NULL), FRIT_INTERNAL);
        expect_failure(y, FRIT_INTERNAL, "smoke came out");
        assert_int_equal(w.engine.n_begun, rounds[i % 2]);
        assert_int_equal(w.engine.n_aborts, 1);
        assert_non_null(strstr(w.engine.why, "it cannot begin: "));
        frit_release(x);
        fusing_close(&w.f);
    }
}

/* The second submit of a replay is refused when the first op has run: the second one does not. */
static void test_a_replay_that_breaks_off(void **state)
{
    struct world w = {.f.most = 0};
    frit_tensor *x, *y = NULL;

    (void)state;
    open_world(&w);
    x = make(w.f.device, 2);
    for (int i = 0; i <= ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(w.f.device);

        y = frit_neg(frit_all_reduce(frit_neg(x)));
        y = frit_keep(frit_all_reduce(y));
        if (i == ROUNDS) {
            w.f.driver.submit_status = FRIT_INTERNAL;
            w.f.driver.submit_after = 1;
        }
        frit_scope_end(scope);
        if (i < ROUNDS)
            expect(y, 2);
    }
    assert_int_equal(frit_sync(w.f.device, NULL), FRIT_INTERNAL);
    expect_failure(y, FRIT_INTERNAL, "");
    assert_int_equal(w.engine.n_begun, 2 * ROUNDS + 1);
    assert_int_equal(w.engine.n_aborts, 1);
    frit_release(x);
    fusing_close(&w.f);
}

/* Whichever allocation fails, the rank begins the operation or aborts the group. */
static void test_without_host_memory(void **state)
{
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct world w = {.f.most = 0};
        frit_tensor *x;

        open_world(&w);
        x = make(w.f.device, 2);
        failing_alloc_arm(n);
        frit_release(negated_twice(w.f.device, x));
        hit = failing_alloc_disarm();
        frit_sync(w.f.device, NULL);
        if (w.engine.n_begun + w.engine.n_aborts == 0)
            fail_msg("allocation %ld", n);
        assert_true(hit || w.engine.n_aborts == 0);
        frit_release(x);
        fusing_close(&w.f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_runs_though_nobody_reads_it),
        cmocka_unit_test(test_the_end_of_a_device_runs_it),
        cmocka_unit_test(test_a_refused_submit_runs_it_once),
        cmocka_unit_test(test_blocks_go_on_around_it),
        cmocka_unit_test(test_what_is_around_it_is_replayed),
        cmocka_unit_test(test_an_operand_that_is_overwritten),
        cmocka_unit_test(test_two_stay_in_order_when_replayed),
        cmocka_unit_test(test_visible_memory_is_not_copied),
        cmocka_unit_test(test_other_memory_is_staged),
        cmocka_unit_test(test_several_are_one_operation),
        cmocka_unit_test(test_other_operands_are_copied),
        cmocka_unit_test(test_an_operand_that_stands_twice),
        cmocka_unit_test(test_a_view_of_an_operand_is_kept),
        cmocka_unit_test(test_refused_submits_before_several),
        cmocka_unit_test(test_the_stream_goes_on),
        cmocka_unit_test(test_the_engine_has_several),
        cmocka_unit_test(test_an_operand_that_ends_is_reduced_in_place),
        cmocka_unit_test(test_other_streams_go_on_meanwhile),
        cmocka_unit_test(test_a_ranks_stream_is_not_taken_over),
        cmocka_unit_test(test_without_a_group),
        cmocka_unit_test(test_what_the_engine_does_wrong),
        cmocka_unit_test(test_each_error_of_the_engine),
        cmocka_unit_test(test_what_the_engine_cannot_do_ends_nothing),
        cmocka_unit_test(test_an_operand_that_failed_late),
        cmocka_unit_test(test_a_replay_that_breaks_off),
        cmocka_unit_test(test_without_host_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
