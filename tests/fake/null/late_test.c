/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin `null` as a device unlike a CPU: a queue that holds back, a small heap, compiles that
 * wait for the test, launches that fail by their op. */
#include "fake/null/rig.h"

#include <pthread.h>
#include <time.h>

enum { PATIENCE_MS = 20000 };

static frit_status wait_for(struct rig_null *n, uint64_t value, uint64_t ns, frit_failure *failure)
{
    return n->backend->wait(n->device, NULL, value, ns, failure, &n->err);
}

static bool is_reached(struct rig_null *n, uint64_t value)
{
    frit_failure failure = {.struct_size = sizeof(failure)};

    return wait_for(n, value, 0, &failure) == FRIT_OK;
}

/* Whether the value is reached by itself, that is without a wait that may take time. */
static bool comes_by_itself(struct rig_null *n, uint64_t value)
{
    static const struct timespec ms = {0, 1000000};

    for (int i = 0; i < PATIENCE_MS; i++) {
        if (is_reached(n, value))
            return true;
        nanosleep(&ms, NULL);
    }
    return false;
}

static void the_last_submissions_are_held(void **state)
{
    static const struct timespec while_nothing_happens = {0, 5000000};
    struct rig_null n;
    uint64_t values[9] = {1};
    frit_memory *buffer;

    (void)state;
    BEGIN(&n, "hold", "4", NULL);
    buffer = memory(&n, 64);
    for (uint64_t i = 0; i < 9; i++) {
        frit_cmd cmd = fill(buffer, 0, i);

        nanosleep(&while_nothing_happens, NULL);
        assert_false(is_reached(&n, values[0]));
        assert_int_equal(submit(&n, &cmd, 1, &values[i]), FRIT_OK);
    }
    assert_true(comes_by_itself(&n, values[4]));
    nanosleep(&while_nothing_happens, NULL);
    assert_false(is_reached(&n, values[5]));
    await(&n, values[6]);
    nanosleep(&while_nothing_happens, NULL);
    assert_false(is_reached(&n, values[7]));
    assert_int_equal(read_word(&n, buffer, 0), 8);
    assert_true(is_reached(&n, values[8]));
    n.backend->free(n.device, buffer);
    end(&n);
}

static void a_crossing_takes_longer(void **state)
{
    struct rig_null n;
    frit_failure failure = {.struct_size = sizeof(failure)};
    uint64_t value = 0, word = 3;
    frit_transfer to = {.struct_size = sizeof(to), .bytes = 8};
    frit_cmd cmd;

    (void)state;
    BEGIN(&n, "transfer_latency", "300000000", NULL);
    to.memory = memory(&n, 64);
    cmd = fill(to.memory, 0, 1);
    assert_int_equal(submit(&n, &cmd, 1, &value), FRIT_OK);
    await(&n, value);
    assert_int_equal(n.backend->write(n.device, &to, &word, &value, &n.err), FRIT_OK);
    word = 4;
    assert_int_equal(wait_for(&n, value, 1000000, &failure), FRIT_TIMEOUT);
    assert_int_equal(read_word(&n, to.memory, 0), 3);
    n.backend->free(n.device, to.memory);
    end(&n);
}

static void a_heap_ends(void **state)
{
    frit_alloc_desc desc = {.struct_size = sizeof(desc), .bytes = 600, .align = 64};
    frit_allocation out = {.struct_size = sizeof(out)};
    struct rig_null n;
    frit_memory *buffer;

    (void)state;
    BEGIN(&n, "heap", "1000", NULL);
    assert_int_equal(n.plugin->devices[0].heaps->bytes, 1000);
    buffer = memory(&n, 500);
    assert_int_equal(n.backend->alloc(n.device, &desc, &out, &n.err), FRIT_NO_DEVICE_MEMORY);
    assert_string_equal(n.err.text, "null: no memory for 600 bytes in a heap of 1000");
    desc.bytes = 500;
    assert_int_equal(n.backend->alloc(n.device, &desc, &out, &n.err), FRIT_OK);
    assert_int_equal(stat(&n, "bytes_now"), 1000);
    n.backend->free(n.device, buffer);
    n.backend->free(n.device, out.memory);
    assert_int_equal(stat(&n, "bytes_now"), 0);
    end(&n);
}

