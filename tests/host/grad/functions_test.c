/* SPDX-License-Identifier: Apache-2.0 */
/* Recomputation and rules of the program's own; element types, threads, and steps that come again.
 */
#include "host/grad/near.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static void open_history(struct rig *rig, frit_tensor **x)
{
    rig_open(rig, NULL, 0);
    OK(frit_grad_begin(rig->dev, &error));
    *x = VEC(rig, 1, 2, 3);
    OK(frit_grad_watch(*x, &error));
}

static void close_history(struct rig *rig, frit_tensor *x)
{
    frit_release(x);
    frit_grad_end(rig->dev);
    rig_close(rig);
}

static void read_floats(frit_tensor *tensor, float *into, size_t n)
{
    OK(frit_read(tensor, into, n * sizeof(*into), &error));
}

/* ---- recomputation ---- */

enum { N = 32 };

struct block {
    frit_device *device;
    int calls;
    frit_status fails; /* from the second call on */
};

/* tanh(x * w) with dropout, and a fourth of some of what was dropped. */
static frit_status dropout(void *ctx, frit_tensor *const *in, frit_tensor **out, frit_err *err)
{
    struct block *block = ctx;
    frit_tensor *mask, *second, *product, *rest;

    if (block->calls++ && block->fails) {
        snprintf(err->text, sizeof(err->text), "the block has had enough");
        return block->fails;
    }
    mask = frit_random_bernoulli(block->device, FRIT_F32, FRIT_SHAPE(N), 0.5);
    second = frit_random_bernoulli(block->device, FRIT_F32, FRIT_SHAPE(N), 0.5);
    product = frit_tanh(frit_take(frit_mul(in[0], in[1])));
    out[0] = frit_mul(product, frit_take(mask));
    rest = frit_mul(frit_take(frit_sub(frit_take(product), out[0])), frit_take(second));
    out[1] = frit_mul_f(frit_take(frit_sum(frit_take(rest))), 0.25);
    return FRIT_OK;
}

struct result {
    float loss, gx[N], gw[N], later[N];
};

/* Two blocks, the second on what the first made, and random numbers after the pass. */
static void run_blocks(struct rig *rig, uint64_t seed, bool again, bool in_scope,
                       struct result *out)
{
    float numbers[2][N];
    struct block block = {.device = rig->dev};
    frit_tensor *x, *w, *made[2], *more[2], *loss, *later;
    frit_scope scope = {0};

    for (int i = 0; i < N; i++) {
        numbers[0][i] = 0.1f * (float)(i - 10);
        numbers[1][i] = 0.5f + 0.01f * (float)i;
    }
    frit_device_seed(rig->dev, seed);
    OK(frit_grad_begin(rig->dev, &error));
    x = rig_f32(rig, FRIT_SHAPE(N), numbers[0]);
    w = rig_f32(rig, FRIT_SHAPE(N), numbers[1]);
    OK(frit_grad_watch(x, &error));
    OK(frit_grad_watch(w, &error));
    if (in_scope)
        scope = frit_scope_begin(rig->dev);
    for (int i = 0; i < 2; i++) {
        frit_tensor *const in[] = {i ? made[0] : x, w};
        frit_tensor **to = i ? more : made;

        if (again)
            OK(frit_grad_recompute(rig->dev, dropout, &block, in, 2, to, 2, &error));
        else
            OK(dropout(&block, in, to, &error));
    }
    loss = frit_sum(more[0]);
    for (int i = 0; i < 2; i++)
        loss = frit_add(frit_take(loss), i ? more[1] : made[1]);
    frit_keep(loss);
    if (in_scope)
        frit_scope_end(scope);
    frit_device_seed(rig->dev, 8); /* of what comes later */
    OK(frit_grad_backward(loss, &error));
    assert_int_equal(block.calls, again ? 4 : 2);
    later = frit_random_uniform(rig->dev, FRIT_F32, FRIT_SHAPE(N), 0, 1);
    read_floats(loss, &out->loss, 1);
    read_floats(frit_grad_of(x), out->gx, N);
    read_floats(frit_grad_of(w), out->gw, N);
    read_floats(later, out->later, N);
    for (int i = 0; i < 2 && !in_scope; i++) {
        frit_release(made[i]);
        frit_release(more[i]);
    }
    frit_release(later);
    frit_release(loss);
    frit_release(x);
    frit_release(w);
    frit_grad_end(rig->dev);
}

static void test_recomputed_gradients_are_the_same(void **state)
{
    struct result plain, again;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    run_blocks(&rig, 6, false, false, &again);
    run_blocks(&rig, 7, false, false, &plain);
    assert_memory_not_equal(plain.gx, again.gx, sizeof(plain.gx));
    for (int in_scope = 0; in_scope < 2; in_scope++) {
        run_blocks(&rig, 7, true, in_scope, &again);
        assert_memory_equal(&plain, &again, sizeof(plain));
    }
    rig_close(&rig);
}

