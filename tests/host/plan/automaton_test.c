/* SPDX-License-Identifier: Apache-2.0 */
/* Known key sequences are found and unknown ones added, from many threads; answers stay as they
 * were first given; generations keep what is used, bound what is kept, and free a plan exactly
 * once. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "failing_alloc.h"
#include "host/plan/rig.h"
#include "plan/plan.h"

enum { BIG = 1 << 28, THREADS = 4 };

static struct automaton *create(uint64_t bytes)
{
    struct automaton *automaton;

    assert_int_equal(automaton_create(bytes, &automaton, NULL), FRIT_OK);
    return automaton;
}

static void step(struct walker *walker, uint64_t number)
{
    struct op_key key = rig_key(number);

    walker_step(walker, &key);
}

static void walk(struct walker *walker, uint64_t first, uint32_t count)
{
    walker_restart(walker);
    for (uint32_t i = 0; i < count; i++)
        step(walker, first + i);
}

static struct plan *lazy_plan(const struct walker *walker)
{
    struct plan *plan;

    return walker_lazy(walker, &plan) == LAZY_RUN ? plan : NULL;
}

/* The same keys lead to the same place, and a key that differs in any one bit elsewhere. */
static void test_exact_keys(void **state)
{
    struct automaton *automaton = create(BIG);
    struct automaton_node *places[4 * 64][2];
    struct automaton_stats stats;
    struct walker walker;

    (void)state;
    walker_init(&walker, automaton);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 4 * 64 * 2; i++) {
            struct automaton_node **place = &places[i / 2][i % 2];
            struct op_key key = rig_key(0);

            key.word[i / 2 / 64] ^= (uint64_t)(i % 2) << i / 2 % 64;
            walk(&walker, i / 2, 1);
            walker_step(&walker, &key);
            assert_int_equal(walker.depth, 2);
            if (round == 0)
                *place = walker.node;
            assert_ptr_equal(*place, walker.node);
        }
    }
    for (uint32_t bit = 0; bit < 4 * 64; bit++)
        assert_ptr_not_equal(places[bit][0], places[bit][1]);
    automaton_stats(automaton, &stats);
    assert_int_equal(stats.nodes, 4 * 64 * 3);
    walker_fini(&walker);
    automaton_destroy(automaton);
}

/* D4: what one walker learns the others know. */
static void d4_plans_are_shared(void **state)
{
    struct automaton *automaton = create(BIG);
    struct plan *plan = rig_plan(3, 1, NULL);
    struct walker a, b;

    (void)state;
    walker_init(&a, automaton);
    walker_init(&b, automaton);
    walk(&a, 10, 3);
    walk(&b, 10, 3);
    assert_null(lazy_plan(&b));
    walker_set_lazy(&a, plan);
    walker_set_sync(&a, plan);
    assert_ptr_equal(lazy_plan(&b), plan);
    assert_ptr_equal(walker_sync(&b), plan);
    plan_unref(plan);
    walker_fini(&a);
    walker_fini(&b);
    automaton_destroy(automaton);
}

/* D6: an answer is given once; each kind has its own, and each place its own. */
static void d6_first_answer_stays(void **state)
{
    struct automaton *automaton = create(BIG);
    struct plan *first = rig_plan(2, 0, NULL), *second = rig_plan(2, 1, NULL), *plan;
    atomic_uint freed = 0;
    struct walker walker;

    (void)state;
    rig_watch(second, &freed);
    walker_init(&walker, automaton);
    walk(&walker, 1, 2);
    walker_set_lazy(&walker, first);
    walker_set_lazy(&walker, second);
    walker_set_lazy(&walker, NULL);
    assert_int_equal(walker_lazy(&walker, &plan), LAZY_RUN);
    assert_ptr_equal(plan, first);
    assert_null(walker_sync(&walker));
    walker_set_sync(&walker, second);
    walker_set_sync(&walker, first);
    assert_ptr_equal(walker_sync(&walker), second);
    step(&walker, 9);
    assert_int_equal(walker_lazy(&walker, &plan), LAZY_UNKNOWN);
    assert_null(walker_sync(&walker));
    plan_unref(first);
    plan_unref(second);
    assert_int_equal(atomic_load(&freed), 0);
    walker_fini(&walker);
    automaton_destroy(automaton);
    assert_int_equal(atomic_load(&freed), 1);
}

