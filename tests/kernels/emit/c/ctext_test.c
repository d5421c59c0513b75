/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of random modules for devices give what eval gives: whatever dialect, block and warp,
 * whether arguments are aligned, however the launch gives them.  They are compiled with the words
 * of the host under the sanitizers by the compiler of this build; those for HIP also by clang, with
 * HIP's own types and functions and the host's macros, since HIPRTC is a clang.  More modules with
 * FRIT_TEST_LONG=1. */
#include "emit/c/ctext.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emit/random.h"
#include "unit.h"

#include "failing_alloc.h"

#ifdef __SANITIZE_ADDRESS__
#define CASES 1 /* what is slow is the compiler, and it is not sanitized */
#else
#define CASES 2
#endif

enum { LONG_CASES = 20, MAX_CASES = 1000, SPACES = 3, PARAMS_BYTES = 4096, MAX_EACH = 8 };

/* All that random modules may have, fragments too. */
static struct random_target everything;

/* Warps of 4 threads are for exchanges through memory in small groups. */
static const struct variant {
    struct ctext_target target;
    bool aligned;
} variants[] = {
    {{CTEXT_CUDA, 1024, 32, 1 << 16, PARAMS_BYTES}, true},
    {{CTEXT_HIP, 256, 64, 1 << 16, 0}, true},
    {{CTEXT_CUDA, 64, 4, 1 << 16, 0}, false},
    {{CTEXT_HIP, 16, 4, 1 << 16, PARAMS_BYTES}, false},
    {{CTEXT_CUDA, 1, 32, 1 << 16, PARAMS_BYTES}, true}, /* of small groups */
};

enum { VARIANTS = sizeof(variants) / sizeof(*variants) };

struct batch {
    bool as_hip; /* only the texts for HIP, with its words */
    char folder[256];
    uint64_t first;
    uint32_t n;
    uint64_t kernels, launches;
    FILE *texts, *table, *runs; /* being written */
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

/* A case is also run over several spaces where its module may be. */
static bool can_have_spaces(const struct random_case *c)
{
    return c->module.n_phases == 1 && c->grid[0][1] == 1 && c->grid[0][2] == 1;
}

static uint32_t runs_of(const struct random_case *c)
{
    return can_have_spaces(c) ? 2 : 1;
}

/* Whether a variant has code for the case: teams are warps of CUDA. */
static bool takes(const struct batch *b, const struct variant *v, const struct kir_module *m)
{
    for (uint32_t i = 0; i < m->n_phases; i++)
        if (m->phases[i].team &&
            (v->target.dialect == CTEXT_HIP || v->target.max_threads < v->target.warp))
            return false;
    return !b->as_hip || v->target.dialect == CTEXT_HIP;
}

static uint32_t variants_of(const struct batch *b, const struct kir_module *m)
{
    uint32_t n = 0;

    for (uint32_t v = 0; v < VARIANTS; v++)
        n += takes(b, &variants[v], m);
    return n;
}

/* ---- the program ---- */

#define DECLARATION \
    "extern \"C\" void text_%llu(const unsigned long long *, const unsigned *, void *);\n"

/* Instructions of AMD's devices as C++, exact. */
static const char instructions[] = "#define __builtin_amdgcn_sqrtf(x) __builtin_sqrtf(x)\n"
                                   "#define __builtin_amdgcn_rsq(x) (1 / __builtin_sqrt(x))\n"
                                   "#define __builtin_amdgcn_ds_bpermute(lane, x) (x)\n";

/* Words of HIP with the macros of the host. */
static void write_hip_words(FILE *file, const char *words, size_t length)
{
    struct str host = {0};

    fwrite(words, 1, length, file);
    ctext_host_words(&host);
    for (char *line = strtok(host.text, "\n"); line; line = strtok(NULL, "\n")) {
        bool goes_on = true;

        if (strncmp(line, "#define ", 8) != 0)
            continue;
        fprintf(file, "#undef %.*s\n", (int)strcspn(line + 8, "( "), line + 8);
        for (; line && goes_on; line = goes_on ? strtok(NULL, "\n") : line) {
            goes_on = line[strlen(line) - 1] == '\\';
            fprintf(file, "%s\n", line);
        }
    }
    fputs("#undef KERNEL\n#define KERNEL(name, threads) \\\n"
          "    extern \"C\" void name(const u64 *params, const u32 *group, void *shared)\n",
          file);
    str_fini(&host);
}

/* The second part, with names of its own for the kernels. */
static void write_text(struct batch *b, const struct random_case *c, const struct variant *v,
                       struct ctext_phase *phases, struct ctext_kernels *kernels)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct ctext_target target = v->target;
    struct str text = {0};
    const char *rest;