static void test_a_block_that_fails_later(void **state)
{
    struct block block = {.fails = FRIT_UNSUPPORTED};
    frit_tensor *x, *out[2], *loss;
    struct rig rig;
    float ones[N];

    (void)state;
    open_history(&rig, &x);
    frit_release(x);
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    block.device = rig.dev;
    x = rig_f32(&rig, FRIT_SHAPE(N), ones);
    OK(frit_grad_watch(x, &error));
    OK(frit_grad_recompute(rig.dev, dropout, &block, (frit_tensor *[]){x, x}, 2, out, 2, &error));
    loss = frit_sum(out[0]);
    expect_failure(frit_grad_backward(loss, &error), FRIT_UNSUPPORTED, "had enough");
    frit_release(out[0]);
    frit_release(out[1]);
    frit_release(loss);
    close_history(&rig, x);
}

/* A block within a block. */
static frit_status nested(void *ctx, frit_tensor *const *in, frit_tensor **out, frit_err *err)
{
    frit_tensor *inner[2];
    const frit_status st =
        frit_grad_recompute(((struct block *)ctx)->device, dropout, ctx, in, 2, inner, 2, err);

    if (st)
        return st;
    out[0] = frit_mul(frit_take(inner[0]), in[0]);
    frit_release(inner[1]);
    return FRIT_OK;
}

static void test_nested_blocks(void **state)
{
    float numbers[N], got[2][N];
    struct block block = {0};
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    block.device = rig.dev;
    for (int i = 0; i < N; i++)
        numbers[i] = 0.1f * (float)(i - 10);
    for (int again = 0; again < 2; again++) {
        frit_tensor *x, *out, *loss;

        frit_device_seed(rig.dev, 3);
        OK(frit_grad_begin(rig.dev, &error));
        x = rig_f32(&rig, FRIT_SHAPE(N), numbers);
        OK(frit_grad_watch(x, &error));
        if (again)
            OK(frit_grad_recompute(rig.dev, nested, &block, (frit_tensor *[]){x, x}, 2, &out, 1,
                                   &error));
        else
            OK(nested(&block, (frit_tensor *[]){x, x}, &out, &error));
        loss = frit_sum(out);
        OK(frit_grad_backward(loss, &error));
        read_floats(frit_grad_of(x), got[again], N);
        frit_release(out);
        frit_release(loss);
        frit_release(x);
        frit_grad_end(rig.dev);
    }
    assert_memory_equal(got[0], got[1], sizeof(got[0]));
    rig_close(&rig);
}

/* ---- rules of the program's own ---- */

struct custom {
    int calls, drops;
    frit_status fails;
    bool has_first, has_second; /* which results had a gradient in the last call */
};

/* Of a + b and a * 2: wrong on purpose, so that it is not another rule that is seen. */
static frit_status tenfold(void *ctx, frit_tensor *const *in, frit_tensor *const *out_grads,
                           frit_tensor **grads, frit_err *err)
{
    struct custom *custom = ctx;

    custom->calls++;
    custom->has_first = out_grads[0];
    custom->has_second = out_grads[1];
    if (custom->fails) {
        snprintf(err->text, sizeof(err->text), "no rule today");
        return custom->fails;
    }
    grads[0] = frit_mul_f(out_grads[0] ? out_grads[0] : out_grads[1], 10);
    grads[1] = out_grads[0] ? frit_mul(out_grads[0], in[0]) : NULL;
    return FRIT_OK;
}

static void dropped(void *ctx)
{
    ((struct custom *)ctx)->drops++;
}

static void make_custom(struct rig *rig, struct custom *custom, frit_tensor *a, frit_tensor *b,
                        frit_tensor **out)
{
    frit_no_grad_begin();
    out[0] = frit_add(a, b);
    out[1] = frit_mul_f(a, 2);
    frit_no_grad_end();
    OK(frit_grad_custom(rig->dev, tenfold, dropped, custom, (frit_tensor *[]){a, b}, 2, out, 2,
                        &error));
}

