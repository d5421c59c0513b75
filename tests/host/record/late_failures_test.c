/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that are reported late, twice, without a number or by two threads at once; and code that
 * gets better during prepare. */
#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/lineage_batch.h"
#include "device/prepared.h"
#include "device/prepared_cache.h"
#include "device/programs.h"
#include "device/wait.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "run/driver.h"
#include "tensor/failure.h"
#include <pthread.h>
#include <semaphore.h>

static bool is_spoiled(frit_device *device, const struct buffer *buffer)
{
    struct failure *failure = lineage_failure_of(device->lineage, buffer);
    failure_unref(failure);
    return failure != NULL;
}
static struct buffer *written(frit_device *device, uint64_t at)
{
    struct buffer *buffer;
    assert_int_equal(buffer_create(device->memory, 4, false, &buffer, NULL), FRIT_OK);
    lineage_transferred(device->lineage, buffer, at);
    return buffer;
}

/* ---- two waits, two failures ---- */
static atomic_uint n_reported;
static sem_t first_reported, release_b, b_done;
static void script(struct driver *driver)
{
    (void)driver;
    switch (atomic_fetch_add(&n_reported, 1)) {
    case 0:
        sem_post(&first_reported);
        sem_wait(&release_b);
        break; /* B gets (1,1) */
    case 1:
        break; /* A gets (1,1) and reports it */
    case 2:
        sem_post(&release_b);
        sem_wait(&b_done);
        break; /* A gets (2,1), which it does not report yet */
    }
}
struct b {
    frit_device *device;
    struct buffer *second;
    bool spoiled;
    uint64_t reached;
};
static void *wait_b(void *arg)
{
    struct b *b = arg;
    frit_err err = ERR_INIT;
    (void)device_wait(b->device, 2, &err);
    b->spoiled = is_spoiled(b->device, b->second);
    b->reached = atomic_load(&b->device->queues[0].reached);
    sem_post(&b_done);
    return NULL;
}
static void a_wait_ends_before_all_is_spoiled(void **state)
{
    struct driver driver = {.on_report = script};
    frit_device *device = driver_device(&driver, 16);
    struct buffer *one = written(device, 1), *two = written(device, 2);
    struct b b = {device, two, false, 0};
    pthread_t thread;
    frit_err err = ERR_INIT;
    (void)state;
    atomic_store(&n_reported, 0);
    sem_init(&first_reported, 0, 0);
    sem_init(&release_b, 0, 0);
    sem_init(&b_done, 0, 0);
    driver.timeline = 2;
    driver_fails(&driver, FRIT_IO, 1, 1, 0);
    driver_fails(&driver, FRIT_IO, 2, 1, 0);
    atomic_store(&device->queues[0].last_value, 2);
    pthread_create(&thread, NULL, wait_b, &b);
    sem_wait(&first_reported);
    (void)device_wait(device, 2, &err);
    pthread_join(thread, NULL);
    bool ok = b.spoiled;
    buffer_disown(one);
    buffer_disown(two);
    device_close(device);
    assert_true(ok);
}

/* ---- a driver that does not number commands ---- */
static uint64_t launch(frit_device *device, struct lineage_batch *batch, struct buffer *out)
{
    uint64_t cookie;
    lineage_enter(device->lineage);
    cookie = lineage_launch(device->lineage, batch, &(struct lineage_launch){.stream = 0});
    lineage_writes(device->lineage, out);
    lineage_leave(device->lineage);
    return cookie;
}
static void a_number_that_is_not_given(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 16);
    struct buffer *a, *b;
    struct lineage_batch batch = {0};
    uint64_t cookie;
    frit_err err = ERR_INIT;
    (void)state;
    assert_int_equal(buffer_create(device->memory, 4, false, &a, NULL), FRIT_OK);
    assert_int_equal(buffer_create(device->memory, 4, false, &b, NULL), FRIT_OK);
    cookie = launch(device, &batch, a);
    (void)launch(device, &batch, b);
    driver.timeline = 1;
    atomic_store(&device->queues[0].last_value, 1);
    lineage_end(device->lineage, &batch, 0, 1);
    driver_fails(&driver, FRIT_IO, 1, 0, cookie); /* command left 0 */
    assert_int_equal(device_wait(device, 1, &err), FRIT_OK);
    bool ok = is_spoiled(device, b);
    buffer_disown(a);
    buffer_disown(b);
    device_close(device);
    assert_true(ok);
}