/* D7, D9: the answer of a key sequence is not that of a shorter or a longer one. */
static void d7_d9_answers_stand_at_their_depth(void **state)
{
    struct automaton *automaton = create(BIG);
    struct plan *two = rig_plan(2, 0, NULL), *four = rig_plan(4, 0, NULL), *plan;
    struct walker walker;

    (void)state;
    walker_init(&walker, automaton);
    walk(&walker, 1, 1);
    walker_set_lazy(&walker, NULL);
    walk(&walker, 1, 4);
    walker_set_lazy(&walker, four);
    walk(&walker, 1, 2);
    assert_int_equal(walker_lazy(&walker, &plan), LAZY_UNKNOWN);
    walker_set_lazy(&walker, two);
    for (uint32_t depth = 1; depth <= 5; depth++) {
        static const enum lazy_kind kinds[] = {0,        LAZY_GO_ON,  LAZY_RUN, LAZY_UNKNOWN,
                                               LAZY_RUN, LAZY_UNKNOWN};

        walk(&walker, 1, depth);
        assert_int_equal(walker.depth, depth);
        assert_int_equal(walker_lazy(&walker, &plan), kinds[depth]);
        assert_ptr_equal(plan, depth == 2 ? two : depth == 4 ? four : NULL);
        assert_true(!plan || plan->n_calls <= depth);
    }
    plan_unref(two);
    plan_unref(four);
    walker_fini(&walker);
    automaton_destroy(automaton);
}

/* D8: two sequences that differ only in the last key do not share an answer. */
static void d8_another_end_has_no_answer(void **state)
{
    struct automaton *automaton = create(BIG);
    struct plan *plan = rig_plan(3, 0, NULL);
    struct walker walker;

    (void)state;
    walker_init(&walker, automaton);
    walk(&walker, 1, 3);
    walker_set_lazy(&walker, plan);
    for (uint64_t other = 4; other < 100; other++) {
        walk(&walker, 1, 2);
        step(&walker, other);
        assert_null(lazy_plan(&walker));
    }
    walk(&walker, 1, 3);
    assert_ptr_equal(lazy_plan(&walker), plan);
    plan_unref(plan);
    walker_fini(&walker);
    automaton_destroy(automaton);
}

/* D12: the bytes stay bounded, a sequence in use moves over with its plan, an unused one is freed,
 * and a walker that stands still keeps what it stands on. */
