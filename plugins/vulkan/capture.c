/* SPDX-License-Identifier: Apache-2.0 */
/* frit.capture/1.  A recording has the words of all its launches (addresses, then parameters) in
 * one block, which its kernels read by address.  A few command buffers of equal commands, each with
 * a block of its own in memory that the host writes, are made as replays overlap; a replay puts its
 * words in place and submits one. */
#include <inttypes.h>
#include <string.h>

#include "record.h"

enum { INSTANCES = 8, BLOCK_ALIGN = 16 };

/* A launch whose words change, or that only is recorded. */
struct captured {
    frit_launch launch; /* without arguments; points into what follows */
    frit_program program;
    frit_launch_spec spec;
    frit_scalar *scalars;
    int64_t *bounds;
    struct kernels_launch kernel;
    uint32_t first; /* word of the block */
    bool late;      /* scalars or bounds are parameters */
    bool aligned;
};

/* A word that is an address. */
struct address {
    uint64_t at; /* in the block of parameters */
    uint64_t origin, extent;
    uint32_t word;
    const struct captured *launch;
};

/* Eight bytes of a launch. */
struct number {
    uint64_t at;
    void *to;
};

struct frit_recording {
    frit_cmd *cmds; /* LAUNCH: `launch` is not used */
    struct captured *launches;
    struct address *addresses;
    struct number *numbers;
    uint64_t *words; /* of the block, as the last replay left them */
    uint32_t n_cmds, n_launches, n_addresses, n_numbers, n_words;
    frit_memory blocks; /* one for each instance, mapped */
    VkCommandPool pool;
    uint32_t n_instances;
    struct batch instances[INSTANCES];
};

static const frit_cmd *command_at(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

static const frit_param *param_at(const frit_param *params, uint32_t stride, uint32_t i)
{
    return (const frit_param *)(const void *)((const char *)params + (size_t)i * stride);
}

static uint64_t block_bytes(const frit_recording *recording)
{
    return (recording->n_words + 1) / 2 * 2 * sizeof(uint64_t);
}

/* ---- life ---- */

static void destroy(struct device *device, frit_recording *recording)
{
    const struct instance *instance = device->instance;

    if (!recording)
        return;
    if (recording->pool)
        device->api.DestroyCommandPool(device->handle, recording->pool, NULL);
    buffer_destroy(device, &recording->blocks);
    for (uint32_t i = 0; i < recording->n_launches; i++) {
        vulkan_free(instance, recording->launches[i].scalars);
        vulkan_free(instance, recording->launches[i].bounds);
    }
    vulkan_free(instance, recording->cmds);
    vulkan_free(instance, recording->launches);
    vulkan_free(instance, recording->addresses);
    vulkan_free(instance, recording->numbers);
    vulkan_free(instance, recording->words);
    vulkan_free(instance, recording);
}

void capture_release(void *self, frit_recording *recording)
{
    destroy(self, recording);
}

static frit_status no_memory(const struct device *device, frit_err *err)
{
    return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                     "no memory for a recording");
}

/* Room for the commands and launches; an address may stand in several words. */
static frit_status create(struct device *device, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, uint32_t n_params, frit_recording **out, frit_err *err)
{
    const struct instance *instance = device->instance;
    frit_recording *made = vulkan_alloc(instance, sizeof *made);
    uint64_t n_launches = 0, n_args = 0;

    if (!made)
        return no_memory(device, err);
    for (uint32_t i = 0; i < count; i++) {
        const frit_cmd *cmd = command_at(cmds, stride, i);

        n_launches += cmd->kind == FRIT_CMD_LAUNCH;
        n_args += cmd->kind == FRIT_CMD_LAUNCH ? cmd->launch->n_args : 0;
    }
    made->cmds = vulkan_alloc(instance, (count + 1) * sizeof *made->cmds);
    made->launches = vulkan_alloc(instance, (n_launches + 1) * sizeof *made->launches);
    made->numbers = vulkan_alloc(instance, ((uint64_t)n_params + 1) * sizeof *made->numbers);
    made->addresses = vulkan_alloc(instance, (n_args + n_launches + 1) * sizeof *made->addresses);
    if (!made->cmds || !made->launches || !made->numbers || !made->addresses) {
        destroy(device, made);
        return no_memory(device, err);
    }
    *out = made;
    return FRIT_OK;
}

/* ---- launches ---- */

/* Whether it needs nothing from the ring of parameters. */
static bool is_constant(const frit_cmd *cmd)
{
    return cmd->kind != FRIT_CMD_FILL ||
           ((cmd->dst_offset | cmd->bytes) % 4 == 0 && cmd->pattern_bytes <= 4);
}

