/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of products, of which several rounds are emitted together, gives the sums of one that is
 * run round by round, whatever is left at its end and however its offsets grow; groups that read
 * the same prefetch what those after them read. */
#include <stdlib.h>

#include "emit/llvm/emit.h"

#include "kernels/emit/llvm/rig.h"
#include "unit.h"

enum {
    LANES = 16,
    ROWS = 6,    /* sums of a lane */
    SHARERS = 2, /* groups that read the same panel */
    GROUPS = 4,
    MOST = 19, /* rounds */
    PITCH = 32 /* from row to row */
};

/* How the row's element of a round lies: next to that of the last one, a parameter away, or in
 * every other round at the same place. */
enum rows_form { NEIGHBOURS, APART, PAIRS, FORMS };

struct products {
    enum rows_form form;
    int step;    /* of the loop's counter, from `begin` on */
    bool shared; /* panels are */
    enum {
        STAY,
        MOVE,
        MOVE_SHARED
    } rows; /* from group to group: they are the same, or lie an element
               further, or do so from panel to panel */
};

static uint32_t row_offset(struct kir_module *m, const struct products *p, uint32_t k,
                           uint32_t pitch)
{
    switch (p->form) {
    case APART:
        return kir_emit(m, KIR_mul, k, pitch, KIR_NONE);
    case PAIRS:
        return kir_emit(m, KIR_add, k,
                        kir_emit(m, KIR_shr, k, kir_const_i(m, KIR_I32, 1), KIR_NONE), KIR_NONE);
    default:
        return k;
    }
}

/* out[group][row][lane] = the sum over k of panel[group / SHARERS][k][lane] * rows[row + k ..]. */
static void make_products(struct kir_module *m, const struct products *p)
{
    uint32_t lane, group, panel, first, begin, end, pitch, k, at, weight, sums[ROWS], next[ROWS];

    kir_init(m, "products");
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_WRITE);
    kir_phase(m, LANES);
    begin = kir_param(m, KIR_I32);
    end = kir_param(m, KIR_I32);
    pitch = kir_param(m, KIR_I32);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    group = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    panel = p->shared ? kir_emit(m, KIR_shr, group, kir_const_i(m, KIR_I32, 1), KIR_NONE)
                      : kir_const_i(m, KIR_I32, 0);
    first = p->rows == MOVE ? group
            : p->rows == MOVE_SHARED
                ? kir_emit(m, KIR_shr, group, kir_const_i(m, KIR_I32, 1), KIR_NONE)
                : kir_const_i(m, KIR_I32, 0);
    panel = kir_emit(m, KIR_mul, panel, kir_const_i(m, KIR_I32, MOST * LANES), KIR_NONE);
    panel = kir_emit(m, KIR_add, panel, lane, KIR_NONE);
    for (int i = 0; i < ROWS; i++)
        sums[i] = kir_const_f(m, KIR_F32, 0);
    k = kir_for(m, begin, end, (uint32_t)p->step);
    for (int i = 0; i < ROWS; i++)
        sums[i] = kir_phi(m, sums[i]);
    at = kir_emit(m, KIR_mul, k, kir_const_i(m, KIR_I32, LANES), KIR_NONE);
    at = kir_emit(m, KIR_add, at, panel, KIR_NONE);
    weight = kir_emit_as(m, KIR_load, KIR_F32, 0, at, KIR_NONE, KIR_NONE);
    for (int i = 0; i < ROWS; i++) {
        at = kir_emit(m, KIR_add, row_offset(m, p, k, pitch), kir_const_i(m, KIR_I32, i * PITCH),
                      KIR_NONE);
        at = kir_emit(m, KIR_add, at, first, KIR_NONE);
        at = kir_emit_as(m, KIR_load, KIR_F32, 1, at, KIR_NONE, KIR_NONE);
        next[i] = kir_emit(m, KIR_fma, at, weight, sums[i]);
    }
    kir_next(m, next, ROWS);
    group = kir_emit(m, KIR_mul, group, kir_const_i(m, KIR_I32, ROWS * LANES), KIR_NONE);
    group = kir_emit(m, KIR_add, group, lane, KIR_NONE);
    for (int i = 0; i < ROWS; i++) {
        at = kir_emit(m, KIR_add, group, kir_const_i(m, KIR_I32, i * LANES), KIR_NONE);
        kir_emit_imm(m, KIR_store, 2, at, sums[i], KIR_NONE);
    }
}

