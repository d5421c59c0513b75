/* SPDX-License-Identifier: Apache-2.0 */
/* Threads on queues of one device, at random: shared weights, tensors that go from thread to
 * thread, operands that end in place, memory of many sizes that is given back and taken again,
 * flushes, reads and syncs in between.  Each tensor comes with the elements that it should have,
 * computed here; they are small whole numbers, so that every device has exactly these. */
#include "plugin_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define RIG_LATE "fake/late/libfrit-reference-late.so"

enum { THREADS = 4, STEPS = 60, WIDTH = 32, MAX_ROWS = 200, HANDS = 4, SHELF = 6, WEIGHTS = 2 };

/* A tensor and what it should hold. */
struct item {
    frit_tensor *tensor; /* NULL: none */
    int64_t rows;
    float *want;
};

struct stress {
    struct plugin_rig rig;
    frit_tensor *weights[WEIGHTS];
    float signs[WEIGHTS][WIDTH];
    pthread_mutex_t lock;      /* of the shelf */
    struct item shelf[SHELF];  /* where threads leave and find items */
    atomic_uint seed;          /* of the next thread */
    atomic_int wrong, refused; /* results, calls */
};

struct worker {
    struct stress *s;
    uint32_t random;
    struct item hand[HANDS];
};

static uint32_t draw(struct worker *w, uint32_t n)
{
    w->random = w->random * 1664525u + 1013904223u;
    return (w->random >> 8) % n;
}

/* ---- items ---- */

static void drop(struct item *item)
{
    frit_release(item->tensor);
    free(item->want);
    *item = (struct item){0};
}

static uint64_t count(const struct item *item)
{
    return (uint64_t)item->rows * WIDTH;
}

/* Of the program's bytes. */
static void make(struct worker *w, struct item *item)
{
    static const int64_t rows[] = {1, 2, 8, 40, MAX_ROWS};

    item->rows = rows[draw(w, sizeof(rows) / sizeof(rows[0]))];
    item->want = malloc(count(item) * sizeof(float));
    for (uint64_t i = 0; i < count(item); i++)
        item->want[i] = (float)draw(w, 100) - 50;
    item->tensor = frit_from_host(w->s->rig.dev, FRIT_F32, FRIT_SHAPE(item->rows, WIDTH),
                                  item->want, count(item) * sizeof(float));
}

static void check(struct worker *w, const struct item *item)
{
    float got[MAX_ROWS * WIDTH];
    bool wrong = false;

    if (frit_read(item->tensor, got, count(item) * sizeof(float), NULL)) {
        atomic_fetch_add(&w->s->refused, 1);
        return;
    }
    for (uint64_t i = 0; i < count(item); i++)
        wrong |= got[i] != item->want[i];
    atomic_fetch_add(&w->s->wrong, wrong);
}

/* ---- steps ---- */

static void replace(struct item *item, frit_tensor *result)
{
    frit_release(item->tensor);
    item->tensor = result;
}

static void add_number(struct worker *w, struct item *item)
{
    float number = (float)draw(w, 9) - 4;

    replace(item, frit_add_f(item->tensor, number));
    for (uint64_t i = 0; i < count(item); i++)
        item->want[i] += number;
}

static void multiply(struct worker *w, struct item *item)
{
    uint32_t k = draw(w, WEIGHTS);
    float row[WIDTH];

    replace(item, frit_matmul(item->tensor, w->s->weights[k]));
    for (int64_t r = 0; r < item->rows; r++) {
        float *want = item->want + r * WIDTH;

        memcpy(row, want, sizeof(row));
        for (int c = 0; c < WIDTH; c++)
            want[c] = row[WIDTH - 1 - c] * w->s->signs[k][c];
    }
}

/* Kept within what is exact. */
static void add_other(struct item *item, const struct item *other)
{
    frit_tensor *sum;

    if (other->rows != item->rows)
        return;
    sum = frit_add(item->tensor, other->tensor);
    replace(item, frit_minimum_f(sum, 1000));
    frit_release(sum);
    replace(item, frit_maximum_f(item->tensor, -1000));
    for (uint64_t i = 0; i < count(item); i++) {
        float value = item->want[i] + other->want[i];

        item->want[i] = value > 1000 ? 1000 : value < -1000 ? -1000 : value;
    }
}

/* The other is the same tensor once more. */
static void share(struct item *item, struct item *other)
{
    if (item == other)
        return;
    drop(other);
    *other = (struct item){frit_ref(item->tensor), item->rows, malloc(count(item) * sizeof(float))};
    memcpy(other->want, item->want, count(item) * sizeof(float));
}

static void swap_with_shelf(struct worker *w, struct item *item)
{
    struct item *place = &w->s->shelf[draw(w, SHELF)], mine = *item;

    pthread_mutex_lock(&w->s->lock);
    *item = *place;
    *place = mine;
    pthread_mutex_unlock(&w->s->lock);
}

