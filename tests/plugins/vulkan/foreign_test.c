/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of other plugins: which modules kernel_load accepts, and the arguments of a DISPATCH. The
 * module is that of the fuser in tests/outside/fuser for c = a + b, partly with single words
 * changed. */
#include <stdio.h>
#include <string.h>

#include "blocks.h"
#include "fake_open.h"
#include "rig.h"

enum { N = 1000, CAPACITY = N + 2 * CHAIN_LANES, UNTOUCHED = 7 };

/* ---- a module ---- */

struct words {
    uint32_t n;
    uint32_t at[CHAIN_WORDS];
};

static struct words make_module(void)
{
    static struct program program;
    struct words words;

    program.block.ops[0] =
        (struct block_op){.row = row_of(FRIT_OP_add), .n_in = 2, .in = {0, 1}, .out = 2};
    program.block.n_ops = 1;
    program.n_in = 2;
    program.n_args = 3;
    for (uint16_t i = 0; i < 3; i++)
        program.args[i] = i;
    words.n = chain_words(&program, words.at);
    return words;
}

/* The first instruction of the opcode inst[0] whose operands begin with the other words. */
static uint32_t *find(struct words *words, const uint32_t *inst, uint32_t n)
{
    for (uint32_t i = 5; i + n <= words->n; i += words->at[i] >> 16) {
        const bool same_op = (words->at[i] & 0xffff) == inst[0];

        if (same_op && memcmp(words->at + i + 1, inst + 1, (n - 1) * sizeof *inst) == 0)
            return words->at + i;
    }
    fail_msg("no instruction %u", inst[0]);
}

enum { MEMORY_MODEL = 14, ENTRY_POINT = 15, EXECUTION_MODE = 16, CAPABILITY = 17 };
enum { CONSTANT = 43, DECORATE = 71 };

#define FIND(words, ...)                           \
    find((words), (const uint32_t[]){__VA_ARGS__}, \
         sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static frit_status load(struct rig *rig, const struct words *words, frit_kernel **kernel)
{
    return rig->backend->kernel_load(rig->device, FRIT_STR(FRIT_FORMAT_SPIRV), words->at,
                                     words->n * sizeof *words->at, kernel, &rig->err);
}

/* ---- a launch ---- */

struct call {
    frit_allocation memory[3];
    frit_arg args[3];
    frit_scalar scalars[2];
    int64_t bounds[2];
    frit_launch_spec spec;
    frit_launch launch;
    frit_cmd cmd;
};

static void call_open(struct rig *rig, struct call *call, frit_kernel *kernel)
{
    float numbers[CAPACITY];

    *call = (struct call){.spec = {.struct_size = sizeof call->spec, .driver = {N}}};
    for (int i = 0; i < CAPACITY; i++)
        numbers[i] = (float)i;
    for (uint32_t i = 0; i < 3; i++) {
        call->memory[i] = rig_alloc(rig, CAPACITY * sizeof(float));
        rig_write(rig, call->memory[i].memory, 0, numbers, sizeof numbers);
        call->args[i] = (frit_arg){.memory = call->memory[i].memory,
                                   .extent = CAPACITY * sizeof(float),
                                   .dtype = FRIT_F32,
                                   .rank = 1,
                                   .dims = {N},
                                   .strides = {1}};
    }
    call->launch = (frit_launch){.struct_size = sizeof call->launch,
                                 .n_args = 3,
                                 .arg_stride = sizeof *call->args,
                                 .n_scalars = 2,
                                 .n_bounds = 2,
                                 .cookie = 5,
                                 .spec = &call->spec,
                                 .args = call->args,
                                 .scalars = call->scalars,
                                 .bounds = call->bounds};
    call->cmd = (frit_cmd){.struct_size = sizeof call->cmd,
                           .kind = FRIT_CMD_DISPATCH,
                           .launch = &call->launch,
                           .kernel = kernel,
                           .grid = {CAPACITY / CHAIN_LANES, 1, 1},
                           .group = {CHAIN_LANES, 1, 1}};
}

static void call_close(struct rig *rig, struct call *call)
{
    for (uint32_t i = 0; i < 3; i++)
        rig->backend->free(rig->device, call->memory[i].memory);
}

/* Runs the DISPATCH, which must write the first `n` elements of a + b and no others. */
static void expect_sums(struct rig *rig, struct call *call, int n)
{
    float numbers[CAPACITY];

    for (int i = 0; i < CAPACITY; i++)
        numbers[i] = UNTOUCHED;
    rig_write(rig, call->memory[2].memory, 0, numbers, sizeof numbers);
    rig_run(rig, &call->cmd, 1);
    rig_read(rig, call->memory[2].memory, 0, numbers, sizeof numbers);
    for (int i = 0; i < CAPACITY; i++)
        assert_true(numbers[i] == (i < n ? 2 * (float)i : (float)UNTOUCHED));
}

/* ---- tests ---- */

static void the_format_is_listed(void **state)
{
    struct rig *rig = *state;
    frit_device_info info = {.struct_size = sizeof info};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err),
        FRIT_OK);
    assert_int_equal(info.n_formats, 1);
    assert_string_equal(info.formats[0].ptr, FRIT_FORMAT_SPIRV);
}

