/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are only ever added, each in a piece of its own, so that texts and marks are read without
 * the lock once their number is known to be below the count. */
#include "device/label.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"

enum { TEXT_BYTES = 128, MARK_LOGGED = 1 };

struct label {
    uint32_t number;
    atomic_uint marks;
    char text[TEXT_BYTES];
};

struct labels {
    pthread_mutex_t lock;
    struct map numbers; /* text -> struct label */
    atomic_uint count;
    struct label *at[LABELS_MAX]; /* number - 1; constant below the count */
};

frit_status labels_create(struct labels **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    pthread_mutex_init(&(*out)->lock, NULL);
    return FRIT_OK;
}

void labels_destroy(struct labels *labels)
{
    if (!labels)
        return;
    map_fini(&labels->numbers, free);
    pthread_mutex_destroy(&labels->lock);
    free(labels);
}

/* Under the lock. */
static struct label *label_add(struct labels *labels, const char *text, size_t length)
{
    uint32_t n = atomic_load(&labels->count);
    struct label *label = n < LABELS_MAX ? calloc(1, sizeof(*label)) : NULL;

    if (!label)
        return NULL;
    label->number = n + 1;
    memcpy(label->text, text, length);
    if (!map_add(&labels->numbers, text, length, label)) {
        free(label);
        return NULL;
    }
    labels->at[n] = label;
    atomic_store_explicit(&labels->count, n + 1, memory_order_release);
    return label;
}

uint32_t label_of(struct labels *labels, const char *text)
{
    size_t length = strnlen(text, TEXT_BYTES - 1);
    struct label *label;

    pthread_mutex_lock(&labels->lock);
    label = map_get(&labels->numbers, text, length);
    if (!label)
        label = label_add(labels, text, length);
    pthread_mutex_unlock(&labels->lock);
    return label ? label->number : 0;
}

static struct label *label_at(struct labels *labels, uint32_t number)
{
    uint32_t n = atomic_load_explicit(&labels->count, memory_order_acquire);

    return number >= 1 && number <= n ? labels->at[number - 1] : NULL;
}

const char *label_text(struct labels *labels, uint32_t number)
{
    struct label *label = label_at(labels, number);

    return label ? label->text : NULL;
}

bool label_is_first(struct labels *labels, uint32_t number, enum fallback kind)
{
    struct label *label = label_at(labels, number);
    uint32_t mark = (uint32_t)MARK_LOGGED << kind;

    return label && !(atomic_fetch_or(&label->marks, mark) & mark);
}
