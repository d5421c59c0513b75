/* SPDX-License-Identifier: Apache-2.0 */
/* The validator is a command; it reads a file in the folder for temporary files. */
#include "kernels/emit/spirv/rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "ir/eval.h"
#include "ir/verify.h"
#include "unit.h"

const struct spirv_target spirv_rich = {.max_threads = 1024,
                                        .shared_bytes = 48 << 10,
                                        .push_bytes = 256,
                                        .subgroup = 32,
                                        .float64 = true,
                                        .store8 = true,
                                        .store16 = true,
                                        .atomic_i64 = true,
                                        .atomic_f32 = true,
                                        .keep_special32 = true,
                                        .keep_special64 = true,
                                        .keep_denormal32 = true,
                                        .keep_denormal64 = true,
                                        .round_even32 = true,
                                        .round_even64 = true,
                                        .float16 = true};

/* ---- words ---- */

static void validate(const struct spirv_code *code, const char *validator)
{
    char path[] = "/tmp/frit-spirv-XXXXXX", command[512];
    int file = mkstemp(path), result;
    size_t bytes = code->n_words * 4u;

    assert_true(file >= 0);
    assert_int_equal(write(file, code->words, bytes), bytes);
    close(file);
    snprintf(command, sizeof(command), "%s --target-env vulkan1.2 %s 1>&2", validator, path);
    result = system(command);
    if (result)
        fail_msg("spirv-val refuses %s", path);
    unlink(path);
}

/* Matrices are of an extension that FRIT_TEST_SPIRV_VAL, a newer spirv-val, knows. */
static void validate_with(const struct kir_module *m, uint32_t phase, const struct spirv_code *code)
{
    const char *newer = getenv("FRIT_TEST_SPIRV_VAL");

    if (newer)
        validate(code, newer);
    else if (!m->phases[phase].n_fragments)
        validate(code, "spirv-val");
}

void spirv_rig_emit(const struct kir_module *m, uint32_t phase, const struct spirv_target *target,
                    bool aligned, struct spirv_code *out)
{
    frit_err err = ERR_INIT;

    if (spirv_emit(m, phase, target, aligned, out, &err))
        fail_msg("%s", err.text);
    if (!getenv("FRIT_TEST_NO_SPIRV_VAL"))
        validate_with(m, phase, out);
}

uint32_t spirv_rig_count(const struct spirv_code *code, uint32_t op)
{
    uint32_t n = 0;

    for (uint32_t i = 5; i < code->n_words; i += code->words[i] >> 16)
        n += (code->words[i] & 0xffff) == op;
    return n;
}

/* ---- comparing ---- */

static uint64_t element(const void *data, uint32_t bytes, uint64_t i)
{
    uint64_t bits = 0;

    memcpy(&bits, (const uint8_t *)data + i * bytes, bytes);
    return bits;
}

/* Floats as integers in their order. */
static int64_t ordered(uint64_t bits, uint32_t width)
{
    int64_t magnitude = (int64_t)(bits & (UINT64_MAX >> (65 - width)));

    return bits >> (width - 1) & 1 ? -magnitude : magnitude;
}

static bool is_nan(uint32_t dtype, uint64_t bits)
{
    switch (dtype) {
    case FRIT_F16:
        return (bits & 0x7fff) > 0x7c00;
    case FRIT_BF16:
        return (bits & 0x7fff) > 0x7f80;
    case FRIT_F32:
        return (bits & 0x7fffffff) > 0x7f800000;
    case FRIT_F64:
        return (bits & INT64_MAX) > 0x7ff0000000000000;
    default:
        return false;
    }
}

static bool agree(uint32_t dtype, uint64_t a, uint64_t b, uint32_t ulps)
{
    bool is_float =
        dtype == FRIT_F16 || dtype == FRIT_BF16 || dtype == FRIT_F32 || dtype == FRIT_F64;
    uint32_t width = frit_dtype_bits(dtype);

    if (a == b || (is_nan(dtype, a) && is_nan(dtype, b)))
        return true;
    return ulps && is_float && !is_nan(dtype, a) && !is_nan(dtype, b) &&
           llabs(ordered(a, width) - ordered(b, width)) <= (int64_t)ulps;
}