static void a_kernel_runs(void **state)
{
    struct rig *rig = *state;
    const struct words words = make_module();
    frit_kernel *kernel = NULL;
    struct call call;
    float half[N];

    if (load(rig, &words, &kernel))
        fail_msg("%s", rig->err.text);
    call_open(rig, &call, kernel);
    expect_sums(rig, &call, N);
    for (uint32_t i = 0; i < 2; i++) {
        call.args[i].offset = 100 * sizeof(float);
        call.args[i].extent = (CAPACITY - 100) * sizeof(float);
        call.args[i].origin = 10 * sizeof(float);
    }
    call.spec.driver[0] = 200;
    rig_run(rig, &call.cmd, 1);
    rig_read(rig, call.memory[2].memory, 0, half, sizeof half);
    for (int i = 0; i < 200; i++)
        assert_true(half[i] == 2 * (float)(i + 110));
    call_close(rig, &call);
    rig->backend->kernel_unload(rig->device, kernel);
    rig->backend->kernel_unload(rig->device, NULL);
}

/* The module is changed to read its number of elements from each word of the arguments in turn. */
static void each_word_has_its_offset(void **state)
{
    enum { COUNT = 77 };
    struct rig *rig = *state;
    frit_derived_spec derived_spec = {.bytes = 4};
    struct call call;
    frit_derived derived = {.fill = 0};
    struct {
        uint32_t word;
        uint64_t *to;
    } places[] = {{0, call.spec.driver},
                  {3, call.spec.driver + 3},
                  {8, (uint64_t *)call.args[0].dims},
                  {9, (uint64_t *)call.args[0].strides},
                  {12, (uint64_t *)call.args[2].dims},
                  {13, (uint64_t *)call.args[2].strides},
                  {16, &call.scalars[0].bits},
                  {17, &call.scalars[1].bits},
                  {18, (uint64_t *)call.bounds},
                  {19, (uint64_t *)(call.bounds + 1)}};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct words words = make_module();
        frit_kernel *kernel = NULL;
        uint32_t *constant = FIND(&words, CONSTANT);

        while (constant[0] != (5u << 16 | CONSTANT) || constant[3]) /* 64 bits, 0 */
            constant += constant[0] >> 16;
        constant[3] = 8 * places[i].word;
        assert_int_equal(load(rig, &words, &kernel), FRIT_OK);
        call_open(rig, &call, kernel);
        memset(call.spec.driver, 0, sizeof call.spec.driver);
        derived.memory = call.memory[0].memory;
        call.spec.n_derived = call.launch.n_derived = 1;
        call.spec.derived = &derived_spec;
        call.spec.derived_stride = sizeof derived_spec;
        call.launch.derived = &derived;
        for (uint32_t k = 0; k < 3; k++)
            call.args[k].dims[0] = call.args[k].strides[0] = 0;
        *places[i].to = COUNT;
        expect_sums(rig, &call, COUNT);
        call_close(rig, &call);
        rig->backend->kernel_unload(rig->device, kernel);
    }
}

