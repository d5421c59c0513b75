/* SPDX-License-Identifier: Apache-2.0 */
#include "api/open.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"

struct open_object {
    const void *object;
    void *owner;
};

static struct {
    pthread_mutex_t lock;
    struct open_object *list;
    uint32_t count, capacity;
} open_objects = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool open_add(const void *object, void *owner)
{
    bool added;

    pthread_mutex_lock(&open_objects.lock);
    added = array_grow(&open_objects.list, &open_objects.capacity, open_objects.count, 1,
                       sizeof(*open_objects.list));
    if (added)
        open_objects.list[open_objects.count++] = (struct open_object){object, owner};
    pthread_mutex_unlock(&open_objects.lock);
    return added;
}

bool open_remove(const void *object)
{
    uint32_t kept = 0;
    bool found = false;

    pthread_mutex_lock(&open_objects.lock);
    for (uint32_t i = 0; i < open_objects.count; i++) {
        const struct open_object *at = &open_objects.list[i];

        found |= at->object == object;
        if (at->object != object && at->owner != object)
            open_objects.list[kept++] = *at;
    }
    open_objects.count = kept;
    if (kept == 0) {
        free(open_objects.list);
        open_objects.list = NULL;
        open_objects.capacity = 0;
    }
    pthread_mutex_unlock(&open_objects.lock);
    return found;
}

bool open_find(const void *object, void **owner)
{
    bool found = false;

    pthread_mutex_lock(&open_objects.lock);
    for (uint32_t i = 0; i < open_objects.count && !found; i++) {
        found = open_objects.list[i].object == object;
        if (found && owner)
            *owner = open_objects.list[i].owner;
    }
    pthread_mutex_unlock(&open_objects.lock);
    return found;
}
