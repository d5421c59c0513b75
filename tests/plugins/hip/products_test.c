/* SPDX-License-Identifier: Apache-2.0 */
/* Products by the vendor's library: submitted, recorded with operands that stay and that move,
 * refused and failing; and drivers without the library. */
#include <pthread.h>
#include <string.h>

#include <frit/capture.h>

#include "fake.h"
#include "linear.h"

static struct fake_gpu *runtime, *library;

/* ---- rigs ---- */

static void reset(void)
{
    runtime->reset();
    library->failing_call = library->calls = 0;
    library->failing_result = library->algorithm_state = 0;
    library->has_no_algorithm = library->has_no_tf32 = library->yields = false;
    library->patch = 0;
    for (int i = 0; i < FAKE_PRODUCT_KINDS; i++)
        library->products[i] = 0;
}

static int open_rig(void **state)
{
    static struct rig rig;

    reset();
    rig = (struct rig){.products = fake_products()->file, .min_product = 1};
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    fake_expect_nothing_alive();
    return 0;
}

/* Opens, runs and checks a product; returns the first failure. */
static frit_status run_candidate(struct rig *rig, bool is_reduced, int64_t m, int64_t n, int64_t k)
{
    struct linear l = {.is_reduced = is_reduced};
    uint64_t value;
    frit_status status = linear_open(rig, &l, m, n, k);

    if (!status) {
        linear_write_all(rig, &l, 1);
        status = rig->backend->submit(rig->device, NULL, &l.cmd, 1, sizeof l.cmd, NULL, 0, &value,
                                      &rig->err);
    }
    if (!status)
        status = linear_wait(rig, value);
    if (!status)
        linear_expect(rig, &l, l.memory[Y].memory, 1, 1);
    linear_close(rig, &l);
    return status;
}

static frit_status run_linear(struct rig *rig, int64_t m, int64_t n, int64_t k)
{
    return run_candidate(rig, false, m, n, k);
}

/* ---- the library computes ---- */

static void products_run(void **state)
{
    uint64_t n = 0;

    for (int64_t m = 1; m < 40; m += 6)
        for (int64_t k = 1; k < 40; k += 9) {
            assert_int_equal(run_linear(*state, m, m * k % 23 + 1, k), FRIT_OK);
            assert_int_equal(library->products[FAKE_PRODUCT_ANY], ++n);
        }
    assert_int_equal(library->products[FAKE_PRODUCT_BIAS], fake_products()->has_bias ? n : 0);
    assert_in_range(library->products[FAKE_PRODUCT_WORKSPACE], 3, n - 3);
}

