/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin `null` through its tables, as the loader gives them: it does what its README says. */
#include "fake/null/rig.h"

/* ---- tests ---- */

static void commands_run_late(void **state)
{
    struct rig_null n;
    frit_failure failure = {.struct_size = sizeof(failure)};
    frit_cmd cmds[3];
    uint64_t value = 0;
    frit_memory *buffer;

    (void)state;
    BEGIN(&n, "latency", "30000000", NULL);
    buffer = memory(&n, 64);
    cmds[0] = fill(buffer, 0, 5);
    cmds[1] = barrier;
    cmds[2] = (frit_cmd){.struct_size = sizeof(frit_cmd),
                         .kind = FRIT_CMD_COPY,
                         .dst = buffer,
                         .dst_offset = 8,
                         .src = buffer,
                         .bytes = 8};
    assert_int_equal(submit(&n, cmds, 3, &value), FRIT_OK);
    assert_int_equal(n.backend->wait(n.device, NULL, value, 0, &failure, &n.err), FRIT_TIMEOUT);
    assert_int_equal(n.backend->wait(n.device, NULL, value, 1000000, &failure, &n.err),
                     FRIT_TIMEOUT);
    assert_int_equal(n.backend->wait(n.device, NULL, value + 1, 0, &failure, &n.err), FRIT_INVALID);
    assert_int_equal(read_word(&n, buffer, 8), 5);
    await(&n, value);
    assert_int_equal(stat(&n, "copies"), 1);
    assert_int_equal(stat(&n, "fills"), 1);
    assert_int_equal(stat(&n, "barriers"), 1);
    assert_int_equal(stat(&n, "no such"), UINT64_MAX);
    n.backend->free(n.device, buffer);
    end(&n);
}

static void there_is_one_queue(void **state)
{
    frit_failure failure = {.struct_size = sizeof(failure)};
    frit_open_params params = {.struct_size = sizeof(params), .n_natives = 1};
    frit_queue *other = (frit_queue *)&failure;
    frit_point point = {.queue = other};
    struct rig_null n;
    uint64_t value = 0;
    void *device;

    (void)state;
    BEGIN(&n, NULL);
    assert_int_equal(
        n.backend->submit(n.device, other, &barrier, 1, sizeof(barrier), NULL, 0, &value, &n.err),
        FRIT_INVALID);
    assert_int_equal(
        n.backend->submit(n.device, NULL, &barrier, 1, sizeof(barrier), &point, 1, &value, &n.err),
        FRIT_INVALID);
    assert_int_equal(n.backend->wait(n.device, other, 0, 0, &failure, &n.err), FRIT_INVALID);
    assert_string_equal(n.err.text, "null: there is no queue but the first");
    params.natives = &(frit_native_object){FRIT_STR("null.device"), &failure};
    assert_int_equal(n.backend->device_open(n.plugin->instance, 0, &params, &device, &n.err),
                     FRIT_UNSUPPORTED);
    end(&n);
}

/* How many of 64 submissions of two fills of the same bytes end with the second. */
static int last_wins(struct rig_null *n, const frit_cmd *between)
{
    frit_memory *buffer = memory(n, 64);
    int wins = 0;

    for (uint64_t i = 0; i < 64; i++) {
        frit_cmd cmds[3] = {fill(buffer, 0, 2 * i)};
        uint32_t count = 1;
        uint64_t value = 0;

        if (between)
            cmds[count++] = *between;
        cmds[count++] = fill(buffer, 0, 2 * i + 1);
        assert_int_equal(submit(n, cmds, count, &value), FRIT_OK);
        wins += read_word(n, buffer, 0) == 2 * i + 1;
    }
    n->backend->free(n->device, buffer);
    return wins;
}

