/* SPDX-License-Identifier: Apache-2.0 */
/* The engine `fake-shared`: ranks are processes of one machine, whose data go through a file in the
 * folder FRIT_TEST_SHARED.  Like the engines of GPUs it notices nothing: a rank waits for the
 * others until its time is over or its own group_abort is called, which the others do not see.
 *
 * A rank puts what it gives into its part of the file, says so, and takes from the parts of all
 * when all have; parts are used in turn by two operations. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <frit/collective.h>
#include <frit/op.h>
#include <frit/plugin.h>

#include "util/plug.h"

enum { MAX_RANKS = 8, PART = 1 << 18, PAUSE_US = 300, QUEUE = 512 };

struct shared {
    atomic_uint joined[MAX_RANKS];
    atomic_ullong given[MAX_RANKS], taken[MAX_RANKS]; /* operations */
    char part[MAX_RANKS][2][PART];
};

struct operation {
    frit_collective_op op;
    frit_collective_buffer buffer; /* one at most */
};

struct frit_group {
    const struct plug *plug;
    struct shared *shared;
    uint32_t rank, size;
    uint64_t begun, done;
    struct operation queue[QUEUE]; /* by value */
    pthread_mutex_t lock;          /* of what ended it */
    frit_err failure;
    atomic_bool has_failed;
};

/* ---- elements ---- */

static size_t size_of(uint32_t dtype)
{
    return dtype == FRIT_F64 || dtype == FRIT_I64   ? 8
           : dtype == FRIT_BOOL || dtype == FRIT_U8 ? 1
                                                    : 4;
}

#define ADD(type)                              \
    do {                                       \
        type *sum = into;                      \
        const type *more = from;               \
        for (uint64_t i = 0; i < n; i++)       \
            sum[i] = (type)(sum[i] + more[i]); \
    } while (0)

static void add(uint32_t dtype, void *into, const void *from, uint64_t n)
{
    switch (dtype) {
    case FRIT_F32:
        ADD(float);
        break;
    case FRIT_F64:
        ADD(double);
        break;
    case FRIT_I64:
        ADD(int64_t);
        break;
    default:
        ADD(int32_t);
    }
}

static void divide(uint32_t dtype, void *into, uint64_t n, uint32_t by)
{
    float *f32 = into;
    double *f64 = into;

    for (uint64_t i = 0; i < n; i++) {
        if (dtype == FRIT_F32)
            f32[i] /= (float)by;
        else if (dtype == FRIT_F64)
            f64[i] /= by;
    }
}

static void take(struct frit_group *group, const struct operation *o, uint64_t value)
{
    char(*part)[2][PART] = group->shared->part;
    const frit_collective_buffer *b = &o->buffer;
    const size_t bytes = b->count * size_of(b->dtype);

    switch (o->op.kind) {
    case FRIT_COLLECTIVE_ALL_REDUCE:
        memcpy(b->into, part[0][value % 2], bytes);
        for (uint32_t r = 1; r < group->size; r++)
            add(b->dtype, b->into, part[r][value % 2], b->count);
        if (o->op.combine == FRIT_CHOICE_combine_mean)
            divide(b->dtype, b->into, b->count, group->size);
        break;
    case FRIT_COLLECTIVE_BROADCAST:
        memcpy(b->into, part[o->op.root][value % 2], bytes);
        break;
    case FRIT_COLLECTIVE_ALL_GATHER:
        for (uint32_t r = 0; r < group->size; r++)
            memcpy((char *)b->into + r * bytes, part[r][value % 2], bytes);
        break;
    default:
        break;
    }
}

/* ---- waiting ---- */

static frit_status check(struct frit_group *group, frit_err *err)
{
    frit_status status = FRIT_OK;

    if (!atomic_load(&group->has_failed))
        return FRIT_OK;
    pthread_mutex_lock(&group->lock);
    status = group->failure.status;
    plug_copy_err(group->plug, err, &group->failure);
    pthread_mutex_unlock(&group->lock);
    return status;
}

static bool all_at(const struct frit_group *group, const atomic_ullong *counters, uint64_t value)
{
    for (uint32_t r = 0; r < group->size; r++) {
        if (atomic_load(&counters[r]) < value)
            return false;
    }
    return true;
}

static frit_status wait_all(struct frit_group *group, const atomic_ullong *counters, uint64_t value,
                            uint64_t deadline, frit_err *err)
{
    while (!all_at(group, counters, value)) {
        const frit_status status = check(group, err);

        if (status)
            return status;
        if (plug_now_ns(group->plug) >= deadline)
            return plug_fail(group->plug, err, FRIT_TIMEOUT, "not all ranks have come");
        usleep(PAUSE_US);
    }
    return FRIT_OK;
}

static frit_status run_next(struct frit_group *group, uint64_t deadline, frit_err *err)
{
    const uint64_t value = group->done + 1;
    const struct operation *o = &group->queue[value % QUEUE];
    struct shared *shared = group->shared;
    frit_status status = FRIT_OK;

    if (atomic_load(&shared->given[group->rank]) < value) {
        status = value > 2 ? wait_all(group, shared->taken, value - 2, deadline, err) : FRIT_OK;
        if (!status && o->buffer.from)
            memcpy(shared->part[group->rank][value % 2], o->buffer.from,
                   o->buffer.count * size_of(o->buffer.dtype));
        if (!status)
            atomic_store(&shared->given[group->rank], value);
    }
    if (!status)
        status = wait_all(group, shared->given, value, deadline, err);
    if (status)
        return status;
    take(group, o, value);
    atomic_store(&shared->taken[group->rank], value);
    group->done = value;
    return FRIT_OK;
}

