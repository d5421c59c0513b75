/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of compiled programs on a queue that runs on, through the tables of the contract. */
#include <sched.h>
#include <string.h>

#include "driver.h"
#include "kit/driver.h"
#include "late.h"
#include "steps.h"

static struct late *late_of(const struct rig *rig)
{
    return ((struct kit_device *)rig->device)->own;
}

static frit_program add_program(struct rig *rig)
{
    struct op op;

    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    return program_for(rig, &op);
}

static frit_status prepare_add(struct rig *rig, const frit_program *program, bool turned,
                               frit_variant *variant)
{
    const frit_arg_sig args[3] = {sig_of(2, 3, turned), sig_of(2, 3, false), sig_of(2, 3, false)};
    frit_launch_spec spec;
    frit_status status = prepare(rig, program, args, 2, &spec, variant);

    program->table->spec_release(program->self, &spec);
    return status;
}

static frit_status compile(struct rig *rig, const frit_program *program,
                           const frit_variant *variant)
{
    return program->table->compile(program->self, 0, variant, NULL, &rig->err);
}

static uint64_t generation(const frit_program *program, const frit_variant *variant)
{
    return program->table->generation(program->self, 0, variant);
}

static uint64_t serial(struct rig *rig, const frit_program *program)
{
    frit_program_info info = {.struct_size = sizeof info};

    assert_int_equal(program->table->describe(program->self, &info, &rig->err), FRIT_OK);
    return __atomic_load_n(info.serial, __ATOMIC_ACQUIRE);
}

/* ---- the device ---- */

static void caps_follow_the_slots(void **state)
{
    struct rig *rig = *state;
    frit_device_info info = {.struct_size = sizeof info};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err),
        FRIT_OK);
    assert_int_equal(info.caps, FRIT_CAP_HOST_VISIBLE);
    assert_int_equal(info.n_formats, 0);
}

static void a_device_without_its_own_is_none(void **state)
{
    struct rig *rig = *state;
    void *device = rig;
    int64_t live = rig->live;

    rig->refuse = 2; /* the kit's struct, then the driver's */
    assert_int_equal(rig->backend->device_open(rig->instance, 0, &rig_params, &device, &rig->err),
                     FRIT_NO_HOST_MEMORY);
    assert_string_equal(rig->err.text, "late: no memory for a queue");
    assert_null(device);
    assert_int_equal(rig->live, live);
}

/* ---- code ---- */

