/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map of entries by key.  Texts from the file are parsed when their key is looked up.
 *
 * Each access to the file opens it anew, in one transaction: it may be replaced meanwhile, and a
 * process that stops within harms nobody.  `file_lock` is held during an access, `lock` for the
 * map; the first is taken before the second. */
#include "tune/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "tune/rows.h"

enum {
    RENEW_DAYS = 7,       /* a namespace that is only read says so that often */
    LOOK_AGAIN_MS = 100,  /* after a refused claim */
    MAX_BYTES = 32 << 20, /* of a namespace, unless the parameters have a limit */
    NS_PER_MS = 1000000
};

struct tune_entry {
    char *text; /* NULL, or from the file and not parsed yet */
    size_t text_bytes;
    struct tune_record *record; /* NULL: none, or not parsed yet */
    bool claimed;               /* by this store */
    int64_t refused_until;      /* on the monotonic clock; 0: no */
};

struct tune_store {
    char *path, *space;
    bool named;
    int64_t max_bytes;
    atomic_bool loaded;
    pthread_mutex_t file_lock;    /* of the next three, and the file */
    struct tune_claim owner;      /* of this store's claims */
    int64_t left_ns;              /* of the patience */
    bool unwritable;              /* or nothing may be written */
    pthread_mutex_t lock;         /* of the rest */
    struct map entries;           /* of struct tune_entry, by key */
    struct tune_record **retired; /* replaced, but may still be used */
    uint32_t n_retired, retired_capacity;
};

/* ---- entries ---- */

static void entry_destroy(void *value)
{
    struct tune_entry *entry = value;

    tune_record_destroy(entry->record);
    free(entry->text);
    free(entry);
}

/* Inside the lock, as all below; NULL if out of memory. */
static struct tune_entry *entry_of(struct tune_store *store, const void *key, size_t key_bytes)
{
    struct tune_entry *entry = map_get(&store->entries, key, key_bytes);

    if (entry)
        return entry;
    entry = calloc(1, sizeof(*entry));
    if (entry && !map_add(&store->entries, key, key_bytes, entry)) {
        free(entry);
        return NULL;
    }
    return entry;
}

/* A text that is not of this key is as if it were not there. */
static void parse_entry(struct tune_entry *entry, const void *key, size_t key_bytes)
{
    struct tune_text text = {entry->text, entry->text_bytes, 0};
    frit_err why = ERR_INIT;

    if (tune_record_parse(&text, &entry->record, &why)) {
        log_write(FRIT_LOG_DEBUG, "tune", "a decision is not used: %s", why.text);
    } else if (entry->record->key_bytes != key_bytes ||
               memcmp(entry->record->key, key, key_bytes) != 0) {
        tune_record_destroy(entry->record);
        entry->record = NULL;
    }
    free(entry->text);
    entry->text = NULL;
}

static const struct tune_record *entry_record(struct tune_entry *entry, const void *key,
                                              size_t key_bytes)
{
    if (entry && entry->text)
        parse_entry(entry, key, key_bytes);
    return entry ? entry->record : NULL;
}

/* Puts a record, or with NULL none, in the place of the entry's.  False: out of memory. */
static bool replace_record(struct tune_store *store, struct tune_entry *entry,
                           struct tune_record *record)
{
    if (entry->record && !array_grow(&store->retired, &store->retired_capacity, store->n_retired, 1,
                                     sizeof(*store->retired)))
        return false;
    if (entry->record)
        store->retired[store->n_retired++] = entry->record;
    free(entry->text);
    entry->text = NULL;
    entry->record = record;
    return true;
}

/* Keeps the text of a row, unless this process has a record of its own. */
static void keep_text(struct tune_store *store, const struct tune_row *row)
{
    struct tune_entry *entry = entry_of(store, row->key.bytes, row->key.n_bytes);
    char *text;

    if (!entry || entry->record || !(text = malloc(row->text.n_bytes + 1)))
        return;
    if (row->text.n_bytes)
        memcpy(text, row->text.bytes, row->text.n_bytes);
    free(entry->text);
    entry->text = text;
    entry->text_bytes = row->text.n_bytes;
}

/* ---- the file ---- */

