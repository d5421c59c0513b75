/* SPDX-License-Identifier: Apache-2.0 */
/* A queue: a list of nodes, one per call, which a thread hands to the real driver in order, each
 * when other queues have reached what it waits for.  A node takes along all that the call was
 * given, but for what lives as long as a program: of the host's launches nothing is looked at once
 * submit has returned. */
#include <stddef.h>
#include <string.h>

#include "late.h"

/* A launch with all that it points at. */
struct kept_launch {
    frit_launch launch;
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
};

enum node_kind { NODE_WRITE, NODE_READ, NODE_SUBMIT };

struct node {
    struct node *next;
    enum node_kind kind;
    uint64_t value;
    frit_transfer transfer; /* WRITE, READ */
    void *data;             /* behind the node what is written; the host's memory to be read into */
    frit_cmd *cmds;         /* SUBMIT; behind the node */
    uint32_t n_cmds;
    const frit_point *waits; /* behind the node */
    uint32_t n_waits;
};

/* ---- running ---- */

/* The real driver's call; its value. */
static frit_status run_call(struct device *device, struct node *node, uint64_t *value,
                            frit_err *err)
{
    const frit_backend *backend = device->instance->backend;

    if (node->kind == NODE_WRITE)
        return backend->write(device->inner, &node->transfer, node->data, value, err);
    if (node->kind == NODE_READ)
        return backend->read(device->inner, &node->transfer, node->data, value, err);
    return backend->submit(device->inner, NULL, node->cmds, node->n_cmds, sizeof *node->cmds, NULL,
                           0, value, err);
}

/* Waits for the real driver and notes the next failure of the node; false: there is none. */
static bool note_failure(frit_queue *queue, const struct node *node, uint64_t value,
                         frit_failure *failure)
{
    struct device *device = queue->device;
    struct fault fault = {.err = {.struct_size = sizeof fault.err}};
    frit_status status = device->instance->backend->wait(device->inner, NULL, value, UINT64_MAX,
                                                         failure, &fault.err);

    if (!status && !failure->status)
        return false;
    fault.err.status = status ? status : failure->status;
    fault.command = status ? FRIT_ALL_COMMANDS : failure->command;
    fault.cookie = status ? 0 : failure->cookie;
    progress_fail(&queue->progress, node->value, &fault);
    return fault.command != FRIT_ALL_COMMANDS;
}

static frit_queue *queue_of(struct device *device, frit_queue *queue)
{
    return queue ? queue : &device->queue;
}

/* From here on somebody waits for the value. */
static void want(frit_queue *queue, uint64_t value)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->wanted < value) {
        queue->wanted = value;
        pthread_cond_signal(&queue->change);
    }
    pthread_mutex_unlock(&queue->lock);
}

static void await_others(struct device *device, const struct node *node)
{
    for (uint32_t i = 0; i < node->n_waits && !device->instance->is_deaf; i++) {
        frit_queue *other = queue_of(device, node->waits[i].queue);

        want(other, node->waits[i].value);
        (void)progress_await(&other->progress, node->waits[i].value);
    }
}

/* A launch that was run is told to have failed, where that is wanted. */
static void fail_wanted(frit_queue *queue, const struct node *node)
{
    struct device *device = queue->device;

    for (uint32_t i = 0; i < node->n_cmds; i++) {
        struct fault fault = {
            .command = i + 1,
            .err = {.struct_size = sizeof fault.err, .status = FRIT_IO, .text = "it was to fail"}};

        if (node->cmds[i].kind != FRIT_CMD_LAUNCH ||
            ++device->n_launches != device->instance->fail_launch)
            continue;
        fault.cookie = node->cmds[i].launch->cookie;
        progress_fail(&queue->progress, node->value, &fault);
    }
}

static void run_node(frit_queue *queue, struct node *node)
{
    struct device *device = queue->device;
    struct fault refused = {.command = FRIT_ALL_COMMANDS,
                            .err = {.struct_size = sizeof refused.err}};
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t value;

    await_others(device, node);
    pthread_mutex_lock(&device->calls);
    failure.value = value = device->known;
    refused.err.status = run_call(device, node, &value, &refused.err);
    while (!refused.err.status && note_failure(queue, node, value, &failure))
        ;
    device->known = value;
    fail_wanted(queue, node);
    pthread_mutex_unlock(&device->calls);
    progress_reach(&queue->progress, node->value, refused.err.status ? &refused : NULL);
}