static void refuse(struct rig *rig, const struct words *words, frit_status status, const char *why)
{
    frit_kernel *kernel = (frit_kernel *)rig;

    assert_int_equal(load(rig, words, &kernel), status);
    assert_null(kernel);
    if (!strstr(rig->err.text, why))
        fail_msg("'%s' does not contain '%s'", rig->err.text, why);
}

static void malformed_modules_are_refused(void **state)
{
    struct rig *rig = *state;
    struct words words = {.n = 8, .at = {0x464c457f}};
    frit_kernel *kernel = NULL;

    refuse(rig, &words, FRIT_INVALID, "no SPIR-V");
    words.n = 0;
    refuse(rig, &words, FRIT_INVALID, "no SPIR-V");
    words = make_module();
    words.at[1] = 0x00010600;
    refuse(rig, &words, FRIT_INVALID, "1.6");
    words = make_module();
    words.n--;
    words.at[words.n - 1] = 2u << 16 | 253;
    refuse(rig, &words, FRIT_INVALID, "instruction of 2 words");
    words = make_module();
    words.at[words.n - 1] = 0;
    refuse(rig, &words, FRIT_INVALID, "instruction of 0 words");
    words = make_module();
    assert_int_equal(rig->backend->kernel_load(rig->device, FRIT_STR(FRIT_FORMAT_SPIRV), words.at,
                                               words.n * 4 - 1, &kernel, &rig->err),
                     FRIT_INVALID);
    assert_int_equal(rig->backend->kernel_load(rig->device, FRIT_STR("host-fn/1"), words.at,
                                               words.n * 4, &kernel, &rig->err),
                     FRIT_UNSUPPORTED);
    assert_non_null(strstr(rig->err.text, FRIT_FORMAT_SPIRV));
}

static void unsupported_modules_are_refused(void **state)
{
    struct rig *rig = *state;
    struct words words = make_module();

    memcpy(FIND(&words, ENTRY_POINT) + 3, "mane", 4);
    refuse(rig, &words, FRIT_INVALID, "entry point");
    words = make_module();
    FIND(&words, ENTRY_POINT)[1] = 4; /* Fragment */
    refuse(rig, &words, FRIT_INVALID, "entry point");
    words = make_module();
    FIND(&words, MEMORY_MODEL)[1] = 0;
    refuse(rig, &words, FRIT_INVALID, "PhysicalStorageBuffer64");
    words = make_module();
    FIND(&words, EXECUTION_MODE)[2] = 18; /* LocalSizeHint */
    refuse(rig, &words, FRIT_INVALID, "LocalSize");
    words = make_module();
    FIND(&words, EXECUTION_MODE)[3] = 1u << 20;
    refuse(rig, &words, FRIT_UNSUPPORTED, "1048576 x 1 x 1");
    words = make_module();
    FIND(&words, CAPABILITY, 11)[1] = 22; /* Int16 */
    refuse(rig, &words, FRIT_UNSUPPORTED, "capability 22");
}

static void descriptors_are_refused(void **state)
{
    struct rig *rig = *state;
    struct words words = make_module();
    uint32_t *decorate = FIND(&words, DECORATE);

    decorate = decorate[2] == 11 ? decorate : decorate + 3 + 2 * 5; /* Block, offsets, BuiltIn */
    assert_int_equal(decorate[2], 11);
    decorate[3] = 25; /* WorkgroupSize */
    refuse(rig, &words, FRIT_INVALID, "WorkgroupSize");
    decorate[2] = 33; /* Binding */
    refuse(rig, &words, FRIT_INVALID, "descriptors");
}

