/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of two sizes in one process, in both orders, each beside a process that runs one size
 * alone: the same bits, launches, and warm steps that search, compile and allocate nothing.
 *
 * An argument is the name of the only test to run.  FRIT_TEST_LONG=1: compiled code on the
 * processor, and the time of a warm step too, which may not be twice that of the size alone; use it
 * where nothing else runs. */
#include "device/models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUNS = 3, MAX_RESULTS = 1 << 14, COLD = 4, WARM = 8 };

static const double long_s =
    1.5; /* of steps before times count: compilers run beside them; then as many */

/* Of a size in a process. */
struct run {
    uint64_t n, launches, searches, compiles, allocs;
    double least_s;
    float results[MAX_RESULTS];
};

/* Shared between processes. */
struct outcome {
    bool is_complete;
    struct run runs[MAX_RUNS];
};

struct case_of {
    const char *kind;
    bool trains;
    struct model_size sizes[2];
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- in a child ---- */

static void read_results(frit_tensor *y, struct run *run)
{
    const frit_dims dims = frit_tensor_dims(y);
    float *results;

    run->n = 1;
    for (int64_t d = 0; d < dims.rank; d++)
        run->n *= (uint64_t)dims.dim[d];
    assert_true(run->n <= MAX_RESULTS);
    results = rig_read(y);
    memcpy(run->results, results, run->n * sizeof(*results));
    free(results);
}

/* Warm steps, at least so many and for so long; the least time of one. */
static double run_warm(struct model *model, uint64_t *n, double seconds)
{
    const double begun = now();
    double least = INFINITY, last = begun;

    for (*n = 0; *n < WARM || last - begun < seconds; ++*n) {
        free(rig_read(model_step(model)));
        least = fmin(least, now() - last);
        last = now();
    }
    return least;
}

/* The results are those of the last cold step, so that training has made as many steps. */
static void run_size(struct rig *rig, const struct case_of *c, struct model_size size,
                     struct run *run)
{
    const frit_optimizer_config config = frit_adamw_config(1e-3);
    const double seconds = getenv("FRIT_TEST_LONG") ? long_s : 0;
    frit_stats before, after;
    struct model model;
    uint64_t n;

    model_open(&model, rig->dev, model_kind_named(c->kind), size, c->trains ? &config : NULL);
    for (int i = 0; i < COLD; i++)
        read_results(model_step(&model), run);
    (void)run_warm(&model, &n, seconds);
    before = rig_stats(rig);
    run->least_s = run_warm(&model, &n, seconds);
    after = rig_stats(rig);
    run->launches = (after.launches - before.launches) / n;
    run->searches = after.explorations - before.explorations;
    run->compiles = after.compiles - before.compiles;
    run->allocs = after.driver_allocs - before.driver_allocs;
    model_close(&model);
}

/* What main does with arguments: what run_order wants, into the file that is standard input. */
static int run_child(char **argv)
{
    const struct case_of c = {argv[1],
                              strcmp(argv[2], "train") == 0,
                              {{atoll(argv[4]), atoll(argv[5])}, {atoll(argv[6]), atoll(argv[7])}}};
    struct outcome *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0);
    const frit_setting interpreted = {"plugin.cpu", "option.tier", "0"};
    struct rig rig;

    if (out == MAP_FAILED)
        return 1;
    rig_open_with(&rig, &interpreted, getenv("FRIT_TEST_LONG") ? 0 : 1);
    for (size_t i = 0; argv[3][i]; i++)
        run_size(&rig, &c, c.sizes[argv[3][i] - 'a'], &out->runs[i]);
    rig_close(&rig);
    out->is_complete = true;
    return 0;
}

/* ---- processes ---- */

static FILE *room_for(struct outcome **out)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), sizeof(**out)), 0);
    *out = mmap(NULL, sizeof(**out), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    assert_true(*out != MAP_FAILED);
    return file;
}

/* Runs sizes in this order, 'a' and 'b', on the device, in a process of its own; unmapped by the
 * caller. */
static struct outcome *run_order(const struct case_of *c, const char *device, const char *order)
{
    struct outcome *out;
    FILE *file = room_for(&out);
    char of_size[4][24];
    int status = 0;
    pid_t child;

