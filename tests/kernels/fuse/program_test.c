/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of fusers: what they say of themselves and of signatures, what they have compiled, and
 * how they are saved. */
#include "kernels/fuse/rig.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuse/codes.h"
#include "ir/digest.h"
#include "kernels/fuse/toy.h"
#include "lower/sched.h"

struct programs {
    struct rig rig;
    frit_program chain; /* of 3 ops, by narrow */
};

static int setup(void **state)
{
    struct programs *p = calloc(1, sizeof(*p));
    struct rig_ops ops;

    assert_non_null(p);
    toy_exact = false;
    atomic_store(&toy_builds, 0);
    rig_init(&p->rig);
    rig_chain(&ops, 2);
    p->chain = rig_program(&p->rig, "narrow", &ops);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct programs *p = *state;

    if (p->chain.table)
        rig_destroy(&p->chain);
    assert_int_equal(atomic_load(&p->rig.n_compiles), atomic_load(&p->rig.n_releases));
    rig_fini(&p->rig);
    free(p);
    return 0;
}

static frit_program_info describe(const frit_program *program)
{
    frit_program_info info = {.struct_size = sizeof(info)};

    assert_int_equal(program->table->describe(program->self, &info, NULL), FRIT_OK);
    return info;
}

static frit_status prepare(const frit_program *program, uint32_t candidate,
                           const struct rig_sig *sig, frit_launch_spec *spec, frit_variant *variant)
{
    *spec = (frit_launch_spec){.struct_size = sizeof(*spec)};
    *variant = (frit_variant){.struct_size = sizeof(*variant)};
    return program->table->prepare(program->self, candidate, &sig->sig, spec, variant, NULL);
}

static frit_status compile(const frit_program *program, const frit_variant *variant)
{
    return program->table->compile(program->self, 0, variant, NULL, NULL);
}

static uint64_t generation(const frit_program *program, const frit_variant *variant)
{
    return program->table->generation(program->self, 0, variant);
}

static void release(const frit_program *program, const frit_launch_spec *spec)
{
    program->table->spec_release(program->self, spec);
}

static bool str_equals(frit_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

/* -((x + s) * y) of n elements. */
static void check_chain(const frit_program *program, const frit_launch_spec *spec, uint32_t n)
{
    float *x = calloc(n, sizeof(float)), *y = calloc(n, sizeof(float));
    float *out = calloc(n, sizeof(float));
    const double scalar = 0.25;
    struct rig_launch launch;

    assert_true(x && y && out);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = (float)i;
        y[i] = (float)(i % 7) - 2;
    }
    rig_bind(&launch, program, spec, (float *[]){x, y, out}, 3, n, &scalar, 1);
    rig_run(&launch);
    for (uint32_t i = 0; i < n; i++)
        assert_float_equal(out[i], -((x[i] + 0.25f) * y[i]), 0);
    free(x);
    free(y);
    free(out);
}

/* ---- description ---- */

static void test_describe(void **state)
{
    struct programs *p = *state;
    frit_program_info info = describe(&p->chain);
    frit_program two;
    struct rig_ops ops;

    assert_int_equal(info.n_ops, 3);
    assert_int_equal(info.n_candidates, 1);
    assert_true(str_equals(info.name, "narrow"));
    assert_true(str_equals(info.candidates->identity, "narrow"));
    rig_chain(&ops, 2);
    ops.n = 2;
    two = rig_program(&p->rig, "pairs", &ops);
    info = describe(&two);
    assert_int_equal(info.n_ops, 2);
    assert_int_equal(info.n_candidates, 2);
    assert_int_equal(info.candidate_stride, sizeof(frit_candidate));
    assert_true(str_equals(info.candidates[0].identity, "pairs"));
    assert_int_equal(info.candidates[0].numeric_class, FRIT_NUMERIC_EXACT);
    assert_true(str_equals(info.candidates[1].identity, "narrow"));
    assert_int_equal(info.candidates[1].numeric_class, FRIT_NUMERIC_EXACT);
    rig_destroy(&two);
}