/* Waits for a node that is due; NULL: no more will come. */
static struct node *next_node(frit_queue *queue)
{
    struct node *node;

    pthread_mutex_lock(&queue->lock);
    while (!queue->stop && queue->n_nodes <= queue->device->instance->hold &&
           (!queue->first || queue->wanted <= queue->taken))
        pthread_cond_wait(&queue->change, &queue->lock);
    node = queue->first;
    if (node) {
        queue->first = node->next;
        queue->n_nodes--;
        queue->taken = node->value;
    }
    if (!queue->first)
        queue->last = NULL;
    pthread_mutex_unlock(&queue->lock);
    return node;
}

static void *run_queue(void *arg)
{
    frit_queue *queue = arg;
    struct node *node;

    while ((node = next_node(queue))) {
        run_node(queue, node);
        plug_free(&queue->device->instance->plug, node);
    }
    return NULL;
}

static void fini(frit_queue *queue)
{
    progress_fini(&queue->progress);
    pthread_cond_destroy(&queue->change);
    pthread_mutex_destroy(&queue->lock);
}

static frit_status begin(frit_queue *queue, struct device *device, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;

    *queue = (frit_queue){.device = device};
    progress_init(&queue->progress, plug);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->change, NULL);
    if (!pthread_create(&queue->thread, NULL, run_queue, queue))
        return FRIT_OK;
    fini(queue);
    return plug_fail(plug, err, FRIT_IO, "no thread for the queue");
}

static void end(frit_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->stop = true;
    pthread_cond_signal(&queue->change);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    fini(queue);
}

frit_status late_open(struct device *device, frit_err *err)
{
    frit_status status = begin(&device->queue, device, err);

    if (!status)
        pthread_mutex_init(&device->calls, NULL);
    return status;
}

void late_close(struct device *device)
{
    end(&device->queue);
    pthread_mutex_destroy(&device->calls);
}

frit_status late_queue_create(void *self, const frit_queue_desc *desc, frit_queue **out,
                              frit_err *err)
{
    struct device *device = self;
    const struct plug *plug = &device->instance->plug;
    frit_queue *queue = plug_alloc(plug, sizeof *queue, _Alignof(frit_queue));
    frit_status status;

    (void)desc;
    *out = NULL;
    if (!queue)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for a queue");
    status = begin(queue, device, err);
    if (status)
        plug_free(plug, queue);
    else
        *out = queue;
    return status;
}

void late_queue_destroy(void *self, frit_queue *queue)
{
    if (!queue)
        return;
    end(queue);
    plug_free(&((struct device *)self)->instance->plug, queue);
}

/* ---- taking ---- */

static struct node *make_node(struct device *device, enum node_kind kind, uint64_t bytes,
                              frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    struct node *node = plug_alloc(plug, sizeof *node + bytes, _Alignof(max_align_t));

    if (!node) {
        (void)plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory to queue a command");
        return NULL;
    }
    *node = (struct node){.kind = kind, .data = node + 1};
    return node;
}

/* Lists the node, or drops it. */
static frit_status take(frit_queue *queue, struct node *node, uint64_t *value, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&queue->lock);
    status = progress_issue(&queue->progress, &node->value, err);
    if (!status) {
        *value = node->value;
        *(queue->last ? &queue->last->next : &queue->first) = node;
        queue->last = node;
        queue->n_nodes++;
        pthread_cond_signal(&queue->change);
    }
    pthread_mutex_unlock(&queue->lock);
    if (status)
        plug_free(&queue->device->instance->plug, node);
    return status;
}

static frit_status check_waits(struct device *device, const frit_point *waits, uint32_t n,
                               frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < n && !status; i++)
        status =
            progress_check_value(&queue_of(device, waits[i].queue)->progress, waits[i].value, err);
    return status;
}

/* Memory behind a node, handed out from its beginning; without `at` it is only measured. */
struct room {
    char *at;
    uint64_t used;
};

/* A copy of `bytes` bytes (`from` NULL: room for them), NULL while it is measured or where there
 * are none. */