static void compare(const struct spirv_rig_run *run, void *const *expected, void *const *got,
                    const char *how)
{
    const struct kir_module *m = run->module;

    for (uint32_t i = 0; i < m->n_args; i++) {
        uint32_t dtype = m->args[i].dtype, bytes = frit_dtype_bits(dtype) / 8;

        for (uint64_t j = 0; j < run->args[i].bytes / bytes; j++) {
            uint64_t a = element(expected[i], bytes, j), b = element(got[i], bytes, j);

            if (!agree(dtype, a, b, run->ulps))
                fail_msg("%s, %s: argument %u, element %llu: 0x%llx is expected, not 0x%llx",
                         m->name, how, i, (unsigned long long)j, (unsigned long long)a,
                         (unsigned long long)b);
        }
    }
}

/* ---- running ---- */

static void **copies(const struct spirv_rig_run *run)
{
    uint32_t n = run->module->n_args;
    void **out = calloc(n + 1, sizeof(*out));

    assert_non_null(out);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = malloc(run->args[i].bytes + 1);
        assert_non_null(out[i]);
        memcpy(out[i], run->args[i].data, run->args[i].bytes);
    }
    return out;
}

static void copies_free(const struct spirv_rig_run *run, void **data)
{
    for (uint32_t i = 0; i < run->module->n_args; i++)
        free(data[i]);
    free(data);
}

static void run_eval(const struct spirv_rig_run *run, void *const *data)
{
    struct eval_arg *args = calloc(run->module->n_args + 1, sizeof(*args));
    frit_err err = ERR_INIT;

    assert_non_null(args);
    for (uint32_t i = 0; i < run->module->n_args; i++)
        args[i] = (struct eval_arg){data[i], 0, run->args[i].bytes};
    if (eval_run(run->module, run->words, args, run->grid, &err))
        fail_msg("%s: %s", run->module->name, err.text);
    free(args);
}

static void run_device(struct vulkan_rig *rig, const struct spirv_rig_run *run, void *const *data,
                       const struct spirv_target *target, bool aligned)
{
    const struct kir_module *m = run->module;
    struct vulkan_arg *args = calloc(m->n_args + 1, sizeof(*args));
    struct spirv_code *code = calloc(m->n_phases, sizeof(*code));
    bool done;

    assert_non_null(args);
    assert_non_null(code);
    for (uint32_t i = 0; i < m->n_args; i++) {
        uint32_t skew = aligned ? 0 : frit_dtype_bits(m->args[i].dtype) / 8;

        args[i] = (struct vulkan_arg){data[i], run->args[i].bytes, skew};
    }
    for (uint32_t i = 0; i < m->n_phases; i++)
        spirv_rig_emit(m, i, target, aligned, &code[i]);
    done = vulkan_run(rig, m, code, run->words, args, run->grid);
    for (uint32_t i = 0; i < m->n_phases; i++)
        spirv_fini(&code[i]);
    free(code);
    free(args);
    if (!done)
        fail_msg("%s: the device did not run it", m->name);
}

static bool has_fragments(const struct kir_module *m)
{
    for (uint32_t i = 0; i < m->n_phases; i++)
        if (m->phases[i].n_fragments)
            return true;
    return false;
}

void spirv_rig_check(struct vulkan_rig *rig, const struct spirv_rig_run *run)
{
    struct spirv_target target = *vulkan_target(rig);
    frit_err err = ERR_INIT;
    void **expected = copies(run);

    if (kir_verify(run->module, NULL, &err))
        fail_msg("%s: %s", run->module->name, err.text);
    run_eval(run, expected);
    for (uint32_t way = 0; way < (run->aligned_only ? 1 : 2); way++) {
        void **got = copies(run);

        if (way)
            target.push_bytes = 0;
        if ((way && !has_fragments(run->module)) || run->no_subgroups)
            target.subgroup = 0;
        run_device(rig, run, got, &target, !way);
        compare(run, expected, got, way ? "plain" : "aligned");
        copies_free(run, got);
    }
    copies_free(run, expected);
}
