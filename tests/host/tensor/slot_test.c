/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: stale, foreign and NULL ones are told apart, owners and uses end in the right order. */
#include "unit.h"

#include <string.h>

#include "base/fail.h"
#include "tensor/slot.h"

/* Slots only compare devices. */
static frit_device *const device = (frit_device *)64;

static struct slot *make(void)
{
    struct slot *slot;

    assert_int_equal(slot_create(device, NULL, &slot, NULL), FRIT_OK);
    return slot;
}

static void test_a_released_handle_is_stale(void **state)
{
    struct slot *slot = make();
    frit_tensor *handle = slot_handle(slot), *other;
    frit_err err = ERR_INIT;

    (void)state;
    slot_unuse(slot);
    assert_true(slot_disown(handle));
    assert_null(slot_use(handle, &err));
    assert_non_null(strstr(err.text, "stale"));
    assert_false(slot_disown(handle));
    assert_false(slot_own(handle));

    slot = make(); /* the same slot again */
    other = slot_handle(slot);
    assert_ptr_not_equal(other, handle);
    assert_null(slot_use(handle, &err));
    assert_ptr_equal(slot_use(other, &err), slot);
    slot_unuse(slot);
    slot_unuse(slot);
    slot_disown(other);
}

static void test_uses_keep_a_slot_without_owners(void **state)
{
    struct slot *slot = make(), *next;

    (void)state;
    assert_true(slot_wanted(slot));
    slot_disown(slot_handle(slot));
    assert_false(slot_owned(slot));
    assert_false(slot_wanted(slot)); /* the one use is ours */
    slot_use_again(slot);
    assert_true(slot_wanted(slot));
    next = make();
    assert_ptr_not_equal(next, slot);
    slot_disown(slot_handle(next));
    slot_unuse(next);
    slot_unuse(slot);
    slot_unuse(slot);
}

static void test_owners_are_counted(void **state)
{
    struct slot *slot = make();
    frit_tensor *handle = slot_handle(slot);

    (void)state;
    slot_unuse(slot);
    assert_true(slot_own(handle));
    assert_true(slot_disown(handle));
    assert_true(slot_owned(slot));
    assert_true(slot_disown(handle));
    assert_false(slot_disown(handle));
}

static void test_foreign_handles_are_refused(void **state)
{
    struct slot *slot = make();
    char *address = (char *)slot_handle(slot);
    frit_err err = ERR_INIT;
    int local = 0;

    (void)state;
    assert_null(slot_use((frit_tensor *)&local, &err));
    assert_non_null(strstr(err.text, "is not a tensor"));
    assert_null(slot_use((frit_tensor *)(address + 128), &err)); /* inside a slot */
    assert_null(slot_use((frit_tensor *)((uintptr_t)slot + ((uintptr_t)1 << 31)), &err));
    assert_null(slot_use((frit_tensor *)8, &err));
    assert_null(slot_use(NULL, &err));
    assert_string_equal(err.text, "is NULL");
    slot_disown(slot_handle(slot));
    slot_unuse(slot);
}

static void test_the_take_bit_names_the_same_tensor(void **state)
{
    struct slot *slot = make();
    frit_tensor *handle = slot_handle(slot);

    (void)state;
    slot_unuse(slot);
    assert_ptr_not_equal(handle_take(handle), handle);
    assert_ptr_equal(handle_take(handle_take(handle)), handle_take(handle));
    assert_true(handle_taken(handle_take(handle)));
    assert_false(handle_taken(handle));
    assert_ptr_equal(handle_plain(handle_take(handle)), handle);
    assert_ptr_equal(slot_use(handle_take(handle), NULL), slot);
    slot_unuse(slot);
    assert_null(handle_take(NULL));
    slot_disown(handle_take(handle));
}

static void test_generations_tell_many_lives_apart(void **state)
{
    frit_tensor *seen[4096];

    (void)state;
    for (int i = 0; i < 4096; i++) {
        struct slot *slot = make();

        seen[i] = slot_handle(slot);
        slot_unuse(slot);
        slot_disown(seen[i]);
    }
    for (int i = 1; i < 4096; i++)
        assert_ptr_not_equal(seen[i], seen[i - 1]);
    for (int i = 64; i < 4096; i++) /* the low bits of the generation repeat */
        assert_ptr_not_equal(seen[i], seen[i - 64]);
}

static void test_the_first_failure_stays(void **state)
{
    frit_err first = {.status = FRIT_IO, .text = "first"}, second = {.status = FRIT_BUSY};
    struct slot *slot = make();

    (void)state;
    slot_set_failed(slot, failure_create(&first));
    slot_set_failed(slot, failure_create(&second));
    assert_string_equal(slot->failure->text, "first");
    slot_disown(slot_handle(slot));
    slot_unuse(slot);
}

/* As many as a call and its record may add never run into the owners. */
static void test_uses_have_an_end(void **state)
{
    struct slot *slot = make();
    frit_tensor *handle = slot_handle(slot);
    frit_err err = ERR_INIT;
    uint32_t uses = 1;

    (void)state;
    while (slot_use(handle, &err))
        uses++;
    assert_non_null(strstr(err.text, "too many queued ops"));
    for (uint32_t i = 0; i < uses; i++)
        slot_use_again(slot);
    for (uint32_t i = 0; i < 2 * uses; i++)
        slot_unuse(slot);
    assert_true(slot_disown(handle));
    assert_false(slot_disown(handle));
}

static void test_immortal_errors_survive_releases(void **state)
{
    frit_tensor *handle = handle_immortal(FRIT_NO_HOST_MEMORY);
    struct slot *slot;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(slot_disown(handle));
    slot = slot_use(handle, NULL);
    assert_non_null(slot);
    assert_int_equal(slot_state(slot), SLOT_FAILED);
    assert_int_equal(slot->failure->status, FRIT_NO_HOST_MEMORY);
    slot_unuse(slot);
}

static void test_closing_a_device_ends_its_handles(void **state)
{
    struct slot *mine = make(), *queued = make(), *other;
    frit_tensor *handle = slot_handle(mine);

    (void)state;
    assert_int_equal(slot_create((frit_device *)128, NULL, &other, NULL), FRIT_OK);
    slot_own(handle);
    slot_unuse(mine);
    assert_int_equal(slot_count(device), 2);
    slot_end_device(device);
    assert_int_equal(slot_count(device), 0);
    assert_null(slot_use(handle, NULL));
    assert_true(slot_owned(other));
    slot_unuse(queued);
    slot_disown(slot_handle(other));
    slot_unuse(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_released_handle_is_stale),
        cmocka_unit_test(test_uses_keep_a_slot_without_owners),
        cmocka_unit_test(test_owners_are_counted),
        cmocka_unit_test(test_foreign_handles_are_refused),
        cmocka_unit_test(test_the_take_bit_names_the_same_tensor),
        cmocka_unit_test(test_generations_tell_many_lives_apart),
        cmocka_unit_test(test_the_first_failure_stays),
        cmocka_unit_test(test_uses_have_an_end),
        cmocka_unit_test(test_immortal_errors_survive_releases),
        cmocka_unit_test(test_closing_a_device_ends_its_handles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