static void refuse_submit(struct rig *rig, const frit_cmd *cmd, const char *why)
{
    uint64_t value = 0;

    assert_int_not_equal(
        rig->backend->submit(rig->device, NULL, cmd, 1, sizeof *cmd, NULL, 0, &value, &rig->err),
        FRIT_OK);
    if (!strstr(rig->err.text, why))
        fail_msg("'%s' does not contain '%s'", rig->err.text, why);
}

static void dispatches_are_checked(void **state)
{
    struct rig *rig = *state;
    const struct words words = make_module();
    frit_kernel *kernel = NULL;
    struct call call;

    assert_int_equal(load(rig, &words, &kernel), FRIT_OK);
    call_open(rig, &call, kernel);
    call.cmd.group[0] = 32;
    refuse_submit(rig, &call.cmd, "LocalSize");
    call.cmd.group[0] = CHAIN_LANES;
    call.cmd.kernel = NULL;
    refuse_submit(rig, &call.cmd, "kernel");
    call.cmd.kernel = kernel;
    call.args[2].offset = 4;
    refuse_submit(rig, &call.cmd, "bytes at offset 4");
    call.args[2].offset = 0;
    call.launch.n_bounds = 5000;
    refuse_submit(rig, &call.cmd, "words");
    call.launch.n_bounds = 0;
    expect_sums(rig, &call, N);
    call_close(rig, &call);
    rig->backend->kernel_unload(rig->device, kernel);
}

/* ---- with the fake loader ---- */

static struct rig open_fresh(void)
{
    (void)fake_open(NULL);
    *fake = (struct fake_loader){0};
    return (struct rig){.loader = fake_path};
}

/* A grid of more workgroups than the device supports in one dispatch. */
static void large_grids_are_split(void **state)
{
    struct rig rig = open_fresh();
    const struct words words = make_module();
    frit_kernel *kernel = NULL;
    struct call call;

    (void)state;
    fake->small_limits = 1;
    rig_open(&rig);
    assert_int_equal(load(&rig, &words, &kernel), FRIT_OK);
    call_open(&rig, &call, kernel);
    assert_true(call.cmd.grid[0] > 3);
    expect_sums(&rig, &call, N);
    call_close(&rig, &call);
    rig.backend->kernel_unload(rig.device, kernel);
    rig_close(&rig);
    fake->small_limits = 0;
}

static void failures_leak_nothing(void **state)
{
    struct rig rig = open_fresh();
    const struct words words = make_module();
    frit_kernel *kernel = NULL;
    int failures = 0;

    (void)state;
    rig_open(&rig);
    for (int i = 1; i <= 2; i++) {
        rig.fail_alloc = i;
        assert_int_equal(load(&rig, &words, &kernel), FRIT_NO_HOST_MEMORY);
        assert_null(kernel);
    }
    rig.fail_alloc = 0;
    for (int n = 1; !kernel; n++) {
        *fake = (struct fake_loader){.failing_call = n};
        failures += load(&rig, &words, &kernel) != FRIT_OK;
        assert_true(n < 10);
    }
    assert_int_equal(failures, 2); /* the module, the pipeline */
    rig.backend->kernel_unload(rig.device, kernel);
    rig_close(&rig);
}

static int open_rig(void **state)
{
    static struct rig rig;

    rig = (struct rig){0};
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    return 0;
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_format_is_listed),
        RIG_TEST(a_kernel_runs),
        RIG_TEST(each_word_has_its_offset),
        RIG_TEST(malformed_modules_are_refused),
        RIG_TEST(unsupported_modules_are_refused),
        RIG_TEST(descriptors_are_refused),
        RIG_TEST(dispatches_are_checked),
        cmocka_unit_test(large_grids_are_split),
        cmocka_unit_test(failures_leak_nothing),
    };
    const int skips = rig_skips();

    return skips ? skips : cmocka_run_group_tests(tests, NULL, NULL);
}
