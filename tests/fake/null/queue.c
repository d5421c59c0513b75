/* SPDX-License-Identifier: Apache-2.0 */
/* The queue.  Each call leaves a node with what is to be done, and a thread does one node after the
 * other, each after the latency; with option.hold the last ones stay until somebody waits.  Inline,
 * the caller does it before it returns, and where the order is the given one it needs no node and
 * no memory.
 *
 * A node is one piece of memory: its work, then bytes to be written.  Values are reached in order,
 * so everything up to `done` is done; reading, writing and submitting share the one timeline. Which
 * launches fail is decided when they are submitted, and reported once their values are reached. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "null.h"

enum work_kind { WORK_COPY, WORK_FILL, WORK_LAUNCH, WORK_BARRIER, WORK_TIMESTAMP };

/* A command with addresses. */
struct queued_cmd {
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
    uint32_t n_work;
    bool is_transfer;
    struct queued_cmd work[];
};

/* ---- doing ---- */

static void work_run(const struct device *device, const struct queued_cmd *work)
{
    if (!work->to)
        return;
    if (work->kind == WORK_TIMESTAMP) {
        const uint64_t ticks = null_ticks(device);

        memcpy(work->to, &ticks, sizeof ticks);
    }
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

static void shuffle(struct queued_cmd *work, uint32_t n, uint64_t *state)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t other = (uint32_t)(next_random(state) % i);
        struct queued_cmd kept = work[other];

        work[other] = work[i - 1];
        work[i - 1] = kept;
    }
}