/* What is done in a transaction; false: nothing is to be committed. */
typedef bool transaction(struct tune_store *store, struct database *database, void *ctx);

/* Nothing more is said of a file for which the patience was exhausted. */
static void note_unwritable(struct tune_store *store, bool exhausted)
{
    if (!store->unwritable && !exhausted)
        log_write(store->named ? FRIT_LOG_WARN : FRIT_LOG_DEBUG, "tune",
                  "%s cannot be written: decisions last until this process ends; name another "
                  "file in [tune] store, or none",
                  store->path);
    store->unwritable = true;
}

/* Inside the lock of the file; true: `fn` has run and what it wrote is in the file.  A damaged file
 * is begun anew. */
static bool transact(struct tune_store *store, bool write, transaction *fn, void *ctx)
{
    bool done = false, damaged = true, exhausted = store->left_ns <= 0;

    if (!store->path || (write && store->unwritable))
        return false;
    for (int tries = 0; tries < 2 && damaged && !done && store->left_ns > 0; tries++) {
        const struct database_patience patience = {.wait_ns = store->left_ns};
        struct database *database;
        struct database_end end;
        bool wanted;

        if (database_open(&tune_database, store->path, write, &patience, &database, NULL) ||
            !database)
            break;
        database_space(database, store->space);
        wanted = fn(store, database, ctx);
        done = write && wanted ? database_commit(database) : !database_failed(database);
        end = database_close(database);
        store->left_ns -= end.waited_ns;
        damaged = write && end.damaged;
        exhausted = end.exhausted;
    }
    if (write && !done)
        note_unwritable(store, exhausted);
    return done;
}

/* ---- loading ---- */

static bool load_rows(struct tune_store *store, struct database *database, void *ctx)
{
    const struct database_space *space = database_selected(database);
    sqlite3_stmt *cursor = NULL;
    struct tune_row row;

    *(int64_t *)ctx = space->days_unused;
    pthread_mutex_lock(&store->lock);
    while (space->number && tune_row_next(database, &cursor, &row))
        keep_text(store, &row);
    pthread_mutex_unlock(&store->lock);
    return false;
}

static bool renew(struct tune_store *store, struct database *database, void *ctx)
{
    (void)store;
    (void)database;
    (void)ctx;
    return true; /* committing renews it */
}

static void load_once(struct tune_store *store)
{
    int64_t days_unused = 0;

    if (atomic_load_explicit(&store->loaded, memory_order_acquire))
        return;
    pthread_mutex_lock(&store->file_lock);
    if (!atomic_load_explicit(&store->loaded, memory_order_relaxed)) {
        if (transact(store, false, load_rows, &days_unused) && days_unused >= RENEW_DAYS)
            transact(store, true, renew, NULL);
        atomic_store_explicit(&store->loaded, true, memory_order_release);
    }
    pthread_mutex_unlock(&store->file_lock);
}

/* ---- records ---- */

const struct tune_record *tune_store_find(struct tune_store *store, const void *key,
                                          size_t key_bytes)
{
    const struct tune_record *record;

    load_once(store);
    pthread_mutex_lock(&store->lock);
    record = entry_record(map_get(&store->entries, key, key_bytes), key, key_bytes);
    pthread_mutex_unlock(&store->lock);
    return record;
}

static bool write_record(struct tune_store *store, struct database *database, void *ctx)
{
    const struct tune_row *row = ctx;
    const int64_t bytes = database_selected(database)->bytes;

    if (bytes < 0)
        database_clear_space(database);
    else if (bytes > store->max_bytes)
        tune_row_trim(database);
    tune_row_add(database, row);
    tune_row_drop_claim(database, &row->key, &store->owner);
    return true;
}

static void save(struct tune_store *store, const struct tune_record *record)
{
    struct str text = {0};
    struct tune_row row;

    tune_record_print(record, &text);
    if (!text.failed) {
        row = (struct tune_row){.key = {record->key, record->key_bytes},
                                .text = {text.text, text.length}};
        pthread_mutex_lock(&store->file_lock);
        transact(store, true, write_record, &row);
        pthread_mutex_unlock(&store->file_lock);
    }
    str_fini(&text);
}