/* ---- compiles ---- */

struct compiling {
    struct rig_null *n;
    const frit_program *program;
    const struct prepared *prepared;
    frit_cancel cancel;
    frit_status status;
    pthread_t thread;
};

static void *compile(void *arg)
{
    struct compiling *c = arg;
    frit_err err = {.struct_size = sizeof(err)};

    c->status =
        c->program->table->compile(c->program->self, 0, &c->prepared->variant, &c->cancel, &err);
    return NULL;
}

static void begin_compile(struct compiling *c, struct rig_null *n, const frit_program *program,
                          const struct prepared *prepared)
{
    *c = (struct compiling){.n = n,
                            .program = program,
                            .prepared = prepared,
                            .cancel = {.struct_size = sizeof(c->cancel)},
                            .status = FRIT_INTERNAL};
    assert_int_equal(pthread_create(&c->thread, NULL, compile, c), 0);
}

static void a_compile_waits_at_the_gate(void **state)
{
    static const struct timespec millisecond = {0, 1000000};
    static const struct timespec while_nothing_happens = {0, 20000000};
    struct compiling first, second;
    struct rig_null n;
    struct block b;
    struct prepared p;
    frit_program program;

    (void)state;
    BEGIN(&n, "compile_gate", "yes", NULL);
    block_init(&b);
    program = op_program(&n, &b.ops[0]);
    assert_int_equal(prepare(&n, &program, 2, 1, 0, &p), FRIT_PREPARE_NEEDS_COMPILE);
    begin_compile(&first, &n, &program, &p);
    for (int ms = 0; ms < PATIENCE_MS && stat(&n, "compiles_now") == 0; ms++)
        nanosleep(&millisecond, NULL);
    nanosleep(&while_nothing_happens, NULL);
    assert_int_equal(stat(&n, "compiles_now"), 1);
    __atomic_store_n(&first.cancel.requested, 1, __ATOMIC_RELEASE);
    pthread_join(first.thread, NULL);
    assert_int_equal(first.status, FRIT_CANCELLED);
    assert_int_equal(stat(&n, "cancels"), 1);
    begin_compile(&second, &n, &program, &p);
    n.stats->open_gate(n.plugin->instance, 1);
    pthread_join(second.thread, NULL);
    assert_int_equal(second.status, FRIT_OK);
    assert_int_equal(stat(&n, "compiles_now"), 0);
    n.stats->open_gate(n.plugin->instance, UINT64_MAX);
    for (int i = 0; i < 3; i++)
        assert_int_equal(program.table->compile(program.self, 0, &p.variant, NULL, &n.err),
                         FRIT_OK);
    release(&program, &p);
    assert_int_equal(prepare(&n, &program, 2, 1, 0, &p), FRIT_OK);
    release(&program, &p);
    program.table->destroy(program.self);
    end(&n);
}

/* ---- failures ---- */

struct four {
    frit_program programs[2];
    struct prepared p;
};

/* Submits add twice, matmul, add; the last value. */
static uint64_t submit_four(struct rig_null *n, const struct block *b, frit_memory *buffer,
                            struct four *four)
{
    struct launch l[4];
    frit_cmd cmds[7];
    uint64_t value = 0;

    four->programs[0] = op_program(n, &b->ops[0]);
    four->programs[1] = op_program(n, &b->ops[3]);
    assert_int_equal(prepare(n, &four->programs[0], 2, 1, 0, &four->p), FRIT_OK);
    for (uint32_t i = 0; i < 4; i++) {
        launch_init(&l[i], &four->programs[i == 2], &four->p, buffer);
        l[i].launch.cookie = i + 1;
        cmds[2 * i] = l[i].cmd;
        if (i < 3)
            cmds[2 * i + 1] = barrier;
    }
    assert_int_equal(submit(n, cmds, 7, &value), FRIT_OK);
    return value;
}

static void destroy_four(const struct four *four)
{
    release(&four->programs[0], &four->p);
    for (int i = 0; i < 2; i++)
        four->programs[i].table->destroy(four->programs[i].self);
}

/* Behind {value, command} that are known there is a failure, or none where the status is FRIT_OK.
 */
