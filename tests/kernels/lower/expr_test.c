/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded reads: what lies outside of a value is the fill, nothing outside is loaded, and nothing
 * that was loaded in a part of the space is used in the rest.
 *
 * A schedule for tests: the last op of the block stands for what a case makes of its operand. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "kernels/lower/rig.h"
#include "lower/expr/delinearize.h"
#include "lower/expr/expr.h"
#include "unit.h"

enum { LANES = 16 };

struct plan {
    uint32_t n, node[4]; /* their sum is the result */
};

/* The case that runs: `root` is the map of the last op's result. */
static struct {
    void (*plan)(struct expr *e, const struct space_map *root, struct plan *plan);
    const int64_t *shift;
    struct expr_fill fill;
} now;

static bool sum_match(struct matcher *matcher, const struct block *block)
{
    (void)matcher, (void)block;
    return true;
}

static bool sum_fits(const struct matcher *matcher, const struct block *block)
{
    (void)matcher, (void)block;
    return true;
}

static void emit_sum(struct expr *e, struct delinearizer *points, const struct plan *plan)
{
    struct kir_module *m = e->s->module;
    uint32_t group, lane, element, value;

    kir_phase(m, LANES);
    expr_phase(e);
    delinearize_phase(points, e);
    group = sched_wide(e->s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    lane = sched_wide(e->s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    element = kir_emit(m, KIR_mul, group, sched_add_index(e->s, LANES), KIR_NONE);
    element = kir_emit(m, KIR_add, element, lane, KIR_NONE);
    delinearize_set(points, e, element);
    expr_hoist(e);
    expr_mask(e, kir_emit(m, KIR_lt, element, sched_add_index(e->s, points->count), KIR_NONE));
    value = expr_value(e, plan->node[0]);
    for (uint32_t i = 1; i < plan->n; i++)
        value = kir_emit(m, KIR_add, value, expr_value(e, plan->node[i]), KIR_NONE);
    expr_bind(e, e->stores[0].node, value);
    expr_emit_store(e, 0);
}

static frit_status sum_build(struct sched *s, frit_err *err)
{
    uint32_t y = s->block->outputs[0];
    struct space_map root = {.rank = s->block->values[y].rank};
    int64_t dims[FRIT_MAX_RANK];
    struct plan plan = {0};
    frit_status status;
    struct delinearizer points;
    struct expr e;

    expr_init(&e, s);
    expr_args(s);
    expr_dims(&e, y, dims);
    for (uint32_t d = 0; d < root.rank; d++)
        root.at[d] = space_dim(&e.space, dims[d], 0);
    now.plan(&e, &root, &plan);
    expr_store(&e, y, &root);
    expr_settle(&e);
    status = expr_status(&e, err);
    if (!status) {
        delinearize_init(&points, &e, 0);
        s->numbers->grid[0][0] = (uint32_t)((points.count + LANES - 1) / LANES);
        s->numbers->grid[0][1] = s->numbers->grid[0][2] = 1;
        emit_sum(&e, &points, &plan);
        status = expr_status(&e, err);
    }
    expr_fini(&e);
    return status;
}

static const struct schedule sum = {
    .name = "sum", .quality = 1, .match = sum_match, .fits = sum_fits, .build = sum_build};

static uint32_t last_operand(const struct expr *e)
{
    return e->s->block->ops[e->s->block->n_ops - 1].in[0].value;
}

static struct space_map shifted(const struct space_map *root)
{
    struct space_map map = *root;

    for (uint32_t d = 0; d < map.rank; d++)
        map.at[d].c += now.shift[d];
    return map;
}

static void plan_guard(struct expr *e, const struct space_map *root, struct plan *plan)
{
    struct space_map map = shifted(root);

    plan->node[plan->n++] = expr_guard(e, last_operand(e), &map, now.fill);
}

static uint32_t count_ops(const struct rig *rig, enum kir_op op)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rig->module.phases[0].n; i++)
        n += rig->module.phases[0].inst[i].op == op;
    return n;
}

static void fill(struct rig *rig, uint32_t value, int64_t scale)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, (double)(i * scale % 1009) - 300);
}

