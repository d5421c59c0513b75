/* SPDX-License-Identifier: Apache-2.0 */
/* A chain and a softmax written op by op store one output each, however the program says that it
 * wants no intermediate: by a scope, by releases, by takes.  On a device that allocates each buffer
 * from its driver, with a fuser that takes everything: one launch and one call of alloc is one
 * output stored, as what it reads stays alive.  The first round searches, the next ones know the
 * plan and play it; looked at, it shows the block. */
#include "api/plugin_rig.h"

#include <stdbool.h>

#include <frit/inspect.h>

enum { ROWS = 3, COLUMNS = 8, CHAIN = 10, SOFTMAX = 5, ROUNDS = 6, N_STYLES = 3 };

/* How a program ends the life of intermediates. */
struct style {
    const char *name;
    bool scope;
    frit_tensor *(*use)(frit_tensor *tensor); /* an operand that is used no more */
    void (*done)(frit_tensor *tensor);        /* after the op that used it */
};

static frit_tensor *as_it_is(frit_tensor *tensor)
{
    return tensor;
}

static void nothing(frit_tensor *tensor)
{
    (void)tensor;
}

static const struct style styles[N_STYLES] = {
    {"scope", true, as_it_is, nothing},
    {"release", false, as_it_is, frit_release},
    {"take", false, frit_take, nothing},
};

/* ---- workloads: the result is the caller's ---- */

/* One op of a chain; `x` ends if it is not an input. */
static frit_tensor *link_on(const struct style *style, frit_tensor *x, int i)
{
    frit_tensor *last = i ? style->use(x) : x, *y = NULL;

    switch (i % 5) {
    case 0:
        y = frit_mul_f(last, 1.5);
        break;
    case 1:
        y = frit_add_f(last, 0.25);
        break;
    case 2:
        y = frit_tanh(last);
        break;
    case 3:
        y = frit_mul(last, last);
        break;
    default:
        y = frit_sqrt(last);
        break;
    }
    if (i)
        style->done(x);
    return y;
}

static frit_tensor *chain(const struct style *style, frit_tensor *x)
{
    frit_tensor *y = x;

    for (int i = 0; i < CHAIN; i++)
        y = link_on(style, y, i);
    return y;
}

static frit_tensor *softmax(const struct style *style, frit_tensor *x)
{
    frit_tensor *most = frit_max(x, .axes = FRIT_AXES(1), .keep = 1), *low, *e, *sum, *y;

    low = frit_sub(x, style->use(most));
    style->done(most);
    e = frit_exp(style->use(low));
    style->done(low);
    sum = frit_sum(e, .axes = FRIT_AXES(1), .keep = 1);
    y = frit_div(style->use(e), style->use(sum));
    style->done(e);
    style->done(sum);
    return y;
}

struct workload {
    const char *name;
    frit_tensor *(*record)(const struct style *style, frit_tensor *x);
    uint32_t n_ops;
};

static const struct workload workloads[] = {{"chain", chain, CHAIN}, {"softmax", softmax, SOFTMAX}};

/* ---- endings: what makes it run ---- */

struct ending {
    const char *name;
    void (*run)(struct plugin_rig *rig, frit_tensor *y);
    uint32_t n_more; /* launches and outputs of its own */
};

static void end_by_read(struct plugin_rig *rig, frit_tensor *y)
{
    float out[ROWS * COLUMNS];

    (void)rig;
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_OK);
}

static void end_by_sync(struct plugin_rig *rig, frit_tensor *y)
{
    (void)y;
    assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
}

static void end_by_flush(struct plugin_rig *rig, frit_tensor *y)
{
    (void)y;
    assert_int_equal(frit_flush(rig->dev, NULL), FRIT_OK);
}

/* An op that no fuser takes. */
static void end_by_op(struct plugin_rig *rig, frit_tensor *y)
{
    end_by_read(rig, frit_take(frit_cumsum(y, 1)));
}

static const struct ending endings[] = {{"a read", end_by_read, 0},
                                        {"a sync", end_by_sync, 0},
                                        {"a flush", end_by_flush, 0},
                                        {"another op", end_by_op, 1}};

/* ---- counting ---- */

