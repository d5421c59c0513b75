/* SPDX-License-Identifier: Apache-2.0 */
/* Products through tiles of the group, as a GPU gets them, on a device against eval. */
#include <stdio.h>

#include "kernels/emit/spirv/rig.h"
#include "kernels/lower/rig.h"
#include "unit.h"

static struct vulkan_rig *device;

struct product {
    uint32_t dtype;
    int64_t m, n, k;
    bool turned;         /* the second operand's columns lie next to each other */
    uint32_t tile_bytes; /* of the target */
};

static uint32_t operand(struct rig *rig, const struct product *p, int64_t rows, int64_t columns,
                        bool turned)
{
    const uint32_t orders[2][2] = {{0, 1}, {1, 0}};
    uint32_t value =
        rig_laid(rig, p->dtype, 2, (const int64_t[]){rows, columns}, orders[turned], 0, 1);

    for (int64_t i = 0; i < rows * columns; i++)
        rig_set_real(rig, value, i, (double)(i * 37 % 61 - 30) / 32);
    return value;
}

static void check(const struct product *p)
{
    struct spirv_rig_arg args[3];
    struct rig rig;
    uint32_t values[3];

    rig_init(&rig);
    rig.target.lanes = 512;
    rig.target.max_lanes = 1024;
    rig.target.units = 4;
    rig.target.align_bytes = 16;
    rig.target.fma = false; /* the device's may round twice */
    rig.target.stages_tiles = true;
    rig.target.tuning.tile_bytes = p->tile_bytes;
    values[0] = operand(&rig, p, p->m, p->k, false);
    values[1] = operand(&rig, p, p->k, p->n, p->turned);
    values[2] = rig_op(&rig, FRIT_OP_matmul, 2,
                       (struct rig_in[]){rig_value(values[0]), rig_value(values[1])}, NULL,
                       p->dtype, 2, (const int64_t[]){p->m, p->n});
    rig_run(&rig, &sched_contract);
    assert_int_equal(rig.module.n_phases, 1);
    for (uint32_t i = 0; i < 3; i++) {
        const struct rig_value *v = &rig.values[values[i]];

        args[i] = (struct spirv_rig_arg){v->data, frit_storage_bytes(v->dtype, v->elements)};
    }
    spirv_rig_check(device,
                    &(struct spirv_rig_run){.module = &rig.module,
                                            .words = rig.numbers.words,
                                            .args = args,
                                            .grid = (const uint32_t(*)[3])rig.numbers.grid});
    rig_fini(&rig);
}

static void test_products(void **state)
{
    static const struct product products[] = {
        {FRIT_F32, 68, 72, 296, true, 8192},
        {FRIT_BF16, 64, 40, 24, false, 0},
        {FRIT_F32, 35, 33, 19, false, 0},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(products) / sizeof(products[0]); i++)
        check(&products[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    int result;

    device = vulkan_open();
    if (!device)
        return 1;
    result = cmocka_run_group_tests(tests, NULL, NULL);
    vulkan_close(device);
    return result;
}