static void each_variant_is_compiled_once(void **state)
{
    struct rig *rig = *state;
    frit_program program = add_program(rig);
    frit_variant dense, any;

    assert_int_equal(prepare_add(rig, &program, false, &dense), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(prepare_add(rig, &program, true, &any), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(compile(rig, &program, &dense), FRIT_OK);
    assert_int_equal(prepare_add(rig, &program, false, &dense), FRIT_OK);
    assert_int_equal(prepare_add(rig, &program, true, &any), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(compile(rig, &program, &any), FRIT_OK);
    assert_int_equal(compile(rig, &program, &dense), FRIT_OK);
    assert_int_equal(atomic_load(&late_of(rig)->n_compiled), 2);
    assert_int_equal(prepare_add(rig, &program, true, &any), FRIT_OK);
    assert_int_equal(atomic_load(&late_of(rig)->n_codes), 2);
    program.table->destroy(program.self);
    assert_int_equal(atomic_load(&late_of(rig)->n_codes), 0);
}

static void what_is_not_compiled_is_reported(void **state)
{
    const frit_cancel cancel = {.struct_size = sizeof cancel, .requested = 1};
    struct rig *rig = *state;
    frit_program program = add_program(rig);
    int64_t live = rig->live;
    frit_variant variant;
    struct op op;

    assert_int_equal(prepare_add(rig, &program, false, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    atomic_store(&late_of(rig)->refuse_compile, true);
    assert_int_equal(compile(rig, &program, &variant), FRIT_IO);
    atomic_store(&late_of(rig)->refuse_compile, false);
    assert_int_equal(program.table->compile(program.self, 0, &variant, &cancel, &rig->err),
                     FRIT_CANCELLED);
    for (int64_t i = 1; i <= 2; i++) {
        rig->refuse = i;
        assert_int_equal(compile(rig, &program, &variant), FRIT_NO_HOST_MEMORY);
    }
    assert_int_equal(rig->live, live);
    assert_int_equal(prepare_add(rig, &program, false, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    program.table->destroy(program.self);

    op_of(&op, FRIT_OP_exp, 1, 0, 3, 0); /* needs no code */
    program = program_for(rig, &op);
    assert_int_equal(compile(rig, &program, &variant), FRIT_INVALID);
    program.table->destroy(program.self);
}

static void better_code_is_a_new_generation(void **state)
{
    struct rig *rig = *state;
    frit_program program = add_program(rig);
    frit_variant variants[2];
    struct kit_call call;
    struct launch l;

    for (int turned = 0; turned < 2; turned++) {
        assert_int_equal(prepare_add(rig, &program, turned, &variants[turned]),
                         FRIT_PREPARE_NEEDS_COMPILE);
        assert_int_equal(compile(rig, &program, &variants[turned]), FRIT_OK);
    }
    launch_of(rig, &l, &program, 3);
    assert_int_equal(serial(rig, &program), 0);
    for (uint32_t turned = 0; turned < 2; turned++) {
        l.variant = variants[turned];
        assert_int_equal(kit_call_of(rig->device, &l.launch, &call, &rig->err), FRIT_OK);
        assert_int_equal(((struct late_code *)call.code)->dense, !turned);
        assert_int_equal(generation(&program, &variants[turned]), 0);
        atomic_fetch_add(&((struct late_code *)call.code)->better, 1);
        kit_improved(rig->device);
        assert_int_equal(serial(rig, &program), turned + 1);
        assert_int_equal(generation(&program, &variants[turned]), 1);
    }
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

/* Threads that compile one variant at once: one code is left, and it is whole. */
enum { COMPILERS = 4 };

struct compiling {
    pthread_t thread;
    const frit_program *program;
    const frit_variant *variant;
    frit_status status;
};

static void *compile_in_thread(void *arg)
{
    struct compiling *c = arg;

    c->status = c->program->table->compile(c->program->self, 0, c->variant, NULL, NULL);
    return NULL;
}

static void many_may_compile_one(void **state)
{
    struct rig *rig = *state;
    frit_program program = add_program(rig);
    struct compiling all[COMPILERS];
    frit_variant variant;

    assert_int_equal(prepare_add(rig, &program, false, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    atomic_store(&late_of(rig)->meet, COMPILERS);
    for (int i = 0; i < COMPILERS; i++) {
        all[i] = (struct compiling){.program = &program, .variant = &variant};
        assert_int_equal(pthread_create(&all[i].thread, NULL, compile_in_thread, &all[i]), 0);
    }
    for (int i = 0; i < COMPILERS; i++) {
        pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].status, FRIT_OK);
    }
    assert_int_equal(atomic_load(&late_of(rig)->n_codes), 1);
    assert_int_equal(prepare_add(rig, &program, false, &variant), FRIT_OK);
    program.table->destroy(program.self);
}

/* ---- launches ---- */

static void calls_say_what_is_launched(void **state)
{
    struct rig *rig = *state;
    frit_program program = add_program(rig), other;
    struct kit_device *device = rig->device;
    const frit_program_table table = *program.table;
    struct kit_call call;
    struct launch l;

    launch_of(rig, &l, &program, 3);
    assert_int_equal(prepare_add(rig, &program, false, &l.variant), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(kit_call_of(device, &l.launch, &call, &rig->err), FRIT_INVALID);
    assert_string_equal(rig->err.text, "late: add is launched before it is compiled");
    assert_int_equal(compile(rig, &program, &l.variant), FRIT_OK);
    assert_int_equal(kit_call_of(device, &l.launch, &call, &rig->err), FRIT_OK);
    assert_ptr_equal(call.device, device);
    assert_ptr_equal(call.program, kit_program_of(&l.launch));
    assert_ptr_equal(call.program->device, device);
    assert_int_equal(call.program->row->op, FRIT_OP_add);
    assert_null(call.program->fuser);
    assert_ptr_equal(call.block, call.program->block);
    assert_int_equal(call.block->ops[0].id, FRIT_OP_add);
    assert_ptr_equal(kit_in(&call, 0, 1)->arg, &l.args[1]);
    assert_null(kit_in(&call, 0, 1)->data);
    assert_int_equal(kit_out(&call, 0, 0)->strides[0], 12);
    other = (frit_program){.table = &table, .self = program.self};
    l.launch.program = &other;
    assert_null(kit_program_of(&l.launch));
    assert_int_equal(kit_call_of(device, &l.launch, &call, &rig->err), FRIT_INVALID);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

/* x = x + x on what launch_of allocated, `count` times in one submit. */
static frit_status submit(struct rig *rig, const struct launch *l, uint32_t count, uint64_t *value)
{
    frit_cmd cmds[3];

    assert_true(count <= 3);
    for (uint32_t i = 0; i < count; i++)
        cmds[i] =
            (frit_cmd){.struct_size = sizeof *cmds, .kind = FRIT_CMD_LAUNCH, .launch = &l->launch};
    return rig->backend->submit(rig->device, NULL, cmds, count, sizeof *cmds, NULL, 0, value,
                                &rig->err);
}

static frit_program compiled_launch(struct rig *rig, struct launch *l)
{
    frit_program program = add_program(rig);
    frit_variant variant;

    assert_int_equal(prepare_add(rig, &program, false, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(compile(rig, &program, &variant), FRIT_OK);
    launch_of(rig, l, &program, 3);
    l->variant = variant;
    return program;
}

static frit_status wait_for(struct rig *rig, uint64_t known, uint64_t value, uint64_t timeout_ns,
                            frit_failure *failure)
{
    *failure = (frit_failure){.struct_size = sizeof *failure, .value = known};
    return rig->backend->wait(rig->device, NULL, value, timeout_ns, failure, &rig->err);
}

static void submit_returns_before_the_work_is_done(void **state)
{
    struct rig *rig = *state;
    const frit_transfer at = {.struct_size = sizeof at, .bytes = 24};
    float numbers[6] = {1, 2, 3, 4, 5, 6}, got[6] = {0};
    frit_transfer transfer = at;
    uint64_t written, done, back;
    frit_failure failure;
    frit_program program;
    struct launch l;

    program = compiled_launch(rig, &l);
    l.launch.program = &program;
    transfer.memory = l.memory.memory;
    late_hold(rig->device);
    assert_int_equal(rig->backend->write(rig->device, &transfer, numbers, &written, &rig->err),
                     FRIT_OK);
    memset(numbers, 0, sizeof numbers);
    assert_int_equal(submit(rig, &l, 3, &done), FRIT_OK);
    memset(l.args, 0xff, sizeof l.args); /* nothing of a launch lives on */
    memset(&l.launch, 0xff, sizeof l.launch);
    assert_int_equal(rig->backend->read(rig->device, &transfer, got, &back, &rig->err), FRIT_OK);
    assert_true(written < done && done < back);
    assert_int_equal(wait_for(rig, 0, back, 1000000, &failure), FRIT_TIMEOUT);
    assert_true(got[0] == 0);
    late_release(rig->device);
    assert_int_equal(wait_for(rig, 0, back, UINT64_MAX, &failure), FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    for (int i = 0; i < 6; i++)
        assert_true(got[i] == (float)(8 * (i + 1)));
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

static void failures_name_their_launch(void **state)
{
    struct rig *rig = *state;
    uint64_t first, second, third;
    frit_failure failure;
    frit_program program;
    struct launch l;

    program = compiled_launch(rig, &l);
    l.launch.program = &program;
    late_of(rig)->fail = 70;
    assert_int_equal(submit(rig, &l, 1, &first), FRIT_OK);
    l.launch.cookie = 70;
    assert_int_equal(submit(rig, &l, 2, &second), FRIT_OK);
    l.launch.cookie = 71;
    assert_int_equal(submit(rig, &l, 1, &third), FRIT_OK);
    assert_int_equal(wait_for(rig, 0, third, UINT64_MAX, &failure), FRIT_OK);
    assert_int_equal(failure.status, FRIT_IO);
    assert_int_equal(failure.value, second);
    assert_int_equal(failure.cookie, 70);
    assert_string_equal(rig->err.text, "late: the launch that fails");
    assert_int_equal(failure.command, 1);
    assert_int_equal(rig->backend->wait(rig->device, NULL, third, UINT64_MAX, &failure, &rig->err),
                     FRIT_OK);
    assert_int_equal(failure.status, FRIT_IO); /* the next one that is not known */
    assert_int_equal(failure.value, second);
    assert_int_equal(failure.command, 2);
    assert_int_equal(wait_for(rig, second, third, UINT64_MAX, &failure), FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

static void a_lost_device_can_be_closed(void **state)
{
    struct rig *rig = *state;
    uint64_t before, at, after, none;
    frit_failure failure;
    frit_program program;
    struct launch l;

    program = compiled_launch(rig, &l);
    l.launch.program = &program;
    late_of(rig)->lose = 80;
    late_hold(rig->device);
    assert_int_equal(submit(rig, &l, 1, &before), FRIT_OK);
    l.launch.cookie = 80;
    assert_int_equal(submit(rig, &l, 1, &at), FRIT_OK);
    assert_int_equal(submit(rig, &l, 1, &after), FRIT_OK);
    late_release(rig->device);
    assert_int_equal(wait_for(rig, 0, before, UINT64_MAX, &failure), FRIT_OK);
    assert_int_equal(wait_for(rig, 0, after, UINT64_MAX, &failure), FRIT_DEVICE_LOST);
    assert_int_equal(failure.status, FRIT_DEVICE_LOST);
    assert_int_equal(failure.value, at);
    assert_int_equal(failure.cookie, 80);
    assert_string_equal(rig->err.text, "late: the launch that is too much");
    assert_int_equal(submit(rig, &l, 1, &none), FRIT_DEVICE_LOST);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

/* It is lost for its own reason, and runs nothing more. */
static void a_device_may_be_lost_after_a_failure(void **state)
{
    struct rig *rig = *state;
    frit_cmd cmds[3];
    frit_launch launches[3];
    frit_failure failure;
    frit_program program;
    float *numbers;
    struct launch l;
    uint64_t value;
    int64_t live;

    program = compiled_launch(rig, &l);
    l.launch.program = &program;
    numbers = hosted_native(rig->device, l.memory.memory, FRIT_STR("host.ptr"));
    numbers[0] = 1;
    late_of(rig)->fail = 70;
    late_of(rig)->lose = 80;
    for (uint32_t i = 0; i < 3; i++) {
        launches[i] = l.launch;
        launches[i].cookie = 70 + 10 * i;
        cmds[i] = (frit_cmd){
            .struct_size = sizeof *cmds, .kind = FRIT_CMD_LAUNCH, .launch = &launches[i]};
    }
    live = rig->live;
    assert_int_equal(
        rig->backend->submit(rig->device, NULL, cmds, 3, sizeof *cmds, NULL, 0, &value, &rig->err),
        FRIT_OK);
    assert_int_equal(wait_for(rig, 0, value, UINT64_MAX, &failure), FRIT_DEVICE_LOST);
    assert_int_equal(failure.status, FRIT_DEVICE_LOST);
    assert_int_equal(failure.value, value);
    assert_int_equal(failure.cookie, 80);
    assert_string_equal(rig->err.text, "late: the launch that is too much");
    while (rig->live > live) /* until the thread is through with the rest */
        sched_yield();
    assert_true(numbers[0] == 1);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

/* A submit that finds no memory has enqueued nothing. */
static void refused_submits_leave_nothing(void **state)
{
    struct rig *rig = *state;
    uint64_t first, second;
    frit_failure failure;
    frit_program program;
    struct launch l;
    int64_t live;

    program = compiled_launch(rig, &l);
    l.launch.program = &program;
    assert_int_equal(submit(rig, &l, 1, &first), FRIT_OK);
    assert_int_equal(wait_for(rig, 0, first, UINT64_MAX, &failure), FRIT_OK);
    late_hold(rig->device); /* the thread has freed what it ran */
    live = rig->live;
    for (int64_t i = 1; i <= 3; i++) {
        rig->refuse = i;
        assert_int_equal(submit(rig, &l, 2, &second), FRIT_NO_HOST_MEMORY);
    }
    l.launch.n_args = 2;
    assert_int_equal(submit(rig, &l, 1, &second), FRIT_INVALID);
    assert_true(rig->live <= live);
    l.launch.n_args = 3;
    late_release(rig->device);
    assert_int_equal(submit(rig, &l, 1, &second), FRIT_OK);
    assert_int_equal(second, first + 1);
    assert_int_equal(wait_for(rig, 0, second, UINT64_MAX, &failure), FRIT_OK);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, steps_open, steps_close)
    const struct CMUnitTest tests[] = {
        CASE(caps_follow_the_slots),
        CASE(a_device_without_its_own_is_none),
        CASE(each_variant_is_compiled_once),
        CASE(what_is_not_compiled_is_reported),
        CASE(better_code_is_a_new_generation),
        CASE(many_may_compile_one),
        CASE(calls_say_what_is_launched),
        CASE(submit_returns_before_the_work_is_done),
        CASE(failures_name_their_launch),
        CASE(a_lost_device_can_be_closed),
        CASE(a_device_may_be_lost_after_a_failure),
        CASE(refused_submits_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