static frit_status group_wait(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    const uint64_t now = plug_now_ns(group->plug);
    const uint64_t deadline = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
    frit_status status = FRIT_OK;

    if (value > group->begun)
        return plug_fail(group->plug, err, FRIT_INVALID, "it was never begun");
    while (group->done < value && !status)
        status = run_next(group, deadline, err);
    return status;
}

static frit_status group_begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                               frit_err *err)
{
    struct operation *o = &group->queue[(group->begun + 1) % QUEUE];
    const frit_status status = check(group, err);

    if (status)
        return status;
    *o = (struct operation){.op = *op};
    if (op->n_buffers)
        o->buffer = *op->buffers;
    if (op->n_buffers > 1 || o->buffer.count * size_of(o->buffer.dtype) > PART)
        return plug_fail(group->plug, err, FRIT_UNSUPPORTED, "more than a buffer of %d bytes",
                         PART);
    *value = ++group->begun;
    return FRIT_OK;
}

static void group_abort(frit_group *group, const frit_err *why)
{
    pthread_mutex_lock(&group->lock);
    if (!group->failure.status) {
        group->failure = *why;
        group->failure.status = FRIT_ABORTED;
        atomic_store(&group->has_failed, true);
    }
    pthread_mutex_unlock(&group->lock);
}

/* ---- joining ---- */

static void group_destroy(frit_group *group)
{
    if (!group)
        return;
    munmap(group->shared, sizeof(*group->shared));
    pthread_mutex_destroy(&group->lock);
    free(group);
}

static struct shared *open_shared(const frit_group_params *params)
{
    const char *folder = getenv("FRIT_TEST_SHARED");
    uint64_t hash = 0xcbf29ce484222325u;
    struct shared *shared;
    char path[512];
    int fd;

    for (size_t i = 0; i < sizeof(params->id->bytes); i++)
        hash = (hash ^ params->id->bytes[i]) * 0x100000001b3u;
    snprintf(path, sizeof(path), "%s/%016llx", folder ? folder : "/dev/shm",
             (unsigned long long)hash);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    shared = ftruncate(fd, sizeof(*shared))
                 ? MAP_FAILED
                 : mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return shared == MAP_FAILED ? NULL : shared;
}

static frit_status wait_joined(const struct frit_group *group, uint64_t timeout_ns, frit_err *err)
{
    const uint64_t deadline = plug_now_ns(group->plug) + timeout_ns;

    for (uint32_t r = 0; r < group->size; r++) {
        while (!atomic_load(&group->shared->joined[r])) {
            if (plug_now_ns(group->plug) >= deadline)
                return plug_fail(group->plug, err, FRIT_TIMEOUT, "rank %u is missing", r);
            usleep(PAUSE_US);
        }
    }
    return FRIT_OK;
}

static frit_status group_create(void *instance, const frit_group_params *params, frit_group **out,
                                frit_err *err)
{
    const struct plug *plug = instance;
    struct frit_group *group = calloc(1, sizeof(*group));
    frit_status status;

    *out = NULL;
    if (!group)
        return FRIT_NO_HOST_MEMORY;
    group->shared = params->size <= MAX_RANKS ? open_shared(params) : NULL;
    if (!group->shared) {
        free(group);
        return plug_fail(plug, err, FRIT_IO, "no file in FRIT_TEST_SHARED for this group");
    }
    group->plug = plug;
    group->rank = params->rank;
    group->size = params->size;
    group->failure.struct_size = sizeof(group->failure);
    pthread_mutex_init(&group->lock, NULL);
    atomic_store(&group->shared->joined[group->rank], 1);
    status = wait_joined(group, params->timeout_ns, err);
    if (status)
        group_destroy(group);
    else
        *out = group;
    return status;
}

static frit_status group_id(void *instance, frit_group_id *out, frit_err *err)
{
    *out = (frit_group_id){{0}};
    return getrandom(out->bytes, 16, 0) == 16
               ? FRIT_OK
               : plug_fail(instance, err, FRIT_IO, "no random numbers");
}

/* ---- the plugin ---- */

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    struct plug plug, *kept;
    frit_status status = plug_init(&plug, "fake-shared", host);

    *out = NULL;
    if (status)
        return status;
    kept = plug_new(&plug, sizeof(*kept), "the plugin's instance", err);
    if (!kept)
        return FRIT_NO_HOST_MEMORY;
    *kept = plug;
    *out = kept;
    return FRIT_OK;
}

static void plugin_close(void *instance)
{
    plug_free(instance, instance);
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_collective_table table = {
        .struct_size = sizeof(frit_collective_table),
        .group_id = group_id,
        .group_create = group_create,
        .group_destroy = group_destroy,
        .group_abort = group_abort,
        .begin = group_begin,
        .wait = group_wait,
    };

    (void)instance;
    return plug_is(id, FRIT_STR(FRIT_COLLECTIVE_TABLE)) ? &table : NULL;
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .id = FRIT_STR_INIT("fake-shared"),
    .version = FRIT_STR_INIT("0.1.0"),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("fake-shared", "0.1.0", "", &plugin)