static void step(struct worker *w)
{
    struct item *item = &w->hand[draw(w, HANDS)], *other = &w->hand[draw(w, HANDS)];
    uint32_t what = draw(w, 40);

    if (!item->tensor)
        make(w, item);
    if (what < 10)
        add_number(w, item);
    else if (what < 16)
        multiply(w, item);
    else if (what < 20 && other->tensor)
        add_other(item, other);
    else if (what < 23)
        share(item, other);
    else if (what < 30)
        swap_with_shelf(w, item);
    else if (what < 33)
        drop(item);
    else if (what < 36)
        check(w, item);
    else if (what < 39)
        frit_flush(w->s->rig.dev, NULL);
    else
        frit_sync(w->s->rig.dev, NULL);
}

/* The same ops each time, so that they are replayed, on what another thread may have left. */
static void steady_step(struct worker *w, uint32_t number)
{
    struct item *item = &w->hand[0], *other = &w->hand[1];

    if (!item->tensor)
        make(w, item);
    multiply(w, item);
    add_number(w, item);
    share(item, other);
    multiply(w, other);
    add_other(item, other);
    drop(other);
    frit_flush(w->s->rig.dev, NULL);
    if (number % 8 == 7)
        swap_with_shelf(w, item);
    if (number % 32 == 31 && item->tensor)
        check(w, item);
}

static void *work(void *arg)
{
    struct worker w = {.s = arg};

    w.random = atomic_fetch_add(&w.s->seed, 1) * 7919u;
    for (uint32_t i = 0; i < STEPS; i++)
        step(&w);
    for (int i = 0; i < HANDS; i++)
        drop(&w.hand[i]);
    for (uint32_t i = 0; i < STEPS; i++)
        steady_step(&w, i);
    for (int i = 0; i < HANDS; i++) {
        if (w.hand[i].tensor)
            check(&w, &w.hand[i]);
        drop(&w.hand[i]);
    }
    return NULL;
}

/* ---- devices ---- */

/* Turns a row round, with signs that are the same from both ends. */
static void make_weight(struct stress *s, uint32_t k)
{
    float weight[WIDTH][WIDTH] = {0};

    for (uint32_t c = 0; c < WIDTH; c++) {
        s->signs[k][c] = (c < WIDTH / 2 ? c : WIDTH - 1 - c) % (k + 2) ? 1 : -1;
        weight[WIDTH - 1 - c][c] = s->signs[k][c];
    }
    s->weights[k] =
        frit_from_host(s->rig.dev, FRIT_F32, FRIT_SHAPE(WIDTH, WIDTH), weight, sizeof(weight));
}

/* Twice as many threads as there are at once: the second ones adopt the streams of the first. */
static void run_on(struct stress *s, const char *device)
{
    pthread_t threads[THREADS];

    rig_open(&s->rig, device);
    pthread_mutex_init(&s->lock, NULL);
    for (uint32_t k = 0; k < WEIGHTS; k++)
        make_weight(s, k);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, work, s), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < SHELF; i++) {
        if (s->shelf[i].tensor)
            check(&(struct worker){.s = s}, &s->shelf[i]);
        drop(&s->shelf[i]);
    }
    for (uint32_t k = 0; k < WEIGHTS; k++)
        frit_release(s->weights[k]);
    rig_close(&s->rig);
    pthread_mutex_destroy(&s->lock);
    assert_int_equal(atomic_load(&s->refused), 0);
}

static void run_on_cpu(const char *queues, bool scarce)
{
    struct stress s = {0};

    rig_set(&s.rig, "stream", "queues", queues);
    if (scarce) {
        rig_set(&s.rig, "memory", "chunk_bytes", "65536");
        rig_set(&s.rig, "memory", "keep_bytes", "0");
    }
    run_on(&s, "cpu:0");
    assert_int_equal(atomic_load(&s.wrong), 0);
}

/* How many results were wrong. */
static int run_on_late(const char *queues, const char *hold, bool scarce, bool ignore_waits)
{
    struct stress s = {0};

    rig_plugin(&s.rig, "plugin.reference", RIG_LATE);
    rig_set(&s.rig, "stream", "queues", queues);
    rig_set(&s.rig, "stream", "capture", "yes");
    rig_set(&s.rig, "plugin.reference", "option.hold", hold);
    rig_set(&s.rig, "plugin.reference", "option.ignore_waits", ignore_waits ? "yes" : "no");
    if (scarce) {
        rig_set(&s.rig, "memory", "chunk_bytes", "65536");
        rig_set(&s.rig, "memory", "keep_bytes", "0");
    }
    run_on(&s, "reference:0");
    return atomic_load(&s.wrong);
}

static void test_queues_that_run_on_their_threads(void **state)
{
    (void)state;
    run_on_cpu("1", false);
    run_on_cpu("2", false);
    run_on_cpu("4", true);
}

static void test_queues_that_run_late(void **state)
{
    (void)state;
    assert_int_equal(run_on_late("2", "3", false, false), 0);
    assert_int_equal(run_on_late("4", "1000", false, false), 0);
    assert_int_equal(run_on_late("3", "0", true, false), 0);
}

static void test_queues_that_do_not_wait_are_noticed(void **state)
{
    int noticed = 0;

    (void)state;
    for (int i = 0; i < 20 && !noticed; i++) /* it takes threads that run at once */
        noticed = run_on_late("4", "1000", false, true) != 0;
    assert_true(noticed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queues_that_run_on_their_threads),
        cmocka_unit_test(test_queues_that_run_late),
        cmocka_unit_test(test_queues_that_do_not_wait_are_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