/* Where sums are in a block, another schedule may take them in another order. */
static void test_classes_of_candidates(void **state)
{
    static const uint32_t first[] = {FRIT_OP_matmul, FRIT_OP_mul};
    struct programs *p = *state;

    for (int i = 0; i < 2; i++) {
        struct rig_ops ops = {0};
        frit_program two;
        frit_program_info info;

        rig_binary(&ops, first[i], rig_tensor(0, 2), rig_tensor(1, 2), rig_tensor(2, 2), NULL);
        rig_unary(&ops, FRIT_OP_neg, rig_tensor(2, 2), rig_tensor(3, 2), RIG_DEAD(2));
        two = rig_program(&p->rig, "pairs", &ops);
        info = describe(&two);
        assert_int_equal(info.n_candidates, 2);
        assert_int_equal(info.candidates[0].numeric_class, FRIT_NUMERIC_EXACT);
        assert_int_equal(info.candidates[1].numeric_class,
                         i ? FRIT_NUMERIC_EXACT : FRIT_NUMERIC_REORDERED);
        rig_destroy(&two);
    }
}

static void test_generation(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5};
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_sig sig;

    atomic_store(&p->rig.generation, 1);
    assert_ptr_equal(describe(&p->chain).serial, &p->rig.serial);
    rig_signature(&sig, 2, 1, 1, 2, dims);
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(generation(&p->chain, &variant), 0);
    assert_int_equal(compile(&p->chain, &variant), FRIT_OK);
    assert_int_equal(generation(&p->chain, &variant), 1);
    atomic_store(&p->rig.generation, 2);
    assert_int_equal(generation(&p->chain, &variant), 2);
    variant.bytes[0] ^= 1;
    assert_int_equal(generation(&p->chain, &variant), 0);
}

/* An estimate where there is something to compile, for hosts that know of it. */
static void test_compile_estimate(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5};
    frit_launch_spec spec = {.struct_size = sizeof(spec)}, first;
    frit_launch_spec old = {.struct_size = FRIT_END_OF(frit_launch_spec, wanted_strides)};
    frit_variant variant = {.struct_size = sizeof(variant)};
    const frit_program_table *table = p->chain.table;
    struct rig_sig sig;

    rig_signature(&sig, 2, 1, 1, 2, dims);
    assert_int_equal(table->prepare(p->chain.self, 0, &sig.sig, &spec, &variant, NULL),
                     FRIT_PREPARE_NEEDS_COMPILE);
    assert_true(spec.compile_ns > 0);
    first = spec;
    assert_int_equal(table->prepare(p->chain.self, 0, &sig.sig, &old, &variant, NULL),
                     FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(old.compile_ns, 0);
    table->spec_release(p->chain.self, &old);
    assert_int_equal(compile(&p->chain, &variant), FRIT_OK);
    assert_int_equal(table->prepare(p->chain.self, 0, &sig.sig, &spec, &variant, NULL), FRIT_OK);
    assert_int_equal(spec.compile_ns, 0);
    table->spec_release(p->chain.self, &spec);
    table->spec_release(p->chain.self, &first);
}

/* ---- signatures ---- */

static void test_spec(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {7, 10};
    const double scalar = 1;
    struct kernels_launch kernel;
    struct rig_launch launch;
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_sig sig;
    uint64_t words[32];

    rig_signature(&sig, 2, 1, 1, 2, dims);
    rig_prepare(&p->chain, &sig, &spec, &variant);
    assert_int_equal(spec.n_phases, 1);
    assert_int_equal(spec.phases[0].grid[0], 3);
    assert_int_equal(spec.phases[0].grid[1], 1);
    assert_int_equal(spec.phases[0].group[0], 32);
    assert_int_equal(spec.phases[0].group[1], 1);
    assert_int_equal(spec.workspace_bytes, 0);
    assert_int_equal(spec.n_outputs, 1);
    assert_int_equal(spec.outputs[0].n_alias, 2);
    assert_int_equal(spec.outputs[0].alias[0], 0);
    assert_int_equal(spec.outputs[0].alias[1], 1);
    assert_int_equal(spec.outputs[0].strided, 0);
    check_chain(&p->chain, &spec, 70);
    rig_bind(&launch, &p->chain, &spec, NULL, 0, 0, &scalar, 1);
    assert_int_equal(kernels_launch(&launch.launch, words, 32, &kernel, NULL), FRIT_OK);
    assert_int_equal(kernel.bytes, 70 * 4 * 3);
    assert_int_equal(kernel.flops, 70 * 3);
}

