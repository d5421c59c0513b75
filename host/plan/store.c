/* SPDX-License-Identifier: Apache-2.0 */
/* A row per node of the trie that has an answer or leads to one.  The numbers of interned bytes are
 * of this process: a saved key has number 1 in their place, and the bytes follow it.
 *
 * Nothing that is read is believed: a row whose key, parent or plan cannot be is left out, and so
 * is what hangs below it. */
#include "plan/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"
#include "plan/blob.h"
#include "plan/database.h"
#include "plan/key.h"

enum { FILE_FACTOR = 4, SAVED_NUMBER = 1 };

/* In the place of the bytes of a sync plan that is the lazy one as well. */
static const struct database_bytes as_lazy = {"", 1};

/* ---- keys ---- */

/* False if its interned bytes are gone; then nobody meets it again. */
static bool save_key(const struct walker *walker, const struct op_key *key, struct str *out)
{
    uint32_t id = key_interned(key);
    struct op_key saved = *key;
    const void *bytes = NULL;
    size_t n_bytes = 0;

    if (id && !(bytes = walker_interned(walker, id, &n_bytes)))
        return false;
    if (id)
        key_with_interned(&saved, SAVED_NUMBER);
    str_add(out, (const char *)&saved, sizeof(saved));
    if (n_bytes)
        str_add(out, bytes, n_bytes);
    return true;
}

static bool load_key(struct walker *walker, const struct database_bytes *saved, struct op_key *key)
{
    size_t n_bytes = saved->n_bytes - sizeof(*key);
    uint32_t id;

    if (saved->n_bytes < sizeof(*key))
        return false;
    memcpy(key, saved->bytes, sizeof(*key));
    if (key_interned(key) == 0)
        return n_bytes == 0;
    if (key_interned(key) != SAVED_NUMBER || n_bytes == 0)
        return false;
    id = walker_intern(walker, (const char *)saved->bytes + sizeof(*key), n_bytes);
    if (id)
        key_with_interned(key, id);
    return id && key_interned(key) == id; /* a packed key has no room for a large number */
}

/* ---- saving ---- */

/* A node on the way to the one that is shown. */
struct saved {
    struct str key;
    int64_t node; /* 0: not in the file yet */
    bool lost;    /* its key or a parent's cannot be saved */
};

struct saver {
    const struct store_context *context;
    struct walker walker;
    struct database *database;
    int64_t space;
    struct saved *way; /* [depth]; [0] is the root */
    uint32_t n_way, way_room;
    struct str plan, sync;
};

static struct database_bytes bytes_of(const struct str *str)
{
    return (struct database_bytes){str->text, str->length};
}

/* Memory alone fails: a plan that cannot be saved gives no bytes. */
static frit_status write_plan(struct saver *saver, const struct plan *plan, struct str *out,
                              frit_err *err)
{
    frit_err why = ERR_INIT;
    frit_status status;

    out->length = 0;
    if (!plan)
        return FRIT_OK;
    status = blob_write(plan, saver->context, out, &why);
    if (!status)
        return FRIT_OK;
    out->length = 0;
    log_write(FRIT_LOG_DEBUG, "plan", "a plan is not saved: %s", why.text);
    return status == FRIT_NO_HOST_MEMORY ? fail_memory(err, 0) : FRIT_OK;
}

/* Puts the nodes of the way that are not in the file yet, the last one with its answers. */
static void put_way(struct saver *saver, uint32_t depth, struct database_node *answers)
{
    for (uint32_t d = 1; d <= depth; d++) {
        struct saved *saved = &saver->way[d];
        struct database_node none = {0}, *node = d == depth ? answers : &none;

        if (saved->node)
            continue;
        node->parent = saver->way[d - 1].node;
        node->key = bytes_of(&saved->key);
        saved->node = database_put(saver->database, saver->space, node);
        if (!saved->node)
            return;
    }
}