static void d12_generations(void **state)
{
    const uint64_t bytes = 64 << 10;
    struct automaton *automaton = create(bytes);
    struct plan *used = rig_plan(2, 0, NULL), *forgotten = rig_plan(2, 1, NULL);
    struct plan *stood_on = rig_plan(2, 2, NULL);
    atomic_uint freed_used = 0, freed_forgotten = 0, freed_stood_on = 0;
    struct automaton_stats stats;
    struct walker walker, standing;
    uint32_t id;

    (void)state;
    rig_watch(used, &freed_used);
    rig_watch(forgotten, &freed_forgotten);
    rig_watch(stood_on, &freed_stood_on);
    walker_init(&walker, automaton);
    walk(&walker, 1, 2);
    walker_set_lazy(&walker, used);
    walker_set_sync(&walker, used);
    id = walker_intern(&walker, "attributes", 10);
    walk(&walker, 10, 2);
    walker_set_sync(&walker, forgotten);
    walker_init(&standing, automaton);
    walk(&standing, 20, 2);
    walker_set_lazy(&standing, stood_on);
    plan_unref(used);
    plan_unref(forgotten);
    plan_unref(stood_on);
    for (uint64_t i = 0; i < 20000; i++) {
        walk(&walker, 1000 + 10 * i, 4);
        walk(&walker, 1, 2);
        assert_ptr_equal(lazy_plan(&walker), used);
        assert_ptr_equal(walker_sync(&walker), used);
        assert_int_equal(walker_intern(&walker, "attributes", 10), id);
        automaton_stats(automaton, &stats);
        assert_true(stats.bytes <= bytes + bytes / 4);
    }
    assert_true(stats.generations > 100);
    automaton_reap(automaton);
    assert_int_equal(atomic_load(&freed_forgotten), 0); /* it is of the generation stood on */
    assert_ptr_equal(lazy_plan(&standing), stood_on);
    step(&standing, 22); /* and it still grows */
    assert_non_null(standing.node);
    assert_false(automaton_has_gone(automaton));
    walker_restart(&standing);
    assert_int_equal(atomic_load(&freed_forgotten), 0); /* nothing ends in the middle of a walk */
    assert_true(automaton_has_gone(automaton));
    automaton_reap(automaton);
    assert_int_equal(atomic_load(&freed_forgotten), 1);
    assert_int_equal(atomic_load(&freed_stood_on), 1);
    walk(&standing, 20, 2);
    assert_null(lazy_plan(&standing));
    assert_int_equal(atomic_load(&freed_used), 0);
    walker_fini(&standing);
    walker_fini(&walker);
    automaton_destroy(automaton);
    assert_int_equal(atomic_load(&freed_used), 1);
}

static void test_interned(void **state)
{
    struct automaton *automaton = create(BIG);
    struct walker walker;
    uint32_t ids[300];

    (void)state;
    walker_init(&walker, automaton);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 300; i++) {
            uint32_t id = walker_intern(&walker, &i, sizeof(i));

            assert_true(id != 0);
            if (round == 0)
                ids[i] = id;
            assert_int_equal(id, ids[i]);
            for (uint32_t k = 0; k < i; k++)
                assert_int_not_equal(id, ids[k]);
        }
    }
    for (uint32_t i = 0; i < 300; i++) {
        size_t n_bytes;
        const void *bytes = walker_interned(&walker, ids[i], &n_bytes);

        assert_int_equal(n_bytes, sizeof(i));
        assert_memory_equal(bytes, &i, sizeof(i));
    }
    assert_int_not_equal(walker_intern(&walker, "\0\0", 2), walker_intern(&walker, "\0", 1));
    walker_fini(&walker);
    automaton_destroy(automaton);
}

struct seen {
    uint32_t nodes, depth_sum, plans;
};

/* The mark is the depth. */
static frit_status see(void *ctx, const struct automaton_place *place, frit_err *err)
{
    struct seen *seen = ctx;

    (void)err;
    assert_true((place->lazy == LAZY_RUN) == (place->plan != NULL));
    assert_true(*place->mark == 0 || *place->mark == place->parent + 1);
    *place->mark = place->parent + 1;
    seen->nodes++;
    seen->depth_sum += (uint32_t)*place->mark;
    seen->plans += (place->plan != NULL) + (uint32_t)(place->sync != NULL);
    return seen->nodes == 1000 ? FRIT_CANCELLED : FRIT_OK;
}

static struct seen visit(const struct walker *walker, enum automaton_part part)
{
    struct automaton_list list;
    struct seen seen = {0};

    assert_int_equal(automaton_take(walker, part, &list, NULL), FRIT_OK);
    assert_int_equal(automaton_visit(walker, &list, see, &seen, NULL), FRIT_OK);
    automaton_list_fini(&list);
    return seen;
}