/* Products of fewer multiplications than the option says are left to kernels. */
static void small_products_are_left_to_kernels(void **state)
{
    struct rig *rig = *state;

    rig_close(rig);
    *rig = (struct rig){.products = fake_products()->file, .min_product = 16 * 16 * 16};
    rig_open(rig);
    assert_int_equal(run_linear(rig, 16, 16, 15), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 0);
    assert_int_equal(run_linear(rig, 16, 16, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 1);
}

static void products_without_algorithm(void **state)
{
    library->has_no_algorithm = true;
    assert_int_equal(run_linear(*state, 16, 16, 16), FRIT_OK);
    library->has_no_algorithm = false;
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 0);
    library->algorithm_state = 15;
    assert_int_equal(run_linear(*state, 16, 16, 16),
                     fake_products()->chooses_late ? FRIT_INTERNAL : FRIT_OK);
    library->products[FAKE_PRODUCT_ANY] = 0;
    library->algorithm_state = fake_products()->chooses_late ? FAKE_PRODUCT_SLOW : 0;
    assert_int_equal(run_linear(*state, 16, 16, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 1);
}

/* Only the candidate with reduced products computes with tf32; where the library has no algorithm
 * for that it computes with f32. */
static void products_are_reduced(void **state)
{
    if (!fake_products()->can_reduce) {
        assert_int_equal(run_candidate(*state, true, 16, 24, 16), FRIT_OK);
        assert_int_equal(library->products[FAKE_PRODUCT_ANY], 0); /* there is none */
        return;
    }
    assert_int_equal(run_candidate(*state, false, 16, 24, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 1);
    assert_int_equal(library->products[FAKE_PRODUCT_TF32], 0);
    assert_int_equal(run_candidate(*state, true, 16, 24, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 2);
    assert_int_equal(library->products[FAKE_PRODUCT_TF32], 1);
    library->has_no_tf32 = true;
    assert_int_equal(run_candidate(*state, true, 16, 24, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 3);
    assert_int_equal(library->products[FAKE_PRODUCT_TF32], 1);
}

/* Another version has another identity, and an algorithm of its own another variant, where the
 * library reports it. */
static void identities(void **state)
{
    struct rig *rig = *state;
    frit_variant variant[2];

    for (int i = 0; i < 2; i++) {
        struct linear l = {0};

        rig_close(rig);
        library->patch = i * 4;
        *rig = (struct rig){.products = fake_products()->file, .min_product = 1};
        rig_open(rig);
        assert_int_equal(linear_open(rig, &l, 8, 12, 16), FRIT_OK);
        assert_int_not_equal(l.candidate, 0);
        variant[i] = l.variant;
        linear_close(rig, &l);
    }
    assert_int_equal(memcmp(variant[0].bytes, variant[1].bytes, variant[0].n_bytes) == 0,
                     fake_products()->chooses_late);
}

/* ---- two queues ---- */

enum { QUEUES = 2, ROUNDS = 100 };

/* A thread that submits one product again and again, to a queue of its own. */
struct submitter {
    struct rig *rig;
    struct linear l;
    frit_queue *queue;
    frit_status status;
    uint64_t value;
};

static void *submit_all(void *arg)
{
    struct submitter *s = arg;
    frit_err err = {.struct_size = sizeof err};

    for (int i = 0; i < ROUNDS && !s->status; i++)
        s->status = s->rig->backend->submit(s->rig->device, s->queue, &s->l.cmd, 1, sizeof s->l.cmd,
                                            NULL, 0, &s->value, &err);
    return NULL;
}

/* The second has the program of the first, and tensors of its own. */
static void open_submitters(struct rig *rig, struct submitter s[QUEUES])
{
    const frit_queue_desc desc = {.struct_size = sizeof desc};

    assert_int_equal(linear_open(rig, &s[0].l, 8, 12, 16), FRIT_OK);
    for (uint32_t i = 0; i < QUEUES; i++) {
        struct linear *l = &s[i].l;

        *l = s[0].l;
        for (int k = 0; i && k < TENSORS; k++)
            l->memory[k] = rig_alloc(rig, MAX_BYTES);
        if (i)
            l->workspace = rig_alloc(rig, MAX_BYTES);
        linear_fill_launch(l);
        linear_write_all(rig, l, i + 1);
        s[i].rig = rig;
        assert_int_equal(rig->backend->queue_create(rig->device, &desc, &s[i].queue, &rig->err),
                         FRIT_OK);
    }
}

/* Threads with one plan do not exchange their biases. */
static void products_of_two_threads(void **state)
{
    struct rig *rig = *state;
    struct submitter s[QUEUES] = {{0}};
    pthread_t threads[QUEUES];
    frit_failure failure;

    open_submitters(rig, s);
    library->yields = true;
    for (int i = 0; i < QUEUES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_all, &s[i]), 0);
    for (uint32_t i = 0; i < QUEUES; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(s[i].status, FRIT_OK);
        failure = (frit_failure){.struct_size = sizeof failure};
        assert_int_equal(rig->backend->wait(rig->device, s[i].queue, s[i].value, UINT64_MAX,
                                            &failure, &rig->err),
                         FRIT_OK);
        linear_expect(rig, &s[i].l, s[i].l.memory[Y].memory, i + 1, i + 1);
        rig->backend->queue_destroy(rig->device, s[i].queue);
    }
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], QUEUES * ROUNDS);
    s[1].l.program.self = NULL; /* it is the first one's */
    for (uint32_t i = QUEUES; i-- > 0;)
        linear_close(rig, &s[i].l);
}

/* ---- no library ---- */

static void expect_kernels(const char *products)
{
    struct rig rig = {.products = products, .min_product = 1};

    reset();
    rig_open(&rig);
    assert_int_equal(run_linear(&rig, 16, 16, 16), FRIT_OK);
    rig_close(&rig);
    fake_expect_nothing_alive();
    assert_int_equal(library->calls, 0);
}

static void without_library(void **state)
{
    (void)state;
    expect_kernels("none");
    expect_kernels("libnothing.so.3");
    expect_kernels("libc.so.6"); /* without the functions */
}

static void expect_library(const char *products)
{
    struct rig rig = {.products = products, .min_product = 1};

    reset();
    rig_open(&rig);
    assert_int_equal(run_linear(&rig, 16, 16, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 1);
    rig_close(&rig);
    fake_expect_nothing_alive();
}

/* The fake library, which this process has loaded, is found as the installed one by its names. */
static void library_by_name(void **state)
{
    (void)state;
    expect_library(fake_products()->file);
    expect_library(fake_products()->name);
    expect_library("");
    if (strcmp(fake_products()->name, "rocblas") == 0)
        expect_kernels("hipblaslt");
}

/* Of two libraries that are installed the first one is used, unless the other is chosen. */
static void two_libraries(void **state)
{
    struct rig rig = {.products = "", .min_product = 1};
    struct fake_gpu *second;

    (void)state;
    if (strcmp(fake_products()->name, "hipblaslt") != 0)
        return;
    expect_kernels("rocblas");
    second = fake_load("libfake-rocblas.so");
    expect_library("");
    assert_int_equal(second->calls, 0);
    expect_kernels("rocblas"); /* by the candidate that this test does not choose */
    assert_int_not_equal(second->calls, 0);
    /* Nor if that one cannot be used: its first call creates the handle. */
    reset();
    second->calls = 0;
    library->failing_call = 1;
    library->failing_result = 14;
    rig_open(&rig);
    assert_int_not_equal(second->calls, 0);
    rig_close(&rig);
}

/* ---- failures ---- */

/* Each call of the library fails once: a product is left to a kernel or fails clearly, nothing is
 * leaked, and the next one works.  The library is not used where its first calls fail. */
static void each_call_fails(void **state)
{
    int n_failed = 0, n_kernels = 0;

    (void)state;
    for (uint64_t n = 1;; n++) {
        struct rig rig = {.products = fake_products()->file, .min_product = 1};
        frit_status status;
        bool hit, is_used;

        reset();
        library->failing_call = n;
        library->failing_result = 14;
        rig_open(&rig);
        is_used = library->calls < n;
        status = run_linear(&rig, 16, 24, 16);
        hit = library->calls >= n;
        if (status && (status != FRIT_INTERNAL || !strstr(rig.err.text, "error 14")))
            fail_msg("call %d: status %d, '%s'", (int)n, status, rig.err.text);
        n_failed += status != FRIT_OK;
        n_kernels += !status && library->products[FAKE_PRODUCT_ANY] == 0;
        library->failing_call = 0;
        status = run_linear(&rig, 16, 24, 16);
        if (status)
            fail_msg("after call %d: status %d, '%s'", (int)n, status, rig.err.text);
        assert_int_equal(library->products[FAKE_PRODUCT_ANY] > 0, is_used);
        rig_close(&rig);
        fake_expect_nothing_alive();
        if (!hit)
            break;
    }
    assert_int_equal(n_failed, fake_products()->n_enqueuing);
    assert_in_range(n_kernels, 7, 30); /* what opens the library, and makes a plan */
}

/* ---- recordings ---- */

static const frit_capture_table *capture_of(struct rig *rig)
{
    return rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_CAPTURE_TABLE));
}