static float panels[GROUPS * MOST * LANES], rows[ROWS * PITCH + MOST * PITCH + GROUPS];

static void fill(void)
{
    for (int i = 0; i < GROUPS * MOST * LANES; i++)
        panels[i] = (float)(i * 7 % 31 - 15);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        rows[i] = (float)(i * 5 % 23) - 11;
}

static float expected(const struct products *p, int begin, int end, int group, int row, int lane)
{
    int panel = p->shared ? group / SHARERS : 0;
    int first = p->rows == MOVE ? group : p->rows == MOVE_SHARED ? group / SHARERS : 0;
    float sum = 0;

    for (int k = begin; k < end; k += p->step) {
        int at = p->form == APART ? k * PITCH : p->form == PAIRS ? k + k / 2 : k;

        sum += panels[(panel * MOST + k) * LANES + lane] * rows[first + row * PITCH + at];
    }
    return sum;
}

static void check(const struct object *object, const struct products *p, int begin, int end)
{
    static float out[GROUPS * ROWS * LANES];
    const uint64_t words[] = {(uint64_t)begin, (uint64_t)end, PITCH};

    rig_run(object, 0, (const uint32_t[3]){GROUPS, 1, 1}, words, (void *[]){panels, rows, out},
            true);
    for (int i = 0; i < GROUPS * ROWS * LANES; i++) {
        int group = i / (ROWS * LANES), row = i / LANES % ROWS;
        float want = expected(p, begin, end, group, row, i % LANES);

        if (out[i] != want)
            fail_msg("form %d, step %d, %d .. %d: %g at %d, not %g", (int)p->form, p->step, begin,
                     end, (double)out[i], i, (double)want);
    }
}

static void rounds_together_sum_as_one_by_one(void **state)
{
    const struct rig *rig = rig_of(state);

    fill();
    for (int i = 0; i < 2 * FORMS; i++) {
        const struct products p = {(enum rows_form)(i / 2), 1 + i % 2 * 2, i % 2, i % 3};
        struct kir_module m;
        struct object *object;

        make_products(&m, &p);
        object = rig_compile(rig, &m, &rig->best, LLVM_GOOD);
        for (int end = 0; end <= MOST; end++)
            for (int begin = 0; begin < 3; begin++)
                check(object, &p, begin, end);
        object_unload(object);
        kir_fini(&m);
    }
}

/* Bytes 0f 18 begin a prefetch; the next one names the cache. */
static uint32_t count_prefetches(const struct rig *rig, const struct products *p)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct kir_module m;
    unsigned char *code;
    uint32_t count = 0;
    void *bytes;
    size_t n;

    make_products(&m, p);
    if (llvm_compile(rig->llvm, &m, &rig->best, LLVM_GOOD, &bytes, &n, &err))
        fail_msg("%s", err.text);
    code = bytes;
    for (size_t i = 0; i + 2 < n; i++)
        count += code[i] == 0x0f && code[i + 1] == 0x18 && (code[i + 2] >> 3 & 7) == 2;
    free(bytes);
    kir_fini(&m);
    return count;
}

static void what_groups_share_is_prefetched(void **state)
{
    const struct rig *rig = rig_of(state);

    assert_int_equal(count_prefetches(rig, &(struct products){NEIGHBOURS, 1, true, STAY}), 1);
    assert_int_equal(count_prefetches(rig, &(struct products){NEIGHBOURS, 1, false, STAY}), 0);
}

/* In each round behind the last row. */
static void what_all_lanes_read_next_is_prefetched(void **state)
{
    const struct rig *rig = rig_of(state);

    assert_int_equal(count_prefetches(rig, &(struct products){APART, 1, false, MOVE}), LL_TOGETHER);
    assert_int_equal(count_prefetches(rig, &(struct products){APART, 1, false, MOVE_SHARED}),
                     LL_TOGETHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_together_sum_as_one_by_one),
        cmocka_unit_test(what_groups_share_is_prefetched),
        cmocka_unit_test(what_all_lanes_read_next_is_prefetched),
    };

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
