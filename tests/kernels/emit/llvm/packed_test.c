/* SPDX-License-Identifier: Apache-2.0 */
/* What packed weights are read with: fields of four bits at every position, as floats, and lanes a
 * few elements apart, of which the last one's is the last of the argument. */
#include <stdlib.h>
#include <string.h>

#include "kernels/emit/llvm/rig.h"
#include "unit.h"

enum { LANES = 64, FIELD = 4, POSITIONS = 32 - FIELD + 1, MAX_STEP = 4 };

/* out[position][lane]: the field at the position of a[lane]. */
static void make_fields(struct kir_module *m)
{
    uint32_t lane, x, spare;

    kir_init(m, "fields");
    kir_arg(m, FRIT_I32, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_WRITE);
    kir_phase(m, LANES);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    x = kir_emit_as(m, KIR_load, KIR_I32, 0, lane, KIR_NONE, KIR_NONE);
    spare = kir_const_i(m, KIR_I32, 32 - FIELD);
    for (int64_t at = 0; at < POSITIONS; at++) {
        uint32_t up = kir_const_i(m, KIR_I32, 32 - FIELD - at), value;

        value = kir_emit(m, KIR_shl, x, up, KIR_NONE);
        value = kir_emit(m, KIR_sar, value, spare, KIR_NONE);
        value = kir_emit_as(m, KIR_f32, KIR_F32, 0, value, KIR_NONE, KIR_NONE);
        kir_emit_imm(m, KIR_store, 1,
                     kir_emit(m, KIR_add, lane, kir_const_i(m, KIR_I32, at * LANES), KIR_NONE),
                     value, KIR_NONE);
    }
}

/* out[lane] = a[step * lane] */
static void make_steps(struct kir_module *m, uint32_t dtype, int64_t step)
{
    uint32_t lane, at, value;

    kir_init(m, "steps");
    kir_arg(m, dtype, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_WRITE);
    kir_phase(m, LANES);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    at = kir_emit(m, KIR_mul, lane, kir_const_i(m, KIR_I32, step), KIR_NONE);
    value = kir_emit_as(m, KIR_load, KIR_F32, 0, at, KIR_NONE, KIR_NONE);
    kir_emit_imm(m, KIR_store, 1, lane, value, KIR_NONE);
}

/* The n results, which all levels and instruction sets have in common. */
static void run(const struct rig *rig, const struct kir_module *m, const void *in, float *out,
                size_t n)
{
    float *again = malloc(n * sizeof(*again));
    bool is_first = true;

    assert_non_null(again);
    for (int isa = LLVM_BASE; isa <= (int)rig->best.isa; isa++) {
        const struct llvm_cpu cpu = {.isa = (enum llvm_isa)isa};

        for (int level = 0; level < 2; level++) {
            struct object *object = rig_compile(rig, m, &cpu, level);

            memset(again, 0xff, n * sizeof(*again));
            rig_run(object, 0, (const uint32_t[3]){1, 1, 1}, NULL, (void *[]){(void *)in, again},
                    false);
            object_unload(object);
            if (is_first)
                memcpy(out, again, n * sizeof(*again));
            is_first = false;
            assert_memory_equal(again, out, n * sizeof(*again));
        }
    }
    free(again);
}

static void test_fields(void **state)
{
    static float out[POSITIONS][LANES];
    const struct rig *rig = rig_of(state);
    struct kir_module m;
    int32_t in[LANES];

    make_fields(&m);
    for (int i = 0; i < LANES; i++)
        in[i] = (int32_t)((uint32_t)i * 2654435761u ^ (uint32_t)i << 27);
    run(rig, &m, in, out[0], (size_t)POSITIONS * LANES);
    for (int at = 0; at < POSITIONS; at++)
        for (int i = 0; i < LANES; i++) {
            const int field = (int)((uint32_t)in[i] >> at & 15);

            assert_float_equal(out[at][i], (float)(field < 8 ? field : field - 16), 0);
        }
    kir_fini(&m);
}

/* The argument ends where memory does, for the address sanitizer. */
static void test_steps(void **state)
{
    const struct rig *rig = rig_of(state);
    float out[LANES];

    for (int step = 1; step <= MAX_STEP + 1; step++)
        for (int is_half = 0; is_half < 2; is_half++) {
            const size_t n = (size_t)(LANES - 1) * (size_t)step + 1;
            const size_t size = is_half ? sizeof(uint16_t) : sizeof(float);
            char *in = malloc(n * size);
            struct kir_module m;

            assert_non_null(in);
            for (size_t i = 0; i < n; i++) {
                const float value = (float)(i % 256); /* a BF16 too */
                uint32_t bits;

                memcpy(&bits, &value, sizeof(bits));
                bits = is_half ? bits >> 16 : bits;
                memcpy(in + i * size, &bits, size);
            }
            make_steps(&m, is_half ? FRIT_BF16 : FRIT_F32, step);
            run(rig, &m, in, out, LANES);
            for (int i = 0; i < LANES; i++) {
                const float want = (float)(i * step % 256);

                if (out[i] != want)
                    fail_msg("step %d, half %d: lane %d has %g, not %g", step, is_half, i,
                             (double)out[i], (double)want);
            }
            kir_fini(&m);
            free(in);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_steps),
    };

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