static void test_visit(void **state)
{
    struct automaton *automaton = create(BIG);
    struct plan *plan = rig_plan(3, 0, NULL);
    struct automaton_list list;
    struct walker walker;
    struct seen seen;

    (void)state;
    walker_init(&walker, automaton);
    assert_int_equal(visit(&walker, AUTOMATON_ALL).nodes, 0);
    for (uint64_t i = 0; i < 50; i++) {
        walk(&walker, 100 * i, 3);
        walker_set_sync(&walker, plan);
        if (i % 2)
            walker_set_lazy(&walker, plan);
    }
    for (int i = 0; i < 2; i++) {
        seen = visit(&walker, AUTOMATON_ALL);
        assert_int_equal(seen.nodes, 150);
        assert_int_equal(seen.depth_sum, 50 * (1 + 2 + 3));
        assert_int_equal(seen.plans, 75);
    }
    seen = (struct seen){.nodes = 999};
    assert_int_equal(automaton_take(&walker, AUTOMATON_ALL, &list, NULL), FRIT_OK);
    assert_int_equal(automaton_visit(&walker, &list, see, &seen, NULL), FRIT_CANCELLED);
    automaton_list_fini(&list);
    plan_unref(plan);
    walker_fini(&walker);
    automaton_destroy(automaton);
}

/* Each answer is new until it was taken, and again if it is put back. */
static void test_new_answers(void **state)
{
    struct automaton *automaton = create(BIG);
    struct plan *plan = rig_plan(3, 0, NULL);
    struct automaton_list list;
    struct walker walker;

    (void)state;
    walker_init(&walker, automaton);
    for (uint64_t i = 0; i < 5; i++) {
        walk(&walker, 100 * i, 3);
        walker_set_sync(&walker, plan);
        walker_set_sync(&walker, plan);
    }
    assert_int_equal(visit(&walker, AUTOMATON_NEW).plans, 5);
    assert_int_equal(visit(&walker, AUTOMATON_NEW).nodes, 0);
    walk(&walker, 100, 3);
    walker_set_lazy(&walker, plan); /* a node that was taken */
    walk(&walker, 100, 2);
    walker_set_lazy(&walker, NULL); /* its parent */
    assert_int_equal(automaton_take(&walker, AUTOMATON_NEW, &list, NULL), FRIT_OK);
    assert_int_equal(list.count, 2);
    walk(&walker, 100, 2);
    walker_set_sync(&walker, plan); /* meanwhile */
    automaton_put_back(&walker, &list);
    automaton_list_fini(&list);
    assert_int_equal(visit(&walker, AUTOMATON_NEW).plans, 3);
    assert_int_equal(visit(&walker, AUTOMATON_NEW).nodes, 0);
    assert_int_equal(visit(&walker, AUTOMATON_ALL).plans, 7);
    plan_unref(plan);
    walker_fini(&walker);
    automaton_destroy(automaton);
}

/* ---- threads ---- */

struct worker {
    pthread_t thread;
    struct automaton *automaton;
    struct plan **plans; /* of the sequences */
    uint32_t seed;
    uint32_t found;
};

enum { SEQUENCES = 64, STEPS = 6, ROUNDS = 4000 };

/* Every thread must find plan w at the end of path w; some paths are walked by one thread only. */
static void *walk_sequences(void *ctx)
{
    struct worker *worker = ctx;
    struct walker walker;

    walker_init(&walker, worker->automaton);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t sequence;
        struct plan *plan;

        worker->seed = worker->seed * 1664525u + 1013904223u;
        sequence = worker->seed >> 16 & (SEQUENCES - 1);
        if (round % 5 == 4) {
            walk(&walker, (uint64_t)worker->seed << 20, 2);
            walker_intern(&walker, &worker->seed, sizeof(worker->seed));
            continue;
        }
        walk(&walker, 0, sequence % 4); /* some share their first keys */
        for (uint32_t i = 0; i < STEPS; i++)
            step(&walker, 1000 * (sequence + 1) + i);
        assert_int_equal(walker_intern(&walker, &sequence, sizeof(sequence)) == 0, 0);
        if (walker_lazy(&walker, &plan) == LAZY_UNKNOWN)
            walker_set_lazy(&walker, worker->plans[sequence]);
        else
            worker->found++;
        assert_ptr_equal(lazy_plan(&walker), worker->plans[sequence]);
        if (!walker_sync(&walker))
            walker_set_sync(&walker, worker->plans[sequence]);
        assert_ptr_equal(walker_sync(&walker), worker->plans[sequence]);
    }
    walker_fini(&walker);
    return NULL;
}

