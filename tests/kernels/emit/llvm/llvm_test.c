/* SPDX-License-Identifier: Apache-2.0 */
#include "emit/llvm/llvm.h"

#include <stdio.h>
#include <string.h>

#include "emit/llvm/blob.h"
#include "emit/random.h"
#include "ir/half.h"
#include "unit.h"

#include "failing_alloc.h"

static const char *const isas[LLVM_ISAS] = {"base", "avx2", "avx512"};

struct rig {
    struct llvm *llvm; /* NULL: there is none */
    enum llvm_isa best;
};

static int rig_open(void **state)
{
    static struct rig rig;
    frit_err err = {.struct_size = sizeof(err)};

    *state = &rig;
    if (!llvm_isa_best(&rig.best) || llvm_open(getenv("FRIT_TEST_LLVM"), &rig.llvm, &err))
        print_message("no LLVM: %s\n", err.text);
    return 0;
}

static int rig_close(void **state)
{
    llvm_close(((struct rig *)*state)->llvm);
    return 0;
}

static const struct rig *rig_of(void **state)
{
    const struct rig *rig = *state;

    if (!rig->llvm)
        skip();
    return rig;
}

static struct object *compile(const struct rig *rig, const struct kir_module *m, int isa, int level)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct object *object;
    void *bytes;
    size_t n;

    if (llvm_compile(rig->llvm, m, (enum llvm_isa)isa, (enum llvm_level)level, &bytes, &n, &err) ||
        object_load(bytes, n, &object, &err))
        fail_msg("%s", err.text);
    free(bytes);
    return object;
}

static void *scratch_of(const struct object *object, uint32_t phase)
{
    size_t bytes = object->phases[phase].scratch;
    void *scratch = aligned_alloc(BLOB_ALIGN, bytes ? bytes : BLOB_ALIGN);

    assert_non_null(scratch);
    memset(scratch, 0xff, bytes);
    return scratch;
}

static void run_phase(const struct object *object, uint32_t phase, const uint32_t *grid,
                      const uint64_t *words, void *const *args)
{
    void *scratch = scratch_of(object, phase);

    for (uint32_t z = 0; z < grid[2]; z++) {
        for (uint32_t y = 0; y < grid[1]; y++) {
            for (uint32_t x = 0; x < grid[0]; x++)
                object->phases[phase].run(words, args, (const uint32_t[3]){x, y, z}, scratch);
        }
    }
    free(scratch);
}

static void run_level(const struct rig *rig, const struct random_case *c, uint64_t number, int isa,
                      void *const *expected)
{
    const char *forced = getenv("FRIT_TEST_LEVEL");
    int level = forced ? atoi(forced) : number & 1 ? LLVM_GOOD : LLVM_QUICK;
    struct object *object = compile(rig, &c->module, isa, level);
    void *got[RANDOM_ARGS];
    char name[64];

    snprintf(name, sizeof(name), "case %llu, %s, level %d", (unsigned long long)number, isas[isa],
             level);
    random_case_fill(c, got);
    for (uint32_t i = 0; i < c->module.n_phases; i++)
        run_phase(object, i, c->grid[i], c->words, got);
    random_case_compare(c, name, expected, got);
    random_case_free(c, got);
    object_unload(object);
}

static void run_case(const struct rig *rig, uint64_t number, int isa)
{
    struct random_target target = random_all;
    void *expected[RANDOM_ARGS];
    struct random_case c;

    target.fma = isa >= LLVM_AVX2;
    random_case_init(&c, number, &target);
    random_case_fill(&c, expected);
    random_case_eval(&c, expected);
    run_level(rig, &c, number, isa, expected);
    random_case_free(&c, expected);
    random_case_fini(&c);
}

static void random_modules_run_as_by_eval(void **state)
{
    const char *first = getenv("FRIT_TEST_CASE"), *many = getenv("FRIT_TEST_CASES");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    uint64_t n = many ? strtoull(many, NULL, 10) : first ? 1 : 60;
    const struct rig *rig = rig_of(state);

    for (uint64_t i = 0; i < n; i++) {
        for (int isa = 0; isa <= (int)rig->best; isa++)
            run_case(rig, from + i, isa);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_modules_run_as_by_eval),
    };

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