    for (int i = 0; i < 2; i++) {
        snprintf(of_size[2 * i], sizeof(of_size[0]), "%lld", (long long)c->sizes[i].batch);
        snprintf(of_size[2 * i + 1], sizeof(of_size[0]), "%lld", (long long)c->sizes[i].extent);
    }
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(fileno(file), 0);
        setenv("FRIT_TEST_DEVICE", device, 1);
        execl("/proc/self/exe", "sizes", c->kind, c->trains ? "train" : "run", order, of_size[0],
              of_size[1], of_size[2], of_size[3], (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    fclose(file);
    if (status || !out->is_complete)
        fail_msg("%s on %s, %s: the process failed", c->kind, device, order);
    return out;
}

/* ---- comparisons ---- */

static void compare(const char *about, const struct run *got, const struct run *alone)
{
    assert_int_equal(got->n, alone->n);
    for (uint64_t i = 0; i < got->n; i++)
        if (memcmp(&got->results[i], &alone->results[i], sizeof(float)) != 0)
            fail_msg("%s: result %llu is %.9g, alone %.9g", about, (unsigned long long)i,
                     (double)got->results[i], (double)alone->results[i]);
    if (got->launches != alone->launches)
        fail_msg("%s: %llu launches a step, alone %llu", about, (unsigned long long)got->launches,
                 (unsigned long long)alone->launches);
    if (got->searches + got->compiles + got->allocs)
        fail_msg("%s: warm steps had %llu searches, %llu compiles, %llu allocations", about,
                 (unsigned long long)got->searches, (unsigned long long)got->compiles,
                 (unsigned long long)got->allocs);
    if (!getenv("FRIT_TEST_LONG"))
        return;
    print_message("%s: %.1f us, alone %.1f: %.2f\n", about, got->least_s * 1e6,
                  alone->least_s * 1e6, got->least_s / alone->least_s);
    if (got->least_s > 2 * alone->least_s)
        fail_msg("%s: it takes longer than alone", about);
}

/* Against `reference`, in f32 over sums of some hundred products. */
static void compare_near(const char *about, const struct run *got, const struct run *want)
{
    double scale = 0;

    assert_int_equal(got->n, want->n);
    for (uint64_t i = 0; i < want->n; i++)
        scale = fmax(scale, fabs((double)want->results[i]));
    for (uint64_t i = 0; i < got->n; i++)
        if (!(fabs((double)got->results[i] - (double)want->results[i]) <= 1e-4 * scale))
            fail_msg("%s: result %llu is %.9g, on reference:0 %.9g", about, (unsigned long long)i,
                     (double)got->results[i], (double)want->results[i]);
}

static const char *device(void)
{
    const char *name = getenv("FRIT_TEST_DEVICE");

    return name ? name : "cpu:0";
}

static void check_order(const struct case_of *c, const char *order, struct outcome *const *alone)
{
    struct outcome *mixed = run_order(c, device(), order);

    for (size_t i = 0; order[i]; i++) {
        char about[96];

        snprintf(about, sizeof(about), "%s%s on %s, run %zu of order %s", c->kind,
                 c->trains ? ", training" : "", device(), i + 1, order);
        compare(about, &mixed->runs[i], &alone[order[i] - 'a']->runs[0]);
    }
    munmap(mixed, sizeof(*mixed));
}

static void check(const char *kind, bool trains, struct model_size a, struct model_size b)
{
    const struct case_of c = {kind, trains, {a, b}};
    struct outcome *alone[2];

    for (int s = 0; s < 2; s++) {
        struct outcome *near = run_order(&c, "reference:0", s ? "b" : "a");

        alone[s] = run_order(&c, device(), s ? "b" : "a");
        compare_near(kind, &alone[s]->runs[0], &near->runs[0]);
        munmap(near, sizeof(*near));
    }
    check_order(&c, "aba", alone);
    check_order(&c, "bab", alone);
    for (int s = 0; s < 2; s++)
        munmap(alone[s], sizeof(*alone[s]));
}

/* Many rows, and one: other forms of kernels. */
static void test_transformer(void **state)
{
    (void)state;
    check("transformer", false, (struct model_size){2, 40}, (struct model_size){1, 1});
}

static void test_attention(void **state)
{
    (void)state;
    check("attention", false, (struct model_size){1, 70}, (struct model_size){3, 9});
}

static void test_conv(void **state)
{
    (void)state;
    check("conv", false, (struct model_size){1, 16}, (struct model_size){4, 9});
}

static void test_training(void **state)
{
    (void)state;
    if (getenv("FRIT_TEST_LONG"))
        check("transformer", true, (struct model_size){2, 17}, (struct model_size){1, 33});
    check("conv", true, (struct model_size){4, 8}, (struct model_size){1, 17});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transformer),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_training),
    };

    if (argc == 2)
        cmocka_set_test_filter(argv[1]);
    return argc == 8 ? run_child(argv) : cmocka_run_group_tests(tests, NULL, NULL);
}
