/* SPDX-License-Identifier: Apache-2.0 */
#include "host/plan/store_rig.h"

#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "plan/blob.h"
#include "plan/key.h"
#include "plan/plan.h"
#include "plan/program.h"
#include "plan/relative.h"

enum { BIG = 1 << 28 };

struct store_rig store_rig_open(void)
{
    struct store_rig rig = {.folder = "/tmp/frit-store-XXXXXX"};

    assert_non_null(mkdtemp(rig.folder));
    snprintf(rig.path, sizeof(rig.path), "%s/a/b/plans", rig.folder);
    return rig;
}

struct store_context *store_rig_context(struct store_rig *rig)
{
    rig->context = rig_context(&rig->fuser, rig->path);
    return &rig->context;
}

void store_rig_close(struct store_rig *rig)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", rig->folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(atomic_load(&rig_live_programs), 0);
}

struct automaton *store_rig_automaton(void)
{
    struct automaton *automaton;

    assert_int_equal(automaton_create(BIG, &automaton, NULL), FRIT_OK);
    return automaton;
}

void store_rig_walk(struct walker *walker, uint64_t first, uint32_t depth)
{
    walker_restart(walker);
    for (uint64_t number = first; number < first + depth; number++) {
        struct op_key key = rig_key(number);
        char text[32];
        size_t n =
            (size_t)snprintf(text, sizeof(text), "attributes %llu", (unsigned long long)number % 7);

        if (number % 3 == 0)
            key = (struct op_key){{UINT64_C(2) << 62}};
        if (number % 3 == 0)
            n = (size_t)snprintf(text, sizeof(text), "key %llu", (unsigned long long)number);
        if (number % 3 == 0 || number % 2)
            key_with_interned(&key, walker_intern(walker, text, n));
        walker_step(walker, &key);
    }
}

uint32_t store_rig_learn(struct automaton *automaton, uint32_t first, uint32_t n_sequences)
{
    struct walker walker;
    uint32_t n_plans = 0;

    walker_init(&walker, automaton);
    for (uint32_t w = first; w < first + n_sequences; w++) {
        struct program *program = w % 2 ? rig_program(w % 50 * 10, (uint8_t)w, true) : NULL;
        struct plan *part = rig_plan(3, w, program), *all = rig_plan(5, w, program);

        store_rig_walk(&walker, 10 * w, 1);
        walker_set_lazy(&walker, NULL);
        store_rig_walk(&walker, 10 * w, 5);
        walker_set_lazy(&walker, w % 3 ? part : all);
        walker_set_sync(&walker, all);
        n_plans += 2;
        plan_unref(part);
        plan_unref(all);
        program_unref(program);
    }
    walker_fini(&walker);
    return n_plans;
}

struct plan *store_rig_rebuild(const struct store_context *context, const struct plan *saved,
                               uint32_t w)
{
    struct relative relative;
    struct plan *plan;

    rig_relative(saved->n_calls, w, &relative);
    if (blob_rebuild(saved, context, &relative, relative.n_ops, &plan, NULL))
        assert_null(plan);
    relative_fini(&relative);
    return plan;
}

struct store_saved store_rig_save(const struct store_context *context, struct automaton *automaton)
{
    struct store_saved saved;

    assert_int_equal(store_save(context, automaton, &saved, NULL), FRIT_OK);
    return saved;
}

void store_rig_save_anew(const struct store_context *context, uint32_t n_sequences)
{
    struct automaton *automaton = store_rig_automaton();

    store_rig_learn(automaton, 1, n_sequences);
    store_rig_save(context, automaton);
    automaton_destroy(automaton);
}

uint32_t store_rig_load(const struct store_context *context, struct automaton *automaton)
{
    struct store_loaded loaded;

    assert_int_equal(store_load(context, automaton, &loaded, NULL), FRIT_OK);
    return loaded.n_plans;
}

uint32_t store_rig_count(const struct store_context *context)
{
    struct automaton *automaton = store_rig_automaton();
    uint32_t n_plans = store_rig_load(context, automaton);

    automaton_destroy(automaton);
    return n_plans;
}

bool store_rig_has(const struct store_rig *rig, const char *suffix)
{
    char path[128];

    snprintf(path, sizeof(path), "%s%s", rig->path, suffix);
    return access(path, F_OK) == 0;
}
