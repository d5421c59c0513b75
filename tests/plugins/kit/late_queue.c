/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: a list of nodes, one per command, which a thread runs in order.  A node takes along
 * all that it needs.  Values are issued under the lock under which nodes are listed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "late.h"
#include "util/memory.h"

enum node_kind { NODE_END, NODE_COPY, NODE_FILL, NODE_LAUNCH };

struct node {
    struct node *next;
    enum node_kind kind;
    uint64_t value;   /* of its submit; END: reached */
    uint32_t command; /* its number in the submit */
    char *to;         /* COPY, FILL */
    const char *from;
    uint64_t bytes, pattern;
    uint32_t pattern_bytes;
    frit_status (*run)(const struct kit_call *call, frit_err *err);
    struct kit_call call;
    frit_launch launch;
    /* Behind it: scalars and bounds of a launch, bytes to be written. */
    uint64_t data[];
};

/* Nodes that are not listed yet. */
struct list {
    struct node *first, *last;
};

static struct late *late_of(const struct kit_device *device)
{
    return device->own;
}

/* ---- running ---- */

static void run_fill(const struct node *node)
{
    for (uint64_t at = 0; at < node->bytes; at += node->pattern_bytes)
        memcpy(node->to + at, &node->pattern, node->pattern_bytes);
}

static frit_status run_launch(const struct late *late, const struct node *node, frit_err *err)
{
    if (late->fail_all || (node->launch.cookie && node->launch.cookie == late->fail))
        return plug_fail(node->call.plug, err, FRIT_IO, "the launch that fails");
    if (late->lose_all || (node->launch.cookie && node->launch.cookie == late->lose))
        return plug_fail(node->call.plug, err, FRIT_DEVICE_LOST, "the launch that is too much");
    return node->run(&node->call, err);
}

/* Whether the file has appeared; it is removed, so that the device can be opened again. */
static bool is_gone(const struct late *late)
{
    return late->gone[0] && unlink(late->gone) == 0;
}

/* True: the device is lost. */
static bool run_node(struct late *late, const struct node *node)
{
    struct fault fault = {.cookie = node->launch.cookie,
                          .command = node->command,
                          .err = {.struct_size = sizeof fault.err}};
    frit_status status = FRIT_OK;

    if (is_gone(late))
        status =
            plug_fail(late->progress.plug, &fault.err, FRIT_DEVICE_LOST, "%s appeared", late->gone);
    else if (node->kind == NODE_COPY)
        memmove(node->to, node->from, node->bytes);
    else if (node->kind == NODE_FILL)
        run_fill(node);
    else if (node->kind == NODE_LAUNCH)
        status = run_launch(late, node, &fault.err);
    if (status == FRIT_DEVICE_LOST) {
        progress_lose(&late->progress, &fault);
        return true;
    }
    if (status)
        progress_fail(&late->progress, node->value, &fault);
    if (node->kind == NODE_END)
        progress_reach(&late->progress, node->value, NULL);
    return false;
}

/* NULL: no more will come. */
static struct node *next_node(struct late *late)
{
    struct node *node;

    pthread_mutex_lock(&late->lock);
    while (late->held || (!late->first && !late->stop))
        pthread_cond_wait(&late->change, &late->lock);
    node = late->first;
    if (node)
        late->first = node->next;
    if (!late->first)
        late->last = NULL;
    pthread_mutex_unlock(&late->lock);
    return node;
}

static void *run_queue(void *arg)
{
    const struct kit_device *device = arg;
    struct late *late = late_of(device);
    struct node *node;
    bool lost = false;

    while ((node = next_node(late))) {
        if (!lost)
            lost = run_node(late, node);
        plug_free(&device->instance->plug, node);
    }
    return NULL;
}

static void set_held(struct kit_device *device, bool held)
{
    struct late *late = late_of(device);

    pthread_mutex_lock(&late->lock);
    late->held = held;
    pthread_cond_signal(&late->change);
    pthread_mutex_unlock(&late->lock);
}

void late_hold(struct kit_device *device)
{
    set_held(device, true);
}

void late_release(struct kit_device *device)
{
    set_held(device, false);
}

