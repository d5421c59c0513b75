/* SPDX-License-Identifier: Apache-2.0 */
/* A queue: a list of nodes, one per call, which a thread hands to the real driver in order, each
 * when other queues have reached what it waits for.  A node takes along all that the call was
 * given, but for what lives as long as a program: of the host's launches nothing is looked at once
 * submit has returned. */
#include <stddef.h>
#include <string.h>

#include "commands.h"
#include "late.h"

enum node_kind { NODE_WRITE, NODE_READ, NODE_SUBMIT };

struct node {
    struct node *next;
    enum node_kind kind;
    uint64_t value;
    frit_transfer transfer; /* WRITE, READ */
    void *data;             /* after the node what is written; the host's memory to be read into */
    frit_cmd *cmds;         /* SUBMIT; after the node */
    uint32_t n_cmds;
    const frit_point *waits; /* after the node */
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
    for (uint32_t i = 0; i < node->n_waits && !device->instance->ignores_waits; i++) {
        frit_queue *other = queue_of(device, node->waits[i].queue);

        want(other, node->waits[i].value);
        (void)progress_await(&other->progress, node->waits[i].value);
    }
}

/* Reports a launch as failed though it ran, if the option wants that. */
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

/* With its waits and `bytes` of data after it. */
static struct node *make_node(struct device *device, enum node_kind kind, const frit_point *waits,
                              uint32_t n_waits, uint64_t bytes, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    uint64_t align = _Alignof(max_align_t), before = n_waits * sizeof *waits;
    struct node *node;
    frit_point *copies;

    before = (before + align - 1) / align * align;
    node = plug_alloc(plug, sizeof *node + before + bytes, align);
    if (!node) {
        (void)plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory to queue a command");
        return NULL;
    }
    copies = (frit_point *)(void *)(node + 1);
    *node = (struct node){
        .kind = kind, .waits = copies, .n_waits = n_waits, .data = (char *)copies + before};
    if (n_waits)
        memcpy(copies, waits, n_waits * sizeof *waits);
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

static frit_status transfer(struct device *device, enum node_kind kind, const frit_transfer *how,
                            const void *from, void *into, uint64_t *value, frit_err *err)
{
    frit_status status = check_waits(device, how->waits, how->n_waits, err);
    struct node *node;

    if (status)
        return status;
    node = make_node(device, kind, how->waits, how->n_waits, from ? how->bytes : 0, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    node->transfer = *how;
    node->transfer.queue = NULL;
    node->transfer.waits = NULL;
    node->transfer.n_waits = 0;
    if (from)
        memcpy(node->data, from, how->bytes);
    else
        node->data = into;
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

/* What a submit or a replay is given: the queue, and what it waits for. */
struct call {
    frit_queue *queue;
    const frit_point *waits;
    uint32_t n_waits;
};

/* A node of copies, with what a replay gives of them where `recording` is not NULL. */
static frit_status submit(const struct call *call, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_recording *recording, const void *block,
                          uint64_t *value, frit_err *err)
{
    struct device *device = call->queue->device;
    frit_status status = check_waits(device, call->waits, call->n_waits, err);
    struct cmd_arena arena = {0};
    struct node *node;

    if (status)
        return status;
    commands_keep(&arena, cmds, count, stride);
    node = make_node(device, NODE_SUBMIT, call->waits, call->n_waits, arena.used, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    arena = (struct cmd_arena){.at = node->data};
    node->cmds = commands_keep(&arena, cmds, count, stride);
    node->n_cmds = count;
    if (recording)
        recording_put_all(node->cmds, recording, block);
    return take(call->queue, node, value, err);
}

frit_status late_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride, const frit_point *waits, uint32_t n_waits, uint64_t *value,
                        frit_err *err)
{
    const struct call call = {queue_of(self, queue), waits, n_waits};

    return submit(&call, cmds, count, stride, NULL, NULL, value, err);
}

/* ---- frit.capture/1 ---- */

frit_status late_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride, const frit_param *params, uint32_t n_params,
                        uint32_t param_stride, frit_recording **out, frit_err *err)
{
    struct device *device = self;
    const struct plug *plug = &device->instance->plug;
    struct cmd_arena arena = {0};

    *out = NULL;
    (void)recording_keep(&arena, cmds, count, stride, params, n_params, param_stride);
    arena.at = plug_alloc(plug, arena.used, _Alignof(max_align_t));
    if (!arena.at)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for a recording");
    arena.used = 0;
    *out = recording_keep(&arena, cmds, count, stride, params, n_params, param_stride);
    (*out)->queue = queue_of(device, queue);
    return FRIT_OK;
}

frit_status late_replay(void *self, frit_recording *recording, const void *block,
                        const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    const struct call call = {recording->queue, waits, n_waits};

    (void)self;
    return submit(&call, recording->cmds, recording->n_cmds, sizeof *recording->cmds, recording,
                  block, value, err);
}

void late_release(void *self, frit_recording *recording)
{
    struct device *device = self;

    plug_free(&device->instance->plug, recording);
}

frit_status late_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                      frit_failure *failure, frit_err *err)
{
    queue = queue_of(self, queue);
    if (timeout_ns)
        want(queue, value);
    return progress_wait(&queue->progress, value, timeout_ns, failure, err);
}
