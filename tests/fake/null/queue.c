/* SPDX-License-Identifier: Apache-2.0 */
/* The queue.  Each call leaves a node with what is to be done, and a thread does one node after the
 * other, each after the latency.  Inline, the caller does it before it returns, and where the order
 * is the given one it needs no node and no memory.
 *
 * A node is one piece of memory: its work, then bytes to be written.  Values are reached in order,
 * so everything up to `done` is done; reading, writing and submitting share the one timeline.  One
 * launch at most fails on a device, so there is never more than one failure to tell. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "null.h"

enum work_kind { WORK_COPY, WORK_FILL, WORK_LAUNCH, WORK_BARRIER };

/* A command with addresses. */
struct work {
    enum work_kind kind;
    uint32_t pattern_bytes;
    uint64_t pattern;
    char *to; /* NULL: there is nothing to do, or no memory */
    const char *from;
    uint64_t bytes;
};

struct node {
    struct node *next;
    uint64_t value;
    frit_status status; /* of a launch that fails here */
    uint32_t n_work;
    uint64_t cookie;
    struct work work[];
};

/* ---- doing ---- */

static void work_run(const struct work *work)
{
    if (!work->to)
        return;
    if (work->kind == WORK_COPY)
        memmove(work->to, work->from, work->bytes);
    else if (work->kind == WORK_FILL)
        for (uint64_t at = 0; at < work->bytes; at += work->pattern_bytes)
            memcpy(work->to + at, &work->pattern, work->pattern_bytes);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void shuffle(struct work *work, uint32_t n, uint64_t *state)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t other = (uint32_t)(next_random(state) % i);
        struct work kept = work[other];

        work[other] = work[i - 1];
        work[i - 1] = kept;
    }
}

/* Another order between each two BARRIERs. */
static void node_permute(struct node *node, uint64_t seed)
{
    uint64_t state = (seed + node->value) * 0x9e3779b97f4a7c15ull | 1;
    uint32_t first = 0;

    for (uint32_t i = 0; i <= node->n_work; i++)
        if (i == node->n_work || node->work[i].kind == WORK_BARRIER) {
            shuffle(node->work + first, i - first, &state);
            first = i + 1;
        }
}

static void pause_ns(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    while (ns && nanosleep(&left, &left) && errno == EINTR)
        ;
}

static void node_run(struct node *node, const struct options *options)
{
    if (options->permute)
        node_permute(node, options->seed);
    for (uint32_t i = 0; i < node->n_work; i++)
        work_run(&node->work[i]);
}

/* ---- the thread ---- */

/* Waits for a node; NULL: no more will come. */
static struct node *queue_next(struct queue *queue, bool *stop)
{
    struct node *node;

    pthread_mutex_lock(&queue->lock);
    while (!queue->first && !queue->stop)
        pthread_cond_wait(&queue->change, &queue->lock);
    node = queue->first;
    if (node)
        queue->first = node->next;
    if (!queue->first)
        queue->last = NULL;
    *stop = queue->stop;
    pthread_mutex_unlock(&queue->lock);
    return node;
}

/* Under the lock. */
static void queue_reach(struct queue *queue, uint64_t value, frit_status status, uint64_t cookie)
{
    if (status)
        queue->failure = (frit_failure){sizeof(frit_failure), status, value, cookie};
    queue->done = value;
    pthread_cond_broadcast(&queue->change);
}

static void *queue_main(void *arg)
{
    struct device *device = arg;
    const struct options *options = &device->instance->options;
    struct node *node;
    bool stop;

    while ((node = queue_next(&device->queue, &stop))) {
        pause_ns(stop ? 0 : options->latency_ns);
        node_run(node, options);
        pthread_mutex_lock(&device->queue.lock);
        queue_reach(&device->queue, node->value, node->status, node->cookie);
        pthread_mutex_unlock(&device->queue.lock);
        null_free(device->instance, node);
    }
    return NULL;
}

frit_status queue_open(struct queue *queue, struct device *device, frit_err *err)
{
    pthread_mutexattr_t often;
    pthread_condattr_t clock;
    int failed;

    pthread_mutexattr_init(&often);
    pthread_mutexattr_settype(&often, PTHREAD_MUTEX_ADAPTIVE_NP); /* held for a few instructions */
    failed = pthread_mutex_init(&queue->lock, &often);
    pthread_mutexattr_destroy(&often);
    if (failed)
        return null_fail(device->instance, err, FRIT_IO, "null: no mutex for the queue");
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->change, &clock);
    pthread_condattr_destroy(&clock);
    if (device->instance->options.inline_queue ||
        !pthread_create(&queue->thread, NULL, queue_main, device))
        return FRIT_OK;
    pthread_cond_destroy(&queue->change);
    pthread_mutex_destroy(&queue->lock);
    return null_fail(device->instance, err, FRIT_IO, "null: no thread for the queue");
}

