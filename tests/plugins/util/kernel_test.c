/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions as kernels of the built plugin: loaded, dispatched, refused, failing. */
#include <frit/native.h>

#include <string.h>

#include "plugins/rig.h"

struct setting {
    struct rig rig;
    const frit_native_table *native;
    frit_allocation memory;
    frit_arg arg;
    frit_launch_spec spec;
    frit_launch launch;
    frit_kernel *kernel;
    frit_cmd cmd;
};

/* ---- the kernel: adds scalar 0 to each float of argument 0 ---- */

static frit_status add(void *ctx, const frit_launch *launch, frit_err *err)
{
    struct setting *s = ctx;
    const frit_arg *arg = launch->args;
    char *bytes = s->native->get(s->rig.device, arg->memory, FRIT_STR("host.ptr"));
    double by;

    memcpy(&by, &launch->scalars[0].bits, sizeof by);
    if (by < 0) {
        err->status = FRIT_IO;
        memcpy(err->text, "it is negative", sizeof "it is negative");
        return FRIT_IO;
    }
    for (int64_t i = 0; i < arg->dims[0]; i++)
        ((float *)(void *)(bytes + arg->offset + arg->origin))[i * arg->strides[0]] += (float)by;
    return FRIT_OK;
}

static frit_status load(struct setting *s, frit_str format, const void *bytes, uint64_t n_bytes)
{
    return s->rig.backend->kernel_load(s->rig.device, format, bytes, n_bytes, &s->kernel,
                                       &s->rig.err);
}

static int open_setting(void **state)
{
    static struct setting s;
    const frit_host_fn fn = {.struct_size = sizeof fn, .run = add, .ctx = &s};
    const frit_alloc_desc desc = {sizeof desc, 0, 64, 64};

    memset(&s, 0, sizeof s);
    rig_open(&s.rig);
    s.native = s.rig.plugin->get_interface(s.rig.instance, FRIT_STR(FRIT_NATIVE_TABLE));
    assert_non_null(s.native);
    assert_int_equal(s.rig.backend->alloc(s.rig.device, &desc, &s.memory, &s.rig.err), FRIT_OK);
    memset(s.memory.host_pointer, 0, 64);
    assert_int_equal(load(&s, FRIT_STR(FRIT_FORMAT_HOST_FN), &fn, sizeof fn), FRIT_OK);
    s.arg = (frit_arg){.memory = s.memory.memory,
                       .offset = 16,
                       .extent = 8,
                       .dtype = FRIT_F32,
                       .rank = 1,
                       .dims = {2},
                       .strides = {1}};
    s.launch = (frit_launch){.struct_size = sizeof s.launch,
                             .n_args = 1,
                             .arg_stride = sizeof s.arg,
                             .n_scalars = 1,
                             .cookie = 42,
                             .spec = &s.spec,
                             .args = &s.arg};
    s.cmd = (frit_cmd){.struct_size = sizeof s.cmd,
                       .kind = FRIT_CMD_DISPATCH,
                       .launch = &s.launch,
                       .kernel = s.kernel};
    *state = &s;
    return 0;
}

static int close_setting(void **state)
{
    struct setting *s = *state;

    s->rig.backend->kernel_unload(s->rig.device, s->kernel);
    s->rig.backend->kernel_unload(s->rig.device, NULL);
    s->rig.backend->free(s->rig.device, s->memory.memory);
    rig_close(&s->rig);
    return 0;
}

static frit_status dispatch(struct setting *s, double by, uint64_t *value)
{
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};

    memcpy(&scalar.bits, &by, sizeof by);
    s->launch.scalars = &scalar;
    return s->rig.backend->submit(s->rig.device, NULL, &s->cmd, 1, sizeof s->cmd, NULL, 0, value,
                                  &s->rig.err);
}

/* ---- tests ---- */

static void the_format_is_declared(void **state)
{
    struct setting *s = *state;
    frit_device_info info = {.struct_size = sizeof info};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count;

    assert_int_equal(s->rig.backend->enumerate(s->rig.instance, &info, sizeof info, 1, &count,
                                               &driver, &s->rig.err),
                     FRIT_OK);
    assert_int_equal(info.n_formats, 1);
    assert_int_equal(info.formats[0].len, strlen(FRIT_FORMAT_HOST_FN));
    assert_memory_equal(info.formats[0].ptr, FRIT_FORMAT_HOST_FN, info.formats[0].len);
}

static void native_objects(void **state)
{
    struct setting *s = *state;
    void *memory = s->memory.memory;

    assert_ptr_equal(s->native->get(s->rig.device, memory, FRIT_STR("host.ptr")),
                     s->memory.host_pointer);
    assert_null(s->native->get(s->rig.device, NULL, FRIT_STR("host.ptr")));
    assert_null(s->native->get(s->rig.device, memory, FRIT_STR("host.pt")));
    assert_null(s->native->get(s->rig.device, memory, FRIT_STR("hip.ptr!")));
}