/* All but the thread. */
static void end(struct kit_device *device)
{
    struct late *late = late_of(device);

    progress_fini(&late->progress);
    pthread_cond_destroy(&late->change);
    pthread_mutex_destroy(&late->lock);
    plug_free(&device->instance->plug, late);
}

frit_status late_open(struct kit_device *device, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    const struct late_options *options = device->instance->own;
    struct late *late = plug_alloc(plug, sizeof *late, _Alignof(struct late));

    if (!late)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for a queue");
    memset(late, 0, sizeof *late);
    late->fail_all = options->fail;
    late->lose_all = options->lose;
    if (options->gone.len)
        snprintf(late->gone, sizeof late->gone, "%.*s/%ld", (int)options->gone.len,
                 options->gone.ptr, (long)getpid());
    device->own = late;
    progress_init(&late->progress, plug);
    pthread_mutex_init(&late->lock, NULL);
    pthread_cond_init(&late->change, NULL);
    if (!pthread_create(&late->thread, NULL, run_queue, device))
        return FRIT_OK;
    end(device);
    return plug_fail(plug, err, FRIT_IO, "no thread for a queue");
}

void late_close(struct kit_device *device)
{
    struct late *late = late_of(device);

    pthread_mutex_lock(&late->lock);
    late->stop = true;
    pthread_cond_signal(&late->change);
    pthread_mutex_unlock(&late->lock);
    pthread_join(late->thread, NULL);
    end(device);
}

/* ---- taking ---- */

static struct node *add_node(const struct kit_device *device, struct list *list,
                             enum node_kind kind, uint64_t data_bytes, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    struct node *node = plug_alloc(plug, sizeof *node + data_bytes, _Alignof(struct node));

    if (!node) {
        (void)plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory to queue a command");
        return NULL;
    }
    memset(node, 0, sizeof *node);
    node->kind = kind;
    if (list->last)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
    return node;
}

static void drop(const struct kit_device *device, struct list *list)
{
    for (struct node *node = list->first, *next; node; node = next) {
        next = node->next;
        plug_free(&device->instance->plug, node);
    }
}

/* Lists all of them, and what reaches a new value after; or none. */
static frit_status take(const struct kit_device *device, struct list *list, uint64_t *value,
                        frit_err *err)
{
    struct late *late = late_of(device);
    struct node *end = add_node(device, list, NODE_END, 0, err);
    frit_status status;

    if (!end)
        return FRIT_NO_HOST_MEMORY;
    pthread_mutex_lock(&late->lock);
    status = progress_issue(&late->progress, &end->value, err);
    if (!status) {
        for (struct node *node = list->first; node; node = node->next)
            node->value = end->value;
        *value = end->value;
        *(late->last ? &late->last->next : &late->first) = list->first;
        late->last = end;
        pthread_cond_signal(&late->change);
    }
    pthread_mutex_unlock(&late->lock);
    return status;
}

static frit_status add_copy(const struct kit_device *device, struct list *list, char *to,
                            const char *from, uint64_t bytes, frit_err *err)
{
    struct node *node = add_node(device, list, NODE_COPY, 0, err);

    if (!node)
        return FRIT_NO_HOST_MEMORY;
    node->to = to;
    node->from = from;
    node->bytes = bytes;
    return FRIT_OK;
}

/* The launch as it can be kept: what it points at, but for what lives as long as its program. */
static frit_status add_launch(const struct kit_device *device, struct list *list,
                              const frit_launch *launch, frit_err *err)
{
    const uint64_t scalars = launch->n_scalars * sizeof *launch->scalars,
                   bounds = launch->n_bounds * sizeof *launch->bounds;
    const struct kit_program *program = kit_program_of(launch);
    struct node *node = add_node(device, list, NODE_LAUNCH, scalars + bounds, err);
    frit_status status;

    if (!node)
        return FRIT_NO_HOST_MEMORY;
    status = kit_call_of(device, launch, &node->call, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        node->call.args[i].data = hosted_element(node->call.args[i].arg);
        node->call.args[i].arg = NULL;
    }
    node->launch = (frit_launch){.cookie = launch->cookie,
                                 .scalars = (const frit_scalar *)(const void *)node->data,
                                 .bounds = (const int64_t *)node->data + scalars / 8};
    if (scalars)
        memcpy(node->data, launch->scalars, scalars);
    if (bounds)
        memcpy(node->data + scalars / 8, launch->bounds, bounds);
    node->call.launch = &node->launch;
    node->run = node->call.code ? ((struct late_code *)node->call.code)->run
                : program->row  ? program->row->run
                                : program->fuser->run;
    return FRIT_OK;
}