static void walk_in_threads(uint64_t bytes, bool turns)
{
    struct automaton *automaton = create(bytes);
    struct worker workers[THREADS];
    struct plan *plans[SEQUENCES];
    atomic_uint freed = 0;
    struct automaton_stats stats;

    for (uint32_t i = 0; i < SEQUENCES; i++) {
        plans[i] = rig_plan(STEPS, i, NULL);
        rig_watch(plans[i], &freed);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.automaton = automaton, .plans = plans, .seed = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, walk_sequences, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_true(workers[i].found > 0);
    }
    automaton_stats(automaton, &stats);
    assert_int_equal(stats.generations > 3, turns);
    if (!turns) {
        assert_int_equal(stats.plans, 2 * SEQUENCES);
        assert_int_equal(stats.nodes, 3 + SEQUENCES * STEPS + THREADS * ROUNDS / 5 * 2);
    }
    automaton_destroy(automaton);
    assert_int_equal(atomic_load(&freed), 0);
    for (uint32_t i = 0; i < SEQUENCES; i++)
        plan_unref(plans[i]); /* the last reference each */
    assert_int_equal(atomic_load(&freed), SEQUENCES);
}

static void test_threads(void **state)
{
    (void)state;
    walk_in_threads(BIG, false);
}

static void test_threads_and_generations(void **state)
{
    (void)state;
    walk_in_threads(512 << 10, true);
    walk_in_threads(0, true);
}

enum { NEW_SEQUENCES = 20000, STARTERS = 2 };

struct starter {
    pthread_t thread;
    struct automaton *automaton;
    atomic_uint *arrived;
};

/* Spinning lets both go within a few nanoseconds. */
static void meet(atomic_uint *arrived, uint32_t times)
{
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < times * STARTERS)
        sched_yield();
}

static void *walk_new_sequences(void *ctx)
{
    struct starter *starter = ctx;
    struct walker walker;

    walker_init(&walker, starter->automaton);
    for (uint64_t sequence = 0; sequence < NEW_SEQUENCES; sequence++) {
        meet(starter->arrived, (uint32_t)sequence + 1);
        walk(&walker, 10 * sequence, 2);
        walker_intern(&walker, &sequence, sizeof(sequence));
    }
    walker_fini(&walker);
    return NULL;
}

/* A sequence that several threads find missing at the same time is added once. */
static void test_made_once(void **state)
{
    struct automaton *automaton = create(BIG);
    struct starter starters[STARTERS];
    struct automaton_stats stats;
    atomic_uint arrived = 0;
    struct walker walker;

    (void)state;
    for (uint32_t i = 0; i < STARTERS; i++) {
        starters[i] = (struct starter){.automaton = automaton, .arrived = &arrived};
        assert_int_equal(
            pthread_create(&starters[i].thread, NULL, walk_new_sequences, &starters[i]), 0);
    }
    for (uint32_t i = 0; i < STARTERS; i++)
        pthread_join(starters[i].thread, NULL);
    automaton_stats(automaton, &stats);
    assert_int_equal(stats.nodes, 2 * NEW_SEQUENCES);
    walker_init(&walker, automaton);
    assert_int_equal(walker_intern(&walker, "new", 3), NEW_SEQUENCES + 1);
    walker_fini(&walker);
    automaton_destroy(automaton);
}

/* ---- memory ---- */

