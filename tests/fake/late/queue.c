/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: a list of nodes, one per call, which a thread hands to the real driver in order.  A
 * node takes along all that the call was given, but for what lives as long as a program: of the
 * host's launches nothing is looked at once submit has returned. */
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
    void *data;             /* behind the node what is written; the host's memory to be read into */
    frit_cmd *cmds;         /* SUBMIT; behind the node */
    uint32_t n_cmds;
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
static bool note_failure(struct device *device, const struct node *node, uint64_t value,
                         frit_failure *failure)
{
    struct fault fault = {.err = {.struct_size = sizeof fault.err}};
    frit_status status = device->instance->backend->wait(device->inner, NULL, value, UINT64_MAX,
                                                         failure, &fault.err);

    if (!status && !failure->status)
        return false;
    fault.err.status = status ? status : failure->status;
    fault.command = status ? FRIT_ALL_COMMANDS : failure->command;
    fault.cookie = status ? 0 : failure->cookie;
    progress_fail(&device->progress, node->value, &fault);
    return fault.command != FRIT_ALL_COMMANDS;
}

static void run_node(struct device *device, struct node *node, uint64_t *known)
{
    struct fault refused = {.command = FRIT_ALL_COMMANDS,
                            .err = {.struct_size = sizeof refused.err}};
    frit_failure failure = {.struct_size = sizeof failure, .value = *known};
    uint64_t value = *known;

    refused.err.status = run_call(device, node, &value, &refused.err);
    while (!refused.err.status && note_failure(device, node, value, &failure))
        ;
    *known = value;
    progress_reach(&device->progress, node->value, refused.err.status ? &refused : NULL);
}

/* Waits for a node that is due; NULL: no more will come. */
static struct node *next_node(struct device *device)
{
    struct node *node;

    pthread_mutex_lock(&device->lock);
    while (!device->stop && device->n_nodes <= device->instance->hold &&
           (!device->first || device->wanted <= device->taken))
        pthread_cond_wait(&device->change, &device->lock);
    node = device->first;
    if (node) {
        device->first = node->next;
        device->n_nodes--;
        device->taken = node->value;
    }
    if (!device->first)
        device->last = NULL;
    pthread_mutex_unlock(&device->lock);
    return node;
}

static void *run_queue(void *arg)
{
    struct device *device = arg;
    uint64_t known = 0;
    struct node *node;

    while ((node = next_node(device))) {
        run_node(device, node, &known);
        plug_free(&device->instance->plug, node);
    }
    return NULL;
}

static void fini(struct device *device)
{
    progress_fini(&device->progress);
    pthread_cond_destroy(&device->change);
    pthread_mutex_destroy(&device->lock);
}

frit_status late_open(struct device *device, frit_err *err)
{
    progress_init(&device->progress, &device->instance->plug);
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->change, NULL);
    if (!pthread_create(&device->thread, NULL, run_queue, device))
        return FRIT_OK;
    fini(device);
    return plug_fail(&device->instance->plug, err, FRIT_IO, "no thread for the queue");
}

void late_close(struct device *device)
{
    pthread_mutex_lock(&device->lock);
    device->stop = true;
    pthread_cond_signal(&device->change);
    pthread_mutex_unlock(&device->lock);
    pthread_join(device->thread, NULL);
    fini(device);
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
static frit_status take(struct device *device, struct node *node, uint64_t *value, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&device->lock);
    status = progress_issue(&device->progress, &node->value, err);
    if (!status) {
        *value = node->value;
        *(device->last ? &device->last->next : &device->first) = node;
        device->last = node;
        device->n_nodes++;
        pthread_cond_signal(&device->change);
    }
    pthread_mutex_unlock(&device->lock);
    if (status)
        plug_free(&device->instance->plug, node);
    return status;
}

static frit_status transfer(struct device *device, enum node_kind kind, const frit_transfer *how,
                            const void *from, void *into, uint64_t *value, frit_err *err)
{
    frit_status status = progress_check(&device->progress, how->waits, how->n_waits, err);
    struct node *node;

    if (status)
        return status;
    node = make_node(device, kind, from ? how->bytes : 0, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    node->transfer = *how;
    node->transfer.waits = NULL;
    node->transfer.n_waits = 0;
    if (from)
        memcpy(node->data, from, how->bytes);
    else
        node->data = into;
    return take(device, node, value, err);
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

/* A node of copies, with what a replay gives of them where `recording` is not NULL. */
static frit_status submit(struct device *device, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_recording *recording, const void *block,
                          uint64_t *value, frit_err *err)
{
    struct room room = {0};
    struct node *node;

    commands_keep(&room, cmds, count, stride);
    node = make_node(device, NODE_SUBMIT, room.used, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    room = (struct room){.at = node->data};
    node->cmds = commands_keep(&room, cmds, count, stride);
    node->n_cmds = count;
    if (recording)
        recording_put_all(node->cmds, recording, block);
    return take(device, node, value, err);
}

frit_status late_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride, const frit_point *waits, uint32_t n_waits, uint64_t *value,
                        frit_err *err)
{
    struct device *device = self;
    frit_status status = progress_check(&device->progress, waits, n_waits, err);

    if (!status)
        status = progress_check_queue(&device->progress, queue, err);
    return status ? status : submit(device, cmds, count, stride, NULL, NULL, value, err);
}

/* ---- frit.capture/1 ---- */

frit_status late_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride, const frit_param *params, uint32_t n_params,
                        uint32_t param_stride, frit_recording **out, frit_err *err)
{
    struct device *device = self;
    const struct plug *plug = &device->instance->plug;
    frit_status status = progress_check_queue(&device->progress, queue, err);
    struct room room = {0};

    *out = NULL;
    if (status)
        return status;
    (void)recording_keep(&room, cmds, count, stride, params, n_params, param_stride);
    room.at = plug_alloc(plug, room.used, _Alignof(max_align_t));
    if (!room.at)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for a recording");
    room.used = 0;
    *out = recording_keep(&room, cmds, count, stride, params, n_params, param_stride);
    return FRIT_OK;
}

frit_status late_replay(void *self, frit_recording *recording, const void *block,
                        const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    struct device *device = self;
    frit_status status = progress_check(&device->progress, waits, n_waits, err);

    return status ? status
                  : submit(device, recording->cmds, recording->n_cmds, sizeof *recording->cmds,
                           recording, block, value, err);
}

void late_release(void *self, frit_recording *recording)
{
    struct device *device = self;

    plug_free(&device->instance->plug, recording);
}

frit_status late_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                      frit_failure *failure, frit_err *err)
{
    struct device *device = self;
    frit_status status = progress_check_queue(&device->progress, queue, err);

    if (status)
        return status;
    pthread_mutex_lock(&device->lock);
    if (timeout_ns && device->wanted < value) {
        device->wanted = value;
        pthread_cond_signal(&device->change);
    }
    pthread_mutex_unlock(&device->lock);
    return progress_wait(&device->progress, value, timeout_ns, failure, err);
}
