/* SPDX-License-Identifier: Apache-2.0 */
/* One row per node of the trie that has an answer or leads to one.  Numbers of interned bytes are
 * local to the process: a saved key has number 1 instead, followed by the bytes.
 *
 * Loaded data are not trusted: a row with an invalid key, parent or plan is skipped, with all rows
 * below it. */
#include "plan/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "plan/blob.h"
#include "plan/key.h"
#include "plan/plan.h"
#include "plan/rows.h"

enum {
    FILE_FACTOR = 4,
    SAVED_NUMBER = 1,
    /* Percent of the patience: */
    LOAD_PART = 30,
    HURRIED_PART = 10, /* of a background save that the end waits for */
    SAVE_PART = 50,
    BACKGROUND_WAIT_MS = 5000
};

static const int64_t ns_per_ms = 1000000;

/* Stands for a sync plan that is the lazy plan too. */
static const struct database_bytes as_lazy = {"", 1};

/* ---- keys ---- */

/* Returns false if the interned bytes were dropped; then no walker uses the key any more. */
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
    return id && key_interned(key) == id; /* a packed key cannot have a large number */
}

/* ---- saving ---- */

/* The mark of a node that cannot be saved, because its key or an ancestor's cannot. */
enum { LOST = -1 };

struct saver {
    const struct store_context *context;
    struct walker walker;
    struct automaton_list list;
    struct database *database;
    struct str key, plan, sync;
    uint64_t n_nodes;
};

static struct database_bytes bytes_of(const struct str *str)
{
    return (struct database_bytes){str->text, str->length};
}

/* Serialises a plan; leaves `out` empty if it cannot be saved.  Fails only if out of memory. */
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

static frit_status write_answers(struct saver *saver, const struct automaton_place *place,
                                 struct plan_row *out, frit_err *err)
{
    TRY(write_plan(saver, place->plan, &saver->plan, err));
    TRY(write_plan(saver, place->sync == place->plan ? NULL : place->sync, &saver->sync, err));
    out->plan = bytes_of(&saver->plan);
    out->sync = bytes_of(&saver->sync);
    if (place->lazy == LAZY_GO_ON || out->plan.n_bytes)
        out->lazy = (int64_t)place->lazy;
    if (out->plan.n_bytes && place->sync == place->plan)
        out->sync = as_lazy;
    return FRIT_OK;
}

static frit_status save_place(void *ctx, const struct automaton_place *place, frit_err *err)
{
    struct saver *saver = ctx;
    struct plan_row node = {.parent = place->parent};

    if (place->parent == LOST || *place->mark == LOST) {
        *place->mark = LOST;
        return FRIT_OK;
    }
    saver->key.length = 0;
    if (!save_key(&saver->walker, place->key, &saver->key)) {
        *place->mark = LOST;
        return FRIT_OK;
    }
    if (saver->key.failed)
        return fail_memory(err, sizeof(*place->key));
    node.key = bytes_of(&saver->key);
    saver->n_nodes += place->lazy || place->sync;
    TRY(write_answers(saver, place, &node, err));
    *place->mark = plan_row_put(saver->database, &node);
    if (!*place->mark)
        *place->mark = LOST;
    return FRIT_OK;
}

/* Whether the rows of the namespace exceed their limit. */
static bool is_full(const struct database_space *space, struct automaton *automaton)
{
    struct automaton_stats stats;

    automaton_stats(automaton, &stats);
    return space->bytes < 0 || (uint64_t)space->bytes / FILE_FACTOR > stats.store_bytes;
}

/* In a transaction: writes new answers, or all if the namespace is new or was cleared. */
static frit_status put_answers(struct saver *saver, frit_err *err)
{
    const struct database_space *space = database_space(saver->database, saver->context->space);
    bool full = is_full(space, saver->walker.automaton);

    if (full)
        database_clear_space(saver->database);
    TRY(automaton_take(&saver->walker, full || space->is_new ? AUTOMATON_ALL : AUTOMATON_NEW,
                       &saver->list, err));
    return automaton_visit(&saver->walker, &saver->list, save_place, saver, err);
}

static struct database_patience save_patience(const struct store_context *context)
{
    const int64_t one_percent_ns = context->wait_ms * (ns_per_ms / 100);

    return (struct database_patience){.wait_ns = context->ending ? BACKGROUND_WAIT_MS * ns_per_ms
                                                                 : one_percent_ns * SAVE_PART,
                                      .ending = context->ending,
                                      .hurried_ns = one_percent_ns * HURRIED_PART};
}

/* Saves once; answers that did not reach the file are marked as not taken again. */
static frit_status save_once(struct saver *saver, struct automaton *automaton, bool *damaged,
                             struct store_saved *out, frit_err *err)
{
    const struct database_patience patience = save_patience(saver->context);
    frit_status status;

