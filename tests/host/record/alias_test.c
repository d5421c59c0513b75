/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of one stream used in another: made known once, found again without the source's lock,
 * gone with the source, replaced when its contents change. */
#include "run/driver.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "record/alias.h"
#include "record/binding.h"
#include "run/drain.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};

/* A device with the calling thread's stream and another one that it can enter. */
struct rig {
    struct driver driver;
    frit_device *device;
    struct binding *binding;
    struct stream *home, *user;
};

static void rig_open(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->device = driver_device(&rig->driver, 100);
    assert_int_equal(binding_current(rig->device, &rig->binding, NULL), FRIT_OK);
    rig->home = rig->binding->stream;
    assert_int_equal(stream_open(rig->device, &rig->user, NULL), FRIT_OK);
}

static void enter(struct rig *rig, struct stream *stream)
{
    struct stream *before;

    assert_int_equal(binding_set_stream(rig->device, stream, &before, NULL), FRIT_OK);
}

static void rig_close(struct rig *rig)
{
    enter(rig, NULL);
    assert_int_equal(streams_tensors(rig->device), 0);
    device_close(rig->device);
}

static frit_tensor *make(struct rig *rig)
{
    return frit_from_host(rig->device, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));
}

static void expect(frit_tensor *tensor, const float *from, float factor)
{
    float out[6];

    assert_int_equal(frit_read(tensor, out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < 6; i++)
        assert_true(out[i] == factor * from[i]);
}

static uint64_t shares(const struct rig *rig)
{
    return atomic_load(&rig->device->count.drains[DRAIN_SHARE]);
}

static uint32_t n_aliases(const frit_tensor *tensor)
{
    uint32_t n = 0;

    for (const struct alias *a = slot_of((frit_tensor *)tensor)->aliases; a; a = a->next)
        n++;
    return n;
}

/* ---- known once ---- */

static void test_a_tensor_has_one_alias_per_stream(void **state)
{
    struct rig rig;
    frit_tensor *x, *y[5];

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    enter(&rig, rig.user);
    for (int i = 0; i < 5; i++)
        y[i] = frit_neg(x);
    assert_int_equal(n_aliases(x), 1);
    assert_int_equal(rig.user->aliases.count, 1);
    assert_int_equal(slot_of(x)->holds, 0); /* the other queue holds the alias, not the tensor */
    for (int i = 0; i < 5; i++)
        expect(frit_take(y[i]), six, -1);
    frit_release(x);
    assert_int_equal(rig.user->aliases.count, 0);
    rig_close(&rig);
}

struct holder {
    struct slot_home *home;
    atomic_bool inside, done;
};

static void *hold_home(void *arg)
{
    struct holder *holder = arg;

    owner_lock_take(&holder->home->lock);
    atomic_store(&holder->inside, true);
    while (!atomic_load(&holder->done))
        sched_yield();
    owner_lock_give(&holder->home->lock);
    return NULL;
}

/* While somebody else is inside the source's home. */
static void test_a_known_tensor_needs_no_lock_of_its_home(void **state)
{
    struct holder holder = {0};
    struct rig rig;
    frit_tensor *x, *y, *z;
    pthread_t thread;

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    enter(&rig, rig.user);
    y = frit_neg(x);
    holder.home = &rig.home->home;
    assert_int_equal(pthread_create(&thread, NULL, hold_home, &holder), 0);
    while (!atomic_load(&holder.inside))
        sched_yield();
    z = frit_neg(x);
    atomic_store(&holder.done, true);
    pthread_join(thread, NULL);
    expect(frit_take(y), six, -1);
    expect(frit_take(z), six, -1);
    frit_release(x);
    rig_close(&rig);
}

/* The first share runs the home stream, others do not, and of what is there none does. */
static void test_only_pending_values_are_run(void **state)
{
    struct rig rig;
    frit_tensor *x, *pending, *other, *y[3];

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    pending = frit_neg(x);
    enter(&rig, rig.user);
    y[0] = frit_neg(pending);
    assert_int_equal(shares(&rig), 1);
    y[1] = frit_neg(pending);
    enter(&rig, NULL);
    other = frit_exp(x);
    enter(&rig, rig.user);
    y[2] = frit_neg(x);
    assert_int_equal(shares(&rig), 1);
    enter(&rig, NULL);
    assert_int_equal(streams_queued(rig.device), 2); /* one op waits in each */
    for (int i = 0; i < 3; i++)
        expect(frit_take(y[i]), six, i == 2 ? -1 : 1);
    frit_release(x), frit_release(pending), frit_release(other);
    rig_close(&rig);
}

/* Of a view of another stream's tensor too; a view of it here needs nothing more. */
static void test_views_cross(void **state)
{
    struct rig rig;
    frit_tensor *x, *view, *here, *y;

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    view = frit_reshape(x, FRIT_SHAPE(2, 3));
    assert_int_equal(frit_sync(rig.device, NULL), FRIT_OK);
    enter(&rig, rig.user);
    here = frit_reshape(view, FRIT_SHAPE(3, 2));
    y = frit_neg(frit_take(here));
    assert_int_equal(shares(&rig), 0);
    expect(frit_take(y), six, -1);
    frit_release(x), frit_release(view);
    rig_close(&rig);
}

/* ---- ends ---- */

/* The elements live as long as the queue needs them, the handle does not. */
static void test_a_source_released_while_held(void **state)
{
    struct rig rig;
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    enter(&rig, rig.user);
    y = frit_neg(x);
    frit_release(x);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    assert_int_equal(rig.user->aliases.count, 0);
    expect(frit_take(y), six, -1);
    assert_null(rig.user->aliases.gone);
    rig_close(&rig);
}

/* Taken by another stream: consumed as at home. */
static void test_a_foreign_take(void **state)
{
    struct rig rig;
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    enter(&rig, rig.user);
    y = frit_add(frit_take(x), frit_take(x));
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    expect(frit_take(y), six, 2);
    rig_close(&rig);
}

/* An operand that another stream sees is not overwritten by an op that takes it. */
static void test_no_op_overwrites_what_is_shared(void **state)
{
    struct rig rig;
    frit_tensor *x, *theirs, *mine;

    (void)state;
    rig_open(&rig);
    rig.driver.alias = 1; /* output 0 may lie on operand 0 */
    x = make(&rig);
    enter(&rig, rig.user);
    theirs = frit_neg(x);
    enter(&rig, NULL);
    mine = frit_exp(frit_take(x));
    assert_int_equal(frit_sync(rig.device, NULL), FRIT_OK);
    assert_int_equal(atomic_load(&rig.device->count.in_place), 0);
    expect(frit_take(theirs), six, -1);
    x = make(&rig); /* now nobody else has it */
    frit_release(mine);
    mine = frit_neg(frit_take(x));
    expect(frit_take(mine), six, -1);
    assert_int_equal(atomic_load(&rig.device->count.in_place), 1);
    rig_close(&rig);
}

static void test_a_failed_source_gives_its_failure(void **state)
{
    struct rig rig;
    frit_tensor *bad, *y;

    (void)state;
    rig_open(&rig);
    bad = frit_reshape(frit_take(make(&rig)), FRIT_SHAPE(5));
    enter(&rig, rig.user);
    y = frit_neg(bad);
    assert_string_equal(frit_tensor_error(y), frit_tensor_error(bad));
    assert_int_equal(rig.user->aliases.count, 0);
    frit_release(bad), frit_release(y);
    rig_close(&rig);
}

/* ---- versions ---- */

static void test_a_write_is_seen_by_later_ops_alone(void **state)
{
    static const float tens[6] = {10, 20, 30, 40, 50, 60};
    struct rig rig;
    frit_tensor *x, *before, *after;

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    enter(&rig, rig.user);
    before = frit_neg(x);
    assert_int_equal(frit_write(x, tens, sizeof(tens), NULL), FRIT_OK);
    after = frit_neg(x);
    assert_int_equal(rig.user->aliases.count, 1);
    assert_int_equal(n_aliases(x), 1);
    expect(frit_take(before), six, -1);
    expect(frit_take(after), tens, -1);
    frit_release(x);
    rig_close(&rig);
}

/* Slots are used again: a new tensor is not taken for the old one. */
static void test_a_new_tensor_in_an_old_slot(void **state)
{
    static const float tens[6] = {10, 20, 30, 40, 50, 60};
    struct rig rig;
    frit_tensor *x, *again, *y[2];

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    enter(&rig, rig.user);
    y[0] = frit_neg(x);
    enter(&rig, NULL);
    frit_release(x);
    again = frit_from_host(rig.device, FRIT_F32, FRIT_SHAPE(6), tens, sizeof(tens));
    assert_ptr_equal(slot_of(again), slot_of(x));
    enter(&rig, rig.user);
    y[1] = frit_neg(again);
    expect(frit_take(y[0]), six, -1);
    expect(frit_take(y[1]), tens, -1);
    frit_release(again);
    rig_close(&rig);
}

/* ---- the table ---- */

/* Many are known; they go in any order and the others are still found. */
static void test_many_are_known(void **state)
{
    enum { MANY = 300 };
    struct rig rig;
    frit_tensor *x[MANY];

    (void)state;
    rig_open(&rig);
    for (int i = 0; i < MANY; i++)
        x[i] = make(&rig);
    enter(&rig, rig.user);
    for (int i = 0; i < MANY; i++)
        frit_release(frit_neg(x[i]));
    assert_int_equal(rig.user->aliases.count, MANY);
    for (int i = 0; i < MANY; i++) {
        frit_release(x[i * 7 % MANY]);
        for (int k = i + 1; k < MANY; k++)
            assert_non_null(alias_find(&rig.user->aliases, slot_of(x[k * 7 % MANY])));
    }
    assert_int_equal(rig.user->aliases.count, 0);
    assert_int_equal(frit_sync(rig.device, NULL), FRIT_OK);
    rig_close(&rig);
}

static void test_closing_a_device_ends_aliases(void **state)
{
    struct rig rig;
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig);
    x = make(&rig);
    enter(&rig, rig.user);
    y = frit_neg(x); /* in the queue */
    enter(&rig, NULL);
    frit_neg(y);
    device_close(rig.device);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    assert_int_equal(frit_tensor_status(y), FRIT_INVALID);
    assert_int_equal(rig.driver.allocated, 0);
    assert_int_equal(rig.driver.programs_alive, 0);
}