static void test_a_rule_of_the_program(void **state)
{
    struct custom custom = {0};
    frit_tensor *x, *w, *out[2], *loss;
    struct rig rig;

    (void)state;
    open_history(&rig, &x);
    w = VEC(&rig, 4, 5, 6);
    OK(frit_grad_watch(w, &error));
    make_custom(&rig, &custom, x, w, out);
    loss = sum_of(frit_mul(out[0], x));
    OK(frit_grad_backward_many(&loss, NULL, 1, FRIT_GRAD_KEEP, &error));
    assert_true(custom.has_first && !custom.has_second);
    EXPECT(frit_grad_of(x), 1 * 10 + 5, 2 * 10 + 7, 3 * 10 + 9);
    EXPECT(frit_grad_of(w), 1, 4, 9);
    frit_release(loss);
    loss = frit_sum(out[1]);
    assert_int_equal(custom.drops, 0);
    OK(frit_grad_backward(loss, &error));
    assert_true(!custom.has_first && custom.has_second);
    EXPECT(frit_grad_of(x), 25, 37, 49);
    EXPECT(frit_grad_of(w), 1, 4, 9);
    assert_int_equal(custom.calls, 2);
    assert_int_equal(custom.drops, 1);
    frit_release(w);
    frit_release(out[0]);
    frit_release(out[1]);
    frit_release(loss);
    close_history(&rig, x);
    assert_int_equal(custom.drops, 1);
}

/* Never run; on constants; failing; refused: dropped once each. */
static void test_rules_are_dropped(void **state)
{
    struct custom custom[4] = {{.fails = FRIT_OK}, {0}, {.fails = FRIT_UNSUPPORTED}, {0}};
    frit_tensor *x, *one, *out[2], *loss;
    struct rig rig;

    (void)state;
    open_history(&rig, &x);
    one = VEC(&rig, 1, 1, 1);
    make_custom(&rig, &custom[0], x, one, out);
    frit_release(out[0]);
    frit_release(out[1]);
    make_custom(&rig, &custom[1], one, one, out);
    assert_int_equal(custom[1].drops, 1);
    frit_release(out[0]);
    frit_release(out[1]);
    make_custom(&rig, &custom[2], x, one, out);
    loss = frit_sum(out[0]);
    expect_failure(frit_grad_backward(loss, &error), FRIT_UNSUPPORTED, "no rule today");
    expect_failure(frit_grad_custom(NULL, tenfold, dropped, &custom[3], &x, 1, out, 2, &error),
                   FRIT_INVALID, "device");
    expect_failure(frit_grad_custom(rig.dev, NULL, dropped, &custom[3], &x, 1, out, 2, &error),
                   FRIT_INVALID, "function");
    expect_failure(frit_grad_custom(rig.dev, tenfold, dropped, &custom[3], NULL, 1, out, 2, &error),
                   FRIT_INVALID, "operands");
    expect_failure(frit_grad_custom(rig.dev, tenfold, dropped, &custom[3], &x, 1, out, 9, &error),
                   FRIT_INVALID, "outputs");
    expect_failure(frit_grad_recompute(rig.dev, NULL, NULL, &x, 1, out, 1, &error), FRIT_INVALID,
                   "function");
    assert_int_equal(custom[3].drops, 4);
    frit_release(out[0]);
    frit_release(out[1]);
    frit_release(one);
    frit_release(loss);
    close_history(&rig, x);
    assert_int_equal(custom[0].drops, 1);
    assert_int_equal(custom[2].drops, 1);
}

/* ---- element types ---- */

static void check_type(struct rig *rig, uint32_t dtype)
{
    frit_tensor *wide = VEC(rig, 1, 2, 3), *x = frit_cast(wide, dtype), *cube, *loss, *grad;

    OK(frit_grad_watch(x, &error));
    cube = frit_mul(frit_take(frit_mul(x, x)), x);
    loss = sum_of(frit_take(cube));
    OK(frit_grad_backward(loss, &error));
    assert_int_equal(frit_tensor_dtype(frit_grad_of(x)), dtype);
    grad = frit_cast(frit_grad_of(x), FRIT_F32);
    EXPECT(grad, 3, 12, 27);
    frit_release(wide);
    frit_release(x);
    frit_release(loss);
    frit_release(grad);
}

static void test_element_types(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F16, FRIT_BF16, FRIT_F32, FRIT_F64};
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    OK(frit_grad_begin(rig.dev, &error));
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        check_type(&rig, dtypes[i]);
    frit_grad_end(rig.dev);
    rig_close(&rig);
}

/* Masters in f32 behind a cast to f16. */
static void test_casts_between_types(void **state)
{
    frit_tensor *x, *half, *loss;
    struct rig rig;

    (void)state;
    open_history(&rig, &x);
    half = frit_cast(x, FRIT_BF16);
    loss = sum_of(frit_mul(half, half));
    OK(frit_grad_backward(loss, &error));
    assert_int_equal(frit_tensor_dtype(frit_grad_of(x)), FRIT_F32);
    EXPECT(frit_grad_of(x), 2, 4, 6);
    frit_release(half);
    frit_release(loss);
    close_history(&rig, x);
}

