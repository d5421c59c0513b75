/* SPDX-License-Identifier: Apache-2.0 */
/* What is run together depends on a thread's own calls alone: the same programs are played again
 * and again with other pauses, against an empty, a filled and a foreign plan store, and each stream
 * must show the same blocks every time.
 *
 * A program is drawn from a seed of its own: ops, releases, scopes, drains.  Each round it hands
 * one materialised tensor to all threads, which use it; drawn from another seed, that differs from
 * run to run, are pauses, reads of what others made, and when the last owners let go. */
#include "api/plugin_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <frit/inspect.h>

enum { THREADS = 4, ROUNDS = 6, OPS = 24, POOL = 6, ROWS = 3, COLUMNS = 4, QUICK = 20, LONG = 100 };

/* ---- a program ---- */

struct world {
    struct plugin_rig rig;
    unsigned program; /* 0: the one that is compared */
    unsigned timing;
    atomic_int turn, failures;
    _Atomic(frit_tensor *) board[ROUNDS][THREADS];
};

struct player {
    struct world *world;
    int me;
    unsigned program, timing; /* states of the two generators */
    frit_tensor *pool[POOL];
    frit_tensor *others[THREADS]; /* owned once; NULL: let go */
};

static unsigned draw(struct player *p, unsigned n)
{
    return (unsigned)rand_r(&p->program) % n;
}

static void pause_somewhat(struct player *p)
{
    unsigned what = (unsigned)rand_r(&p->timing) % 64;

    if (what < 2)
        usleep((unsigned)rand_r(&p->timing) % 200);
    else if (what < 16)
        sched_yield();
}

static void expect(struct player *p, bool good)
{
    if (!good)
        atomic_fetch_add(&p->world->failures, 1);
}

static frit_tensor *do_scale(frit_tensor *a, frit_tensor *b)
{
    (void)b;
    return frit_mul_f(a, 0.5);
}

static frit_tensor *do_tanh(frit_tensor *a, frit_tensor *b)
{
    (void)b;
    return frit_tanh(a);
}

static frit_tensor *do_center(frit_tensor *a, frit_tensor *b)
{
    (void)b;
    return frit_sub(a, frit_take(frit_max(a, .axes = FRIT_AXES(1), .keep = 1)));
}

static frit_tensor *do_sum(frit_tensor *a, frit_tensor *b)
{
    return frit_add(b, frit_take(frit_sum(a, .axes = FRIT_AXES(0), .keep = 1)));
}

static frit_tensor *do_turn(frit_tensor *a, frit_tensor *b)
{
    return frit_add(
        frit_take(frit_reshape(frit_take(frit_transpose(a, 0, 1)), FRIT_SHAPE(ROWS, COLUMNS))), b);
}

static frit_tensor *do_softmax(frit_tensor *a, frit_tensor *b)
{
    (void)b;
    return frit_softmax(a, 1);
}

static frit_tensor *do_cumsum(frit_tensor *a, frit_tensor *b)
{
    (void)b;
    return frit_cumsum(a, 1);
}

static frit_tensor *(*const applies[])(frit_tensor *a, frit_tensor *b) = {
    frit_add, frit_mul, frit_sub, do_scale,   do_tanh,   do_scale,
    do_tanh,  do_turn,  do_sum,   do_softmax, do_center, do_cumsum,
};

/* An operand: one of our own, or what another thread made in the last round. */
static frit_tensor *operand(struct player *p, int op)
{
    unsigned slot = draw(p, POOL), other = draw(p, THREADS);

    if (op < OPS / 2 && draw(p, 4) == 0 && p->others[other])
        return p->others[other];
    return p->pool[slot];
}

/* One op, whose result takes the place of an older value before or after the next op. */
static void one_op(struct player *p, int op)
{
    frit_tensor *a = operand(p, op), *b = operand(p, op), *old, *made;
    unsigned n_applies = sizeof(applies) / sizeof(applies[0]);
    unsigned slot = draw(p, POOL), drain = draw(p, 64 + 4 * p->world->program);

    pause_somewhat(p);
    made = applies[draw(p, n_applies)](a, b);
    pause_somewhat(p);
    old = p->pool[slot];
    p->pool[slot] = made;
    frit_release(old);
    if (drain == 0)
        expect(p, frit_flush(p->world->rig.dev, NULL) == FRIT_OK);
    else if (drain == 1)
        expect(p, frit_sync(p->world->rig.dev, NULL) == FRIT_OK);
}