    for (uint32_t i = 0; i < c->module.n_phases; i++) {
        while (c->module.phases[i].lanes / target.max_threads > MAX_EACH)
            target.max_threads *= 2;
    }
    if (ctext_emit_gpu(&c->module, &target, v->aligned, &text, phases, kernels, &err))
        fail_msg("%s", err.text);
    rest = strstr(text.text, CTEXT_END_OF_WORDS);
    assert_non_null(rest);
    for (uint32_t i = 0; b->as_hip && i < c->module.n_phases; i++)
        fprintf(b->texts, DECLARATION, (unsigned long long)b->kernels + i);
    if (b->as_hip) {
        fprintf(b->texts, "namespace of_text_%llu {\n", (unsigned long long)b->kernels);
        write_hip_words(b->texts, text.text, (size_t)(rest - text.text));
    }
    for (uint32_t i = 0; i < c->module.n_phases; i++, b->kernels++) {
        fprintf(b->texts, "#undef k_%u\n#define k_%u text_%llu\n", i, i,
                (unsigned long long)b->kernels);
        fprintf(b->table, "    text_%llu,\n", (unsigned long long)b->kernels);
    }
    fputs(rest + strlen(CTEXT_END_OF_WORDS), b->texts);
    fputs(b->as_hip ? "}\n" : "", b->texts);
    str_fini(&text);
}

static void put_number(FILE *file, uint64_t number)
{
    fwrite(&number, sizeof(number), 1, file);
}

static void write_run(struct batch *b, const struct random_case *c, const struct variant *v)
{
    struct ctext_phase phases[RANDOM_PHASES];
    struct ctext_kernels kernels;
    uint64_t n_spaces = c->module.spaces ? SPACES : 1;

    put_number(b->runs, b->kernels);
    write_text(b, c, v, phases, &kernels);
    put_number(b->runs, c->module.n_phases);
    put_number(b->runs, c->module.n_params);
    put_number(b->runs, c->module.n_args);
    put_number(b->runs, c->module.spaces ? 2 : !kernels.by_value);
    put_number(b->runs, n_spaces);
    for (uint64_t space = 0; space < n_spaces; space++) {
        for (uint32_t i = 0; i < c->module.n_args; i++) {
            put_number(b->runs, c->args[i].bytes);
            fwrite(c->args[i].initial, 1, c->args[i].bytes, b->runs);
        }
        fwrite(c->words, 8, c->module.n_params, b->runs);
    }
    for (uint32_t i = 0; i < c->module.n_phases; i++) {
        put_number(b->runs, phases[i].shared_bytes);
        fwrite(c->grid[i], sizeof(c->grid[i]), 1, b->runs);
    }
    b->launches++;
}

/* Texts, their table, and the launches. */
static void write_all(struct batch *b)
{
    struct str words = {0};

    b->texts = open_file(b, b->as_hip ? "texts.cc" : "texts.c", "w");
    b->table = open_file(b, "table.h", "w");
    b->runs = open_file(b, "launches", "wb");
    ctext_host_words(&words);
    fputs(b->as_hip ? instructions : words.text, b->texts);
    str_fini(&words);
    put_number(b->runs, 0);
    for (uint32_t n = 0; n < b->n; n++) {
        struct random_case c;

        random_case_init(&c, b->first + n, &everything);
        for (uint32_t run = 0; run < runs_of(&c); run++) {
            c.module.spaces = run;
            for (uint32_t v = 0; v < VARIANTS; v++) {
                if (takes(b, &variants[v], &c.module))
                    write_run(b, &c, &variants[v]);
            }
        }
        random_case_fini(&c);
    }
    fputs("typedef void kernel(const unsigned long long *, const unsigned *, void *);\n", b->texts);
    fputs(b->as_hip ? "extern \"C\" " : "", b->texts);
    fputs("kernel *const kernels[];\n"
          "kernel *const kernels[] = {\n#include \"table.h\"\n};\n",
          b->texts);
    rewind(b->runs);
    put_number(b->runs, b->launches);
    assert_int_equal(fclose(b->texts) | fclose(b->table) | fclose(b->runs), 0);
}