/* ---- threads ---- */

enum { ROUNDS = 3000 };

/* Slots come back at once: one makes, one uses, one releases. */
struct line {
    frit_device *device;
    _Atomic(frit_tensor *) made, used;
    atomic_int failures;
};

static frit_tensor *await(_Atomic(frit_tensor *) *from)
{
    frit_tensor *tensor;

    while (!(tensor = atomic_exchange(from, NULL)))
        sched_yield();
    return tensor;
}

static void hand_on(_Atomic(frit_tensor *) *to, frit_tensor *tensor)
{
    frit_tensor *none = NULL;

    while (!atomic_compare_exchange_weak(to, &none, tensor)) {
        none = NULL;
        sched_yield();
    }
}

static void *use(void *arg)
{
    struct line *line = arg;

    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *x = await(&line->made), *y = frit_neg(x);

        if (frit_tensor_status(y))
            atomic_fetch_add(&line->failures, 1);
        frit_release(y);
        hand_on(&line->used, x);
    }
    return NULL;
}

static void *end(void *arg)
{
    struct line *line = arg;

    for (int i = 0; i < ROUNDS; i++)
        frit_release(await(&line->used));
    return NULL;
}

static void test_slots_come_back_while_others_use_them(void **state)
{
    struct rig rig;
    struct line line = {0};
    pthread_t threads[2];

    (void)state;
    rig_open(&rig);
    line.device = rig.device;
    assert_int_equal(pthread_create(&threads[0], NULL, use, &line), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, end, &line), 0);
    for (int i = 0; i < ROUNDS; i++)
        hand_on(&line.made, make(&rig));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&line.failures), 0);
    assert_int_equal(frit_sync_all(rig.device, NULL), FRIT_OK);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tensor_has_one_alias_per_stream),
        cmocka_unit_test(test_a_known_tensor_needs_no_lock_of_its_home),
        cmocka_unit_test(test_only_pending_values_are_run),
        cmocka_unit_test(test_views_cross),
        cmocka_unit_test(test_a_source_released_while_held),
        cmocka_unit_test(test_a_foreign_take),
        cmocka_unit_test(test_no_op_overwrites_what_is_shared),
        cmocka_unit_test(test_a_failed_source_gives_its_failure),
        cmocka_unit_test(test_a_write_is_seen_by_later_ops_alone),
        cmocka_unit_test(test_a_new_tensor_in_an_old_slot),
        cmocka_unit_test(test_many_are_known),
        cmocka_unit_test(test_closing_a_device_ends_aliases),
        cmocka_unit_test(test_slots_come_back_while_others_use_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
