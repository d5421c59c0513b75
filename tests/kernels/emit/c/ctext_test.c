/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of random modules, compiled under the sanitizers by the compiler of this build, give what
 * eval gives, however many threads a group has. */
#include "emit/c/ctext.h"

#include <stdio.h>
#include <unistd.h>

#include "emit/random.h"
#include "unit.h"

#include "failing_alloc.h"

enum { CASES = 8, MOST_CASES = 1000 };

static const uint32_t threads[] = {1, 8, 32};

enum { THREADS = sizeof(threads) / sizeof(*threads) };

struct batch {
    char folder[256];
    uint64_t first;
    uint32_t n;
};

static FILE *open_file(const struct batch *b, const char *name, const char *mode)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", b->folder, name);
    file = fopen(path, mode);
    if (!file)
        fail_msg("cannot open %s", path);
    return file;
}

static void run_command(const char *command)
{
    if (system(command))
        fail_msg("failed: %s", command);
}

/* ---- the program ---- */

static void write_text(const struct batch *b, const struct random_case *c, uint32_t n, uint32_t t)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct str text = {0};
    char name[64], file_name[80];
    FILE *file;

    snprintf(name, sizeof(name), "k%u_%u", n, threads[t]);
    snprintf(file_name, sizeof(file_name), "%s.c", name);
    if (ctext_emit(&c->module, name, threads[t], &text, &err))
        fail_msg("%s", err.text);
    file = open_file(b, file_name, "w");
    fputs(text.text, file);
    assert_int_equal(fclose(file), 0);
    str_fini(&text);
}

static void put_number(FILE *file, uint64_t number)
{
    fwrite(&number, sizeof(number), 1, file);
}

static void write_launch(FILE *file, const struct random_case *c, uint64_t first)
{
    put_number(file, first);
    put_number(file, c->module.n_phases);
    put_number(file, c->module.n_params);
    put_number(file, c->module.n_args);
    fwrite(c->words, 8, c->module.n_params, file);
    for (uint32_t i = 0; i < c->module.n_args; i++) {
        put_number(file, c->args[i].bytes);
        fwrite(c->args[i].initial, 1, c->args[i].bytes, file);
    }
    for (uint32_t i = 0; i < c->module.n_phases; i++) {
        put_number(file, ctext_scratch(&c->module, i));
        fwrite(c->grid[i], sizeof(c->grid[i]), 1, file);
    }
}

/* Texts, their table, and the launches. */
static void write_all(const struct batch *b)
{
    FILE *table = open_file(b, "table.c", "w"), *names = open_file(b, "names.h", "w");
    FILE *launches = open_file(b, "launches", "wb");
    uint64_t kernel = 0;

    fputs("typedef void kernel(const unsigned long *, void *const *, const unsigned *, void *);\n"
          "extern kernel *const kernels[];\nkernel\n",
          table);
    put_number(launches, (uint64_t)b->n * THREADS);
    for (uint32_t n = 0; n < b->n; n++) {
        struct random_case c;

        random_case_init(&c, b->first + n, &random_all);
        for (uint32_t t = 0; t < THREADS; t++) {
            write_text(b, &c, n, t);
            write_launch(launches, &c, kernel);
            for (uint32_t i = 0; i < c.module.n_phases; i++, kernel++) {
                fprintf(table, "%sk%u_%u_%u", kernel ? ", " : "", n, threads[t], i);
                fprintf(names, "k%u_%u_%u,\n", n, threads[t], i);
            }
        }
        random_case_fini(&c);
    }
    fputs(";\nkernel *const kernels[] = {\n#include \"names.h\"\n};\n", table);
    assert_int_equal(fclose(table) | fclose(names) | fclose(launches), 0);
}

static void build_and_run(const struct batch *b)
{
    char command[2048];

    snprintf(command, sizeof(command),
             "cd %s && " CTEXT_CC " -std=c17 -O0 -Wall -Wextra -Werror -Wno-unused "
             "-ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all "
             "*.c %s/tests/kernels/emit/c/harness.c -lm -o program && "
             "ASAN_OPTIONS=detect_stack_use_after_return=0 ./program launches results",
             b->folder, CTEXT_SOURCE);
    run_command(command);
}

/* ---- the results ---- */

static void compare(const struct batch *b, FILE *results, uint32_t n)
{
    void *expected[RANDOM_ARGS], *got[RANDOM_ARGS];
    struct random_case c;
    char name[64];

    random_case_init(&c, b->first + n, &random_all);
    random_case_fill(&c, expected);
    random_case_fill(&c, got);
    random_case_eval(&c, expected);
    for (uint32_t t = 0; t < THREADS; t++) {
        for (uint32_t i = 0; i < c.module.n_args; i++)
            assert_int_equal(fread(got[i], 1, c.args[i].bytes, results), c.args[i].bytes);
        snprintf(name, sizeof(name), "case %llu, %u threads", (unsigned long long)b->first + n,
                 threads[t]);
        random_case_compare(&c, name, expected, got);
    }
    random_case_free(&c, expected);
    random_case_free(&c, got);
    random_case_fini(&c);
}

static void texts_run_as_by_eval(void **state)
{
    const char *first = getenv("FRIT_TEST_CASE"), *many = getenv("FRIT_TEST_CASES");
    const char *build = getenv("FRIT_TEST_BUILD");
    struct batch b = {.first = first ? strtoull(first, NULL, 10) : 0};
    char command[512];
    FILE *results;

    (void)state;
    b.n = many ? (uint32_t)strtoul(many, NULL, 10) : first ? 1 : CASES;
    if (b.n > MOST_CASES)
        b.n = MOST_CASES;
    snprintf(b.folder, sizeof(b.folder), "%s/ctext.XXXXXX", build ? build : "/tmp");
    assert_non_null(mkdtemp(b.folder));
    write_all(&b);
    build_and_run(&b);
    results = open_file(&b, "results", "rb");
    for (uint32_t n = 0; n < b.n; n++)
        compare(&b, results, n);
    assert_int_equal(fgetc(results), EOF);
    fclose(results);
    snprintf(command, sizeof(command), "rm -r %s", b.folder);
    run_command(command);
}

static void without_memory_it_says_so(void **state)
{
    struct random_case c;

    (void)state;
    random_case_init(&c, 3, &random_all);
    for (long n = 0, hit = 1; hit; n++) {
        frit_err err = {.struct_size = sizeof(err)};
        struct str text = {0};
        frit_status status;

        failing_alloc_arm(n);
        status = ctext_emit(&c.module, "k", 8, &text, &err);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        str_fini(&text);
    }
    random_case_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_run_as_by_eval),
        cmocka_unit_test(without_memory_it_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
