/* SPDX-License-Identifier: Apache-2.0 */
#include "emit/tile/tile.h"

#include <stdio.h>

#include "emit/random.h"
#include "unit.h"

static const char *const levels[TILE_LEVELS] = {"base", "avx2", "avx512"};

static void run_phase(const struct random_case *c, uint32_t phase, enum tile_level level,
                      void *const *memory)
{
    const uint32_t *grid = c->grid[phase];
    frit_err err = {.struct_size = sizeof(err)};
    struct tile_code *code;
    void *scratch;

    if (tile_compile(&c->module, phase, level, &code, &err))
        fail_msg("%s", err.text);
    scratch = aligned_alloc(TILE_ALIGN, tile_scratch(code));
    assert_non_null(scratch);
    for (uint32_t z = 0; z < grid[2]; z++) {
        for (uint32_t y = 0; y < grid[1]; y++) {
            for (uint32_t x = 0; x < grid[0]; x++)
                tile_run(code, c->words, memory, (const uint32_t[3]){x, y, z}, scratch);
        }
    }
    free(scratch);
    tile_destroy(code);
}

static void run_case(uint64_t number)
{
    void *expected[RANDOM_ARGS], *got[RANDOM_ARGS];
    struct random_case c;
    char name[64];

    random_case_init(&c, number, &random_all);
    random_case_fill(&c, expected);
    random_case_eval(&c, expected);
    for (int level = 0; level <= (int)tile_level_best(); level++) {
        snprintf(name, sizeof(name), "case %llu, level %s", (unsigned long long)number,
                 levels[level]);
        random_case_fill(&c, got);
        for (uint32_t i = 0; i < c.module.n_phases; i++)
            run_phase(&c, i, (enum tile_level)level, got);
        random_case_compare(&c, name, expected, got);
        random_case_free(&c, got);
    }
    random_case_free(&c, expected);
    random_case_fini(&c);
}

static void random_modules_run_as_by_eval(void **state)
{
    const char *first = getenv("FRIT_TEST_CASE"), *many = getenv("FRIT_TEST_CASES");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    uint64_t n = many ? strtoull(many, NULL, 10) : first ? 1 : 500;

    (void)state;
    for (uint64_t i = 0; i < n; i++)
        run_case(from + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_modules_run_as_by_eval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