/* ---- an unnamed failure after a named one ---- */
static void unnamed_behind_named(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 16);
    struct buffer *a, *b;
    struct lineage_batch batch = {0};
    uint64_t cookie;
    frit_err err = ERR_INIT;
    (void)state;
    assert_int_equal(buffer_create(device->memory, 4, false, &a, NULL), FRIT_OK);
    assert_int_equal(buffer_create(device->memory, 4, false, &b, NULL), FRIT_OK);
    cookie = launch(device, &batch, a);
    (void)launch(device, &batch, b);
    driver.timeline = 1;
    driver_fails(&driver, FRIT_IO, 1, 1, cookie);
    driver_fails(&driver, FRIT_IO, 1, 2, 0); /* the FILL of b's workspace */
    atomic_store(&device->queues[0].last_value, 1);
    assert_int_equal(device_wait(device, 1, &err), FRIT_OK); /* another thread */
    lineage_end(device->lineage, &batch, 0, 1);
    bool ok = is_spoiled(device, b);
    buffer_disown(a);
    buffer_disown(b);
    device_close(device);
    assert_true(ok);
}

/* ---- better code while prepare answers ---- */
static uint64_t serial, gen;
static unsigned prepares;
static const frit_program_table racy;
static frit_status r_describe(void *self, frit_program_info *out, frit_err *err)
{
    (void)self;
    (void)err;
    out->n_ops = 1;
    out->n_candidates = 1;
    out->serial = &serial;
    return FRIT_OK;
}
static frit_status r_prepare(void *self, uint32_t c, const frit_signature *sig,
                             frit_launch_spec *out, frit_variant *v, frit_err *err)
{
    (void)self;
    (void)c;
    (void)sig;
    (void)err;
    (void)v;
    out->driver[0] = gen; /* the code of this generation */
    if (prepares++ == 0) {
        gen++;
        serial++;
    } /* another thread, here */
    return FRIT_OK;
}
static uint64_t r_generation(void *self, uint32_t c, const frit_variant *v)
{
    (void)self;
    (void)c;
    (void)v;
    return gen;
}
static void r_destroy(void *self)
{
    (void)self;
}
static const frit_program_table racy = {.struct_size = sizeof(racy),
                                        .describe = r_describe,
                                        .prepare = r_prepare,
                                        .destroy = r_destroy,
                                        .generation = r_generation};

static void better_code_while_prepare_answers(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 16);
    frit_program made = {.struct_size = sizeof(made), .table = &racy};
    struct program *program = program_create(&made, PROGRAM_OF_OP);
    struct prepared_cache *cache;
    struct prepared *p;
    frit_signature sig = {.struct_size = sizeof(sig)};
    struct prepare_query q = {.signature = &sig, .key = "k", .key_bytes = 1, .wait = true};
    frit_err err = ERR_INIT;
    uint64_t got = 0;
    (void)state;
    assert_int_equal(programs_prepared_cache(device, program, &cache, &err), FRIT_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(prepared_cache_get(cache, &q, &p, &err), FRIT_OK);
        got = p->spec.driver[0];
        prepared_unref(p);
    }
    bool ok = got == gen;
    program_unref(program);
    device_close(device);
    assert_true(ok);
}

