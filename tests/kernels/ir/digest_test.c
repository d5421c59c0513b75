/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "ir/digest.h"
#include "kernels/ir/rig.h"

static void test_equal(void **state)
{
    uint8_t first[KIR_DIGEST], second[KIR_DIGEST];
    struct kir_module m;

    (void)state;
    rig_row_sum(&m);
    kir_digest(&m, first);
    kir_fini(&m);
    rig_row_sum(&m);
    m.name = "another";
    /* Neither room nor the places of links count. */
    m.links[m.n_links++] = 5;
    memmove(m.links + 1, m.links, (m.n_links - 1) * sizeof(*m.links));
    for (uint32_t i = 0; i < m.phases[0].n; i++) {
        if (m.phases[0].inst[i].op == KIR_for || m.phases[0].inst[i].op == KIR_next)
            m.phases[0].inst[i].a[0]++;
    }
    kir_digest(&m, second);
    assert_memory_equal(first, second, KIR_DIGEST);
    kir_fini(&m);
}

/* Caches on disk are keyed by it: it is one and the same everywhere. */
static void test_known(void **state)
{
    static const uint8_t want[KIR_DIGEST] = {0x9a, 0x36, 0xf2, 0xe8, 0x14, 0xda, 0x6e, 0x8a,
                                             0x12, 0x8f, 0x1d, 0x10, 0x0e, 0xad, 0x09, 0xdf};
    uint8_t have[KIR_DIGEST];
    struct kir_module m;

    (void)state;
    kir_init(&m, "k");
    kir_phase(&m, 1);
    kir_digest(&m, have);
    assert_memory_equal(have, want, KIR_DIGEST);
    kir_fini(&m);
}

static void changed(struct kir_module *m, const uint8_t *digest)
{
    uint8_t have[KIR_DIGEST];

    kir_digest(m, have);
    assert_memory_not_equal(have, digest, KIR_DIGEST);
    kir_fini(m);
    rig_row_sum(m);
}

#define CHANGED(what)        \
    do {                     \
        what;                \
        changed(&m, digest); \
    } while (0)

static void test_different(void **state)
{
    uint8_t digest[KIR_DIGEST];
    struct kir_module m;

    (void)state;
    rig_row_sum(&m);
    kir_digest(&m, digest);
    CHANGED(m.wide = true);
    CHANGED(m.spaces = true);
    CHANGED(m.n_params++);
    CHANGED(kir_arg(&m, FRIT_F32, KIR_READ));
    CHANGED(m.args[0].dtype = FRIT_F16);
    CHANGED(m.args[1].access = KIR_READ);
    CHANGED(kir_phase(&m, 4));
    CHANGED(m.phases[0].lanes = 8);
    CHANGED(m.phases[0].per_thread = 1);
    CHANGED(kir_tile(&m, KIR_LANE, KIR_F32, 4));
    CHANGED(m.phases[0].tiles[0].count = 5);
    CHANGED(m.phases[0].tiles[0].space = KIR_LANE);
    CHANGED(m.phases[0].tiles[0].dtype = FRIT_I32);
    CHANGED(OP0(&m, lane));
    CHANGED(m.links[0]++);
    CHANGED(m.links[2]++);
    for (uint32_t i = 0, n = m.phases[0].n; i < n; i++) {
        CHANGED(m.phases[0].inst[i].op += 1000);
        CHANGED(m.phases[0].inst[i].type++);
        CHANGED(m.phases[0].inst[i].imm ^= (uint64_t)1 << 63);
        CHANGED(m.phases[0].inst[i].a[2]--);
        if (m.phases[0].inst[i].op == KIR_for || m.phases[0].inst[i].op == KIR_next)
            continue;
        CHANGED(m.phases[0].inst[i].a[0]--);
        CHANGED(m.phases[0].inst[i].a[1]--);
    }
    kir_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_different),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