static const char *kernel_name(struct rig *rig, const struct rig_ops *ops, char *out, size_t size)
{
    const int64_t dims[] = {4};
    const double scalar = 1;
    frit_program program = rig_program(rig, "narrow", ops);
    struct kernels_launch kernel;
    struct rig_launch launch;
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_sig sig;
    uint64_t words[32];

    rig_signature(&sig, 2, 1, 1, 1, dims);
    rig_prepare(&program, &sig, &spec, &variant);
    rig_bind(&launch, &program, &spec, NULL, 0, 0, &scalar, 1);
    assert_int_equal(kernels_launch(&launch.launch, words, 32, &kernel, NULL), FRIT_OK);
    assert_true(strlen(kernel.name) < size);
    strcpy(out, kernel.name);
    rig_destroy(&program);
    return out;
}

/* As many ops as fit, then how many more. */
static void test_kernels_have_names(void **state)
{
    struct programs *p = *state;
    struct rig_ops ops;
    char name[80];

    rig_chain(&ops, 1);
    assert_string_equal(kernel_name(&p->rig, &ops, name, sizeof(name)), "narrow.add+mul+neg");
    for (uint32_t v = 4; v < 15; v++)
        rig_unary(&ops, FRIT_OP_neg, rig_tensor(v, 1), rig_tensor(v + 1, 1), RIG_DEAD(v));
    assert_string_equal(kernel_name(&p->rig, &ops, name, sizeof(name)),
                        "narrow.add+mul+neg+neg+neg+neg+neg+neg+neg+neg+neg+neg+neg+neg");
    rig_unary(&ops, FRIT_OP_neg, rig_tensor(15, 1), rig_tensor(16, 1), RIG_DEAD(15));
    rig_unary(&ops, FRIT_OP_neg, rig_tensor(16, 1), rig_tensor(17, 1), RIG_DEAD(16));
    assert_string_equal(kernel_name(&p->rig, &ops, name, sizeof(name)),
                        "narrow.add+mul+neg+neg+neg+neg+neg+neg+neg+neg+neg+neg+neg+neg+2");
}

/* Sizes share a module; a signature is lowered once. */
static void test_sizes_share_code(void **state)
{
    struct programs *p = *state;
    const int64_t small[] = {3, 5}, large[] = {40, 9};
    frit_launch_spec first, second, again;
    frit_variant variant, other;
    struct rig_sig sig;

    rig_signature(&sig, 2, 1, 1, 2, small);
    rig_prepare(&p->chain, &sig, &first, &variant);
    rig_signature(&sig, 2, 1, 1, 2, large);
    assert_int_equal(prepare(&p->chain, 0, &sig, &second, &other), FRIT_OK);
    assert_int_equal(variant.n_bytes, KIR_DIGEST);
    assert_memory_equal(variant.bytes, other.bytes, KIR_DIGEST);
    atomic_store(&p->rig.generation, 5);
    assert_int_equal(generation(&p->chain, &variant), 5);
    assert_int_equal(atomic_load(&toy_builds), 2);
    assert_int_equal(prepare(&p->chain, 0, &sig, &again, &other), FRIT_OK);
    assert_memory_equal(&second, &again, sizeof(second));
    assert_int_equal(atomic_load(&toy_builds), 2);
    assert_int_equal(atomic_load(&p->rig.n_compiles), 1);
    check_chain(&p->chain, &first, 15);
    check_chain(&p->chain, &second, 360);
    check_chain(&p->chain, &first, 15);
}