static frit_recording *record(struct rig *rig, const frit_cmd *cmds, uint32_t n,
                              const frit_param *params, uint32_t n_params)
{
    frit_recording *recording = NULL;

    if (capture_of(rig)->record(rig->device, NULL, cmds, n, sizeof *cmds, params, n_params,
                                sizeof *params, &recording, &rig->err))
        fail_msg("%s", rig->err.text);
    return recording;
}

static void replay(struct rig *rig, frit_recording *recording, const void *block)
{
    uint64_t value;

    if (capture_of(rig)->replay(rig->device, recording, block, NULL, 0, &value, &rig->err))
        fail_msg("%s", rig->err.text);
    rig_wait(rig, value);
}

/* A product that needs a workspace after one that does not, where there are such. */
static void open_both(struct rig *rig, struct linear both[2])
{
    bool has[2] = {false, false};

    for (int64_t k = 8; !has[0] || !has[1]; k++) {
        struct linear l = {0};
        int at;

        assert_true(k < 40);
        assert_int_equal(linear_open(rig, &l, 8, 12, k), FRIT_OK);
        at = fake_products()->chooses_late ? has[0] : l.spec.workspace_bytes != 0;
        if (has[at]) {
            linear_close(rig, &l);
            continue;
        }
        has[at] = true;
        both[at] = l;
    }
    for (int i = 0; i < 2; i++) {
        linear_fill_launch(&both[i]); /* it has moved */
        linear_write_all(rig, &both[i], 1);
    }
}

