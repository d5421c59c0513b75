/* SPDX-License-Identifier: Apache-2.0 */
/* An engine whose ranks are threads of one process.  The rank that is the last to begin an
 * operation does it for all, in the order of ranks, so that sums do not depend on timing.  A
 * meeting is what the ranks of a group share; it lives until the last of them has left. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frit/collective.h>
#include <frit/host.h>
#include <frit/op.h>
#include <frit/plugin.h>

enum { MAX_RANKS = 16, MAX_PENDING = 64, MAX_BUFFERS = 8 };

/* One operation that a rank has begun. */
struct begun {
    uint32_t kind, combine, root, n_buffers;
    frit_collective_buffer buffers[MAX_BUFFERS];
};

struct meeting;

struct frit_group {
    struct meeting *meeting; /* NULL: nobody came as this rank yet */
    uint32_t rank;
    bool left;
    uint64_t issued;
    struct begun begun[MAX_PENDING]; /* number n at n modulo MAX_PENDING */
};

struct meeting {
    struct meeting *next;
    frit_group_id id;
    uint32_t size, n_come, n_left;
    uint64_t done;  /* operations that ended on all ranks */
    frit_err error; /* status 0: all is well */
    struct frit_group ranks[MAX_RANKS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static pthread_cond_t change;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct meeting *meetings;
static atomic_uint_least64_t last_id;

static void make_condition(void)
{
    pthread_condattr_t clock;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&change, &clock);
    pthread_condattr_destroy(&clock);
}

/* ---- failures ---- */

static frit_status fail_with(frit_err *err, frit_status status, const char *text)
{
    if (err) {
        err->status = status;
        snprintf(err->text, sizeof(err->text), "%s", text);
    }
    return status;
}

/* The first one stays. */
static void end_meeting(struct meeting *m, frit_status status, const char *text)
{
    if (m->error.status)
        return;
    fail_with(&m->error, status, text);
    pthread_cond_broadcast(&change);
}

static struct timespec deadline_after(uint64_t ns)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ns / 1000000000);
    at.tv_nsec += (long)(ns % 1000000000);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* False after the deadline; UINT64_MAX: there is none. */
static bool sleep_until(uint64_t timeout_ns, const struct timespec *deadline)
{
    if (timeout_ns > INT64_MAX)
        return pthread_cond_wait(&change, &lock) == 0;
    return pthread_cond_timedwait(&change, &lock, deadline) == 0;
}

/* ---- the operations ---- */

static double get(const void *from, uint32_t dtype, uint64_t i)
{
    if (dtype == FRIT_F64)
        return ((const double *)from)[i];
    if (dtype == FRIT_F32)
        return (double)((const float *)from)[i];
    return (double)((const int32_t *)from)[i];
}

static void put(void *into, uint32_t dtype, uint64_t i, double value)
{
    if (dtype == FRIT_F64)
        ((double *)into)[i] = value;
    else if (dtype == FRIT_F32)
        ((float *)into)[i] = (float)value;
    else
        ((int32_t *)into)[i] = (int32_t)value;
}

static struct begun *begun_of(struct meeting *m, uint32_t rank, uint64_t number)
{
    return &m->ranks[rank].begun[number % MAX_PENDING];
}

/* Element `i` of the ranks' `from`, summed in the order of ranks. */
static double combined(struct meeting *m, uint64_t number, uint32_t b, uint64_t i)
{
    const struct begun *first = begun_of(m, 0, number);
    double sum = 0;

    for (uint32_t r = 0; r < m->size; r++)
        sum += get(begun_of(m, r, number)->buffers[b].from, first->buffers[b].dtype, i);
    return first->combine == FRIT_CHOICE_combine_mean ? sum / m->size : sum;
}

static void run_buffer(struct meeting *m, uint64_t number, uint32_t b)
{
    const struct begun *first = begun_of(m, 0, number);
    const frit_collective_buffer *root = &begun_of(m, first->root, number)->buffers[b];
    const uint32_t dtype = first->buffers[b].dtype;
    const uint64_t count = first->buffers[b].count;

    for (uint64_t i = 0; i < count * (first->kind == FRIT_COLLECTIVE_ALL_GATHER ||
                                              first->kind == FRIT_COLLECTIVE_REDUCE_SCATTER
                                          ? m->size
                                          : 1);
         i++) {
        double value;

        if (first->kind == FRIT_COLLECTIVE_ALL_GATHER)
            value =
                get(begun_of(m, (uint32_t)(i / count), number)->buffers[b].from, dtype, i % count);
        else if (first->kind == FRIT_COLLECTIVE_BROADCAST)
            value = get(root->from, dtype, i);
        else
            value = combined(m, number, b, i);
        if (first->kind == FRIT_COLLECTIVE_REDUCE_SCATTER) {
            put(begun_of(m, (uint32_t)(i / count), number)->buffers[b].into, dtype, i % count,
                value);
            continue;
        }
        for (uint32_t r = 0; r < m->size; r++)
            put(begun_of(m, r, number)->buffers[b].into, dtype, i, value);
    }
}

