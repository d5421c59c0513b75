/* SPDX-License-Identifier: Apache-2.0 */
#include "api/open.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"

struct open_object {
    const void *object;
    frit_host *host;
};

static struct {
    pthread_mutex_t lock;
    struct open_object *list;
    uint32_t count, capacity;
} open_objects = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Inside the lock. */
static struct open_object *find(const void *object)
{
    for (uint32_t i = 0; i < open_objects.count; i++) {
        if (open_objects.list[i].object == object)
            return &open_objects.list[i];
    }
    return NULL;
}

bool open_add(const void *object, frit_host *host)
{
    bool added;

    pthread_mutex_lock(&open_objects.lock);
    added = array_grow(&open_objects.list, &open_objects.capacity, open_objects.count, 1,
                       sizeof(*open_objects.list));
    if (added)
        open_objects.list[open_objects.count++] = (struct open_object){object, host};
    pthread_mutex_unlock(&open_objects.lock);
    return added;
}

bool open_remove(const void *object)
{
    struct open_object *found;

    pthread_mutex_lock(&open_objects.lock);
    found = find(object);
    if (found)
        *found = open_objects.list[--open_objects.count];
    if (open_objects.count == 0) {
        free(open_objects.list);
        open_objects.list = NULL;
        open_objects.capacity = 0;
    }
    pthread_mutex_unlock(&open_objects.lock);
    return found;
}

frit_host *open_host(const void *object)
{
    const struct open_object *found;
    frit_host *host;

    pthread_mutex_lock(&open_objects.lock);
    found = find(object);
    host = found ? found->host : NULL;
    pthread_mutex_unlock(&open_objects.lock);
    return host;
}