/* Operands that stay: all is one graph. */
static void recorded_in_place(void **state)
{
    struct rig *rig = *state;
    struct linear both[2];
    frit_recording *recording;

    open_both(rig, both);
    recording = record(rig, (const frit_cmd[]){both[0].cmd, both[1].cmd}, 2, NULL, 0);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 2);
    for (uint32_t seed = 2; seed < 5; seed++) {
        for (int i = 0; i < 2; i++)
            linear_write_all(rig, &both[i], seed);
        replay(rig, recording, NULL);
        for (int i = 0; i < 2; i++)
            linear_expect(rig, &both[i], both[i].memory[Y].memory, seed, seed);
    }
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 2);
    capture_of(rig)->release(rig->device, recording);
    for (int i = 0; i < 2; i++)
        linear_close(rig, &both[i]);
}

/* Places of a replay. */
struct places {
    frit_place x, y, workspace;
};

/* Commands: a product with operands that stay, a copy of its result, a product of which x, y and
 * the workspace move, one that stays, and a copy. */
enum { COMMANDS = 5, MOVING = 2 };

static frit_recording *record_moving(struct rig *rig, const struct linear both[2],
                                     const frit_allocation copies[2])
{
    const frit_param params[] = {
        {.command = MOVING, .kind = FRIT_PARAM_ARG, .index = X, .at = offsetof(struct places, x)},
        {.command = MOVING,
         .kind = FRIT_PARAM_ARG,
         .index = linear_arg_of_y(&both[1]),
         .at = offsetof(struct places, y)},
        {.command = MOVING,
         .kind = FRIT_PARAM_WORKSPACE,
         .at = offsetof(struct places, workspace)}};
    frit_cmd copy[2];

    for (int i = 0; i < 2; i++)
        copy[i] = (frit_cmd){.struct_size = sizeof *copy,
                             .kind = FRIT_CMD_COPY,
                             .dst = copies[i].memory,
                             .src = both[0].memory[Y].memory,
                             .bytes = MAX_BYTES};
    return record(
        rig, (const frit_cmd[COMMANDS]){both[0].cmd, copy[0], both[1].cmd, both[0].cmd, copy[1]},
        COMMANDS, params, 3);
}