/* ---- a driver that reports what is known ---- */
static unsigned n_noted;
static void note(frit_device *device, struct failure *failure, uint32_t stream)
{
    (void)device;
    (void)failure;
    if (stream == DEVICE_ALL_STREAMS)
        n_noted++;
}
static frit_status stubborn_wait(void *self, frit_queue *q, uint64_t value, uint64_t t,
                                 frit_failure *f, frit_err *err)
{
    (void)self;
    (void)q;
    (void)t;
    if (value >= 1) {
        f->status = FRIT_IO;
        f->value = 1;
        f->command = 1;
        f->cookie = 0x10000;
        fail(err, FRIT_IO, "smoke");
    }
    return FRIT_OK;
}
static void a_known_failure_again(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 16);
    struct lineage_batch batch = {0};
    struct buffer *a;
    frit_err err = ERR_INIT;
    uint64_t cookie;
    (void)state;
    assert_int_equal(buffer_create(device->memory, 4, false, &a, NULL), FRIT_OK);
    cookie = launch(device, &batch, a);
    assert_int_equal(cookie, 0x10000);
    driver.timeline = 1;
    atomic_store(&device->queues[0].last_value, 1);
    lineage_end(device->lineage, &batch, 0, 1);
    driver.plugin.backend.wait = stubborn_wait;
    device->config.note_failure = note;
    assert_int_equal(device_wait(device, 1, &err), FRIT_OK);
    driver.plugin.backend.wait = stubborn_wait;
    buffer_disown(a);
    device_close(device);
    assert_int_equal(n_noted, 0);
}

/* ---- a driver that has no end of failures ---- */
static unsigned long waits;
static frit_status endless_wait(void *self, frit_queue *q, uint64_t value, uint64_t t,
                                frit_failure *f, frit_err *err)
{
    (void)self;
    (void)q;
    (void)t;
    (void)err;
    if (value < 1 || ++waits > 3000000)
        return FRIT_OK;
    f->status = FRIT_IO;
    f->command = f->value == 1 ? f->command + 1 : 1;
    f->value = 1;
    f->cookie = 0;
    return FRIT_OK;
}
static void endless(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 16);
    frit_err err = ERR_INIT;
    (void)state;
    driver.timeline = 1;
    atomic_store(&device->queues[0].last_value, 1);
    driver.plugin.backend.wait = endless_wait;
    (void)device_wait(device, 1, &err);
    device_close(device);
    assert_true(waits < 10000);
}

/* ---- the program of a failure that is not reported yet ---- */
struct c {
    frit_device *device;
    struct program *program;
};
static void *wait_c(void *arg)
{
    struct c *c = arg;
    frit_err err = ERR_INIT;
    (void)device_wait(c->device, 2, &err);
    program_unref(c->program); /* a plan is evicted: reached is 2, so the program goes at once */
    sem_post(&b_done);
    return NULL;
}
static void program_gone_before_its_failure(void **state)
{
    struct driver driver = {.on_report = script};
    frit_device *device = driver_device(&driver, 16);
    frit_program made = {.struct_size = sizeof(made), .table = &racy};
    struct c c = {device, program_create(&made, 0)};
    struct prepared_cache *cache;
    struct lineage_batch batch = {0};
    struct buffer *a;
    pthread_t thread;
    uint64_t cookie;
    frit_err err = ERR_INIT;
    (void)state;
    atomic_store(&n_reported, 0);
    sem_init(&first_reported, 0, 0);
    sem_init(&release_b, 0, 0);
    sem_init(&b_done, 0, 0);
    assert_int_equal(programs_prepared_cache(device, c.program, &cache, &err), FRIT_OK);
    assert_int_equal(buffer_create(device->memory, 4, false, &a, NULL), FRIT_OK);
    lineage_enter(device->lineage);
    cookie =
        lineage_launch(device->lineage, &batch,
                       &(struct lineage_launch){.stream = 0, .disabled = &c.program->disabled});
    lineage_writes(device->lineage, a);
    lineage_leave(device->lineage);
    driver.timeline = 2;
    driver_fails(&driver, FRIT_IO, 1, 1, 0);
    driver_fails(&driver, FRIT_IO, 2, 1, cookie);
    atomic_store(&device->queues[0].last_value, 2);
    lineage_end(device->lineage, &batch, 0, 2);
    pthread_create(&thread, NULL, wait_c, &c);
    sem_wait(&first_reported);
    (void)device_wait(device, 2, &err);
    pthread_join(thread, NULL);
    buffer_disown(a);
    device_close(device);
}

/* ---- waits that fail at the end ---- */
static frit_status (*real_wait)(void *, frit_queue *, uint64_t, uint64_t, frit_failure *,
                                frit_err *);