static frit_status copy_launch(struct device *device, frit_recording *recording,
                               const frit_launch *from, frit_err *err)
{
    const struct instance *instance = device->instance;
    struct captured *to = &recording->launches[recording->n_launches++];

    to->launch = *from;
    to->program = *from->program;
    to->spec = *from->spec;
    to->launch.program = &to->program;
    to->launch.spec = &to->spec;
    to->launch.args = NULL;
    to->launch.n_args = 0;
    to->scalars = vulkan_alloc(instance, (from->n_scalars + 1) * sizeof *to->scalars);
    to->bounds = vulkan_alloc(instance, (from->n_bounds + 1) * sizeof *to->bounds);
    if (!to->scalars || !to->bounds)
        return no_memory(device, err);
    if (from->n_scalars)
        memcpy(to->scalars, from->scalars, from->n_scalars * sizeof *to->scalars);
    if (from->n_bounds)
        memcpy(to->bounds, from->bounds, from->n_bounds * sizeof *to->bounds);
    to->launch.scalars = to->scalars;
    to->launch.bounds = to->bounds;
    to->aligned = true;
    return FRIT_OK;
}

/* Under the lock.  Commands with their launches, and how many words the block has. */
static frit_status copy_commands(struct device *device, frit_recording *recording,
                                 const frit_cmd *cmds, uint32_t count, uint32_t stride,
                                 frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < count && !status; i++) {
        const frit_cmd *cmd = command_at(cmds, stride, i);

        status = submit_check(device, cmd, err);
        if (!status && !is_constant(cmd))
            status = plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                               "a fill of parts of words in a recording");
        if (status)
            break;
        recording->cmds[recording->n_cmds++] = *cmd;
        if (cmd->kind == FRIT_CMD_LAUNCH)
            status = copy_launch(device, recording, cmd->launch, err);
        if (!status && cmd->kind == FRIT_CMD_LAUNCH) {
            struct captured *last = &recording->launches[recording->n_launches - 1];

            status = kernels_launch(&last->launch, device->queue.words, LAUNCH_WORDS, &last->kernel,
                                    err);
            last->first = recording->n_words;
            recording->n_words += (last->kernel.n_args + last->kernel.n_words + 1) / 2 * 2;
        }
    }
    return status;
}

/* The words as they are recorded.  Those that numbers go into are written in place. */
static frit_status fill_words(struct device *device, frit_recording *recording,
                              const frit_cmd *cmds, uint32_t stride, frit_err *err)
{
    struct captured *to = recording->launches;
    frit_status status = FRIT_OK;

    recording->words =
        vulkan_alloc(device->instance, (recording->n_words + 1) * sizeof *recording->words);
    if (!recording->words)
        return no_memory(device, err);
    for (uint32_t i = 0; i < recording->n_cmds && !status; i++) {
        const frit_cmd *cmd = command_at(cmds, stride, i);
        uint64_t *words;

        if (cmd->kind != FRIT_CMD_LAUNCH)
            continue;
        words = recording->words + to->first;
        status = kernels_launch(&to->launch, words + to->kernel.n_args, to->kernel.n_words,
                                &to->kernel, err);
        if (!status && to->kernel.n_words && to->kernel.words != words + to->kernel.n_args)
            memcpy(words + to->kernel.n_args, to->kernel.words, to->kernel.n_words * sizeof *words);
        for (uint32_t k = 0; k < to->kernel.n_args && !status; k++)
            words[k] = launch_address(cmd->launch, to->kernel.args[k]);
        to++;
    }
    return status;
}

/* ---- parameters ---- */

/* The words that are the place of argument `number`. */
static void add_addresses(frit_recording *recording, struct captured *to, uint64_t at,
                          uint32_t number, const frit_arg *arg)
{
    for (uint32_t k = 0; k < to->kernel.n_args; k++) {
        struct address *address = &recording->addresses[recording->n_addresses];

        if (to->kernel.args[k] != number)
            continue;
        *address = (struct address){.at = at,
                                    .word = to->first + k,
                                    .launch = to,
                                    .extent = arg ? arg->extent : to->spec.workspace_bytes};
        if (arg)
            address->origin = arg->origin;
        if (arg)
            to->aligned &= (1u << arg->align_log2) % SPIRV_ALIGN == 0 || !arg->memory;
        recording->n_addresses++;
    }
}

