/* SPDX-License-Identifier: Apache-2.0 */
/* Handles and homes: stale, foreign and NULL handles are distinguished, owners and holds end in the
 * right order, versions change with the contents. */
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "base/fail.h"
#include "tensor/failure.h"
#include "tensor/slot.h"

/* Slots only keep the device. */
static frit_device *const device = (frit_device *)64;

/* Homes are never freed. */
static struct slot_home home, other_home;

static struct slot *make_in(struct slot_home *at)
{
    struct slot *slot;

    home_enter(at);
    slot = slot_create(at, device);
    home_leave(at);
    assert_non_null(slot);
    return slot;
}

static struct slot *make(void)
{
    return make_in(&home);
}

/* Gives an owner back as a caller does; whether the handle named anything. */
static bool disown(frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);
    struct slot_home *at;

    if (!slot)
        return false;
    at = atomic_load(&slot->home);
    if (slot_disown(slot))
        slot_end(slot);
    home_leave_drop(at);
    return true;
}

static bool resolves(frit_tensor *tensor, const struct slot *to)
{
    struct slot *slot = slot_enter(tensor, NULL);

    if (slot)
        slot_leave(slot);
    return slot == to;
}

static int open_homes(void **state)
{
    (void)state;
    home_init(&home);
    home_set_owner(&home, thread_token());
    home_init(&other_home);
    return 0;
}

static int close_homes(void **state)
{
    (void)state;
    if (atomic_load(&home.n_live) || atomic_load(&other_home.n_live))
        return 1;
    home_fini(&home);
    home_fini(&other_home);
    return 0;
}

/* ---- handles ---- */

static void test_a_released_handle_is_stale(void **state)
{
    struct slot *slot = make();
    frit_tensor *handle = slot_handle(slot), *next;
    frit_err err = ERR_INIT;

    (void)state;
    assert_true(disown(handle));
    assert_false(slot_is(slot, handle));
    assert_null(slot_enter(handle, &err));
    assert_non_null(strstr(err.text, "stale"));
    assert_false(disown(handle));

    assert_ptr_equal(make(), slot); /* the same slot again */
    next = slot_handle(slot);
    assert_ptr_not_equal(next, handle);
    assert_null(slot_enter(handle, NULL));
    assert_true(resolves(next, slot));
    disown(next);
}

static void test_owners_are_counted(void **state)
{
    struct slot *slot = make();
    frit_tensor *handle = slot_handle(slot);

    (void)state;
    slot->owners++;
    assert_true(disown(handle));
    assert_true(resolves(handle, slot));
    assert_int_equal(atomic_load(&home.n_live), 1);
    assert_true(disown(handle));
    assert_false(disown(handle));
    assert_int_equal(atomic_load(&home.n_live), 0);
}

static void test_foreign_handles_are_refused(void **state)
{
    struct slot *slot = make();
    char *address = (char *)slot_handle(slot);
    frit_err err = ERR_INIT;
    int local = 0;

    (void)state;
    assert_null(slot_enter((frit_tensor *)&local, &err));
    assert_non_null(strstr(err.text, "is not a tensor"));
    assert_null(slot_enter((frit_tensor *)(address + 128), &err)); /* inside a slot */
    assert_null(slot_enter((frit_tensor *)((uintptr_t)slot + ((uintptr_t)1 << 36)), &err));
    assert_null(slot_enter((frit_tensor *)8, &err));
    assert_null(slot_enter(NULL, &err));
    assert_string_equal(err.text, "is NULL");
    disown(slot_handle(slot));
}

static void test_the_take_bit_names_the_same_tensor(void **state)
{
    struct slot *slot = make();
    frit_tensor *handle = slot_handle(slot);

    (void)state;
    assert_ptr_not_equal(handle_take(handle), handle);
    assert_ptr_equal(handle_take(handle_take(handle)), handle_take(handle));
    assert_true(handle_taken(handle_take(handle)));
    assert_false(handle_taken(handle));
    assert_ptr_equal(handle_plain(handle_take(handle)), handle);
    assert_true(resolves(handle_take(handle), slot));
    assert_null(handle_take(NULL));
    assert_true(disown(handle_take(handle)));
}

static void test_generations_distinguish_many_lives(void **state)
{
    frit_tensor *seen[4096];

    (void)state;
    for (int i = 0; i < 4096; i++) {
        seen[i] = slot_handle(make());
        disown(seen[i]);
    }
    for (int i = 1; i < 4096; i++)
        assert_ptr_not_equal(seen[i], seen[i - 1]);
    for (int i = 64; i < 4096; i++) /* the low bits of the generation repeat */
        assert_ptr_not_equal(seen[i], seen[i - 64]);
}

/* Many more than a home gets at once. */
static void test_handles_alive_are_all_different(void **state)
{
    frit_tensor *handles[1000];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        handles[i] = slot_handle(make_in(i % 2 ? &home : &other_home));
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(handles[i], handles[k]);
    }
    assert_int_equal(atomic_load(&home.n_live), 500);
    for (int i = 0; i < 1000; i++)
        assert_true(disown(handles[i]));
}

static void test_immortal_errors_survive_releases(void **state)
{
    frit_tensor *handle = handle_immortal(FRIT_NO_HOST_MEMORY);
    struct slot *slot = slot_enter(handle, NULL);

    (void)state;
    assert_non_null(slot);
    assert_true(slot_is_immortal(slot));
    assert_int_equal(slot->state, SLOT_FAILED);
    assert_int_equal(slot->failure->status, FRIT_NO_HOST_MEMORY);
    slot_leave(slot);
    slot = make();
    assert_false(slot_is_immortal(slot));
    disown(slot_handle(slot));
}