frit_status tune_store_add(struct tune_store *store, const struct tune_record *record,
                           frit_err *err)
{
    struct tune_record *copy;
    struct tune_entry *entry;
    bool kept;

    TRY(tune_record_copy(record, &copy, err));
    load_once(store);
    pthread_mutex_lock(&store->lock);
    entry = entry_of(store, copy->key, copy->key_bytes);
    kept = entry && replace_record(store, entry, copy);
    if (kept)
        entry->claimed = false;
    pthread_mutex_unlock(&store->lock);
    if (!kept) {
        tune_record_destroy(copy);
        return fail_memory(err, sizeof(*copy));
    }
    save(store, copy);
    return FRIT_OK;
}

static bool delete_rows(struct tune_store *store, struct database *database, void *ctx)
{
    (void)store;
    tune_row_forget(database, ctx);
    return true;
}

bool tune_store_forget(struct tune_store *store, const void *key, size_t key_bytes)
{
    struct database_bytes bytes = {key, key_bytes};
    bool done = true;

    load_once(store);
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->entries.capacity; i++) {
        struct map_entry *place = &store->entries.entries[i];

        if (place->key &&
            (!key || (place->key_bytes == key_bytes && memcmp(place->key, key, key_bytes) == 0)))
            done &= replace_record(store, place->value, NULL);
    }
    pthread_mutex_unlock(&store->lock);
    pthread_mutex_lock(&store->file_lock);
    done &= !store->path || transact(store, true, delete_rows, key ? &bytes : NULL);
    pthread_mutex_unlock(&store->file_lock);
    return done;
}

static int in_order(const void *a, const void *b)
{
    const struct tune_record *x = *(const struct tune_record *const *)a;
    const struct tune_record *y = *(const struct tune_record *const *)b;
    const size_t n = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
    int order = strcmp(x->what, y->what);

    if (!order)
        order = memcmp(x->key, y->key, n);
    return order ? order : (x->key_bytes > y->key_bytes) - (x->key_bytes < y->key_bytes);
}

/* Allocated; their number in *count.  NULL: out of memory. */
static const struct tune_record **all_records(struct tune_store *store, size_t *count)
{
    const struct tune_record **list;

    pthread_mutex_lock(&store->lock);
    *count = 0;
    list = calloc(store->entries.count + 1, sizeof(*list));
    for (size_t i = 0; list && i < store->entries.capacity; i++) {
        const struct map_entry *place = &store->entries.entries[i];

        if (place->key && (list[*count] = entry_record(place->value, place->key, place->key_bytes)))
            ++*count;
    }
    pthread_mutex_unlock(&store->lock);
    return list;
}

frit_status tune_store_each(struct tune_store *store,
                            void (*fn)(void *ctx, const struct tune_record *record), void *ctx,
                            frit_err *err)
{
    const struct tune_record **list;
    size_t count;

    load_once(store);
    list = all_records(store, &count);
    if (!list)
        return fail_memory(err, sizeof(*list));
    qsort(list, count, sizeof(*list), in_order);
    for (size_t i = 0; i < count; i++)
        fn(ctx, list[i]);
    free(list);
    return FRIT_OK;
}

/* ---- claims ---- */

struct claiming {
    struct database_bytes key;
    bool refused;
};