static void *keep(struct room *room, const void *from, uint64_t bytes)
{
    void *copy = room->at && bytes ? room->at + room->used : NULL;

    if (copy && from)
        memcpy(copy, from, bytes);
    room->used +=
        (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    return copy;
}

static frit_status transfer(struct device *device, enum node_kind kind, const frit_transfer *how,
                            const void *from, void *into, uint64_t *value, frit_err *err)
{
    frit_status status = check_waits(device, how->waits, how->n_waits, err);
    uint64_t bytes = how->n_waits * sizeof *how->waits;
    struct room room = {0};
    struct node *node;

    if (status)
        return status;
    keep(&room, how->waits, bytes);
    node = make_node(device, kind, room.used + (from ? how->bytes : 0), err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    room = (struct room){.at = node->data};
    node->waits = keep(&room, how->waits, bytes);
    node->n_waits = how->n_waits;
    node->transfer = *how;
    node->transfer.queue = NULL;
    node->transfer.waits = NULL;
    node->transfer.n_waits = 0;
    node->data = from ? room.at + room.used : into;
    if (from)
        memcpy(node->data, from, how->bytes);
    return take(queue_of(device, how->queue), node, value, err);
}

frit_status late_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                       frit_err *err)
{
    return transfer(self, NODE_WRITE, to, from, NULL, value, err);
}

frit_status late_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                      frit_err *err)
{
    return transfer(self, NODE_READ, from, NULL, into, value, err);
}

/* ---- submit ---- */

static const frit_launch *keep_launch(struct room *room, const frit_launch *from)
{
    struct kept_launch *kept = keep(room, &(struct kept_launch){.launch = *from}, sizeof *kept);
    void *args = keep(room, from->args, (uint64_t)from->n_args * from->arg_stride);
    void *scalars = keep(room, from->scalars, from->n_scalars * sizeof *from->scalars);
    void *bounds = keep(room, from->bounds, from->n_bounds * sizeof *from->bounds);
    void *derived = keep(room, from->derived, from->n_derived * sizeof *from->derived);

    if (!kept)
        return NULL;
    kept->launch.args = args;
    kept->launch.scalars = scalars;
    kept->launch.bounds = bounds;
    kept->launch.derived = derived;
    if (from->program) {
        kept->program = *from->program;
        kept->launch.program = &kept->program;
    }
    if (from->spec) {
        kept->spec = *from->spec;
        kept->launch.spec = &kept->spec;
    }
    if (from->variant) {
        memcpy(&kept->variant, from->variant,
               offsetof(frit_variant, bytes) + from->variant->n_bytes);
        kept->launch.variant = &kept->variant;
    }
    return &kept->launch;
}

/* All commands with what they point at. */
static frit_cmd *keep_commands(struct room *room, const frit_cmd *cmds, uint32_t count,
                               uint32_t stride)
{
    frit_cmd *copies = keep(room, NULL, count * sizeof *copies);

    for (uint32_t i = 0; i < count; i++) {
        const void *at = (const char *)cmds + (size_t)i * stride;
        const frit_cmd *from = at;
        const frit_launch *launch = from->launch ? keep_launch(room, from->launch) : NULL;

        if (!copies)
            continue;
        copies[i] = *from;
        copies[i].launch = launch;
    }
    return copies;
}

frit_status late_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride, const frit_point *waits, uint32_t n_waits, uint64_t *value,
                        frit_err *err)
{
    struct device *device = self;
    frit_status status = check_waits(device, waits, n_waits, err);
    struct room room = {0};
    struct node *node;

    if (status)
        return status;
    keep_commands(&room, cmds, count, stride);
    keep(&room, waits, n_waits * sizeof *waits);
    node = make_node(device, NODE_SUBMIT, room.used, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    room = (struct room){.at = node->data};
    node->cmds = keep_commands(&room, cmds, count, stride);
    node->n_cmds = count;
    node->waits = keep(&room, waits, n_waits * sizeof *waits);
    node->n_waits = n_waits;
    return take(queue_of(device, queue), node, value, err);
}

frit_status late_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                      frit_failure *failure, frit_err *err)
{
    queue = queue_of(self, queue);
    if (timeout_ns)
        want(queue, value);
    return progress_wait(&queue->progress, value, timeout_ns, failure, err);
}