static void expect_failure(struct rig_null *n, uint64_t known, uint32_t command, uint64_t value,
                           frit_failure expected)
{
    frit_failure failure = {.struct_size = sizeof(failure), .value = known, .command = command};

    assert_int_equal(wait_for(n, value, UINT64_MAX, &failure), FRIT_OK);
    assert_int_equal(failure.status, expected.status);
    assert_int_equal(failure.value, expected.status ? expected.value : known);
    assert_int_equal(failure.command, expected.status ? expected.command : command);
    if (expected.status)
        assert_int_equal(failure.cookie, expected.cookie);
}

static frit_failure failed(frit_status status, uint64_t value, uint32_t command, uint64_t cookie)
{
    return (frit_failure){.status = status, .value = value, .command = command, .cookie = cookie};
}

static const frit_failure none = {.status = FRIT_OK};

static void ops_fail_by_their_names(void **state)
{
    static const char *const queues[] = {"yes", "no"};
    struct rig_null n;
    struct four four;
    struct block b;
    uint64_t value;
    frit_memory *buffer;

    (void)state;
    block_init(&b);
    for (int i = 0; i < 2; i++) {
        BEGIN(&n, "fail_ops", "mat matmul:io sub", "hold", "100", "inline", queues[i], NULL);
        buffer = memory(&n, 64);
        value = submit_four(&n, &b, buffer, &four);
        expect_failure(&n, 0, 0, value, failed(FRIT_IO, value, 5, 3));
        assert_string_equal(n.err.text, "null: launch 3 fails on request");
        expect_failure(&n, value, 5, value, none);
        assert_int_equal(stat(&n, "failures"), 1);
        n.backend->free(n.device, buffer);
        destroy_four(&four);
        end(&n);
    }
}

/* Three launches of one submission fail: wait reports the first one until the caller says that it
 * knows it, then the next. */
static void several_launches_of_a_submission_fail(void **state)
{
    struct rig_null n;
    struct four four;
    struct block b;
    uint64_t value;
    frit_memory *buffer;

    (void)state;
    block_init(&b);
    for (int whole = 0; whole < 2; whole++) {
        BEGIN(&n, "fail_ops", "add:io", NULL);
        buffer = memory(&n, 64);
        value = submit_four(&n, &b, buffer, &four);
        for (int again = 0; again < 2; again++)
            expect_failure(&n, 0, 0, value, failed(FRIT_IO, 1, 1, 1));
        expect_failure(&n, 1, 1, value, failed(FRIT_IO, 1, 3, 2));
        expect_failure(&n, 1, 3, value, failed(FRIT_IO, 1, 7, 4));
        expect_failure(&n, 1, whole ? 0 : 7, value, none);
        expect_failure(&n, 1, whole ? FRIT_ALL_COMMANDS : 7, value, none);
        n.backend->free(n.device, buffer);
        destroy_four(&four);
        end(&n);
    }
}

/* More than there is room for: the last that is known stands for those after it. */
static void failures_without_room_are_merged(void **state)
{
    uint64_t value = 0;
    struct rig_null n;
    struct four four;
    struct block b;
    frit_memory *buffer;

    (void)state;
    block_init(&b);
    BEGIN(&n, "fail_ops", "matmul", NULL);
    buffer = memory(&n, 64);
    for (int i = 0; i < 100; i++) {
        value = submit_four(&n, &b, buffer, &four);
        destroy_four(&four);
    }
    assert_int_equal(value, 100);
    for (uint64_t known = 0; known < value; known++)
        expect_failure(&n, known, 0, value,
                       failed(FRIT_INTERNAL, known + 1, known < 63 ? 5 : FRIT_ALL_COMMANDS, 3));
    expect_failure(&n, value, 0, value, none);
    n.backend->free(n.device, buffer);
    end(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_submissions_are_held),
        cmocka_unit_test(a_crossing_takes_longer),
        cmocka_unit_test(a_heap_ends),
        cmocka_unit_test(a_compile_waits_at_the_gate),
        cmocka_unit_test(ops_fail_by_their_names),
        cmocka_unit_test(several_launches_of_a_submission_fail),
        cmocka_unit_test(failures_without_room_are_merged),
    };

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
