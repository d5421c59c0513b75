/* SPDX-License-Identifier: Apache-2.0 */
/* Attention where what is not finite lies at keys that a mask hides: the score of such a key does
 * not count, so that its elements of k do not show; its weight is 0, and 0 times NaN or infinity
 * shows.  That is what the same written in other ops gives, and the same on every driver. */
#include "device/rig.h"

#include <math.h>

enum { HEADS = 2, SIZE = 16, SPOILT_KEY = 3, SPOILT_VALUE = 7, COLUMN = 5 };

static frit_tensor *spoilt(struct rig *rig, frit_dims dims, int64_t key, int64_t column, float by)
{
    const int64_t keys = dims.dim[2], count = HEADS * keys * SIZE;
    float *numbers = rig_numbers((uint64_t)count);
    frit_tensor *made;

    for (int64_t head = 0; head < HEADS; head++)
        numbers[(head * keys + key) * SIZE + column] = by;
    made = rig_tensor(rig, dims, numbers);
    free(numbers);
    return made;
}

/* The key with spoilt k is hidden from all rows, that with a spoilt value from every other row. */
static frit_tensor *mask_of(struct rig *rig, int64_t queries, int64_t keys)
{
    const frit_dims dims = FRIT_SHAPE(queries, keys);
    const uint64_t n_bytes = (uint64_t)(queries * keys);
    uint8_t *hidden = calloc(n_bytes, 1);
    frit_tensor *made;

    assert_non_null(hidden);
    for (int64_t query = 0; query < queries; query++) {
        hidden[query * keys + SPOILT_KEY] = 1;
        hidden[query * keys + SPOILT_VALUE] = query % 2 == 0;
    }
    made = frit_from_host(rig->dev, FRIT_BOOL, dims, hidden, n_bytes);
    free(hidden);
    return made;
}

static void check(struct rig *rig, int64_t queries, int64_t keys, float by)
{
    const frit_dims q_dims = FRIT_SHAPE(1, HEADS, queries, SIZE);
    const frit_dims k_dims = FRIT_SHAPE(1, HEADS, keys, SIZE);
    float *numbers = rig_numbers((uint64_t)(HEADS * queries * SIZE)), *got;
    frit_tensor *q = rig_tensor(rig, q_dims, numbers);
    frit_tensor *k = spoilt(rig, k_dims, SPOILT_KEY, 0, by);
    frit_tensor *v = spoilt(rig, k_dims, SPOILT_VALUE, COLUMN, by);
    frit_tensor *mask = mask_of(rig, queries, keys);

    got = rig_read(frit_attention(q, k, v, mask, NULL));
    for (int64_t i = 0; i < HEADS * queries * SIZE; i++) {
        const bool is_hidden = i / SIZE % queries % 2 == 0;
        const bool fits = i % SIZE != COLUMN               ? isfinite(got[i])
                          : is_hidden || isnan((double)by) ? isnan(got[i])
                                                           : isinf(got[i]);

        if (!fits)
            fail_msg("%d x %d, %g: row %d, column %d is %g", (int)queries, (int)keys, (double)by,
                     (int)(i / SIZE), (int)(i % SIZE), (double)got[i]);
    }
    free(got);
    free(numbers);
    frit_release(q);
    frit_release(k);
    frit_release(v);
    frit_release(mask);
}

static void test_hidden(void **state)
{
    static const int64_t sizes[][2] = {{5, 40}, {1, 300}};
    struct rig rig;

    (void)state;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check(&rig, sizes[i][0], sizes[i][1], NAN);
        check(&rig, sizes[i][0], sizes[i][1], INFINITY);
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hidden)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