/* A few ops of which one result is kept. */
static void one_scope(struct player *p, int op)
{
    frit_scope scope = frit_scope_begin(p->world->rig.dev);
    frit_tensor *y = frit_add_f(operand(p, op), 1);
    unsigned slot = draw(p, POOL);

    pause_somewhat(p);
    y = frit_mul(frit_tanh(y), y);
    pause_somewhat(p);
    frit_release(p->pool[slot]);
    p->pool[slot] = frit_keep(frit_sub(y, frit_sum(y, .axes = FRIT_AXES(1), .keep = 1)));
    frit_scope_end(scope);
}

/* ---- what crosses threads ---- */

static void look(struct player *p, frit_tensor *tensor)
{
    float out[ROWS * COLUMNS];

    expect(p, frit_read(tensor, out, sizeof(out), NULL) == FRIT_OK);
}

/* When is a matter of timing: nothing of it may be seen. */
static void let_go(struct player *p, bool all)
{
    for (int i = 0; i < THREADS; i++) {
        if (!p->others[i] || (!all && rand_r(&p->timing) % 8))
            continue;
        if (rand_r(&p->timing) % 2)
            look(p, p->others[i]);
        frit_release(p->others[i]);
        p->others[i] = NULL;
    }
}

static void hand_out(struct player *p, int round)
{
    frit_tensor *tensor = p->pool[draw(p, POOL)];

    expect(p, frit_sync(p->world->rig.dev, NULL) == FRIT_OK);
    for (int i = 0; i < THREADS; i++)
        frit_ref(tensor);
    atomic_store(&p->world->board[round][p->me], tensor);
}

static void take_over(struct player *p, int round)
{
    for (int i = 0; i < THREADS; i++) {
        while (!(p->others[i] = atomic_load(&p->world->board[round][i])))
            sched_yield();
    }
}

static void one_round(struct player *p, int round)
{
    for (int op = 0; op < OPS; op++) {
        if (draw(p, 8) == 0)
            one_scope(p, op);
        else
            one_op(p, op);
        if (op >= OPS / 2)
            let_go(p, false);
    }
    let_go(p, true);
    hand_out(p, round);
    take_over(p, round);
}

/* Streams are numbered by their first ops, which come in turn. */
static void begin_in_turn(struct player *p)
{
    const float data[ROWS * COLUMNS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

    while (atomic_load(&p->world->turn) != p->me)
        sched_yield();
    for (int i = 0; i < POOL; i++)
        p->pool[i] = frit_from_host(p->world->rig.dev, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), data,
                                    sizeof(data));
    frit_release(frit_neg(p->pool[0]));
    atomic_fetch_add(&p->world->turn, 1);
}

static void *play(void *arg)
{
    struct player *p = arg;

    begin_in_turn(p);
    for (int round = 0; round < ROUNDS; round++)
        one_round(p, round);
    let_go(p, true);
    for (int i = 0; i < POOL; i++)
        frit_release(p->pool[i]);
    expect(p, frit_sync(p->world->rig.dev, NULL) == FRIT_OK);
    return NULL;
}

static void play_all(struct world *world)
{
    struct player players[THREADS];
    pthread_t threads[THREADS];

    atomic_store(&world->turn, 0);
    memset(world->board, 0, sizeof(world->board));
    for (int i = 0; i < THREADS; i++) {
        players[i] = (struct player){.world = world,
                                     .me = i,
                                     .program = world->program * THREADS + (unsigned)i + 1,
                                     .timing = world->timing * THREADS + (unsigned)i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&world->failures), 0);
}

/* ---- what was run together ---- */

static void print_values(FILE *out, const char *title, const uint32_t *values, uint32_t n)
{
    fputs(title, out);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, " %%%u", values[i]);
}

/* Without the flags: whether an operand's memory is taken depends on who else still has it. */
static void print_step(FILE *out, const frit_step_desc *step)
{
    fprintf(out, "  %s | %s, score %u, %s", step->label, step->fuser, step->score, step->end);
    print_values(out, " | reads", step->in, step->n_in);
    print_values(out, " | stores", step->out, step->n_out);
    fputc('\n', out);
    for (uint32_t i = 0; i < step->n_ops; i++)
        fprintf(out, "    %s\n", step->op_texts[i]);
}