static frit_status add_param(struct device *device, frit_recording *recording, struct captured *to,
                             const frit_launch *launch, const frit_param *param, frit_err *err)
{
    struct number *number = &recording->numbers[recording->n_numbers];

    switch (param->kind) {
    case FRIT_PARAM_SCALAR:
        *number = (struct number){param->at, &to->scalars[param->index].bits};
        break;
    case FRIT_PARAM_BOUND:
        *number = (struct number){param->at, &to->bounds[param->index]};
        break;
    case FRIT_PARAM_ARG:
        add_addresses(recording, to, param->at, param->index, launch_arg(launch, param->index));
        return FRIT_OK;
    case FRIT_PARAM_WORKSPACE:
        add_addresses(recording, to, param->at, KERNELS_WORKSPACE, NULL);
        return FRIT_OK;
    case FRIT_PARAM_COOKIE: /* which command failed is never known */
        return FRIT_OK;
    default:
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "a parameter of kind %" PRIu32 " in a recording", param->kind);
    }
    to->late = true;
    recording->n_numbers++;
    return FRIT_OK;
}

/* Which launch each command is; parameters come in the order of commands or in any other. */
static struct captured *launch_of(frit_recording *recording, uint32_t command)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < command; i++)
        n += recording->cmds[i].kind == FRIT_CMD_LAUNCH;
    return &recording->launches[n];
}

static frit_status add_params(struct device *device, frit_recording *recording,
                              const frit_cmd *cmds, uint32_t stride, const frit_param *params,
                              uint32_t n_params, uint32_t param_stride, frit_err *err)
{
    struct captured *to = NULL;
    uint32_t last = UINT32_MAX;
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < n_params && !status; i++) {
        const frit_param *param = param_at(params, param_stride, i);

        if (param->command >= recording->n_cmds ||
            recording->cmds[param->command].kind != FRIT_CMD_LAUNCH)
            return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                             "a parameter of a command that is no launch");
        if (param->command != last)
            to = launch_of(recording, param->command);
        last = param->command;
        status =
            add_param(device, recording, to, command_at(cmds, stride, last)->launch, param, err);
    }
    return status;
}

/* What is recorded has to be aligned as well, origins with it. */
static void settle_alignment(frit_recording *recording)
{
    for (uint32_t i = 0; i < recording->n_launches; i++) {
        struct captured *to = &recording->launches[i];

        for (uint32_t k = 0; k < to->kernel.n_args; k++)
            to->aligned &= recording->words[to->first + k] % SPIRV_ALIGN == 0;
    }
}

static frit_status make_kernels(struct device *device, frit_recording *recording, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < recording->n_launches && !status; i++)
        status = code_by_address(device, recording->launches[i].kernel.code,
                                 recording->launches[i].aligned, err);
    return status;
}

/* ---- command buffers ---- */

static frit_status record_instance(struct device *device, frit_recording *recording,
                                   struct batch *instance, uint64_t block, frit_err *err)
{
    struct recording r = {.device = device, .batch = instance};
    const struct captured *launch = recording->launches;
    frit_status status = batch_open(device, instance, 0, err);

    for (uint32_t i = 0; i < recording->n_cmds && !status; i++) {
        const frit_cmd *cmd = &recording->cmds[i];

        if (cmd->kind != FRIT_CMD_LAUNCH) {
            r.n = 0; /* it is one part */
            status = record_command(&r, cmd, err);
            continue;
        }
        record_by_address(&r, &launch->kernel, block + launch->first * sizeof(uint64_t),
                          launch->aligned);
        r.dirty = true;
        launch++;
    }
    return status ? status : batch_close(device, instance, err);
}

static frit_status add_instance(struct device *device, frit_recording *recording,
                                struct batch **out, frit_err *err)
{
    struct batch *instance = &recording->instances[recording->n_instances];
    const VkCommandBufferAllocateInfo cmds = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = recording->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    VkResult result = device->api.AllocateCommandBuffers(device->handle, &cmds, &instance->cmds);
    uint64_t block = recording->blocks.address + recording->n_instances * block_bytes(recording);
    frit_status status;

    if (result)
        return vulkan_refused(device->instance, err, result, "a command buffer on %s",
                              device->adapter->name);
    status = record_instance(device, recording, instance, block, err);
    if (status)
        return status;
    recording->n_instances++;
    *out = instance;
    return FRIT_OK;
}