/* Another order between each two BARRIERs or TIMESTAMPs. */
static void node_permute(struct node *node, uint64_t seed)
{
    uint64_t state = (seed + node->value) * 0x9e3779b97f4a7c15ull | 1;
    uint32_t first = 0;

    for (uint32_t i = 0; i <= node->n_work; i++)
        if (i == node->n_work || node->work[i].kind == WORK_BARRIER ||
            node->work[i].kind == WORK_TIMESTAMP) {
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

static void node_run(const struct device *device, struct node *node)
{
    const struct options *options = &device->instance->options;

    if (options->permute)
        node_permute(node, options->seed);
    for (uint32_t i = 0; i < node->n_work; i++)
        work_run(device, &node->work[i]);
}

/* ---- the thread ---- */

/* Whether the thread is to run a node now.  Under the lock. */
static bool is_due(struct queue *queue, uint64_t hold)
{
    if (queue->n_nodes > 2 * hold)
        queue->running = true;
    if (queue->n_nodes <= hold)
        queue->running = false;
    return queue->first && (queue->running || queue->stop || queue->wanted > queue->done);
}

/* Waits for a node that is due; NULL: no more will come. */
static struct node *queue_next(struct queue *queue, uint64_t hold, bool *stop)
{
    struct node *node;

    pthread_mutex_lock(&queue->lock);
    while (!is_due(queue, hold) && !queue->stop)
        pthread_cond_wait(&queue->work, &queue->lock);
    node = queue->first;
    if (node) {
        queue->first = node->next;
        queue->n_nodes--;
    }
    if (!queue->first)
        queue->last = NULL;
    *stop = queue->stop;
    pthread_mutex_unlock(&queue->lock);
    return node;
}

/* Under the lock. */
static void queue_reach(struct queue *queue, uint64_t value)
{
    queue->done = value;
    pthread_cond_broadcast(&queue->reached);
}

static void *queue_main(void *arg)
{
    struct device *device = arg;
    const struct options *options = &device->instance->options;
    bool stop, was_transfer = false;
    struct node *node;

    while ((node = queue_next(&device->queue, options->hold, &stop))) {
        bool crosses = node->is_transfer != was_transfer;

        pause_ns(stop ? 0 : options->latency_ns + (crosses ? options->transfer_ns : 0));
        was_transfer = node->is_transfer;
        node_run(device, node);
        pthread_mutex_lock(&device->queue.lock);
        queue_reach(&device->queue, node->value);
        pthread_mutex_unlock(&device->queue.lock);
        null_free(device->instance, node);
    }
    return NULL;
}

static void queue_fini(struct queue *queue)
{
    pthread_cond_destroy(&queue->work);
    pthread_cond_destroy(&queue->reached);
    pthread_mutex_destroy(&queue->lock);
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
    pthread_cond_init(&queue->work, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->reached, &clock);
    pthread_condattr_destroy(&clock);
    if (device->instance->options.inline_queue ||
        !pthread_create(&queue->thread, NULL, queue_main, device))
        return FRIT_OK;
    queue_fini(queue);
    return null_fail(device->instance, err, FRIT_IO, "null: no thread for the queue");
}

void queue_close(struct queue *queue, struct device *device)
{
    if (!device->instance->options.inline_queue) {
        pthread_mutex_lock(&queue->lock);
        queue->stop = true;
        pthread_cond_signal(&queue->work);
        pthread_mutex_unlock(&queue->lock);
        pthread_join(queue->thread, NULL);
    }
    queue_fini(queue);
}

/* ---- taking ---- */

static frit_status check_queue(struct device *device, const frit_queue *queue, frit_err *err)
{
    if (!queue)
        return FRIT_OK;
    return null_fail(device->instance, err, FRIT_INVALID, "null: there is no queue but the first");
}

/* FRIT_INVALID for a point that this queue has not handed out. */
static frit_status check_points(struct device *device, const frit_queue *queue,
                                const frit_point *waits, uint32_t n, frit_err *err)
{
    frit_status status = check_queue(device, queue, err);
    uint64_t issued;

    if (n == 0 || status)
        return status;
    pthread_mutex_lock(&device->queue.lock);
    issued = device->queue.issued;
    pthread_mutex_unlock(&device->queue.lock);
    for (uint32_t i = 0; i < n && !status; i++) {
        status = check_queue(device, waits[i].queue, err);
        if (!status && waits[i].value > issued)
            status = null_fail(device->instance, err, FRIT_INVALID,
                               "null: value %" PRIu64 " was never handed out", waits[i].value);
    }
    return status;
}

static struct node *node_create(struct device *device, uint32_t n_work, uint64_t n_bytes,
                                frit_err *err)
{
    struct node *node =
        null_alloc(device->instance, sizeof *node + n_work * sizeof(struct queued_cmd) + n_bytes);

    if (node)
        *node = (struct node){.n_work = n_work};
    else
        null_fail(device->instance, err, FRIT_NO_HOST_MEMORY, "null: no memory to queue a command");
    return node;
}

/* Lists a failure; without room the last one stands for it, too.  Under the lock. */
static void add_failing(struct queue *queue, const struct failing *failing)
{
    struct failing *last = &queue->failures[NULL_MAX_FAILURES - 1];

    if (queue->n_failures < NULL_MAX_FAILURES) {
        queue->failures[queue->n_failures++] = *failing;
        return;
    }
    last->last = failing->last;
    last->command = FRIT_ALL_COMMANDS;
}

/* FRIT_OK if the command, the device's `nth` of its kind, is not to fail. */
static frit_status planted_status(const struct device *device, const frit_cmd *cmd, uint64_t nth)
{
    const struct options *options = &device->instance->options;
    const struct fault *fault = cmd->kind == FRIT_CMD_COPY ? &options->copy : &options->launch;

    if (nth == fault->nth)
        return fault->status;
    return cmd->kind == FRIT_CMD_LAUNCH
               ? ((const struct program *)cmd->launch->program->self)->fails
               : FRIT_OK;
}

const frit_cmd *cmd_at(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

/* Counts what a submission has, and lists those of its launches and copies that are to fail.  Under
 * the lock.
 */
static void tally(struct device *device, uint64_t value, const frit_cmd *cmds, uint32_t count,
                  uint32_t stride)
{
    static const enum null_counter counters[] = {
        [FRIT_CMD_COPY] = NULL_COUNT_copies,       [FRIT_CMD_FILL] = NULL_COUNT_fills,
        [FRIT_CMD_LAUNCH] = NULL_COUNT_launches,   [FRIT_CMD_BARRIER] = NULL_COUNT_barriers,
        [FRIT_CMD_DISPATCH] = NULL_COUNT_launches, [FRIT_CMD_TIMESTAMP] = NULL_COUNT_timestamps,
    };
    uint64_t n[NULL_N_COUNTERS] = {0};

    for (uint32_t i = 0; i < count; i++) {
        const frit_cmd *cmd = cmd_at(cmds, stride, i);
        const bool launches = counters[cmd->kind] == NULL_COUNT_launches;
        uint64_t nth;
        frit_status status;

        n[counters[cmd->kind]]++;
        if (!launches && cmd->kind != FRIT_CMD_COPY)
            continue;
        if (cmd->kind == FRIT_CMD_LAUNCH)
            n[NULL_COUNT_ops] += ((const struct program *)cmd->launch->program->self)->cover.n_ops;
        nth = launches ? ++device->n_launches : ++device->n_copies;
        status = planted_status(device, cmd, nth);
        n[NULL_COUNT_failures] += status != FRIT_OK;
        if (status)
            add_failing(&device->queue,
                        &(struct failing){.status = status,
                                          .command = i + 1,
                                          .first = value,
                                          .last = value,
                                          .cookie = launches ? cmd->launch->cookie : 0,
                                          .nth = nth});
    }
    for (uint32_t i = NULL_N_CALLS; i < NULL_N_COUNTERS; i++)
        if (n[i])
            null_count(device->instance, i, n[i]);
}

/* Gives the node, of these commands, to the thread, or does its work; it is the queue's from here
 * on. */
static uint64_t queue_take(struct device *device, struct node *node, const frit_cmd *cmds,
                           uint32_t count, uint32_t stride)
{
    const struct options *options = &device->instance->options;
    struct queue *queue = &device->queue;
    uint64_t value;

    if (options->inline_queue)
        pause_ns(options->latency_ns);
    pthread_mutex_lock(&queue->lock);
    value = node->value = ++queue->issued;
    tally(device, value, cmds, count, stride);
    if (options->inline_queue) {
        node_run(device, node);
        queue_reach(queue, value);
        null_free(device->instance, node);
    } else {
        *(queue->last ? &queue->last->next : &queue->first) = node;
        queue->last = node;
        queue->n_nodes++;
        if (is_due(queue, options->hold))
            pthread_cond_signal(&queue->work);
    }
    pthread_mutex_unlock(&queue->lock);
    return value;
}

static char *address(const frit_memory *buffer, uint64_t offset)
{
    return buffer->data ? buffer->data + offset : NULL;
}

static frit_status check_transfer(struct device *device, uint32_t call,
                                  const frit_transfer *transfer, frit_err *err)
{
    frit_status status = null_count_call(device->instance, call, err);

    if (status)
        return status;
    if (!buffer_holds(transfer->memory, transfer->offset, transfer->bytes))
        return null_fail(device->instance, err, FRIT_INVALID,
                         "null: %" PRIu64 " bytes at %" PRIu64 " leave their buffer",
                         transfer->bytes, transfer->offset);
    return check_points(device, transfer->queue, transfer->waits, transfer->n_waits, err);
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
    derived_written(device, to->memory, to->offset, to->bytes);
    node->is_transfer = true;
    node->work[0] = (struct queued_cmd){.kind = WORK_COPY,
                                        .to = address(to->memory, to->offset),
                                        .from = (const char *)(node->work + 1),
                                        .bytes = to->bytes};
    *value = queue_take(device, node, NULL, 0, 0);
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
    node->is_transfer = true;
    node->work[0] = (struct queued_cmd){.kind = data ? WORK_COPY : WORK_FILL,
                                        .pattern_bytes = 1,
                                        .to = into,
                                        .from = data,
                                        .bytes = from->bytes};
    *value = queue_take(device, node, NULL, 0, 0);
    return FRIT_OK;
}

/* ---- submit ---- */

static struct queued_cmd work_of(const frit_cmd *cmd)
{
    struct queued_cmd work = {.kind = WORK_BARRIER, .bytes = cmd->bytes};

    if (cmd->kind == FRIT_CMD_COPY) {
        work.kind = WORK_COPY;
        work.to = address(cmd->dst, cmd->dst_offset);
        work.from = address(cmd->src, cmd->src_offset);
    } else if (cmd->kind == FRIT_CMD_FILL) {
        work.kind = WORK_FILL;
        work.to = address(cmd->dst, cmd->dst_offset);
        work.pattern = cmd->pattern;
        work.pattern_bytes = cmd->pattern_bytes;
    } else if (cmd->kind == FRIT_CMD_TIMESTAMP) {
        work.kind = WORK_TIMESTAMP;
        work.to = address(cmd->dst, cmd->dst_offset);
    } else if (cmd->kind != FRIT_CMD_BARRIER) {
        work.kind = WORK_LAUNCH;
    }
    return work;
}

/* Does everything now, in the given order. */
static uint64_t run_inline(struct device *device, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride)
{
    struct queue *queue = &device->queue;
    uint64_t value;

    pause_ns(device->instance->options.latency_ns);
    pthread_mutex_lock(&queue->lock);
    value = ++queue->issued;
    tally(device, value, cmds, count, stride);
    for (uint32_t i = 0; i < count; i++) {
        struct queued_cmd work = work_of(cmd_at(cmds, stride, i));

        work_run(device, &work);
    }
    queue_reach(queue, value);
    pthread_mutex_unlock(&queue->lock);
    return value;
}

frit_status queue_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                         uint32_t stride, const frit_point *waits, uint32_t n_waits,
                         uint64_t *value, frit_err *err)
{
    struct device *device = self;
    const struct options *options = &device->instance->options;
    frit_status status = null_count_call(device->instance, NULL_CALL_submit, err);
    struct node *node;

    if (!status)
        status = check_points(device, queue, waits, n_waits, err);
    if (!status && options->check)
        status = check_commands(device, cmds, count, stride, err);
    if (status)
        return status;
    if (device->submits)
        ++*device->submits;
    if (options->inline_queue && !options->permute) {
        *value = run_inline(device, cmds, count, stride);
        return FRIT_OK;
    }
    node = node_create(device, count, 0, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        node->work[i] = work_of(cmd_at(cmds, stride, i));
    *value = queue_take(device, node, cmds, count, stride);
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
    if (queue->done >= value || timeout_ns == 0)
        return queue->done >= value ? FRIT_OK : FRIT_TIMEOUT;
    if (queue->wanted < value) {
        queue->wanted = value;
        pthread_cond_signal(&queue->work);
    }
    if (timeout_ns > INT64_MAX) {
        while (queue->done < value)
            pthread_cond_wait(&queue->reached, &queue->lock);
        return FRIT_OK;
    }
    deadline = deadline_after(timeout_ns);
    while (queue->done < value)
        if (pthread_cond_timedwait(&queue->reached, &queue->lock, &deadline) == ETIMEDOUT)
            break;
    return queue->done >= value ? FRIT_OK : FRIT_TIMEOUT;
}

static bool is_known(const struct failing *failing, const frit_failure *known)
{
    if (failing->last != known->value)
        return failing->last < known->value;
    return known->command == 0 || failing->command <= known->command;
}

/* The first failure after what is known, up to `value`; none: its status is FRIT_OK.  What is
 * known is forgotten.  Under the lock. */
static struct failing queue_failure(struct queue *queue, const frit_failure *known, uint64_t value)
{
    bool whole = known->command == 0 || known->command == FRIT_ALL_COMMANDS;
    uint64_t next = known->value + whole; /* the first value with commands that are not known */
    struct failing found = {.status = FRIT_OK};
    uint32_t n_old = 0;

    while (n_old < queue->n_failures && is_known(&queue->failures[n_old], known))
        n_old++;
    queue->n_failures -= n_old;
    memmove(queue->failures, queue->failures + n_old, queue->n_failures * sizeof found);
    if (queue->n_failures == 0)
        return found;
    found = queue->failures[0];
    found.first = found.first > next ? found.first : next;
    return found.first <= value ? found : (struct failing){.status = FRIT_OK};
}

frit_status queue_wait(void *self, frit_queue *handle, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err)
{
    struct device *device = self;
    struct queue *queue = &device->queue;
    struct failing failed = {.status = FRIT_OK};
    frit_status status = null_count_call(device->instance, NULL_CALL_wait, err);

    if (!status)
        status = check_queue(device, handle, err);
    if (status)
        return status;
    pthread_mutex_lock(&queue->lock);
    status = await(queue, value, timeout_ns);
    if (!status)
        failed = queue_failure(queue, failure, value);
    pthread_mutex_unlock(&queue->lock);
    if (status)
        return null_fail(device->instance, err, status,
                         status == FRIT_TIMEOUT ? "null: value %" PRIu64 " is not reached yet"
                                                : "null: value %" PRIu64 " was never handed out",
                         value);
    failure->status = failed.status;
    if (!failed.status)
        return FRIT_OK;
    failure->value = failed.first;
    failure->command = failed.command;
    failure->cookie = failed.cookie;
    null_fail(device->instance, err, failed.status, "null: launch %" PRIu64 " fails on request",
              failed.nth);
    return FRIT_OK;
}