/* y = guarded -x at the point plus the shift. */
static void check_shift(const int64_t in[2], const int64_t out[2], const int64_t shift[2],
                        double number, uint32_t width, uint32_t n_checks)
{
    struct rig rig;
    uint32_t x, minus, y;

    rig_init(&rig);
    rig.index_width = width;
    now.plan = plan_guard;
    now.shift = shift;
    now.fill = (struct expr_fill){BLOCK_NONE, number};
    x = rig_laid(&rig, FRIT_F32, 2, in, (uint32_t[]){1, 0}, 1, 1);
    fill(&rig, x, 7);
    minus = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_F32, 2, in);
    y = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(minus)},
               &(frit_attrs_reduce){.struct_size = sizeof(frit_attrs_reduce)}, FRIT_F32, 2, out);
    rig_run(&rig, &sum);
    assert_int_equal(count_ops(&rig, KIR_ult), n_checks);
    assert_int_equal(count_ops(&rig, KIR_select), n_checks != 0);
    for (int64_t i = 0; i < out[0] * out[1]; i++) {
        int64_t a = i / out[1] + shift[0], b = i % out[1] + shift[1];
        bool inside = a >= 0 && a < in[0] && b >= 0 && b < in[1];
        double want = inside ? -rig_get_real(&rig, x, a * in[1] + b) : number;

        assert_true(rig_get_real(&rig, y, i) == want);
    }
    rig_fini(&rig);
}

static void test_outside(void **state)
{
    const int64_t in[2] = {5, 7};

    (void)state;
    for (uint32_t width = 32; width <= 64; width += 32) {
        check_shift(in, (int64_t[]){8, 12}, (int64_t[]){-1, -2}, 0.5, width, 2);
        check_shift(in, (int64_t[]){5, 9}, (int64_t[]){0, -1}, -3, width, 1);
        check_shift(in, (int64_t[]){9, 7}, (int64_t[]){0, 0}, (double)INFINITY, width, 1);
        check_shift(in, (int64_t[]){3, 3}, (int64_t[]){2, 4}, 1, width, 0);
        check_shift(in, (int64_t[]){3, 3}, (int64_t[]){9, -5}, 1, width, 2);
    }
}

static void test_no_elements(void **state)
{
    struct rig rig;
    uint32_t x, y;

    (void)state;
    rig_init(&rig);
    now.plan = plan_guard;
    now.shift = (int64_t[]){-1, 0};
    now.fill = (struct expr_fill){BLOCK_NONE, 4};
    x = rig_input(&rig, FRIT_F32, 2, (int64_t[]){3, 0});
    y = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(x)},
               &(frit_attrs_reduce){.struct_size = sizeof(frit_attrs_reduce)}, FRIT_F32, 2,
               (int64_t[]){5, 2});
    rig_run(&rig, &sum);
    for (int64_t i = 0; i < 10; i++)
        assert_true(rig_get_real(&rig, y, i) == 4);
    rig_fini(&rig);
}

/* ---- what is known where ---- */

/* guarded (x + w) with two fills, then w alone: where the guard is false, w was not loaded. */
static void plan_both(struct expr *e, const struct space_map *root, struct plan *plan)
{
    const struct block_op *add = &e->s->block->ops[0];
    struct space_map map = shifted(root);
    struct space_map line = {.rank = 1, .at = {root->at[1]}};

    plan->node[plan->n++] = expr_guard(e, last_operand(e), &map, now.fill);
    plan->node[plan->n++] = expr_node(e, add->in[1].value, &line);
    plan->node[plan->n++] =
        expr_guard(e, last_operand(e), &map, (struct expr_fill){BLOCK_NONE, 1000});
    assert_true(plan->node[0] != plan->node[2]);
    assert_true(plan->node[0] == expr_guard(e, last_operand(e), &map, now.fill));
}

static void test_not_remembered(void **state)
{
    const int64_t in[2] = {5, 7}, out[2] = {7, 7};
    struct rig rig;
    uint32_t x, w, both, y;

    (void)state;
    rig_init(&rig);
    now.plan = plan_both;
    now.shift = (int64_t[]){-1, 0};
    now.fill = (struct expr_fill){BLOCK_NONE, 10};
    x = rig_input(&rig, FRIT_F32, 2, in);
    w = rig_input(&rig, FRIT_F32, 1, in + 1);
    fill(&rig, x, 7);
    fill(&rig, w, 3);
    both = rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(x), rig_value(w)}, NULL,
                  FRIT_F32, 2, in);
    y = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(both)},
               &(frit_attrs_reduce){.struct_size = sizeof(frit_attrs_reduce)}, FRIT_F32, 2, out);
    rig_run(&rig, &sum);
    for (int64_t i = 0; i < 49; i++) {
        bool inside = i / 7 >= 1 && i / 7 <= 5;
        double line = rig_get_real(&rig, w, i % 7);
        double value = inside ? rig_get_real(&rig, x, i - 7) + line : 0;

        assert_true(rig_get_real(&rig, y, i) == (inside ? 2 * value : 1010) + line);
    }
    /* Both guards have one check between them. */
    assert_int_equal(count_ops(&rig, KIR_ult), 1);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_no_elements),
        cmocka_unit_test(test_not_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
