/* SPDX-License-Identifier: Apache-2.0 */
/* Random modules on a device as by eval.  FRIT_TEST_CASE is the number of the first,
 * FRIT_TEST_CASES how many; FRIT_TEST_LONG=1: more.
 *
 * Without subgroups on a rasteriser, as the driver has it: lavapipe's LLVM 15 cannot select the
 * broadcast of a float made of an unsigned integer from another invocation (AVX-512), and ends the
 * process; case 265 is one. */
#include <stdio.h>

#include "emit/random.h"
#include "kernels/emit/spirv/rig.h"
#include "unit.h"

enum { CASES = 24, LONG_CASES = 150 };

static struct vulkan_rig *rig;

static void run_case(uint64_t number)
{
    const struct spirv_target *has = vulkan_target(rig);
    struct random_target target = {.f64 = has->float64,
                                   .i64 = true,
                                   .fma = !vulkan_is_software(rig),
                                   .small = has->store8 && has->store16,
                                   .atomic = true};
    struct spirv_rig_arg args[RANDOM_ARGS];
    struct random_case c;
    char name[32];

    random_case_init(&c, number, &target);
    snprintf(name, sizeof(name), "case-%llu", (unsigned long long)number);
    c.module.name = name;
    for (uint32_t i = 0; i < c.module.n_args; i++)
        args[i] = (struct spirv_rig_arg){c.args[i].initial, c.args[i].bytes};
    spirv_rig_check(rig, &(struct spirv_rig_run){.module = &c.module,
                                                 .words = c.words,
                                                 .args = args,
                                                 .grid = (const uint32_t(*)[3])c.grid,
                                                 .no_subgroups = vulkan_is_software(rig)});
    random_case_fini(&c);
}

static void random_modules_run_as_by_eval(void **state)
{
    const char *first = getenv("FRIT_TEST_CASE"), *many = getenv("FRIT_TEST_CASES");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    uint64_t n = many                       ? strtoull(many, NULL, 10)
                 : first                    ? 1
                 : getenv("FRIT_TEST_LONG") ? LONG_CASES
                                            : CASES;

    (void)state;
    for (uint64_t i = 0; i < n; i++)
        run_case(from + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_modules_run_as_by_eval)};
    int result;

    rig = vulkan_open();
    if (!rig)
        return 1;
    result = cmocka_run_group_tests(tests, NULL, NULL);
    vulkan_close(rig);
    return result;
}