static void open_null(struct plugin_rig *rig)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "plugin.null", "option.no_suballoc", "yes");
    rig_set(rig, "fusion", "store", "none");
    rig_open(rig, "null:0");
}

static frit_tensor *input(struct plugin_rig *rig)
{
    const float data[ROWS * COLUMNS] = {0};

    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), data, sizeof(data));
}

static frit_tensor *record(struct plugin_rig *rig, const struct workload *work,
                           const struct style *style, frit_tensor *x)
{
    frit_scope scope = {0};
    frit_tensor *y;

    if (!style->scope)
        return work->record(style, x);
    scope = frit_scope_begin(rig->dev);
    y = frit_keep(work->record(style, x));
    frit_scope_end(scope);
    return y;
}

static void count_round(struct plugin_rig *rig, const struct workload *work,
                        const struct style *style, const struct ending *ending, frit_tensor *x)
{
    frit_stats before, after;
    uint64_t launches, allocs;
    frit_tensor *y;

    assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
    frit_trim(rig->dev);
    before = rig_stats(rig);
    y = record(rig, work, style, x);
    ending->run(rig, y);
    after = rig_stats(rig);
    launches = after.launches - before.launches;
    allocs = after.driver_allocs - before.driver_allocs;
    if (launches != 1 + ending->n_more || allocs != 1 + ending->n_more ||
        after.buffers_now != before.buffers_now + 1)
        fail_msg("%s by %s, ended by %s: %d launches, %d allocations", work->name, style->name,
                 ending->name, (int)launches, (int)allocs);
    frit_release(y);
}

/* The first step is one block that reads x and stores the last value. */
static void expect_block(const frit_inspection *seen, const struct workload *work)
{
    frit_step_desc step = {.struct_size = sizeof(step)};

    assert_int_equal(frit_inspection_step_at(seen, 0, 0, &step), FRIT_OK);
    assert_string_equal(step.fuser, "null/null");
    assert_int_equal(step.n_ops, work->n_ops);
    assert_int_equal(step.n_in, 1);
    assert_int_equal(step.n_out, 1);
    assert_int_equal(step.out[0], work->n_ops);
}

static void look_at(struct plugin_rig *rig, const struct workload *work, const struct style *style,
                    const struct ending *ending, frit_tensor *x)
{
    frit_run_desc run = {.struct_size = sizeof(run)};
    uint64_t n_steps = 0, bytes = 0;
    frit_inspection *seen;
    frit_tensor *y;

    assert_int_equal(frit_inspect_start(rig->dev, NULL), FRIT_OK);
    y = record(rig, work, style, x);
    ending->run(rig, y);
    assert_int_equal(frit_inspect_stop(rig->dev, &seen, NULL), FRIT_OK);
    for (uint64_t i = 0; !frit_inspection_run_at(seen, i, &run); i++) {
        n_steps += run.n_steps;
        bytes += run.bytes_out;
    }
    assert_int_equal(n_steps, 1 + ending->n_more);
    assert_int_equal(bytes, n_steps * ROWS * COLUMNS * sizeof(float));
    expect_block(seen, work);
    frit_inspection_free(seen);
    frit_release(y);
}

static void expect_one(const struct workload *work, const struct style *style,
                       const struct ending *ending)
{
    struct plugin_rig rig;
    frit_tensor *x;

    open_null(&rig);
    x = input(&rig);
    for (int round = 0; round < ROUNDS; round++)
        count_round(&rig, work, style, ending, x);
    look_at(&rig, work, style, ending, x);
    count_round(&rig, work, style, ending, x);
    frit_release(x);
    rig_close(&rig);
}

static void all_styles(const struct workload *work)
{
    for (int s = 0; s < N_STYLES; s++) {
        for (size_t e = 0; e < sizeof(endings) / sizeof(endings[0]); e++)
            expect_one(work, &styles[s], &endings[e]);
    }
}

static void a_chain_stores_one_output(void **state)
{
    (void)state;
    all_styles(&workloads[0]);
}

static void a_softmax_stores_one_output(void **state)
{
    (void)state;
    all_styles(&workloads[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_stores_one_output),
        cmocka_unit_test(a_softmax_stores_one_output),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