/* clang 14 has _Float16 for few processors; compiler-rt converts __fp16 for all. */
static void build_and_run(const struct batch *b)
{
    const char *as_c = CTEXT_CC " -std=c17 -O0 -Wall -Wextra -Werror -Wno-unused "
                                "-Wno-type-limits -ffp-contract=off -fno-sanitize-recover=all "
                                "-fsanitize=address,alignment,bounds,shift,signed-integer-overflow,"
                                "float-cast-overflow,integer-divide-by-zero texts.c";
    const char *as_hip =
        "clang -O1 -w -ffp-contract=off -rtlib=compiler-rt -D_Float16=__fp16 texts.cc";
    char command[2048];

    snprintf(command, sizeof(command),
             "cd %s && %s %s/tests/kernels/emit/c/harness.c -lm -o program && "
             "ASAN_OPTIONS=detect_stack_use_after_return=0 ./program launches results",
             b->folder, b->as_hip ? as_hip : as_c, CTEXT_SOURCE);
    run_command(command);
}

/* ---- the results ---- */

static void compare(const struct random_case *c, const char *name, void *const *expected,
                    FILE *results)
{
    void *got[RANDOM_ARGS];

    random_case_fill(c, got);
    for (uint32_t i = 0; i < c->module.n_args; i++)
        assert_int_equal(fread(got[i], 1, c->args[i].bytes, results), c->args[i].bytes);
    random_case_compare(c, name, expected, got);
    random_case_free(c, got);
}

static void compare_case(const struct batch *b, FILE *results, uint32_t n)
{
    void *expected[RANDOM_ARGS];
    struct random_case c;
    char name[64];

    random_case_init(&c, b->first + n, &everything);
    random_case_fill(&c, expected);
    random_case_eval(&c, expected);
    for (uint32_t run = 0; run < runs_of(&c); run++) {
        for (uint32_t i = 0; i < variants_of(b, &c.module) * (run ? SPACES : 1); i++) {
            snprintf(name, sizeof(name), "case %llu, text %u%s", (unsigned long long)b->first + n,
                     i / (run ? SPACES : 1), run ? ", of several spaces" : "");
            compare(&c, name, expected, results);
        }
    }
    random_case_free(&c, expected);
    random_case_fini(&c);
}

static void run_batch(bool as_hip)
{
    const char *first = getenv("FRIT_TEST_CASE"), *many = getenv("FRIT_TEST_CASES");
    const char *build = getenv("FRIT_TEST_BUILD");
    struct batch b = {.as_hip = as_hip, .first = first ? strtoull(first, NULL, 10) : 0};
    char command[512];
    FILE *results;

    b.n = many                       ? (uint32_t)strtoul(many, NULL, 10)
          : first                    ? 1
          : getenv("FRIT_TEST_LONG") ? LONG_CASES
                                     : CASES;
    if (b.n > MAX_CASES)
        b.n = MAX_CASES;
    snprintf(b.folder, sizeof(b.folder), "%s/ctext.XXXXXX", build ? build : "/tmp");
    assert_non_null(mkdtemp(b.folder));
    write_all(&b);
    build_and_run(&b);
    results = open_file(&b, "results", "rb");
    for (uint32_t n = 0; n < b.n; n++)
        compare_case(&b, results, n);
    assert_int_equal(fgetc(results), EOF);
    fclose(results);
    snprintf(command, sizeof(command), "rm -r %s", b.folder);
    run_command(command);
}

static void texts_run_as_by_eval(void **state)
{
    (void)state;
    run_batch(false);
}

static void hip_texts_run_as_by_eval(void **state)
{
    (void)state;
    if (system("command -v clang >/dev/null")) {
        print_message("clang is not installed\n");
        skip();
    }
    run_batch(true);
}

static void without_memory_it_says_so(void **state)
{
    struct random_case c;

    (void)state;
    random_case_init(&c, 3, &random_all);
    for (long n = 0, hit = 1; hit; n++) {
        frit_err err = {.struct_size = sizeof(err)};
        struct ctext_phase phases[RANDOM_PHASES];
        struct ctext_kernels kernels;
        struct str text = {0};
        frit_status status;

        failing_alloc_arm(n);
        status =
            ctext_emit_gpu(&c.module, &variants[0].target, true, &text, phases, &kernels, &err);
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
        cmocka_unit_test(hip_texts_run_as_by_eval),
        cmocka_unit_test(without_memory_it_says_so),
    };

    everything = random_all;
    everything.products = true;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