/* An answer is kept as long as a spec of it is. */
static void test_specs_are_released(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5};
    frit_launch_spec first, second;
    frit_variant variant;
    struct rig_sig sig;

    rig_signature(&sig, 2, 1, 1, 2, dims);
    rig_prepare(&p->chain, &sig, &first, &variant);
    rig_prepare(&p->chain, &sig, &second, &variant);
    assert_int_equal(atomic_load(&toy_builds), 1);
    release(&p->chain, &first);
    check_chain(&p->chain, &second, 15);
    rig_prepare(&p->chain, &sig, &first, &variant);
    assert_int_equal(atomic_load(&toy_builds), 1);
    release(&p->chain, &first);
    release(&p->chain, &second);
    rig_prepare(&p->chain, &sig, &first, &variant);
    assert_int_equal(atomic_load(&toy_builds), 2);
    check_chain(&p->chain, &first, 15);
}

static void test_modules_that_differ(void **state)
{
    struct programs *p = *state;
    const int64_t small[] = {3, 5}, large[] = {40, 9};
    frit_launch_spec first, second;
    frit_variant one, two;
    struct rig_sig sig;

    toy_exact = true;
    rig_signature(&sig, 2, 1, 1, 2, small);
    rig_prepare(&p->chain, &sig, &first, &one);
    rig_signature(&sig, 2, 1, 1, 2, large);
    rig_prepare(&p->chain, &sig, &second, &two);
    assert_memory_not_equal(one.bytes, two.bytes, KIR_DIGEST);
    assert_int_equal(atomic_load(&p->rig.n_compiles), 2);
    check_chain(&p->chain, &first, 15);
    check_chain(&p->chain, &second, 360);
}

/* Signatures that differ in anything that lowering reads give different specs. */
static void test_questions_that_differ(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5};
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_sig sig;
    uint32_t builds = 0;

    for (int k = 0; k < 8; k++) {
        rig_signature(&sig, 2, 1, 1, 2, dims);
        if (k == 1)
            sig.args[0].strides[0] = 8;
        if (k == 2)
            sig.args[1].align_log2 = 2;
        if (k == 3)
            sig.args[1].tail = 64;
        if (k == 4)
            sig.args[2].flags |= FRIT_ARG_PREASSIGNED;
        if (k == 5)
            sig.sig.index_width = 64;
        if (k == 6)
            sig.classes[0] = FRIT_SCALAR_CLASS_ONE;
        if (k == 7)
            sig.args[0].dims[0] = sig.args[1].dims[0] = sig.args[2].dims[0] = 4;
        for (int twice = 0; twice < 2; twice++) {
            assert_true(prepare(&p->chain, 0, &sig, &spec, &variant) >= 0);
            assert_int_equal(atomic_load(&toy_builds), builds + 1);
        }
        builds++;
    }
    rig_prepare(&p->chain, &sig, &spec, &variant);
}

static void test_signatures_are_checked(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5};
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_sig sig;

    rig_signature(&sig, 3, 1, 1, 2, dims);
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_INVALID);
    rig_signature(&sig, 2, 2, 1, 2, dims);
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_INVALID);
    rig_signature(&sig, 2, 1, 0, 2, dims);
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_INVALID);
    rig_signature(&sig, 2, 1, 1, 2, dims);
    assert_int_equal(prepare(&p->chain, 1, &sig, &spec, &variant), FRIT_INVALID);
    sig.args[1].dtype = FRIT_F64;
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_INVALID);
    rig_signature(&sig, 2, 1, 1, 1, dims);
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_INVALID);
    rig_signature(&sig, 2, 1, 1, 2, dims);
    sig.sig.flags = 1ull << 40;
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_UNSUPPORTED);
    sig.sig.flags = 1;
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(compile(&p->chain, &variant), FRIT_OK);
}