static frit_status make_instances(struct device *device, frit_recording *recording, frit_err *err)
{
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = device->adapter->family};
    struct batch *first;
    VkResult result;
    frit_status status =
        buffer_create(device, MEMORY_PARAMS, block_bytes(recording) * INSTANCES + BLOCK_ALIGN,
                      &recording->blocks, err);

    if (status)
        return status;
    result = device->api.CreateCommandPool(device->handle, &pool, NULL, &recording->pool);
    return result ? vulkan_refused(device->instance, err, result, "a command pool on %s",
                                   device->adapter->name)
                  : add_instance(device, recording, &first, err);
}

/* ---- record ---- */

static frit_status copy_all(struct device *device, frit_recording *recording, const frit_cmd *cmds,
                            uint32_t count, uint32_t stride, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = copy_commands(device, recording, cmds, count, stride, err);
    if (!status)
        status = fill_words(device, recording, cmds, stride, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}

frit_status capture_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, const frit_param *params, uint32_t n_params,
                           uint32_t param_stride, frit_recording **out, frit_err *err)
{
    struct device *device = self;
    frit_recording *made = NULL;
    frit_status status = queue_check(device, queue, err);

    *out = NULL;
    if (!status)
        status = create(device, cmds, count, stride, n_params, &made, err);
    if (!status)
        status = copy_all(device, made, cmds, count, stride, err);
    if (!status)
        status = add_params(device, made, cmds, stride, params, n_params, param_stride, err);
    if (!status) {
        settle_alignment(made);
        status = make_kernels(device, made, err);
    }
    if (!status) {
        pthread_mutex_lock(&device->queue.lock);
        status = make_instances(device, made, err);
        pthread_mutex_unlock(&device->queue.lock);
    }
    if (status)
        destroy(device, made);
    else
        *out = made;
    return status;
}

/* ---- replay ---- */

/* Words of this replay, under the lock. */
static frit_status put_words(struct device *device, frit_recording *recording, const char *block,
                             frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < recording->n_addresses; i++) {
        const struct address *address = &recording->addresses[i];
        const frit_place *place = (const frit_place *)(const void *)(block + address->at);
        uint64_t word;

        if (place->memory && !buffer_holds(place->memory, place->offset, address->extent))
            return queue_check_range(device, place->memory, place->offset, address->extent, err);
        word = place->memory ? place->memory->address + place->offset + address->origin : 0;
        if (address->launch->aligned && word % SPIRV_ALIGN)
            return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                             "a place that is less aligned than the recorded one");
        recording->words[address->word] = word;
    }
    for (uint32_t i = 0; i < recording->n_numbers; i++)
        memcpy(recording->numbers[i].to, block + recording->numbers[i].at, sizeof(uint64_t));
    for (uint32_t i = 0; i < recording->n_launches && !status; i++) {
        struct captured *launch = &recording->launches[i];

        if (launch->late) /* in place */
            status = kernels_launch(&launch->launch,
                                    recording->words + launch->first + launch->kernel.n_args,
                                    launch->kernel.n_words, &launch->kernel, err);
    }
    return status;
}

/* One that no replay in flight needs: made anew while there are few, else waited for. */
static frit_status free_instance(struct device *device, frit_recording *recording,
                                 struct batch **out, frit_err *err)
{
    struct queue *queue = &device->queue;
    struct batch *oldest = &recording->instances[0];

    queue_refresh(device);
    if (queue->lost)
        return queue_lost(device, err);
    for (uint32_t i = 1; i < recording->n_instances; i++)
        if (recording->instances[i].value < oldest->value)
            oldest = &recording->instances[i];
    *out = oldest;
    if (oldest->value <= queue->done)
        return FRIT_OK;
    if (recording->n_instances < INSTANCES)
        return add_instance(device, recording, out, err);
    return queue_await_own(device, oldest->value, err);
}

/* Under the lock. */
static frit_status replay(struct device *device, frit_recording *recording, const void *block,
                          uint64_t *value, frit_err *err)
{
    struct batch *instance;
    frit_status status = put_words(device, recording, block, err);

    if (!status)
        status = free_instance(device, recording, &instance, err);
    if (status)
        return status;
    memcpy(recording->blocks.mapped +
               (uint64_t)(instance - recording->instances) * block_bytes(recording),
           recording->words, recording->n_words * sizeof *recording->words);
    return batch_submit(device, instance, value, err);
}

frit_status capture_replay(void *self, frit_recording *recording, const void *block,
                           const frit_point *waits, uint32_t n_waits, uint64_t *value,
                           frit_err *err)
{
    struct device *device = self;
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = queue_check_waits(device, waits, n_waits, err);
    if (!status)
        status = replay(device, recording, block, value, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}