static void barriers_order(void **state)
{
    static const char *const queues[] = {"yes", "no"};
    struct rig_null n;
    int wins;

    (void)state;
    for (int i = 0; i < 2; i++) {
        BEGIN(&n, "permute", "yes", "check", "no", "seed", "3", "inline", queues[i], NULL);
        wins = last_wins(&n, NULL);
        assert_true(wins > 8 && wins < 56);
        assert_int_equal(last_wins(&n, &barrier), 64);
        end(&n);
        BEGIN(&n, "check", "no", "inline", queues[i], NULL);
        assert_int_equal(last_wins(&n, NULL), 64);
        end(&n);
    }
}

static void races_are_refused(void **state)
{
    struct rig_null n;
    struct block b;
    struct prepared p;
    struct launch l[2];
    frit_program program;
    frit_cmd cmds[3];
    uint64_t value = 0;
    frit_memory *buffer;

    (void)state;
    BEGIN(&n, NULL);
    block_init(&b);
    buffer = memory(&n, 64);
    program = op_program(&n, &b.ops[0]);
    assert_int_equal(prepare(&n, &program, 2, 1, 0, &p), FRIT_OK);
    launch_init(&l[0], &program, &p, buffer);
    launch_init(&l[1], &program, &p, buffer);
    l[1].args[2].offset = 48;
    cmds[0] = l[0].cmd;
    cmds[1] = l[1].cmd;
    assert_int_equal(submit(&n, cmds, 2, &value), FRIT_OK); /* both only read 0 and 16 */
    l[1].args[1].offset = 40;
    assert_int_equal(submit(&n, cmds, 2, &value), FRIT_INVALID);
    l[1].args[1].offset = 16;
    l[1].args[2].offset = 0;
    assert_int_equal(submit(&n, cmds, 2, &value), FRIT_INVALID); /* written after it was read */
    assert_int_equal(stat(&n, "hazards"), 2);
    cmds[1] = barrier;
    cmds[2] = l[1].cmd;
    assert_int_equal(submit(&n, cmds, 3, &value), FRIT_OK);
    l[1].args[2].offset = 56;
    assert_int_equal(submit(&n, cmds, 3, &value), FRIT_INVALID); /* leaves the buffer */
    l[0].launch.n_scalars = 1;
    assert_int_equal(submit(&n, cmds, 1, &value), FRIT_INVALID);
    await(&n, value);
    assert_int_equal(stat(&n, "launches"), 4);
    release(&program, &p);
    program.table->destroy(program.self);
    n.backend->free(n.device, buffer);
    end(&n);
}

static void calls_fail_as_scripted(void **state)
{
    frit_alloc_desc desc = {.struct_size = sizeof(desc), .bytes = 8, .align = 64};
    frit_allocation out = {.struct_size = sizeof(out)};
    struct rig_null n;
    frit_memory *buffers[2];

    (void)state;
    BEGIN(&n, "fail_call", "alloc:2:no-device-memory", NULL);
    buffers[0] = memory(&n, 8);
    assert_int_equal(n.backend->alloc(n.device, &desc, &out, &n.err), FRIT_NO_DEVICE_MEMORY);
    rig_contains(n.err.text, "call 2 of alloc");
    buffers[1] = memory(&n, 8);
    assert_int_equal(stat(&n, "alloc"), 3);
    for (int i = 0; i < 2; i++)
        n.backend->free(n.device, buffers[i]);
    end(&n);
}

static void senseless_faults_are_refused(void **state)
{
    static const char *const values[] = {"alloc",  "alloc:0",      "alloc:x",
                                         "free:1", "alloc:1:fine", "alloc:-1"};
    struct rig_null n;

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        load(&n, (const char *const[]){"fail_call", values[i], NULL});
        assert_int_not_equal(n.plugin->reason, FRIT_REASON_NONE);
        rig_contains(n.plugin->detail, "is not a fault that can be planted");
        rig_close(&n.rig);
    }
}