static frit_status enter_way(struct saver *saver, const struct automaton_place *place,
                             frit_err *err)
{
    struct saved *saved;

    while (saver->n_way <= place->depth) {
        if (!array_grow(&saver->way, &saver->way_room, saver->n_way, 1, sizeof(*saver->way)))
            return fail_memory(err, sizeof(*saver->way));
        saver->way[saver->n_way++] = (struct saved){0};
    }
    saved = &saver->way[place->depth];
    saved->key.length = 0;
    saved->node = 0;
    saved->lost =
        saver->way[place->depth - 1].lost || !save_key(&saver->walker, place->key, &saved->key);
    return saved->key.failed ? fail_memory(err, sizeof(*place->key)) : FRIT_OK;
}

static frit_status save_place(void *ctx, const struct automaton_place *place, frit_err *err)
{
    struct saver *saver = ctx;
    struct database_node answers = {0};

    TRY(enter_way(saver, place, err));
    if (saver->way[place->depth].lost)
        return FRIT_OK;
    TRY(write_plan(saver, place->plan, &saver->plan, err));
    TRY(write_plan(saver, place->sync == place->plan ? NULL : place->sync, &saver->sync, err));
    answers.plan = bytes_of(&saver->plan);
    answers.sync = bytes_of(&saver->sync);
    if (place->lazy == LAZY_GO_ON || answers.plan.n_bytes)
        answers.lazy = (int64_t)place->lazy;
    if (answers.plan.n_bytes && place->sync == place->plan)
        answers.sync = as_lazy;
    if (answers.lazy || answers.sync.n_bytes)
        put_way(saver, place->depth, &answers);
    return FRIT_OK;
}

static frit_status save_all(struct saver *saver, struct automaton *automaton, bool *damaged,
                            frit_err *err)
{
    const struct store_context *context = saver->context;
    struct automaton_stats stats;
    frit_status status;

    *damaged = false;
    TRY(database_open(context->path, true, &saver->database, err));
    if (!saver->database)
        return FRIT_OK;
    automaton_stats(automaton, &stats);
    database_limit(saver->database, stats.store_bytes > UINT64_MAX / FILE_FACTOR
                                        ? UINT64_MAX
                                        : stats.store_bytes * FILE_FACTOR);
    saver->space = database_space(saver->database, context->space);
    walker_init(&saver->walker, automaton);
    status = automaton_visit(&saver->walker, save_place, saver, err);
    walker_fini(&saver->walker);
    *damaged = database_close(saver->database, status == FRIT_OK);
    return status;
}

frit_status store_save(const struct store_context *context, struct automaton *automaton,
                       frit_err *err)
{
    struct saver saver = {.context = context};
    bool damaged;
    frit_status status = save_all(&saver, automaton, &damaged, err);

    if (!status && damaged)
        status = save_all(&saver, automaton, &damaged, err);
    for (uint32_t i = 0; i < saver.n_way; i++)
        str_fini(&saver.way[i].key);
    free(saver.way);
    str_fini(&saver.plan);
    str_fini(&saver.sync);
    return status;
}

/* ---- loading ---- */

struct loaded {
    int64_t node;
    struct automaton_node *place;
    uint32_t depth;
};

struct loader {
    const struct store_context *context;
    struct walker walker;
    struct loaded *nodes; /* by number, ascending */
    uint32_t n_nodes, nodes_room;
    uint32_t n_plans, n_refused;
};