/* What another process has found replaces the claim. */
static bool write_claim(struct tune_store *store, struct database *database, void *ctx)
{
    struct claiming *claiming = ctx;
    struct tune_row row = {.key = claiming->key};
    struct tune_claim there;
    bool known;

    claiming->refused = false;
    pthread_mutex_lock(&store->lock);
    known = entry_record(map_get(&store->entries, row.key.bytes, row.key.n_bytes), row.key.bytes,
                         row.key.n_bytes);
    pthread_mutex_unlock(&store->lock);
    if (!known && tune_row_newest(database, &row.key, &row.text)) {
        pthread_mutex_lock(&store->lock);
        keep_text(store, &row);
        known = entry_record(map_get(&store->entries, row.key.bytes, row.key.n_bytes),
                             row.key.bytes, row.key.n_bytes);
        pthread_mutex_unlock(&store->lock);
        claiming->refused = known;
    }
    if (!claiming->refused && tune_row_claim(database, &row.key, &there))
        claiming->refused = !tune_claim_same(&there, &store->owner) && tune_claim_is_live(&there);
    if (claiming->refused)
        return false;
    store->owner = tune_claim_own(store->owner.store);
    tune_row_set_claim(database, &row.key, &store->owner);
    return true;
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Takes the key for this store; false: it has it already, or was refused just now. */
static bool reserve(struct tune_store *store, const void *key, size_t key_bytes)
{
    struct tune_entry *entry;
    bool reserved;

    pthread_mutex_lock(&store->lock);
    entry = entry_of(store, key, key_bytes);
    reserved =
        entry && !entry->claimed && (!entry->refused_until || now_ns() >= entry->refused_until);
    if (reserved)
        entry->claimed = true;
    pthread_mutex_unlock(&store->lock);
    return reserved;
}

static void refuse(struct tune_store *store, const void *key, size_t key_bytes)
{
    struct tune_entry *entry;

    pthread_mutex_lock(&store->lock);
    entry = map_get(&store->entries, key, key_bytes);
    entry->claimed = false;
    entry->refused_until = now_ns() + (int64_t)LOOK_AGAIN_MS * NS_PER_MS;
    pthread_mutex_unlock(&store->lock);
}

bool tune_store_claim(struct tune_store *store, const void *key, size_t key_bytes)
{
    struct claiming claiming = {.key = {key, key_bytes}};

    assert(key_bytes > 0);
    load_once(store);
    if (!reserve(store, key, key_bytes))
        return false;
    pthread_mutex_lock(&store->file_lock);
    transact(store, true, write_claim, &claiming);
    pthread_mutex_unlock(&store->file_lock);
    if (claiming.refused)
        refuse(store, key, key_bytes);
    return !claiming.refused;
}

static bool drop_claim(struct tune_store *store, struct database *database, void *ctx)
{
    tune_row_drop_claim(database, ctx, &store->owner);
    return true;
}

void tune_store_release(struct tune_store *store, const void *key, size_t key_bytes)
{
    struct database_bytes bytes = {key, key_bytes};
    struct tune_entry *entry;
    bool claimed;

    pthread_mutex_lock(&store->lock);
    entry = map_get(&store->entries, key, key_bytes);
    claimed = entry && entry->claimed;
    if (claimed)
        entry->claimed = false;
    pthread_mutex_unlock(&store->lock);
    if (!claimed)
        return;
    pthread_mutex_lock(&store->file_lock);
    transact(store, true, drop_claim, &bytes);
    pthread_mutex_unlock(&store->file_lock);
}

/* ---- life ---- */

static void destroy(struct tune_store *store)
{
    for (uint32_t i = 0; i < store->n_retired; i++)
        tune_record_destroy(store->retired[i]);
    free(store->retired);
    map_fini(&store->entries, entry_destroy);
    pthread_mutex_destroy(&store->lock);
    pthread_mutex_destroy(&store->file_lock);
    free(store->path);
    free(store->space);
    free(store);
}

frit_status tune_store_open(const struct tune_store_params *params, struct tune_store **out,
                            frit_err *err)
{
    struct tune_store *store = calloc(1, sizeof(*store));

    *out = NULL;
    if (!store)
        return fail_memory(err, sizeof(*store));
    pthread_mutex_init(&store->file_lock, NULL);
    pthread_mutex_init(&store->lock, NULL);
    store->path = params->path ? strdup(params->path) : NULL;
    store->space = strdup(params->space);
    if (!store->space || (params->path && !store->path)) {
        destroy(store);
        return fail_memory(err, strlen(params->space));
    }
    store->named = params->named;
    store->max_bytes = params->max_bytes ? (int64_t)params->max_bytes : MAX_BYTES;
    store->left_ns = (int64_t)params->wait_ms * NS_PER_MS;
    store->owner = tune_claim_own((int64_t)(intptr_t)store); /* unique in the process */
    *out = store;
    return FRIT_OK;
}

void tune_store_close(struct tune_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < store->entries.capacity; i++) {
        const struct map_entry *place = &store->entries.entries[i];
        const struct tune_entry *entry = place->value;

        if (place->key && entry->claimed)
            tune_store_release(store, place->key, place->key_bytes);
    }
    destroy(store);
}

const char *tune_store_space(const struct tune_store *store)
{
    return store->space;
}