/* Each candidate has its own answer to a signature. */
static void test_answers_of_candidates(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {8, 8};
    frit_launch_spec spec;
    frit_variant variant;
    frit_program two;
    struct rig_ops ops;
    struct rig_sig sig;

    rig_chain(&ops, 2);
    ops.n = 2;
    two = rig_program(&p->rig, "narrow", &ops);
    rig_signature(&sig, 2, 1, 1, 2, dims);
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(prepare(&two, 0, &sig, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
        assert_int_equal(spec.phases[0].group[0], 32);
        assert_int_equal(prepare(&two, 1, &sig, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
        assert_int_equal(spec.phases[0].group[0], 64);
    }
    rig_destroy(&two);
}

/* A module that breaks an invariant is an error and does not reach the emitter. */
static void test_wrong_modules(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5};
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_sig sig;

    rig_signature(&sig, 2, 1, 1, 2, dims);
    for (toy_fault = TOY_ARGUMENT; toy_fault <= TOY_BODY; toy_fault++)
        assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant),
                         toy_fault == TOY_BODY ? FRIT_INVALID : FRIT_INTERNAL);
    toy_fault = TOY_NONE;
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(compile(&p->chain, &variant), FRIT_OK);
}

/* A schedule that refuses the numbers; the other one brings a workspace. */
static void test_candidates(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {2, 3, 4};
    float x[24], y[24], out[24];
    const double scalar = 2;
    struct rig_launch launch;
    frit_program two;
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_ops ops;
    struct rig_sig sig;

    rig_chain(&ops, 3);
    ops.n = 2;
    two = rig_program(&p->rig, "narrow", &ops);
    rig_signature(&sig, 2, 1, 1, 3, dims);
    assert_int_equal(prepare(&two, 0, &sig, &spec, &variant), FRIT_UNSUPPORTED);
    assert_int_equal(prepare(&two, 1, &sig, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(compile(&two, &variant), FRIT_OK);
    assert_int_equal(spec.workspace_bytes, 64);
    assert_int_equal(spec.phases[0].group[0], 64);
    for (int i = 0; i < 24; i++)
        x[i] = y[i] = (float)i;
    rig_bind(&launch, &two, &spec, (float *[]){x, y, out}, 3, 24, &scalar, 1);
    rig_run(&launch);
    for (int i = 0; i < 24; i++)
        assert_float_equal(out[i], (x[i] + 2) * y[i], 0);
    p->rig.device.target.bindings = 3;
    sig.args[0].tail = 8; /* another question */
    assert_int_equal(prepare(&two, 1, &sig, &spec, &variant), FRIT_UNSUPPORTED);
    rig_destroy(&two);
}

/* ---- compiling ---- */

static void test_compile(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5};
    frit_launch_spec spec;
    frit_variant variant, wrong;
    struct rig_sig sig;

    rig_signature(&sig, 2, 1, 1, 2, dims);
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    wrong = variant;
    wrong.bytes[5] ^= 1;
    assert_int_equal(compile(&p->chain, &wrong), FRIT_INVALID);
    wrong = variant;
    wrong.n_bytes--;
    assert_int_equal(compile(&p->chain, &wrong), FRIT_INVALID);
    atomic_store(&p->rig.fails, 1);
    assert_int_equal(compile(&p->chain, &variant), FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(prepare(&p->chain, 0, &sig, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(compile(&p->chain, &variant), FRIT_OK);
    assert_int_equal(compile(&p->chain, &variant), FRIT_OK);
    assert_int_equal(atomic_load(&p->rig.n_compiles), 2);
    atomic_fetch_sub(&p->rig.n_compiles, 1); /* the one that failed gave nothing to release */
    check_chain(&p->chain, &spec, 15);
}

/* Equal modules of two programs are compiled once, and live as long as one of them. */
static void test_programs_share_code(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5}, flat[] = {15};
    frit_launch_spec spec;
    frit_variant variant;
    frit_program other;
    struct rig_ops ops;
    struct rig_sig sig;

    rig_signature(&sig, 2, 1, 1, 2, dims);
    rig_prepare(&p->chain, &sig, &spec, &variant);
    rig_chain(&ops, 1);
    other = rig_program(&p->rig, "narrow", &ops);
    rig_signature(&sig, 2, 1, 1, 1, flat);
    assert_int_equal(prepare(&other, 0, &sig, &spec, &variant), FRIT_OK);
    rig_destroy(&p->chain);
    assert_int_equal(atomic_load(&p->rig.n_releases), 0);
    check_chain(&other, &spec, 15);
    rig_destroy(&other);
    assert_int_equal(atomic_load(&p->rig.n_releases), 1);
    assert_int_equal(atomic_load(&p->rig.n_compiles), 1);
}

/* ---- saving ---- */

enum { SAVED = 256 };

static uint64_t save(const frit_program *program, unsigned char bytes[SAVED])
{
    uint64_t n = SAVED;

    assert_int_equal(program->table->to_state(program->self, bytes, &n, NULL), FRIT_OK);
    assert_true(n <= SAVED);
    return n;
}

static frit_status load(struct rig *rig, const struct rig_ops *ops, const void *bytes, uint64_t n,
                        frit_program *out)
{
    *out = (frit_program){.struct_size = sizeof(*out)};
    return kernels_from_state(&rig->device, ops->op, ops->n, sizeof(ops->op[0]), bytes, n, out,
                              NULL);
}

static void test_saved_and_loaded(void **state)
{
    struct programs *p = *state;
    const int64_t dims[] = {3, 5};
    unsigned char bytes[SAVED], same[SAVED + 1];
    uint64_t n = 0, size;
    frit_launch_spec spec;
    frit_variant variant;
    frit_program loaded;
    struct rig_ops ops;
    struct rig_sig sig;

    assert_int_equal(p->chain.table->to_state(p->chain.self, NULL, &n, NULL), FRIT_OK);
    assert_int_equal(save(&p->chain, bytes), n);
    for (uint64_t most = 0; most <= n; most++) { /* never more than there is room for */
        same[most] = 0xa5;
        size = most;
        assert_int_equal(p->chain.table->to_state(p->chain.self, same, &size, NULL), FRIT_OK);
        assert_int_equal(size, n);
        assert_memory_equal(same, bytes, most);
        assert_int_equal(same[most], 0xa5);
    }
    rig_chain(&ops, 2);
    assert_int_equal(load(&p->rig, &ops, bytes, n, &loaded), FRIT_OK);
    assert_true(kernels_owns(&loaded));
    assert_int_equal(describe(&loaded).n_ops, 3);
    assert_int_equal(save(&loaded, same), n);
    assert_memory_equal(bytes, same, n);
    rig_signature(&sig, 2, 1, 1, 2, dims);
    rig_prepare(&loaded, &sig, &spec, &variant);
    check_chain(&loaded, &spec, 15);
    rig_destroy(&loaded);
}

/* In bytes: where the version and the name of the schedule stand, and the seal at the end. */
enum { VERSION_AT = 0, NAME_AT = 8, SEAL = 8 };

/* Makes bytes that were changed look as if they were saved so. */
static void seal(unsigned char *bytes, uint64_t n)
{
    const uint64_t hash = XXH3_64bits(bytes, n - SEAL);

    memcpy(bytes + n - SEAL, &hash, SEAL);
}

static void test_foreign_bytes(void **state)
{
    struct programs *p = *state;
    unsigned char bytes[SAVED + 1] = {0}, changed[SAVED];
    const uint64_t n = save(&p->chain, bytes);
    static const char *const names[] = {"barrow", "pairs"}; /* none, one for two ops */
    frit_program loaded;
    struct rig_ops ops;

    rig_chain(&ops, 2);
    for (uint64_t k = 1; k < n; k++) { /* in memory that ends there */
        unsigned char *cut = malloc(k);

        assert_non_null(cut);
        memcpy(cut, bytes, k);
        assert_int_equal(load(&p->rig, &ops, cut, k, &loaded), FRIT_INCOMPATIBLE);
        free(cut);
    }
    assert_int_equal(load(&p->rig, &ops, NULL, 0, &loaded), FRIT_INCOMPATIBLE);
    assert_int_equal(load(&p->rig, &ops, bytes, n + 1, &loaded), FRIT_INCOMPATIBLE);
    for (uint64_t k = 0; k < n; k++) { /* one bit of each byte */
        memcpy(changed, bytes, n);
        changed[k] ^= (unsigned char)(1u << k % 8);
        assert_int_equal(load(&p->rig, &ops, changed, n, &loaded), FRIT_INCOMPATIBLE);
    }
    memcpy(changed, bytes, n);
    changed[VERSION_AT]++;
    seal(changed, n);
    assert_int_equal(load(&p->rig, &ops, changed, n, &loaded), FRIT_INCOMPATIBLE);
    for (int i = 0; i < 2; i++) {
        memcpy(changed, bytes, n);
        memcpy(changed + NAME_AT, names[i], strlen(names[i]) + 1);
        seal(changed, n);
        assert_int_equal(load(&p->rig, &ops, changed, n, &loaded), FRIT_INCOMPATIBLE);
    }
    assert_null(loaded.table);
}

/* Bytes belong to the ops that they were saved of, whatever the numbers of values and extents. */
static void test_bytes_of_other_ops(void **state)
{
    enum { FEWER, NONE, ROW, TYPE, OPERANDS, DEATHS, N_OTHERS };
    struct programs *p = *state;
    unsigned char bytes[SAVED];
    const uint64_t n = save(&p->chain, bytes);
    frit_program loaded;
    struct rig_ops ops;

    for (int other = 0; other < N_OTHERS; other++) {
        rig_chain(&ops, 2);
        ops.n = other == FEWER ? 2 : other == NONE ? 0 : 3;
        ops.op[1].id = other == ROW ? FRIT_OP_add : FRIT_OP_mul;
        ops.operand[0][0].dtype = other == TYPE ? FRIT_F64 : FRIT_F32;
        ops.operand[1][1].value = other == OPERANDS ? 0 : 1;
        ops.op[1].n_dead = other != DEATHS;
        assert_int_equal(load(&p->rig, &ops, bytes, n, &loaded), FRIT_INCOMPATIBLE);
    }
    rig_chain(&ops, 2);
    for (uint32_t i = 0; i < ops.n; i++) {
        for (uint32_t k = 0; k < RIG_OPERANDS; k++) {
            ops.operand[i][k].value += 40;
            for (uint32_t d = 0; d < ops.operand[i][k].rank; d++)
                ops.operand[i][k].extent[d] += 7;
        }
        for (uint32_t k = 0; k < ops.op[i].n_dead; k++)
            ops.dead[i][k] += 40;
    }
    assert_int_equal(load(&p->rig, &ops, bytes, n, &loaded), FRIT_OK);
    rig_destroy(&loaded);
}

/* A schedule takes no more than it would have taken when it was pushed them. */
static void test_outputs_of_loaded_programs(void **state)
{
    struct programs *p = *state;
    unsigned char bytes[SAVED];
    frit_program program, loaded;
    struct rig_ops ops = {0};
    uint64_t n;

    assert_true((int)SCHED_OUTPUTS <= (int)RIG_OPS);
    for (uint32_t i = 0; i < SCHED_OUTPUTS; i++)
        rig_unary(&ops, FRIT_OP_neg, rig_tensor(0, 1), rig_tensor(1 + i, 1), NULL);
    program = rig_program(&p->rig, "narrow", &ops);
    n = save(&program, bytes);
    assert_int_equal(load(&p->rig, &ops, bytes, n, &loaded), FRIT_OK);
    rig_destroy(&program);
    rig_destroy(&loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_classes_of_candidates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_describe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_generation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_compile_estimate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_spec, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sizes_share_code, setup, teardown),
        cmocka_unit_test_setup_teardown(test_specs_are_released, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kernels_have_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_modules_that_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(test_questions_that_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(test_signatures_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_candidates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers_of_candidates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_modules, setup, teardown),
        cmocka_unit_test_setup_teardown(test_compile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_programs_share_code, setup, teardown),
        cmocka_unit_test_setup_teardown(test_saved_and_loaded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_of_other_ops, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outputs_of_loaded_programs, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