static void launches_fail_when_they_run(void **state)
{
    frit_failure failure = {.struct_size = sizeof(failure)};
    struct rig_null n;
    struct block b;
    struct prepared p;
    struct launch l;
    frit_program program;
    uint64_t values[3];
    frit_memory *buffer;

    (void)state;
    BEGIN(&n, "fail_launch", "2:device-lost", NULL);
    block_init(&b);
    buffer = memory(&n, 64);
    program = op_program(&n, &b.ops[0]);
    assert_int_equal(prepare(&n, &program, 2, 1, 0, &p), FRIT_OK);
    launch_init(&l, &program, &p, buffer);
    for (int i = 0; i < 3; i++)
        assert_int_equal(submit(&n, &l.cmd, 1, &values[i]), FRIT_OK);
    await(&n, values[0]);
    for (int i = 0; i < 2; i++) { /* every waiter that does not know yet */
        failure.value = failure.command = 0;
        assert_int_equal(n.backend->wait(n.device, NULL, values[2], UINT64_MAX, &failure, &n.err),
                         FRIT_OK);
        assert_int_equal(failure.status, FRIT_DEVICE_LOST);
        assert_int_equal(failure.value, values[1]);
        assert_int_equal(failure.command, 1);
        assert_int_equal(failure.cookie, 77);
    }
    assert_int_equal(n.backend->wait(n.device, NULL, values[2], UINT64_MAX, &failure, &n.err),
                     FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    assert_int_equal(failure.value, values[1]);
    release(&program, &p);
    program.table->destroy(program.self);
    n.backend->free(n.device, buffer);
    end(&n);
}

/* The block but for its last op, which no fuser takes. */
static void *pushed(struct rig_null *n, const frit_fuser_table *table, const frit_fuser *fuser,
                    const struct block *b)
{
    frit_fuser_state state = {.struct_size = sizeof(state)};
    void *clone = NULL;

    assert_int_equal(table->clone(fuser->prototype, &clone, &n->err), FRIT_OK);
    table->state(clone, &state);
    assert_false(state.ready);
    table->push(clone, b->ops, N_OPS, sizeof(b->ops[0]));
    table->push(clone, b->ops, 1, sizeof(b->ops[0]));
    table->state(clone, &state);
    assert_false(state.open);
    assert_true(state.ready);
    assert_int_equal(state.accepted, N_OPS - 1);
    assert_int_equal(state.quality, 900);
    return clone;
}

static frit_status restore(struct rig_null *n, const frit_fuser_table *table,
                           const frit_fuser_device *device, frit_str name, const struct block *b,
                           uint32_t n_ops, const void *bytes, uint64_t n_bytes, frit_program *out)
{
    return table->from_state(n->plugin->instance, device, name, b->ops, n_ops, sizeof(b->ops[0]),
                             bytes, n_bytes, out, &n->err);
}

static frit_program resaved(struct rig_null *n, const frit_fuser_table *table,
                            const frit_fuser_device *device, const frit_fuser *fuser,
                            const struct block *b, const frit_program *from)
{
    frit_program to = {.struct_size = sizeof(to)};
    unsigned char bytes[128];
    uint64_t size = 0;

    assert_int_equal(from->table->to_state(from->self, NULL, &size, &n->err), FRIT_OK);
    assert_in_range(size, 1, sizeof(bytes));
    assert_int_equal(from->table->to_state(from->self, bytes, &size, &n->err), FRIT_OK);
    assert_int_equal(restore(n, table, device, fuser->name, b, N_OPS - 1, bytes, size - 1, &to),
                     FRIT_INCOMPATIBLE);
    assert_int_equal(restore(n, table, device, fuser->name, b, N_OPS - 2, bytes, size, &to),
                     FRIT_INCOMPATIBLE);
    assert_int_equal(restore(n, table, device, fuser->name, b, N_OPS, bytes, size, &to),
                     FRIT_INCOMPATIBLE);
    assert_int_equal(restore(n, table, device, FRIT_STR("other"), b, N_OPS - 1, bytes, size, &to),
                     FRIT_INCOMPATIBLE);
    assert_int_equal(restore(n, table, device, fuser->name, b, N_OPS - 1, bytes, size, &to),
                     FRIT_OK);
    bytes[0] ^= 1;
    assert_int_equal(restore(n, table, device, fuser->name, b, N_OPS - 1, bytes, size, &to),
                     FRIT_INCOMPATIBLE);
    return to;
}

static void fusers_keep_the_rules(void **state)
{
    frit_fuser fusers[8] = {{0}};
    struct rig_null n;
    const frit_fuser_table *table;
    frit_fuser_device device = {.struct_size = sizeof(device), .same_plugin = 1};
    frit_program programs[2] = {{.struct_size = sizeof(frit_program)}};
    frit_program_info info = {.struct_size = sizeof(info)};
    struct block b;
    struct prepared p;
    uint32_t count = 0;
    void *first, *clone;

    (void)state;
    BEGIN(&n, "fusers", "2", NULL);
    block_init(&b);
    table = n.plugin->root->get_interface(n.plugin->instance, FRIT_STR(FRIT_FUSER_TABLE));
    device.device = n.device;
    assert_int_equal(table->prototypes(n.plugin->instance, &device, fusers, sizeof(fusers[0]), 8,
                                       &count, &n.err),
                     FRIT_OK);
    assert_int_equal(count, 2);
    first = pushed(&n, table, &fusers[1], &b);
    assert_int_equal(table->clone(first, &clone, &n.err), FRIT_OK);
    table->reset(first);
    table->destroy(first);
    assert_int_equal(table->finish(clone, &programs[0], &n.err), FRIT_OK);
    table->destroy(clone);
    programs[1] = resaved(&n, table, &device, &fusers[1], &b, &programs[0]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(programs[i].table->describe(programs[i].self, &info, &n.err), FRIT_OK);
        assert_int_equal(info.n_ops, N_OPS - 1);
        assert_memory_equal(info.name.ptr, "null block", info.name.len);
        /* %0 %1 and a scalar in, %3 %4 out */
        assert_int_equal(prepare(&n, &programs[i], 2, 2, 1, &p), FRIT_OK);
        assert_int_equal(p.spec.n_outputs, 2);
        for (uint32_t o = 0; o < 2; o++) {
            assert_int_equal(p.spec.outputs[o].n_alias, 2);
            assert_int_equal(p.spec.outputs[o].alias[0], 0);
            assert_int_equal(p.spec.outputs[o].alias[1], 1);
        }
        release(&programs[i], &p);
        assert_int_equal(prepare(&n, &programs[i], 2, 1, 1, &p), FRIT_INVALID);
        programs[i].table->destroy(programs[i].self);
    }
    for (int i = 0; i < 2; i++)
        table->destroy(fusers[i].prototype);
    end(&n);
}

static void fusers_may_be_small_or_absent(void **state)
{
    frit_fuser_device device = {.struct_size = sizeof(device), .same_plugin = 1};
    frit_fuser_state fused = {.struct_size = sizeof(fused)};
    const frit_fuser_table *table;
    frit_fuser fuser = {0};
    struct rig_null n;
    struct block b;
    uint32_t count = 7;

    (void)state;
    block_init(&b);
    BEGIN(&n, "max_fused_ops", "0", NULL);
    table = n.plugin->root->get_interface(n.plugin->instance, FRIT_STR(FRIT_FUSER_TABLE));
    assert_int_equal(
        table->prototypes(n.plugin->instance, &device, &fuser, sizeof(fuser), 1, &count, &n.err),
        FRIT_OK);
    assert_int_equal(count, 0);
    end(&n);
    BEGIN(&n, "max_fused_ops", "1", NULL);
    assert_int_equal(
        table->prototypes(n.plugin->instance, &device, &fuser, sizeof(fuser), 1, &count, &n.err),
        FRIT_OK);
    table->push(fuser.prototype, b.ops, 2, sizeof(b.ops[0]));
    table->state(fuser.prototype, &fused);
    assert_int_equal(fused.accepted, 1);
    assert_false(fused.open);
    table->destroy(fuser.prototype);
    end(&n);
}

static void variants_and_compiling(void **state)
{
    struct rig_null n;
    struct block b;
    struct prepared p;
    frit_program program;

    (void)state;
    BEGIN(&n, "compile_ms", "2", "static_shapes", "yes", NULL);
    block_init(&b);
    program = op_program(&n, &b.ops[0]);
    assert_int_equal(prepare(&n, &program, 2, 1, 0, &p), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(p.variant.n_bytes, 3 * sizeof(int64_t));
    assert_int_equal(program.table->compile(program.self, 0, &p.variant,
                                            &(frit_cancel){sizeof(frit_cancel), 1}, &n.err),
                     FRIT_CANCELLED);
    assert_int_equal(program.table->compile(program.self, 0, &p.variant, NULL, &n.err), FRIT_OK);
    release(&program, &p);
    program.table->destroy(program.self);
    end(&n);
}

static void memory_may_be_hidden_or_absent(void **state)
{
    frit_alloc_desc desc = {.struct_size = sizeof(desc), .bytes = 1ull << 39, .align = 64};
    frit_allocation out = {.struct_size = sizeof(out)};
    struct rig_null n;
    uint64_t value = 0;
    frit_cmd cmd;
    frit_memory *buffer;

    (void)state;
    BEGIN(&n, "memory", "none", NULL);
    assert_int_equal(n.backend->alloc(n.device, &desc, &out, &n.err), FRIT_OK);
    cmd = fill(out.memory, 1ull << 38, 9);
    assert_int_equal(submit(&n, &cmd, 1, &value), FRIT_OK);
    assert_int_equal(read_word(&n, out.memory, 1ull << 38), 0);
    n.backend->free(n.device, out.memory);
    end(&n);
    BEGIN(&n, "memory", "device", NULL);
    assert_int_equal(n.plugin->devices[0].caps & FRIT_CAP_HOST_VISIBLE, 0);
    assert_int_equal(n.plugin->devices[0].n_formats, 1);
    assert_int_equal(
        n.backend->alloc(n.device, &(frit_alloc_desc){sizeof(desc), 0, 8, 64}, &out, &n.err),
        FRIT_OK);
    assert_null(out.host_pointer);
    assert_int_not_equal(out.address, 0);
    cmd = fill(out.memory, 0, 9);
    assert_int_equal(submit(&n, &cmd, 1, &value), FRIT_OK);
    assert_int_equal(read_word(&n, out.memory, 0), 9);
    n.backend->free(n.device, out.memory);
    end(&n);
    BEGIN(&n, "opaque", "yes", "no_suballoc", "yes", NULL);
    assert_true(n.plugin->devices[0].caps & FRIT_CAP_NO_SUBALLOC);
    assert_int_equal(n.plugin->devices[0].n_formats, 0);
    buffer = memory(&n, 8);
    cmd = fill(buffer, 0, 9);
    assert_int_equal(submit(&n, &cmd, 1, &value), FRIT_OK);
    assert_int_equal(read_word(&n, buffer, 0), 9);
    n.backend->free(n.device, buffer);
    end(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_run_late),
        cmocka_unit_test(there_is_one_queue),
        cmocka_unit_test(barriers_order),
        cmocka_unit_test(races_are_refused),
        cmocka_unit_test(calls_fail_as_scripted),
        cmocka_unit_test(senseless_faults_are_refused),
        cmocka_unit_test(launches_fail_when_they_run),
        cmocka_unit_test(fusers_keep_the_rules),
        cmocka_unit_test(fusers_may_be_small_or_absent),
        cmocka_unit_test(variants_and_compiling),
        cmocka_unit_test(memory_may_be_hidden_or_absent),
    };

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