static bool same(const struct begun *a, const struct begun *b)
{
    if (a->kind != b->kind || a->combine != b->combine || a->root != b->root ||
        a->n_buffers != b->n_buffers)
        return false;
    for (uint32_t i = 0; i < a->n_buffers; i++) {
        if (a->buffers[i].count != b->buffers[i].count ||
            a->buffers[i].dtype != b->buffers[i].dtype)
            return false;
    }
    return true;
}

static void print(const struct begun *op, char *text, size_t size)
{
    static const char *const names[] = {"nothing",   "barrier",    "all_reduce",
                                        "broadcast", "all_gather", "reduce_scatter"};

    snprintf(text, size, "%s of %llu", names[op->kind],
             (unsigned long long)(op->n_buffers ? op->buffers[0].count : 0));
}

static bool agree(struct meeting *m, uint64_t number)
{
    char mine[64], others[64], text[200];

    for (uint32_t r = 1; r < m->size; r++) {
        if (same(begun_of(m, 0, number), begun_of(m, r, number)))
            continue;
        print(begun_of(m, 0, number), mine, sizeof(mine));
        print(begun_of(m, r, number), others, sizeof(others));
        snprintf(text, sizeof(text), "operation %llu is %s on rank 0, %s on rank %u",
                 (unsigned long long)number, mine, others, r);
        end_meeting(m, FRIT_MISMATCH, text);
        return false;
    }
    return true;
}

/* Does what all ranks have begun. */
static void advance(struct meeting *m)
{
    for (;; m->done++) {
        for (uint32_t r = 0; r < m->size; r++) {
            if (m->ranks[r].issued <= m->done)
                return;
        }
        if (m->error.status || !agree(m, m->done + 1))
            return;
        for (uint32_t b = 0; b < begun_of(m, 0, m->done + 1)->n_buffers; b++)
            run_buffer(m, m->done + 1, b);
        pthread_cond_broadcast(&change);
    }
}

/* A rank that has left is needed for operation `number`. */
static void miss(struct meeting *m, uint64_t number)
{
    char text[64];

    for (uint32_t r = 0; r < m->size; r++) {
        if (!m->ranks[r].left || m->ranks[r].issued >= number)
            continue;
        snprintf(text, sizeof(text), "rank %u has left the group", r);
        end_meeting(m, FRIT_PEER_LOST, text);
    }
}

/* ---- groups ---- */

static frit_status group_id(void *instance, frit_group_id *out, frit_err *err)
{
    const uint64_t number = atomic_fetch_add(&last_id, 1) + 1;

    (void)instance;
    (void)err;
    *out = (frit_group_id){{0}};
    memcpy(out->bytes, &number, sizeof(number));
    return FRIT_OK;
}

static struct meeting *find(const frit_group_params *params)
{
    struct meeting *m = meetings;

    while (m && memcmp(&m->id, params->id, sizeof(m->id)) != 0)
        m = m->next;
    if (m)
        return m;
    m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->id = *params->id;
    m->size = params->size;
    m->error.struct_size = sizeof(m->error);
    m->next = meetings;
    meetings = m;
    return m;
}

static void leave(struct meeting *m, struct frit_group *group)
{
    struct meeting **at = &meetings;

    group->left = true;
    for (uint32_t r = 0; r < m->size; r++)
        miss(m, m->ranks[r].issued);
    if (++m->n_left < m->n_come)
        return;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    free(m);
}

static frit_status check_params(const frit_group_params *params, frit_err *err)
{
    if (params->size < 1 || params->size > MAX_RANKS || params->rank >= params->size)
        return fail_with(err, FRIT_INVALID, "a group has 1 to 16 ranks");
    if (params->device || params->space.len != 8 || memcmp(params->space.ptr, "host.ptr", 8) != 0)
        return fail_with(err, FRIT_UNSUPPORTED, "memory that is not the process's");
    return FRIT_OK;
}