/* Whichever allocation fails, the walker goes on, and no plan that it finds is wrong. */
static void test_no_memory(void **state)
{
    struct plan *plan = rig_plan(2, 0, NULL);
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct automaton *automaton;
        frit_status status;

        failing_alloc_arm(n);
        status = automaton_create(4096, &automaton, NULL);
        if (status) {
            assert_int_equal(status, FRIT_NO_HOST_MEMORY);
            assert_null(automaton);
        } else {
            struct walker walker;

            walker_init(&walker, automaton);
            for (uint64_t i = 0; i < 300; i++) {
                struct plan *found;

                walk(&walker, 2 * i, 2);
                assert_int_equal(walker.depth, 2);
                walker_intern(&walker, &i, sizeof(i));
                walker_set_lazy(&walker, plan);
                walker_set_sync(&walker, plan);
                assert_true(walker.node || walker_lazy(&walker, &found) == LAZY_UNKNOWN);
                assert_true(!walker.node || lazy_plan(&walker) == plan);
                assert_true(!walker_sync(&walker) || walker_sync(&walker) == plan);
            }
            walker_fini(&walker);
            automaton_destroy(automaton);
        }
        hit = failing_alloc_disarm();
    }
    assert_int_equal(atomic_load(&plan->refs), 1);
    plan_unref(plan);
}

/* What is made of a saved plan takes its place in both answers; where nothing can be, they are
 * unknown, and what is set then is new. */
static void test_saved_plans(void **state)
{
    struct plan *made = rig_plan(1, 1, NULL), *other = rig_plan(1, 2, NULL), *saved, *found;
    struct op_key good = rig_key(1), bad = rig_key(2);
    struct automaton *automaton;
    struct automaton_list list;
    struct walker walker;

    (void)state;
    assert_int_equal(automaton_create(1 << 20, &automaton, NULL), FRIT_OK);
    assert_int_equal(plan_create_saved(1, "bytes", 5, &saved, NULL), FRIT_OK);
    walker_init(&walker, automaton);
    walker_step(&walker, &good);
    walker_set_lazy(&walker, saved);
    walker_set_sync(&walker, saved);
    walker_replace_saved(&walker, saved, made);
    walker_replace_saved(&walker, saved, other); /* too late */
    assert_int_equal(walker_lazy(&walker, &found), LAZY_RUN);
    assert_ptr_equal(found, made);
    assert_ptr_equal(walker_sync(&walker), made);
    walker_restart(&walker);
    walker_step(&walker, &bad);
    walker_set_lazy(&walker, saved);
    walker_set_sync(&walker, other);
    assert_int_equal(automaton_take(&walker, AUTOMATON_NEW, &list, NULL), FRIT_OK);
    automaton_list_fini(&list);
    walker_replace_saved(&walker, saved, NULL);
    assert_int_equal(walker_lazy(&walker, &found), LAZY_UNKNOWN);
    assert_ptr_equal(walker_sync(&walker), other);
    walker_set_lazy(&walker, made);
    assert_int_equal(walker_lazy(&walker, &found), LAZY_RUN);
    assert_ptr_equal(found, made);
    assert_int_equal(automaton_take(&walker, AUTOMATON_NEW, &list, NULL), FRIT_OK);
    assert_int_equal(list.count, 1);
    automaton_list_fini(&list);
    walker_fini(&walker);
    automaton_destroy(automaton);
    assert_true(plan_is_unshared(saved) && plan_is_unshared(made) && plan_is_unshared(other));
    plan_unref(saved);
    plan_unref(made);
    plan_unref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved_plans),
        cmocka_unit_test(test_exact_keys),
        cmocka_unit_test(d4_plans_are_shared),
        cmocka_unit_test(d6_first_answer_stays),
        cmocka_unit_test(d7_d9_answers_stand_at_their_depth),
        cmocka_unit_test(d8_another_end_has_no_answer),
        cmocka_unit_test(d12_generations),
        cmocka_unit_test(test_interned),
        cmocka_unit_test(test_visit),
        cmocka_unit_test(test_new_answers),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_threads_and_generations),
        cmocka_unit_test(test_made_once),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