static const struct loaded *find_loaded(const struct loader *loader, int64_t node)
{
    uint32_t low = 0, high = loader->n_nodes;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (loader->nodes[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low < loader->n_nodes && loader->nodes[low].node == node ? &loader->nodes[low] : NULL;
}

/* Goes to the node of a row; false if there is no way there. */
static bool enter_row(struct loader *loader, const struct database_node *row)
{
    const struct loaded *parent = find_loaded(loader, row->parent);
    struct op_key key;

    if (!parent || row->node <= row->parent || !load_key(&loader->walker, &row->key, &key))
        return false;
    loader->walker.node = parent->place;
    loader->walker.depth = parent->depth;
    walker_step(&loader->walker, &key);
    return loader->walker.node != NULL;
}

/* NULL if there is none or it cannot be rebuilt; memory fails.  A lazy plan runs over some of the
 * ops on the way, a sync plan over all of them. */
static frit_status read_plan(struct loader *loader, const struct database_bytes *bytes, bool all,
                             struct plan **out, frit_err *err)
{
    uint32_t depth = loader->walker.depth;
    frit_err why = ERR_INIT;
    frit_status status;

    *out = NULL;
    if (!bytes->n_bytes)
        return FRIT_OK;
    status = blob_read(bytes->bytes, bytes->n_bytes, loader->context, out, &why);
    if (!status && (*out)->n_calls <= depth && (!all || (*out)->n_calls == depth))
        return FRIT_OK;
    plan_unref(*out);
    *out = NULL;
    if (loader->n_refused++ == 0)
        log_write(FRIT_LOG_DEBUG, "plan", "a saved plan is not used: %s",
                  status ? why.text : "it covers other ops than its key");
    return status == FRIT_NO_HOST_MEMORY ? fail_memory(err, bytes->n_bytes) : FRIT_OK;
}

static frit_status take_answers(struct loader *loader, const struct database_node *row,
                                frit_err *err)
{
    const bool shared = row->sync.n_bytes == as_lazy.n_bytes;
    struct plan *plan = NULL, *sync = NULL;
    frit_status status = FRIT_OK;

    if (row->lazy == LAZY_RUN)
        status = read_plan(loader, &row->plan, shared, &plan, err);
    if (!status && shared)
        sync = plan ? plan_ref(plan) : NULL;
    else if (!status)
        status = read_plan(loader, &row->sync, true, &sync, err);
    if (plan || row->lazy == LAZY_GO_ON)
        walker_set_lazy(&loader->walker, plan);
    if (sync)
        walker_set_sync(&loader->walker, sync);
    loader->n_plans += (plan ? 1U : 0) + (sync ? 1U : 0);
    plan_unref(plan);
    plan_unref(sync);
    return status;
}

static frit_status add_loaded(struct loader *loader, int64_t node, frit_err *err)
{
    if (!array_grow(&loader->nodes, &loader->nodes_room, loader->n_nodes, 1,
                    sizeof(*loader->nodes)))
        return fail_memory(err, sizeof(*loader->nodes));
    loader->nodes[loader->n_nodes++] =
        (struct loaded){.node = node, .place = loader->walker.node, .depth = loader->walker.depth};
    return FRIT_OK;
}

static frit_status load_rows(struct loader *loader, struct database *database, int64_t space,
                             frit_err *err)
{
    struct automaton *automaton = loader->walker.automaton;
    struct automaton_stats before, now;
    struct database_node row;

    automaton_stats(automaton, &before);
    TRY(add_loaded(loader, 0, err)); /* the root */
    while (database_next(database, space, &row)) {
        if (!enter_row(loader, &row))
            continue;
        TRY(add_loaded(loader, row.node, err));
        TRY(take_answers(loader, &row, err));
        automaton_stats(automaton, &now);
        if (now.generations != before.generations)
            break; /* full: more would push out what came first */
    }
    return FRIT_OK;
}

frit_status store_load(const struct store_context *context, struct automaton *automaton,
                       uint32_t *n_plans, frit_err *err)
{
    struct loader loader = {.context = context};
    frit_status status = FRIT_OK;
    struct database *database;
    int64_t space;

    *n_plans = 0;
    TRY(database_open(context->path, false, &database, err));
    space = database ? database_space(database, context->space) : 0;
    if (space) {
        walker_init(&loader.walker, automaton);
        status = load_rows(&loader, database, space, err);
        walker_fini(&loader.walker);
    }
    database_close(database, false);
    free(loader.nodes);
    *n_plans = loader.n_plans;
    return status;
}