static char *address(const frit_memory *memory, uint64_t offset)
{
    return memory->data + offset;
}

static frit_status add_fill(const struct kit_device *device, struct list *list, const frit_cmd *cmd,
                            frit_err *err)
{
    struct node *node = add_node(device, list, NODE_FILL, 0, err);

    if (!node)
        return FRIT_NO_HOST_MEMORY;
    node->to = address(cmd->dst, cmd->dst_offset);
    node->bytes = cmd->bytes;
    node->pattern = cmd->pattern;
    node->pattern_bytes = cmd->pattern_bytes;
    return FRIT_OK;
}

static frit_status add_command(const struct kit_device *device, struct list *list,
                               const frit_cmd *cmd, frit_err *err)
{
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return add_copy(device, list, address(cmd->dst, cmd->dst_offset),
                        address(cmd->src, cmd->src_offset), cmd->bytes, err);
    case FRIT_CMD_FILL:
        return add_fill(device, list, cmd, err);
    case FRIT_CMD_LAUNCH:
        return add_launch(device, list, cmd->launch, err);
    case FRIT_CMD_BARRIER:
        return FRIT_OK; /* in order as it is */
    default:
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED, "command of kind %u",
                         cmd->kind);
    }
}

/* ---- slots ---- */

static frit_status check_call(const struct kit_device *device, const frit_queue *queue,
                              const frit_point *waits, uint32_t n, frit_err *err)
{
    frit_status status = progress_check_queue(&late_of(device)->progress, queue, err);

    return status ? status : progress_check(&late_of(device)->progress, waits, n, err);
}

frit_status late_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                       frit_err *err)
{
    const struct kit_device *device = self;
    frit_status status = check_call(device, to->queue, to->waits, to->n_waits, err);
    struct list list = {0};
    struct node *node;

    if (status)
        return status;
    node = add_node(device, &list, NODE_COPY, to->bytes, err);
    if (!node)
        return FRIT_NO_HOST_MEMORY;
    memcpy(node->data, from, to->bytes);
    node->to = address(to->memory, to->offset);
    node->from = (const char *)node->data;
    node->bytes = to->bytes;
    status = take(device, &list, value, err);
    if (status)
        drop(device, &list);
    return status;
}

frit_status late_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                      frit_err *err)
{
    const struct kit_device *device = self;
    frit_status status = check_call(device, from->queue, from->waits, from->n_waits, err);
    struct list list = {0};

    if (!status)
        status =
            add_copy(device, &list, into, address(from->memory, from->offset), from->bytes, err);
    if (!status)
        status = take(device, &list, value, err);
    if (status)
        drop(device, &list);
    return status;
}

frit_status late_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride, const frit_point *waits, uint32_t n_waits, uint64_t *value,
                        frit_err *err)
{
    const struct kit_device *device = self;
    frit_status status = check_call(device, queue, waits, n_waits, err);
    struct list list = {0};

    for (uint32_t i = 0; i < count && !status; i++) {
        status = add_command(
            device, &list, (const frit_cmd *)(const void *)((const char *)cmds + i * stride), err);
        if (list.last && !list.last->command)
            list.last->command = i + 1;
    }
    if (!status)
        status = take(device, &list, value, err);
    if (status)
        drop(device, &list);
    return status;
}

frit_status late_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                      frit_failure *failure, frit_err *err)
{
    const struct kit_device *device = self;
    frit_status status = progress_check_queue(&late_of(device)->progress, queue, err);

    return status ? status
                  : progress_wait(&late_of(device)->progress, value, timeout_ns, failure, err);
}