/* ---- lives ---- */

static void test_holds_keep_a_slot_without_owners(void **state)
{
    struct slot *slot = make(), *next;

    (void)state;
    slot_hold(slot);
    slot_hold(slot);
    disown(slot_handle(slot));
    next = make();
    assert_ptr_not_equal(next, slot);
    disown(slot_handle(next));
    slot_unhold(slot);
    assert_int_equal(slot->state, SLOT_PENDING);
    slot_unhold(slot);
    assert_int_equal(slot->state, SLOT_EMPTY);
    assert_ptr_equal(make(), slot);
    disown(slot_handle(slot));
}

static void test_the_first_failure_stays(void **state)
{
    frit_err first = {.status = FRIT_IO, .text = "first"}, second = {.status = FRIT_BUSY};
    struct failure *kept = failure_create(&first);
    struct slot *slot = make();

    (void)state;
    slot_set_failed(slot, failure_ref(kept));
    slot_set_failed(slot, failure_create(&second));
    assert_string_equal(slot->failure->text, "first");
    assert_int_equal(atomic_load(&kept->refs), 2);
    disown(slot_handle(slot));
    assert_int_equal(atomic_load(&kept->refs), 1);
    failure_unref(kept);
}

static void test_new_contents_are_a_new_version(void **state)
{
    struct slot *slot = make();
    frit_tensor *handle = slot_handle(slot);
    uint64_t life = slot_life(slot);
    frit_err err = {.status = FRIT_IO};

    (void)state;
    slot->value = (struct value){.type = {.dtype = FRIT_F32, .rank = 1, .dims = {3}}};
    slot_set_ready(slot, &(struct value){.type = slot->value.type});
    assert_int_equal(slot_life(slot), life);
    assert_null(slot_swap_buffer(slot, NULL));
    assert_int_not_equal(slot_life(slot), life);
    assert_int_equal(slot->value.layout.strides[0], 1);
    life = slot_life(slot);
    slot_set_failed(slot, failure_create(&err));
    assert_int_not_equal(slot_life(slot), life);
    assert_ptr_equal(slot_handle(slot), handle);
    disown(handle);
    assert_int_not_equal(slot_life(slot) >> 32, life >> 32);
}

/* Slots of a home that ended serve other homes, with handles of their own. */
static void test_a_home_gives_its_slots_back(void **state)
{
    static struct slot_home first, second;
    struct slot *slot;
    frit_tensor *handle;
    bool again = false;

    (void)state;
    home_init(&first);
    home_init(&second);
    slot = make_in(&first);
    handle = slot_handle(slot);
    disown(handle);
    home_fini(&first);
    assert_null(slot_enter(handle, NULL));
    for (int i = 0; i < 64; i++) {
        struct slot *next = make_in(&second);

        again = again || next == slot;
        assert_ptr_not_equal(slot_handle(next), handle);
        assert_ptr_equal(atomic_load(&next->home), &second);
        slot_hold(next);
        disown(slot_handle(next));
    }
    assert_true(again);
}

static void count(struct slot *slot, void *ctx)
{
    (void)slot;
    ++*(int *)ctx;
}

static void test_each_shows_owned_slots_of_one_home(void **state)
{
    frit_tensor *mine[3], *other = slot_handle(make_in(&other_home));
    struct slot *held = make();
    int n = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        mine[i] = slot_handle(make());
    slot_hold(held);
    disown(slot_handle(held));
    slot_each(&home, count, &n);
    assert_int_equal(n, 3);
    slot_unhold(held);
    for (int i = 0; i < 3; i++)
        disown(mine[i]);
    disown(other);
}

/* ---- threads ---- */

enum { ROUNDS = 20000, THREADS = 3 };

struct race {
    frit_tensor *handle;
    atomic_int ended, refused;
};

static void *release_once(void *arg)
{
    struct race *race = arg;

    if (disown(race->handle))
        atomic_fetch_add(&race->ended, 1);
    else
        atomic_fetch_add(&race->refused, 1);
    return NULL;
}

/* Of several threads that release the last owner one succeeds; the others get FRIT_INVALID. */
static void test_one_release_wins(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct race race = {.handle = slot_handle(make())};
        pthread_t threads[THREADS];

        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, release_once, &race), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&race.ended), 1);
        assert_int_equal(atomic_load(&race.refused), THREADS - 1);
    }
}

/* A thread without a home of its own uses those of others. */
static void *make_and_end(void *arg)
{
    struct slot_home *at = arg;

    for (int i = 0; i < ROUNDS; i++)
        disown(slot_handle(make_in(at)));
    return NULL;
}

static void test_a_home_is_shared(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_end, &home), 0);
    make_and_end(&home);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&home.n_live), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_homes, close_homes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_released_handle_is_stale),
        TEST(test_owners_are_counted),
        TEST(test_foreign_handles_are_refused),
        TEST(test_the_take_bit_names_the_same_tensor),
        TEST(test_generations_distinguish_many_lives),
        TEST(test_handles_alive_are_all_different),
        TEST(test_immortal_errors_survive_releases),
        TEST(test_holds_keep_a_slot_without_owners),
        TEST(test_the_first_failure_stays),
        TEST(test_new_contents_are_a_new_version),
        TEST(test_a_home_gives_its_slots_back),
        TEST(test_each_shows_owned_slots_of_one_home),
        TEST(test_one_release_wins),
        TEST(test_a_home_is_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