static frit_status group_create(void *instance, const frit_group_params *params, frit_group **out,
                                frit_err *err)
{
    const struct timespec deadline = deadline_after(params->timeout_ns);
    frit_status status = check_params(params, err);
    struct frit_group *group;
    struct meeting *m;
    bool in_time = true;

    (void)instance;
    *out = NULL;
    if (status)
        return status;
    pthread_once(&once, make_condition);
    pthread_mutex_lock(&lock);
    m = find(params);
    if (!m)
        status = fail_with(err, FRIT_NO_HOST_MEMORY, "no memory for a group");
    else if (m->size != params->size)
        status = fail_with(err, FRIT_MISMATCH, "ranks of one group name different sizes");
    else if (m->ranks[params->rank].meeting)
        status = fail_with(err, FRIT_INVALID, "this rank has come already");
    if (status) {
        pthread_mutex_unlock(&lock);
        return status;
    }
    group = &m->ranks[params->rank];
    group->meeting = m;
    group->rank = params->rank;
    m->n_come++;
    pthread_cond_broadcast(&change);
    while (m->n_come < m->size && in_time)
        in_time = sleep_until(params->timeout_ns, &deadline);
    if (m->n_come < m->size) {
        char text[200] = "no word from rank";

        for (uint32_t r = 0; r < m->size; r++) {
            size_t used = strlen(text);

            if (!m->ranks[r].meeting)
                snprintf(text + used, sizeof(text) - used, " %u", r);
        }
        status = fail_with(err, FRIT_TIMEOUT, text);
        leave(m, group);
    } else {
        *out = group;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void group_destroy(frit_group *group)
{
    if (!group)
        return;
    pthread_mutex_lock(&lock);
    leave(group->meeting, group);
    pthread_mutex_unlock(&lock);
}

static void group_abort(frit_group *group, const frit_err *why)
{
    pthread_mutex_lock(&lock);
    end_meeting(group->meeting, FRIT_ABORTED, why->text);
    pthread_mutex_unlock(&lock);
}

/* ---- beginning and waiting ---- */

static frit_status take(const struct meeting *m, const frit_collective_op *op, struct begun *out,
                        frit_err *err)
{
    if (op->kind < FRIT_COLLECTIVE_BARRIER || op->kind > FRIT_COLLECTIVE_REDUCE_SCATTER ||
        op->n_buffers > MAX_BUFFERS || op->root >= m->size)
        return fail_with(err, FRIT_UNSUPPORTED, "an operation that this engine does not know");
    *out = (struct begun){op->kind, op->combine, op->root, op->n_buffers, {{0}}};
    for (uint32_t i = 0; i < op->n_buffers; i++) {
        out->buffers[i] =
            *(const frit_collective_buffer *)(const void *)((const char *)op->buffers +
                                                            (size_t)i * op->buffer_stride);
        if (out->buffers[i].dtype != FRIT_F32 && out->buffers[i].dtype != FRIT_F64 &&
            out->buffers[i].dtype != FRIT_I32)
            return fail_with(err, FRIT_UNSUPPORTED,
                             "an element type that this engine cannot combine");
    }
    return FRIT_OK;
}

static frit_status begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                         frit_err *err)
{
    struct meeting *m = group->meeting;
    struct begun begun;
    frit_status status = take(m, op, &begun, err);

    if (status)
        return status;
    pthread_mutex_lock(&lock);
    if (m->error.status) {
        status = fail_with(err, m->error.status, m->error.text);
    } else if (group->issued - m->done >= MAX_PENDING) {
        status = fail_with(err, FRIT_BUSY, "64 operations are pending");
    } else {
        *value = ++group->issued;
        *begun_of(m, group->rank, *value) = begun;
        miss(m, *value);
        advance(m);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static frit_status wait_value(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    const struct timespec deadline = deadline_after(timeout_ns > INT64_MAX ? 0 : timeout_ns);
    struct meeting *m = group->meeting;
    frit_status status = FRIT_OK;
    bool in_time = true;

    pthread_mutex_lock(&lock);
    if (value > group->issued)
        status = fail_with(err, FRIT_INVALID, "a value that was never begun");
    while (!status && m->done < value && !m->error.status && in_time)
        in_time = sleep_until(timeout_ns, &deadline);
    if (!status && m->done < value)
        status = m->error.status ? fail_with(err, m->error.status, m->error.text)
                                 : fail_with(err, FRIT_TIMEOUT, "not all ranks have begun it");
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- the plugin ---- */

struct instance {
    const frit_host_root *host;
    const frit_host_core *core;
};

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    const frit_host_core *core = host->get_interface(host->self, FRIT_STR(FRIT_HOST_CORE));
    struct instance *instance;

    *out = NULL;
    if (!core || core->struct_size < FRIT_END_OF(frit_host_core, mem_free))
        return fail_with(err, FRIT_INCOMPATIBLE, "the host has no table " FRIT_HOST_CORE);
    instance = core->mem_alloc(host->self, sizeof(*instance), _Alignof(struct instance));
    if (!instance)
        return fail_with(err, FRIT_NO_HOST_MEMORY, "no memory for an instance");
    *instance = (struct instance){host, core};
    *out = instance;
    return FRIT_OK;
}

static void plugin_close(void *self)
{
    const struct instance *instance = self;

    instance->core->mem_free(instance->host->self, self);
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_collective_table table = {
        .struct_size = sizeof(table),
        .group_id = group_id,
        .group_create = group_create,
        .group_destroy = group_destroy,
        .group_abort = group_abort,
        .begin = begin,
        .wait = wait_value,
    };

    (void)instance;
    return id.len == sizeof(FRIT_COLLECTIVE_TABLE) - 1 &&
                   memcmp(id.ptr, FRIT_COLLECTIVE_TABLE, id.len) == 0
               ? &table
               : NULL;
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .id = {"fake-collective", 15},
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("fake-collective", "1.0", "", &plugin)