static void recorded_with_moving_operands(void **state)
{
    struct rig *rig = *state;
    frit_allocation copies[2], x[2], y[2];
    frit_recording *recording;
    struct linear both[2];

    open_both(rig, both);
    for (int i = 0; i < 2; i++) {
        copies[i] = rig_alloc(rig, MAX_BYTES);
        x[i] = rig_alloc(rig, MAX_BYTES);
        y[i] = rig_alloc(rig, 2 * MAX_BYTES);
        linear_write(rig, x[i].memory, X, (uint32_t)i + 5);
    }
    recording = record_moving(rig, both, copies);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 2);
    for (uint64_t n = 1; n <= 6; n++) {
        /* between graphs, and when the addresses come again, all three in a graph for these */
        static const uint64_t n_enqueued[] = {0, 3, 4, 7, 10, 10, 10};
        const uint32_t i = n % 2;
        const struct places places = {{x[i].memory, 0}, {y[i].memory, 0}, {x[1 - i].memory, 256}};

        replay(rig, recording, &places);
        assert_int_equal(library->products[FAKE_PRODUCT_ANY], n_enqueued[n]);
        linear_expect(rig, &both[1], y[i].memory, i + 5, 1);
        for (int k = 0; k < 2; k++)
            linear_expect(rig, &both[0], copies[k].memory, 1, 1);
        linear_write(rig, x[1 - i].memory, X, 1 - i + 5); /* the workspace was there */
    }
    capture_of(rig)->release(rig->device, recording);
    for (int i = 0; i < 2; i++) {
        rig->backend->free(rig->device, copies[i].memory);
        rig->backend->free(rig->device, x[i].memory);
        rig->backend->free(rig->device, y[i].memory);
        linear_close(rig, &both[i]);
    }
}

/* A product that fails within a replay is reported by wait for the replay's value; the next replay
 * works.  One that fails within the capture makes no recording. */
static void recorded_products_fail(void **state)
{
    struct rig *rig = *state;
    frit_allocation copies[2], y = rig_alloc(rig, MAX_BYTES);
    struct linear both[2];
    frit_recording *recording = NULL;
    uint64_t value;

    open_both(rig, both);
    for (int i = 0; i < 2; i++)
        copies[i] = rig_alloc(rig, MAX_BYTES);
    library->failing_result = 14;
    library->failing_call = library->calls + 2;
    assert_int_equal(capture_of(rig)->record(rig->device, NULL, &both[0].cmd, 1, sizeof both[0].cmd,
                                             NULL, 0, 0, &recording, &rig->err),
                     FRIT_INTERNAL);
    assert_null(recording);
    recording = record_moving(rig, both, copies);
    for (int i = 0; i < 2; i++) {
        const struct places places = {
            {both[1].memory[X].memory, 0}, {y.memory, 0}, {both[1].workspace.memory, 0}};

        library->failing_call = i ? 0 : library->calls + 2;
        assert_int_equal(
            capture_of(rig)->replay(rig->device, recording, &places, NULL, 0, &value, &rig->err),
            FRIT_OK);
        assert_int_equal(linear_wait(rig, value), i ? FRIT_OK : FRIT_INTERNAL);
    }
    linear_expect(rig, &both[1], y.memory, 1, 1);
    capture_of(rig)->release(rig->device, recording);
    rig->backend->free(rig->device, y.memory);
    for (int i = 0; i < 2; i++) {
        rig->backend->free(rig->device, copies[i].memory);
        linear_close(rig, &both[i]);
    }
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(products_run),
        RIG_TEST(small_products_are_left_to_kernels),
        RIG_TEST(products_without_algorithm),
        RIG_TEST(products_are_reduced),
        RIG_TEST(identities),
        RIG_TEST(products_of_two_threads),
        cmocka_unit_test(without_library),
        cmocka_unit_test(library_by_name),
        cmocka_unit_test(two_libraries),
        cmocka_unit_test(each_call_fails),
        RIG_TEST(recorded_in_place),
        RIG_TEST(recorded_with_moving_operands),
        RIG_TEST(recorded_products_fail),
    };

    runtime = fake_open();
    library = fake_open_products();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