void queue_close(struct queue *queue, struct device *device)
{
    if (!device->instance->options.inline_queue) {
        pthread_mutex_lock(&queue->lock);
        queue->stop = true;
        pthread_cond_broadcast(&queue->change);
        pthread_mutex_unlock(&queue->lock);
        pthread_join(queue->thread, NULL);
    }
    pthread_cond_destroy(&queue->change);
    pthread_mutex_destroy(&queue->lock);
}

/* ---- taking ---- */

static frit_status check_waits(struct device *device, const frit_point *waits, uint32_t n,
                               frit_err *err)
{
    uint64_t issued;

    if (n == 0)
        return FRIT_OK;
    pthread_mutex_lock(&device->queue.lock);
    issued = device->queue.issued;
    pthread_mutex_unlock(&device->queue.lock);
    for (uint32_t i = 0; i < n; i++)
        if (waits[i].queue != 0 || waits[i].value > issued)
            return null_fail(device->instance, err, FRIT_INVALID,
                             "null: value %" PRIu64 " of queue %" PRIu64 " was never handed out",
                             waits[i].value, waits[i].queue);
    return FRIT_OK;
}

static struct node *node_create(struct device *device, uint32_t n_work, uint64_t n_bytes,
                                frit_err *err)
{
    struct node *node =
        null_alloc(device->instance, sizeof *node + n_work * sizeof(struct work) + n_bytes);

    if (node)
        *node = (struct node){.n_work = n_work};
    else
        null_fail(device->instance, err, FRIT_NO_HOST_MEMORY, "null: no memory to queue a command");
    return node;
}

/* Gives the node to the thread, or does its work; it is the queue's from here on. */
static uint64_t queue_take(struct device *device, struct node *node)
{
    const struct options *options = &device->instance->options;
    struct queue *queue = &device->queue;
    uint64_t value;

    if (options->inline_queue)
        pause_ns(options->latency_ns);
    pthread_mutex_lock(&queue->lock);
    value = node->value = ++queue->issued;
    if (options->inline_queue) {
        node_run(node, options);
        queue_reach(queue, value, node->status, node->cookie);
        null_free(device->instance, node);
    } else {
        *(queue->last ? &queue->last->next : &queue->first) = node;
        queue->last = node;
        pthread_cond_broadcast(&queue->change);
    }
    pthread_mutex_unlock(&queue->lock);
    return value;
}

static char *address(void *memory, uint64_t offset)
{
    struct buffer *buffer = memory;

    return buffer->data ? buffer->data + offset : NULL;
}

static frit_status check_transfer(struct device *device, uint32_t call,
                                  const frit_transfer *transfer, frit_err *err)
{
    frit_status status = null_called(device->instance, call, err);

    if (status)
        return status;
    if (!buffer_holds(transfer->memory, transfer->offset, transfer->bytes))
        return null_fail(device->instance, err, FRIT_INVALID,
                         "null: %" PRIu64 " bytes at %" PRIu64 " leave their buffer",
                         transfer->bytes, transfer->offset);
    return check_waits(device, transfer->waits, transfer->n_waits, err);
}