/* ---- threads ---- */

struct worker {
    struct rig *rig;
    frit_tensor *shared, *result;
    float factor, grad[3];
};

static void *work(void *ctx)
{
    struct worker *w = ctx;
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *loss;

    for (int step = 0; step < 50; step++) {
        if (frit_grad_begin(w->rig->dev, &err) || frit_grad_watch(w->shared, &err))
            return "begin";
        loss = frit_sum(
            frit_take(frit_mul_f(frit_take(frit_mul(w->shared, w->shared)), (double)w->factor)));
        if (frit_grad_backward(loss, &err) ||
            frit_read(frit_grad_of(w->shared), w->grad, sizeof(w->grad), &err))
            return "backward";
        frit_release(loss);
        frit_grad_end(w->rig->dev);
    }
    return NULL;
}

/* Each thread follows its own ops on weights that they share. */
static void test_threads_share_weights(void **state)
{
    enum { THREADS = 3 };
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    frit_tensor *x;
    struct rig rig;

    (void)state;
    open_history(&rig, &x);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.rig = &rig, .shared = x, .factor = (float)(i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        if (failed)
            fail_msg("thread %d: %s", i, (const char *)failed);
        for (int k = 0; k < 3; k++)
            assert_true(workers[i].grad[k] == 2 * (float)((i + 1) * (k + 1)));
    }
    EXPECT(frit_grad_of(x), 0, 0, 0); /* nothing of theirs is this thread's */
    close_history(&rig, x);
}

static void *compute(void *ctx)
{
    struct worker *w = ctx;

    w->result = frit_mul(w->shared, w->shared);
    return NULL;
}

/* What another thread computes is a constant here; its tensors can be watched. */
static void test_tensors_of_another_thread(void **state)
{
    struct worker worker;
    pthread_t thread;
    frit_tensor *x, *loss;
    struct rig rig;

    (void)state;
    open_history(&rig, &x);
    worker = (struct worker){.rig = &rig, .shared = x};
    assert_int_equal(pthread_create(&thread, NULL, compute, &worker), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    loss = sum_of(frit_mul(worker.result, x));
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(x), 1, 4, 9);
    frit_release(loss);
    OK(frit_grad_watch(worker.result, &error));
    loss = sum_of(frit_mul(worker.result, x));
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(worker.result), 1, 2, 3);
    EXPECT(frit_grad_of(x), 2, 8, 18);
    frit_release(worker.result);
    frit_release(loss);
    close_history(&rig, x);
}

/* ---- steps that come again ---- */

/* w becomes w - 0.1 * 2 * w: every step, with the same ops. */
static void test_warm_steps(void **state)
{
    enum { STEPS = 24, WARM = 4 };
    frit_stats first = {0}, stats;
    frit_tensor *w;
    struct rig rig;
    float size = 1;

    (void)state;
    rig_open(&rig, NULL, 0);
    w = VEC(&rig, 1, 2, 3);
    for (int step = 0; step < STEPS; step++) {
        frit_scope scope = frit_scope_begin(rig.dev);
        frit_tensor *next, *loss;

        OK(frit_grad_begin(rig.dev, &error));
        OK(frit_grad_watch(w, &error));
        loss = frit_sum(frit_mul(w, w));
        OK(frit_grad_backward(loss, &error));
        next = frit_keep(frit_sub(w, frit_mul_f(frit_grad_of(w), 0.1)));
        frit_grad_end(rig.dev);
        frit_scope_end(scope);
        frit_release(w);
        w = next;
        size *= 0.8f;
        OK(frit_sync(rig.dev, &error));
        stats = rig_stats(&rig);
        assert_int_equal(stats.tensors_now, 1);
        if (step == WARM)
            first = stats;
    }
    EXPECT(w, size, 2 * size, 3 * size);
    assert_int_equal(stats.explorations, first.explorations);
    assert_int_equal(stats.plan_misses, first.plan_misses);
    assert_int_equal(stats.bytes_now, first.bytes_now);
    assert_int_equal(stats.reserved_now, first.reserved_now);
    frit_release(w);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recomputed_gradients_are_the_same),
        cmocka_unit_test(test_a_block_that_fails_later),
        cmocka_unit_test(test_nested_blocks),
        cmocka_unit_test(test_a_rule_of_the_program),
        cmocka_unit_test(test_rules_are_dropped),
        cmocka_unit_test(test_element_types),
        cmocka_unit_test(test_casts_between_types),
        cmocka_unit_test(test_threads_share_weights),
        cmocka_unit_test(test_tensors_of_another_thread),
        cmocka_unit_test(test_warm_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
