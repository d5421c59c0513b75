/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/tuner.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/map.h"
#include "tune/record.h"

/* A key that is measured, or whose record is known. */
struct tuned_key {
    struct tuned_key *before;   /* older records of the key, which callers may still read */
    struct tune_record *record; /* NULL: it is being measured */
};

struct tuner {
    pthread_mutex_t lock;
    struct map keys; /* key -> struct tuned_key */
};

frit_status tuner_create(struct tuner **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    pthread_mutex_init(&(*out)->lock, NULL);
    return FRIT_OK;
}

static void known_destroy(void *value)
{
    struct tuned_key *known = value;

    while (known) {
        struct tuned_key *before = known->before;

        tune_record_destroy(known->record);
        free(known);
        known = before;
    }
}

void tuner_destroy(struct tuner *tuner)
{
    if (!tuner)
        return;
    map_fini(&tuner->keys, known_destroy);
    pthread_mutex_destroy(&tuner->lock);
    free(tuner);
}

const struct tune_record *tuner_find(struct tuner *tuner, const void *key, size_t key_bytes)
{
    const struct tuned_key *known;
    const struct tune_record *record;

    pthread_mutex_lock(&tuner->lock);
    known = map_get(&tuner->keys, key, key_bytes);
    record = known ? known->record : NULL;
    pthread_mutex_unlock(&tuner->lock);
    return record;
}

bool tuner_claim(struct tuner *tuner, const void *key, size_t key_bytes)
{
    struct tuned_key *known = calloc(1, sizeof(*known));
    bool claimed = false;

    pthread_mutex_lock(&tuner->lock);
    if (known && !map_get(&tuner->keys, key, key_bytes))
        claimed = map_add(&tuner->keys, key, key_bytes, known);
    pthread_mutex_unlock(&tuner->lock);
    if (!claimed)
        free(known);
    return claimed;
}

void tuner_release(struct tuner *tuner, const void *key, size_t key_bytes)
{
    (void)tuner;
    (void)key;
    (void)key_bytes;
}

void tuner_add(struct tuner *tuner, const struct tune_record *record)
{
    struct tune_record *copy;
    struct tuned_key *known;
    frit_err err = ERR_INIT;

    if (tune_record_copy(record, &copy, &err)) {
        log_write(FRIT_LOG_DEBUG, "tune", "a decision is lost: %s", err.text);
        return;
    }
    pthread_mutex_lock(&tuner->lock);
    known = map_get(&tuner->keys, record->key, record->key_bytes);
    if (known && !known->record) {
        known->record = copy;
        copy = NULL;
    }
    pthread_mutex_unlock(&tuner->lock);
    tune_record_destroy(copy);
}
