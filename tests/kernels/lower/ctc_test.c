/* SPDX-License-Identifier: Apache-2.0 */
/* ctc_loss and its gradient by their definition: the probabilities of all sequences of classes that
 * give the target once repeated classes are one and blanks are gone, added up. */
#include <math.h>

#include "kernels/lower/ctc_rig.h"
#include "kernels/lower/fail_allocations.h"
#include "unit.h"

enum { MAX_STEPS = 8, CLASSES = CTC_CLASSES };

/* Probabilities of a sequence's paths: of all, and of those in a class at a step. */
struct paths {
    int64_t steps;
    double all, in[MAX_STEPS][CLASSES];
};

static int64_t clip(int64_t number, int64_t most)
{
    return number < 0 ? 0 : number > most ? most : number;
}

/* Whether a path of this many steps, with its classes as digits of a number, is the target's. */
static bool gives(int64_t path, int64_t steps, int64_t blank, const int64_t *target, int64_t labels)
{
    int64_t before = blank, found = 0;

    for (int64_t t = 0; t < steps; t++, path /= CLASSES) {
        int64_t class = path % CLASSES;

        if (class != blank && class != before) {
            if (found == labels || target[found] != class)
                return false;
            found++;
        }
        before = class;
    }
    return found == labels;
}

static void add_path(const struct rig *rig, const struct ctc *c, uint32_t x, int64_t item,
                     int64_t path, struct paths *paths)
{
    double sum = 0;
    int64_t left = path;

    for (int64_t t = 0; t < paths->steps; t++, left /= CLASSES)
        sum += rig_get_real(rig, x, (t * c->items + item) * CLASSES + left % CLASSES);
    paths->all += exp(sum);
    for (int64_t t = 0; t < paths->steps; t++, path /= CLASSES)
        paths->in[t][path % CLASSES] += exp(sum);
}

static struct paths paths_of(const struct rig *rig, const struct ctc *c, const uint32_t *in,
                             int64_t item)
{
    struct paths paths = {.steps = clip(rig_get_int(rig, in[STEPS], item), c->steps)};
    int64_t labels = clip(rig_get_int(rig, in[LABELS], item), c->labels), target[MAX_STEPS];
    int64_t n_paths = 1;

    for (int64_t i = 0; i < labels; i++)
        target[i] = clip(rig_get_int(rig, in[TARGETS], item * c->labels + i), CLASSES - 1);
    for (int64_t t = 0; t < paths.steps; t++)
        n_paths *= CLASSES;
    for (int64_t path = 0; path < n_paths; path++)
        if (gives(path, paths.steps, c->blank, target, labels))
            add_path(rig, c, in[LOG_PROBS], item, path, &paths);
    return paths;
}

static double gradient_of(const struct rig *rig, const uint32_t *in, const struct paths *paths,
                          int64_t t, int64_t item, int64_t class, int64_t element)
{
    double log_prob = rig_get_real(rig, in[LOG_PROBS], element);

    if (t >= paths->steps)
        return 0;
    return rig_get_real(rig, in[GRAD], item) * (exp(log_prob) - paths->in[t][class] / paths->all);
}

static void compare(const struct rig *rig, const struct ctc *c, uint32_t y, int64_t element,
                    double want)
{
    double near = c->dtype == FRIT_F64 ? 1e-13 : c->dtype == FRIT_F32 ? 1e-6 : 1e-2;
    double got = rig_get_real(rig, y, element);
    bool same = isnan(want)   ? isnan(got)
                : isinf(want) ? got == want
                              : fabs(got - want) <= near * (1 + fabs(want));

    if (!same)
        fail_msg("type %u, %lld steps, %lld sequences, %lld labels: element %lld is %.12g, not "
                 "%.12g",
                 c->dtype, (long long)c->steps, (long long)c->items, (long long)c->labels,
                 (long long)element, got, want);
}

static void run_case(const struct ctc *c)
{
    struct rig rig;
    uint32_t in[CTC_OPERANDS], y = ctc_twice(&rig, ctc_rig(&rig, c, in));

    rig_run(&rig, &sched_ctc);
    for (int64_t i = 0; i < c->items; i++) {
        struct paths paths = paths_of(&rig, c, in, i);

        if (!c->gradient)
            compare(&rig, c, y, i, -2 * log(paths.all));
        for (int64_t t = 0; c->gradient && t < c->steps; t++)
            for (int64_t class = 0; class < CLASSES; class ++) {
                int64_t at = (t * c->items + i) * CLASSES + class;

                compare(&rig, c, y, at, 2 * gradient_of(&rig, in, &paths, t, i, class, at));
            }
    }
    rig_fini(&rig);
}

/* Both rows. */
static void run(struct ctc c)
{
    for (int i = 0; i < 2; i++) {
        c.gradient = i;
        run_case(&c);
    }
}

static void test_rows(void **state)
{
    static const uint32_t types[] = {FRIT_F64, FRIT_F32, FRIT_BF16};

    (void)state;
    for (uint32_t t = 0; t < 3; t++)
        for (int64_t blank = 0; blank < CLASSES; blank++)
            for (int64_t steps = 0; steps < 7; steps += 3)
                for (int64_t labels = 0; labels < 5; labels++)
                    run((struct ctc){.dtype = types[t],
                                     .int_dtype = t ? FRIT_I32 : FRIT_I64,
                                     .steps = steps,
                                     .items = 21,
                                     .labels = labels,
                                     .blank = blank,
                                     .f64 = true,
                                     .width = t == 1 ? 64 : 32});
}

static void test_narrow(void **state)
{
    (void)state;
    run((struct ctc){
        .dtype = FRIT_F32, .int_dtype = FRIT_U8, .steps = 6, .items = 64, .labels = 3});
    run((struct ctc){.dtype = FRIT_F32, .int_dtype = FRIT_I32, .steps = 6, .labels = 3});
    run((struct ctc){
        .dtype = FRIT_F16, .int_dtype = FRIT_I16, .steps = 6, .items = 1, .labels = 3});
}

static void test_no_memory(void **state)
{
    struct ctc c = {
        .dtype = FRIT_F32, .int_dtype = FRIT_I32, .steps = 3, .items = 2, .labels = 1, .f64 = true};

    (void)state;
    for (int i = 0; i < 2; i++) {
        uint32_t in[CTC_OPERANDS];
        struct rig rig;

        c.gradient = i;
        ctc_twice(&rig, ctc_rig(&rig, &c, in));
        rig_run(&rig, &sched_ctc);
        rig_fail_allocations(&rig, &sched_ctc, 10);
        rig_fini(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