static unsigned n_waits;
static frit_status flaky_wait(void *self, frit_queue *q, uint64_t value, uint64_t t,
                              frit_failure *f, frit_err *err)
{
    return ++n_waits <= 4 ? fail(err, FRIT_IO, "the socket hiccups")
                          : real_wait(self, q, value, t, f, err);
}
static void waits_that_fail_at_close(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 16);
    frit_program made = {.struct_size = sizeof(made), .table = &racy};
    struct program *program = program_create(&made, 0);
    struct prepared_cache *cache;
    struct lineage_batch batch = {0};
    struct buffer *a;
    uint64_t cookie;
    frit_err err = ERR_INIT;
    (void)state;
    assert_int_equal(programs_prepared_cache(device, program, &cache, &err), FRIT_OK);
    assert_int_equal(buffer_create(device->memory, 4, false, &a, NULL), FRIT_OK);
    lineage_enter(device->lineage);
    cookie = lineage_launch(device->lineage, &batch,
                            &(struct lineage_launch){.stream = 0, .disabled = &program->disabled});
    lineage_writes(device->lineage, a);
    lineage_leave(device->lineage);
    driver.timeline = 1;
    driver_fails(&driver, FRIT_IO, 1, 1, cookie);
    atomic_store(&device->queues[0].last_value, 1);
    lineage_end(device->lineage, &batch, 0, 1);
    atomic_store(&a->last_write, 1);
    buffer_disown(a);
    program_unref(program);
    real_wait = driver.plugin.backend.wait;
    driver.plugin.backend.wait = flaky_wait;
    device_close(device);
}
/* ---- a failure of a value that was reached before ---- */
static void reported_late(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 16);
    frit_program made = {.struct_size = sizeof(made), .table = &racy};
    struct program *program = program_create(&made, 0);
    struct prepared_cache *cache;
    struct lineage_batch batch = {0};
    uint64_t cookie;
    frit_err err = ERR_INIT;
    (void)state;
    assert_int_equal(programs_prepared_cache(device, program, &cache, &err), FRIT_OK);
    lineage_enter(device->lineage);
    cookie = lineage_launch(device->lineage, &batch,
                            &(struct lineage_launch){.stream = 0, .disabled = &program->disabled});
    lineage_leave(device->lineage);
    driver.timeline = 2;
    atomic_store(&device->queues[0].last_value, 1);
    lineage_end(device->lineage, &batch, 0, 1);
    assert_int_equal(device_wait(device, 1, &err), FRIT_OK);
    program_unref(program);
    driver_fails(&driver, FRIT_IO, 1, 1, cookie);
    atomic_store(&device->queues[0].last_value, 2);
    assert_int_equal(device_wait(device, 2, &err), FRIT_OK);
    device_close(device);
}
/* ---- several queues ---- */
static void a_loss_is_that_of_each_queue(void **state)
{
    struct driver driver = {.more_queues = 1, .lose = true, .timeline = 2};
    frit_device *device = driver_device(&driver, 16);
    struct buffer *one = written(device, 1), *two = written(device, point_of(1, 2));
    frit_err err = ERR_INIT;
    bool first, second;
    (void)state;
    atomic_store(&device->queues[0].last_value, 1);
    atomic_store(&device->queues[1].last_value, 2);
    assert_int_equal(device_wait_all(device, &err), FRIT_DEVICE_LOST);
    first = is_spoiled(device, one);
    second = is_spoiled(device, two);
    buffer_disown(one);
    buffer_disown(two);
    device_close(device);
    assert_true(first);
    assert_true(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_that_fail_at_close),
        cmocka_unit_test(reported_late),
        cmocka_unit_test(program_gone_before_its_failure),
        cmocka_unit_test(a_wait_ends_before_all_is_spoiled),
        cmocka_unit_test(a_number_that_is_not_given),
        cmocka_unit_test(unnamed_behind_named),
        cmocka_unit_test(better_code_while_prepare_answers),
        cmocka_unit_test(a_known_failure_again),
        cmocka_unit_test(endless),
        cmocka_unit_test(a_loss_is_that_of_each_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