/* All runs, stream by stream; malloc'd. */
static char *groups_of(const frit_inspection *seen)
{
    frit_step_desc step = {.struct_size = sizeof(step)};
    frit_run_desc run = {.struct_size = sizeof(run)};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    for (uint32_t stream = 0; stream < THREADS; stream++) {
        for (uint64_t r = 0; !frit_inspection_run_at(seen, r, &run); r++) {
            if (run.stream != stream)
                continue;
            fprintf(out, "stream %u: %u calls, %u ops\n", stream, run.n_calls, run.n_ops);
            for (uint64_t s = 0; !frit_inspection_step_at(seen, r, s, &step); s++)
                print_step(out, &step);
        }
    }
    fclose(out);
    return text;
}

/* What one host does, under inspection, and a second time without, when bound plans are replayed.
 */
struct outcome {
    char *groups;
    uint64_t runs, launches, fused; /* of the second time */
};

static void run_world(struct world *world, const char *store, struct outcome *outcome)
{
    frit_inspection *seen;
    frit_stats before, after;

    world->rig = (struct plugin_rig){0};
    rig_plugin(&world->rig, "plugin.org.frit.blocks", RIG_BLOCKS);
    rig_set(&world->rig, "fusion", "store", store);
    rig_set(&world->rig, "frit", "decompose", "yes");
    rig_open(&world->rig, "reference:0");
    assert_int_equal(frit_inspect_start(world->rig.dev, NULL), FRIT_OK);
    play_all(world);
    assert_int_equal(frit_inspect_stop(world->rig.dev, &seen, NULL), FRIT_OK);
    outcome->groups = groups_of(seen);
    frit_inspection_free(seen);
    before = rig_stats(&world->rig);
    play_all(world);
    after = rig_stats(&world->rig);
    outcome->runs = after.plan_runs - before.plan_runs;
    outcome->launches = after.launches - before.launches;
    outcome->fused = after.fused - before.fused;
    rig_close(&world->rig);
}

/* ---- stores ---- */

static char folder[64];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/frit-grouping-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(out, bytes, (size_t)n), n);
    close(in);
    close(out);
}

/* Plans of the same program, and of another one. */
static void fill_stores(struct outcome *first, char *filled, char *foreign)
{
    struct world same = {.program = 0, .timing = 1}, other = {.program = 1, .timing = 1};
    struct outcome outcome;

    snprintf(filled, 128, "%s/filled.db", folder);
    snprintf(foreign, 128, "%s/foreign.db", folder);
    run_world(&same, filled, first);
    run_world(&other, foreign, &outcome);
    assert_string_not_equal(first->groups, outcome.groups);
    free(outcome.groups);
}

static void expect_same(const struct outcome *first, const struct outcome *outcome, int run)
{
    size_t i = 0;

    while (first->groups[i] && first->groups[i] == outcome->groups[i])
        i++;
    if (first->groups[i] != outcome->groups[i])
        fail_msg("run %d differs at byte %zu:\n%.400s\n--- instead of\n%.400s", run, i,
                 outcome->groups + (i > 200 ? i - 200 : 0),
                 first->groups + (i > 200 ? i - 200 : 0));
    assert_int_equal(outcome->runs, first->runs);
    assert_int_equal(outcome->launches, first->launches);
    assert_int_equal(outcome->fused, first->fused);
}

static void groups_are_the_same_each_time(void **state)
{
    char filled[128], foreign[128], store[128];
    int n_runs = getenv("FRIT_TEST_LONG") ? LONG : QUICK;
    struct outcome first, outcome;

    (void)state;
    fill_stores(&first, filled, foreign);
    assert_true(first.fused > 0);
    for (int run = 1; run < n_runs; run++) {
        struct world world = {.program = 0, .timing = (unsigned)run + 1};

        snprintf(store, sizeof(store), "%s/run-%d.db", folder, run);
        if (run % 3)
            copy_file(run % 3 == 1 ? filled : foreign, store);
        run_world(&world, store, &outcome);
        expect_same(&first, &outcome, run);
        free(outcome.groups);
        unlink(store);
    }
    free(first.groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups_are_the_same_each_time, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
