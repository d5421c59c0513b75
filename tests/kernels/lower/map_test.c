/* SPDX-License-Identifier: Apache-2.0 */
/* The map schedule: layouts, views, several outputs, tails. */
#include <math.h>
#include <string.h>

#include "kernels/lower/rig.h"
#include "unit.h"

static void fill(struct rig *rig, uint32_t value, int64_t scale)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, (double)(i * scale % 1009) - 300);
}

static void test_chain(void **state)
{
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 128, 1000, 64 * 64, 64 * 64 + 5};

    (void)state;
    for (uint32_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const int64_t *dims = &sizes[k];
        struct rig rig;
        uint32_t a, b, sum, product;

        rig_init(&rig);
        a = rig_input(&rig, FRIT_F32, 1, dims);
        b = rig_input(&rig, FRIT_F32, 1, dims);
        fill(&rig, a, 7);
        fill(&rig, b, 3);
        sum = rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL,
                     FRIT_F32, 1, dims);
        product =
            rig_op(&rig, FRIT_OP_mul, 2, (struct rig_in[]){rig_value(sum), rig_real(FRIT_F32, 0.5)},
                   NULL, FRIT_F32, 1, dims);
        rig_run(&rig, &sched_map);
        for (int64_t i = 0; i < *dims; i++)
            assert_true(rig_get_real(&rig, product, i) ==
                        (rig_get_real(&rig, a, i) + rig_get_real(&rig, b, i)) / 2);
        assert_int_equal(rig.block.n_outputs, 1);
        assert_int_equal(rig.numbers.alias[0], 3);
        rig_fini(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