static void a_kernel_runs(void **state)
{
    struct setting *s = *state;
    frit_failure failure = {.struct_size = sizeof failure};
    const float *floats = s->memory.host_pointer;
    uint64_t value = 0;

    assert_int_equal(dispatch(s, 1.5, &value), FRIT_OK);
    assert_int_equal(s->rig.backend->wait(s->rig.device, NULL, value, 0, &failure, &s->rig.err),
                     FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    assert_true(floats[3] == 0 && floats[4] == 1.5f && floats[5] == 1.5f && floats[6] == 0);
}

/* The command fails, not the submit: later commands run, and wait returns the failure. */
static void a_kernel_fails(void **state)
{
    struct setting *s = *state;
    frit_failure failure = {.struct_size = sizeof failure};
    const float *floats = s->memory.host_pointer;
    uint64_t failed = 0, fine = 0;

    assert_int_equal(dispatch(s, -1, &failed), FRIT_OK);
    assert_int_equal(dispatch(s, 2, &fine), FRIT_OK);
    assert_true(fine > failed);
    for (int i = 0; i < 2; i++) {
        failure.value = 0;
        memset(s->rig.err.text, 0, sizeof s->rig.err.text);
        assert_int_equal(s->rig.backend->wait(s->rig.device, NULL, fine, 0, &failure, &s->rig.err),
                         FRIT_OK);
        assert_int_equal(failure.status, FRIT_IO);
        assert_int_equal(failure.value, failed);
        assert_int_equal(failure.cookie, 42);
        assert_string_equal(s->rig.err.text, "it is negative");
    }
    assert_int_equal(s->rig.backend->wait(s->rig.device, NULL, fine, 0, &failure, &s->rig.err),
                     FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    assert_true(floats[4] == 2);
}

/* Of several commands of a submit that fail, wait returns the first. */
static void the_first_of_a_submit(void **state)
{
    struct setting *s = *state;
    frit_failure failure = {.struct_size = sizeof failure};
    double by = -1;
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};
    frit_launch second = s->launch;
    frit_cmd cmds[] = {s->cmd, s->cmd};
    uint64_t value;

    memcpy(&scalar.bits, &by, sizeof by);
    s->launch.scalars = second.scalars = &scalar;
    second.cookie = 43;
    cmds[1].launch = &second;
    assert_int_equal(s->rig.backend->submit(s->rig.device, NULL, cmds, 2, sizeof *cmds, NULL, 0,
                                            &value, &s->rig.err),
                     FRIT_OK);
    assert_int_equal(s->rig.backend->wait(s->rig.device, NULL, value, 0, &failure, &s->rig.err),
                     FRIT_OK);
    assert_int_equal(failure.cookie, 42);
}

static void what_cannot_be_dispatched(void **state)
{
    struct setting *s = *state;
    const float *floats = s->memory.host_pointer;
    uint64_t value;

    s->arg.extent = 49; /* one byte too many */
    assert_int_equal(dispatch(s, 1, &value), FRIT_INVALID);
    assert_non_null(strstr(s->rig.err.text, "argument 0 of a launch leaves its buffer"));
    s->arg.extent = 8;
    s->spec.workspace_bytes = 8;
    assert_int_equal(dispatch(s, 1, &value), FRIT_INVALID);
    s->spec.workspace_bytes = 0;
    s->cmd.kernel = NULL;
    assert_int_equal(dispatch(s, 1, &value), FRIT_INVALID);
    s->cmd.kernel = s->kernel;
    s->cmd.launch = NULL;
    assert_int_equal(dispatch(s, 1, &value), FRIT_INVALID);
    s->cmd.launch = &s->launch;
    s->cmd.struct_size = FRIT_END_OF(frit_cmd, reserved);
    assert_int_equal(dispatch(s, 1, &value), FRIT_INVALID);
    s->cmd.struct_size = sizeof s->cmd;
    assert_true(floats[4] == 0);
    assert_int_equal(dispatch(s, 1, &value), FRIT_OK);
}

/* A span per command that does something, while the host wants them. */
static void spans_of_commands(void **state)
{
    struct setting *s = *state;
    double by = 1;
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};
    frit_cmd cmds[] = {{.kind = FRIT_CMD_FILL, .dst = s->memory.memory, .bytes = 64},
                       {.kind = FRIT_CMD_BARRIER},
                       s->cmd};
    uint64_t value;

    memcpy(&scalar.bits, &by, sizeof by);
    s->launch.scalars = &scalar;
    cmds[0].pattern_bytes = 8;
    for (int i = 0; i < 2; i++) {
        assert_string_equal(s->rig.spans, "");
        s->rig.tracing = i == 1;
        assert_int_equal(s->rig.backend->submit(s->rig.device, NULL, cmds, 3, sizeof *cmds, NULL, 0,
                                                &value, &s->rig.err),
                         FRIT_OK);
    }
    assert_string_equal(s->rig.spans, " fill kernel");
    assert_true(s->rig.counter == 64);
}

static void what_is_no_kernel(void **state)
{
    struct setting *s = *state;
    frit_host_fn fn = {.struct_size = sizeof fn, .run = add};
    const frit_str format = FRIT_STR(FRIT_FORMAT_HOST_FN);
    void *kept = s->kernel;

    assert_int_equal(load(s, FRIT_STR("host-fn/2"), &fn, sizeof fn), FRIT_UNSUPPORTED);
    assert_null(s->kernel);
    assert_non_null(strstr(s->rig.err.text, "'host-fn/2'"));
    assert_int_equal(load(s, FRIT_STR("host-fn"), &fn, sizeof fn), FRIT_UNSUPPORTED);
    assert_int_equal(load(s, format, &fn, sizeof fn - 1), FRIT_INVALID);
    assert_int_equal(load(s, format, NULL, 0), FRIT_INVALID);
    fn.struct_size = FRIT_END_OF(frit_host_fn, run);
    assert_int_equal(load(s, format, &fn, sizeof fn), FRIT_INVALID);
    fn = (frit_host_fn){.struct_size = sizeof fn};
    assert_int_equal(load(s, format, &fn, sizeof fn), FRIT_INVALID);
    s->kernel = kept;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_setting, close_setting)
    const struct CMUnitTest tests[] = {
        TEST(the_format_is_declared), TEST(native_objects),        TEST(a_kernel_runs),
        TEST(a_kernel_fails),         TEST(the_first_of_a_submit), TEST(what_cannot_be_dispatched),
        TEST(what_is_no_kernel),      TEST(spans_of_commands),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