    *damaged = false;
    TRY(database_open(&plan_database, saver->context->path, true, &patience, &saver->database,
                      err));
    if (!saver->database)
        return FRIT_OK;
    walker_init(&saver->walker, automaton);
    status = put_answers(saver, err);
    if (status || !database_commit(saver->database))
        automaton_put_back(&saver->walker, &saver->list);
    else
        *out = (struct store_saved){saver->n_nodes, database_rows_written(saver->database)};
    automaton_list_fini(&saver->list);
    walker_fini(&saver->walker);
    *damaged = database_close(saver->database).damaged;
    return status;
}

frit_status store_save(const struct store_context *context, struct automaton *automaton,
                       struct store_saved *out, frit_err *err)
{
    struct saver saver = {.context = context};
    bool damaged;
    frit_status status;

    *out = (struct store_saved){0};
    status = save_once(&saver, automaton, &damaged, out, err);
    if (!status && damaged)
        status = save_once(&saver, automaton, &damaged, out, err);
    str_fini(&saver.key);
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
    struct loaded *nodes; /* in ascending order of numbers */
    uint32_t n_nodes, nodes_capacity;
    uint32_t n_plans, n_rejected;
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

/* Moves the walker to the node of a row; false if its parent was not loaded. */
static bool enter_row(struct loader *loader, const struct plan_row *row)
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

/* Reads a plan; NULL if there is none or it is damaged or foreign.  A lazy plan covers a prefix of
 * the ops on the path, a sync plan all of them.  Fails only if out of memory. */
static frit_status read_plan(struct loader *loader, const struct database_bytes *bytes, bool all,
                             struct plan **out, frit_err *err)
{
    uint32_t depth = loader->walker.depth;
    frit_err why = ERR_INIT;
    frit_status status;

    *out = NULL;
    if (!bytes->n_bytes)
        return FRIT_OK;
    status = blob_load(bytes->bytes, bytes->n_bytes, loader->context, out, &why);
    if (!status && (*out)->n_calls <= depth && (!all || (*out)->n_calls == depth))
        return FRIT_OK;
    plan_unref(*out);
    *out = NULL;
    if (loader->n_rejected++ == 0)
        log_write(FRIT_LOG_DEBUG, "plan", "a saved plan is not used: %s",
                  status ? why.text : "it does not cover the ops of its key");
    return status == FRIT_NO_HOST_MEMORY ? fail_memory(err, bytes->n_bytes) : FRIT_OK;
}

static frit_status take_answers(struct loader *loader, const struct plan_row *row, frit_err *err)
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
    if (!array_grow(&loader->nodes, &loader->nodes_capacity, loader->n_nodes, 1,
                    sizeof(*loader->nodes)))
        return fail_memory(err, sizeof(*loader->nodes));
    loader->nodes[loader->n_nodes++] =
        (struct loaded){.node = node, .place = loader->walker.node, .depth = loader->walker.depth};
    return FRIT_OK;
}

static frit_status load_rows(struct loader *loader, struct database *database, frit_err *err)
{
    struct automaton *automaton = loader->walker.automaton;
    struct automaton_stats before, now;
    sqlite3_stmt *cursor = NULL;
    struct plan_row row;

    automaton_stats(automaton, &before);
    TRY(add_loaded(loader, 0, err)); /* the root */
    while (plan_row_next(database, &cursor, &row)) {
        if (!enter_row(loader, &row))
            continue;
        TRY(add_loaded(loader, row.node, err));
        TRY(take_answers(loader, &row, err));
        automaton_stats(automaton, &now);
        if (now.generations != before.generations)
            break; /* full: more would evict what was loaded first */
    }
    return FRIT_OK;
}

/* Marks loaded answers as taken, since they are in the file already. */
static frit_status mark_loaded_taken(struct loader *loader, frit_err *err)
{
    struct automaton_list list;

    walker_restart(&loader->walker);
    TRY(automaton_take(&loader->walker, AUTOMATON_NEW, &list, err));
    automaton_list_fini(&list);
    return FRIT_OK;
}

frit_status store_load(const struct store_context *context, struct automaton *automaton,
                       struct store_loaded *out, frit_err *err)
{
    const struct database_patience patience = {.wait_ns = context->wait_ms * (ns_per_ms / 100) *
                                                          LOAD_PART};
    struct loader loader = {.context = context};
    const struct database_space *space;
    frit_status status = FRIT_OK;
    struct database *database;

    *out = (struct store_loaded){0};
    TRY(database_open(&plan_database, context->path, false, &patience, &database, err));
    if (!database)
        return FRIT_OK;
    space = database_space(database, context->space);
    if (space->number) {
        walker_init(&loader.walker, automaton);
        status = load_rows(&loader, database, err);
        if (!status)
            status = mark_loaded_taken(&loader, err);
        walker_fini(&loader.walker);
    }
    out->days_unused = space->days_unused;
    out->n_plans = loader.n_plans;
    database_close(database);
    free(loader.nodes);
    return status;
}