frit_status queue_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                        frit_err *err)
{
    struct device *device = self;
    frit_status status = check_transfer(device, NULL_CALL_write, to, err);
    struct node *node;

    if (status)
        return status;
    node = node_create(device, 1, to->bytes, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    memcpy(node->work + 1, from, to->bytes);
    node->work[0] = (struct work){.kind = WORK_COPY,
                                  .to = address(to->memory, to->offset),
                                  .from = (const char *)(node->work + 1),
                                  .bytes = to->bytes};
    *value = queue_take(device, node);
    return FRIT_OK;
}

frit_status queue_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                       frit_err *err)
{
    struct device *device = self;
    frit_status status = check_transfer(device, NULL_CALL_read, from, err);
    const char *data;
    struct node *node;

    if (status)
        return status;
    node = node_create(device, 1, 0, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    data = address(from->memory, from->offset);
    node->work[0] = (struct work){.kind = data ? WORK_COPY : WORK_FILL,
                                  .pattern_bytes = 1,
                                  .to = into,
                                  .from = data,
                                  .bytes = from->bytes};
    *value = queue_take(device, node);
    return FRIT_OK;
}

/* ---- submit ---- */

const frit_cmd *cmd_at(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

static struct work work_of(const frit_cmd *cmd)
{
    struct work work = {.kind = WORK_BARRIER, .bytes = cmd->bytes};

    if (cmd->kind == FRIT_CMD_COPY) {
        work.kind = WORK_COPY;
        work.to = address(cmd->dst, cmd->dst_offset);
        work.from = ((const struct buffer *)cmd->src)->data;
        work.from = work.from ? work.from + cmd->src_offset : NULL;
    } else if (cmd->kind == FRIT_CMD_FILL) {
        work.kind = WORK_FILL;
        work.to = address(cmd->dst, cmd->dst_offset);
        work.pattern = cmd->pattern;
        work.pattern_bytes = cmd->pattern_bytes;
    } else if (cmd->kind != FRIT_CMD_BARRIER) {
        work.kind = WORK_LAUNCH;
    }
    return work;
}

/* Counts what a submission has; the cookie of the launch that is to fail, if it is among it. */
static frit_status tally(struct device *device, const frit_cmd *cmds, uint32_t count,
                         uint32_t stride, uint64_t *cookie)
{
    static const enum null_counter counters[] = {
        [FRIT_CMD_COPY] = NULL_COUNT_copies,       [FRIT_CMD_FILL] = NULL_COUNT_fills,
        [FRIT_CMD_LAUNCH] = NULL_COUNT_launches,   [FRIT_CMD_BARRIER] = NULL_COUNT_barriers,
        [FRIT_CMD_DISPATCH] = NULL_COUNT_launches,
    };
    struct instance *instance = device->instance;
    const struct fault *fault = &instance->options.launch;
    frit_status status = FRIT_OK;
    uint64_t n[NULL_N_COUNTERS] = {0};

    for (uint32_t i = 0; i < count; i++) {
        const frit_cmd *cmd = cmd_at(cmds, stride, i);

        n[counters[cmd->kind]]++;
        if (cmd->kind == FRIT_CMD_LAUNCH)
            n[NULL_COUNT_ops] += ((const struct program *)cmd->launch->program->self)->cover.n_ops;
        if (counters[cmd->kind] == NULL_COUNT_launches && ++device->n_launches == fault->nth) {
            status = fault->status;
            *cookie = cmd->launch->cookie;
        }
    }
    for (uint32_t i = NULL_N_CALLS; i < NULL_N_COUNTERS; i++)
        if (n[i])
            null_count(instance, i, n[i]);
    return status;
}

/* Does everything now, in the given order. */
static uint64_t run_inline(struct device *device, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride)
{
    struct queue *queue = &device->queue;
    uint64_t value, cookie = 0;
    frit_status status = tally(device, cmds, count, stride, &cookie);

    pause_ns(device->instance->options.latency_ns);
    pthread_mutex_lock(&queue->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct work work = work_of(cmd_at(cmds, stride, i));

        work_run(&work);
    }
    value = ++queue->issued;
    queue_reach(queue, value, status, cookie);
    pthread_mutex_unlock(&queue->lock);
    return value;
}

frit_status queue_submit(void *self, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                         const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    struct device *device = self;
    const struct options *options = &device->instance->options;
    frit_status status = null_called(device->instance, NULL_CALL_submit, err);
    struct node *node;

    if (!status)
        status = check_waits(device, waits, n_waits, err);
    if (!status && options->check)
        status = check_commands(device, cmds, count, stride, err);
    if (status)
        return status;
    if (options->inline_queue && !options->permute) {
        *value = run_inline(device, cmds, count, stride);
        return FRIT_OK;
    }
    node = node_create(device, count, 0, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        node->work[i] = work_of(cmd_at(cmds, stride, i));
    node->status = tally(device, cmds, count, stride, &node->cookie);
    *value = queue_take(device, node);
    return FRIT_OK;
}

/* ---- waiting ---- */

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

/* Under the lock: FRIT_OK, FRIT_TIMEOUT, or FRIT_INVALID for what is not on its way. */
static frit_status await(struct queue *queue, uint64_t value, uint64_t timeout_ns)
{
    struct timespec deadline;

    if (value > queue->issued)
        return FRIT_INVALID;
    if (timeout_ns > INT64_MAX) {
        while (queue->done < value)
            pthread_cond_wait(&queue->change, &queue->lock);
        return FRIT_OK;
    }
    if (queue->done >= value || timeout_ns == 0)
        return queue->done >= value ? FRIT_OK : FRIT_TIMEOUT;
    deadline = deadline_after(timeout_ns);
    while (queue->done < value)
        if (pthread_cond_timedwait(&queue->change, &queue->lock, &deadline) == ETIMEDOUT)
            break;
    return queue->done >= value ? FRIT_OK : FRIT_TIMEOUT;
}

frit_status queue_wait(void *self, uint64_t value, uint64_t timeout_ns, frit_failure *failure,
                       frit_err *err)
{
    struct device *device = self;
    struct queue *queue = &device->queue;
    frit_failure failed;
    frit_status status = null_called(device->instance, NULL_CALL_wait, err);

    if (status)
        return status;
    pthread_mutex_lock(&queue->lock);
    status = await(queue, value, timeout_ns);
    failed = queue->failure;
    pthread_mutex_unlock(&queue->lock);
    if (status)
        return null_fail(device->instance, err, status,
                         status == FRIT_TIMEOUT ? "null: value %" PRIu64 " is not reached yet"
                                                : "null: value %" PRIu64 " was never handed out",
                         value);
    failure->status = FRIT_OK;
    if (failed.value <= failure->value || failed.value > value)
        return FRIT_OK;
    failure->status = failed.status;
    failure->value = failed.value;
    failure->cookie = failed.cookie;
    null_fail(device->instance, err, failed.status, "null: launch %" PRIu64 " fails as told",
              device->instance->options.launch.nth);
    return FRIT_OK;
}
