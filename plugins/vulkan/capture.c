/* SPDX-License-Identifier: Apache-2.0 */
/* Recording: commands are copied, words laid out, parameters bound to words. */
#include <inttypes.h>
#include <string.h>

#include "buffer.h"
#include "capture.h"
#include "compile.h"
#include "launch.h"
#include "plugin.h"
#include "queue.h"
#include "replay.h"
#include "submit.h"

static const frit_cmd *command_at(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

static const frit_param *param_at(const frit_param *params, uint32_t stride, uint32_t i)
{
    return (const frit_param *)(const void *)((const char *)params + (size_t)i * stride);
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
    vulkan_free(instance, recording->kernels);
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

static frit_status create(struct device *device, uint32_t count, uint32_t n_params,
                          frit_recording **out, frit_err *err)
{
    const struct instance *instance = device->instance;
    frit_recording *made = vulkan_alloc(instance, sizeof *made);

    if (!made)
        return no_memory(device, err);
    made->cmds = vulkan_alloc(instance, ((uint64_t)count + 1) * sizeof *made->cmds);
    made->launches = vulkan_alloc(instance, ((uint64_t)count + 1) * sizeof *made->launches);
    made->numbers = vulkan_alloc(instance, ((uint64_t)n_params + 1) * sizeof *made->numbers);
    if (!made->cmds || !made->launches || !made->numbers) {
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
    if (cmd->kind != FRIT_CMD_FILL)
        return cmd->kind != FRIT_CMD_DISPATCH && cmd->kind != FRIT_CMD_TIMESTAMP;
    return ((cmd->dst_offset | cmd->bytes) % 4 == 0 && cmd->pattern_bytes <= 4);
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
    return FRIT_OK;
}

/* Counts what its kernels want. */
static frit_status measure_launch(struct device *device, frit_recording *recording,
                                  struct captured *launch, frit_err *err)
{
    struct kernels_launch kernel;
    frit_status status = launch_kernels(device, &launch->launch, &kernel, err);

    launch->first = recording->n_kernels;
    if (status)
        return status;
    do {
        launch->n_kernels++;
        recording->n_words += (block_of(&kernel).bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * 2;
        recording->n_addresses += (uint64_t)kernel.n_spaces * kernel.n_args;
    } while (kernels_next(&kernel));
    recording->n_kernels += launch->n_kernels;
    return FRIT_OK;
}

/* Under the lock. */
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
                               "a command of kind %u in a recording", cmd->kind);
        if (status)
            break;
        recording->cmds[recording->n_cmds++] = *cmd;
        if (cmd->kind != FRIT_CMD_LAUNCH)
            continue;
        status = copy_launch(device, recording, cmd->launch, err);
        if (!status)
            status = measure_launch(device, recording,
                                    &recording->launches[recording->n_launches - 1], err);
    }
    if (!status && block_bytes(recording) > MOST_BYTES)
        status = plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                           "%" PRIu64 " bytes of words in a recording", block_bytes(recording));
    return status;
}

static frit_status make_arrays(struct device *device, frit_recording *recording, frit_err *err)
{
    const struct instance *instance = device->instance;

    recording->kernels =
        vulkan_alloc(instance, ((uint64_t)recording->n_kernels + 1) * sizeof *recording->kernels);
    recording->words = vulkan_alloc(instance, (recording->n_words + 1) * sizeof *recording->words);
    recording->addresses =
        vulkan_alloc(instance, (recording->n_addresses + 1) * sizeof *recording->addresses);
    recording->n_addresses = 0;
    return recording->kernels && recording->words && recording->addresses ? FRIT_OK
                                                                          : no_memory(device, err);
}

/* Under the lock: the block as it is recorded. */
static frit_status fill_launch(struct device *device, frit_recording *recording,
                               const struct captured *launch, const frit_launch *given,
                               uint64_t *word, frit_err *err)
{
    struct kernel *to = &recording->kernels[launch->first];
    struct kernels_launch kernel;
    frit_status status = launch_kernels(device, &launch->launch, &kernel, err);

    if (status)
        return status;
    do {
        const struct block block = block_of(&kernel);

        *to = (struct kernel){.is = kernel, .first = *word};
        to->aligned = block_fill(&block, &kernel, given, recording->words + *word);
        *word += (block.bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * 2;
        to++;
    } while (kernels_next(&kernel));
    return FRIT_OK;
}

static frit_status fill_all(struct device *device, frit_recording *recording, const frit_cmd *cmds,
                            uint32_t stride, frit_err *err)
{
    frit_status status = FRIT_OK;
    uint64_t word = 0;

    for (uint32_t i = 0, n = 0; i < recording->n_cmds && !status; i++) {
        const frit_cmd *cmd = command_at(cmds, stride, i);

        if (cmd->kind == FRIT_CMD_LAUNCH)
            status =
                fill_launch(device, recording, &recording->launches[n++], cmd->launch, &word, err);
    }
    return status;
}

/* ---- parameters ---- */

static const frit_arg *arg_at(const frit_launch *launch, uint32_t i)
{
    return (const frit_arg *)(const void *)((const char *)launch->args +
                                            (size_t)i * launch->arg_stride);
}

/* Places of one launch's arguments among the parameters, 0: constant, else 1 more than where; that
 * of the workspace comes last. */
struct places {
    uint64_t *at;
    uint32_t n;
};

static frit_status add_param(struct device *device, frit_recording *recording, struct captured *to,
                             const struct places *places, const frit_param *param, frit_err *err)
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
        places->at[param->index] = param->at + 1;
        return FRIT_OK;
    case FRIT_PARAM_WORKSPACE:
        places->at[places->n] = param->at + 1;
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

/* The word of an argument, where that has a parameter. */
static void add_address(frit_recording *recording, struct kernel *kernel,
                        const struct captured *launch, const struct places *places,
                        const frit_launch *given, uint32_t number, uint64_t word)
{
    const frit_arg *arg = number == KERNELS_WORKSPACE ? NULL : arg_at(given, number);
    const uint64_t at = places->at[arg ? number : places->n];

    if (at == 0)
        return;
    recording->addresses[recording->n_addresses++] =
        (struct address){.at = at - 1,
                         .origin = arg ? arg->origin : 0,
                         .extent = arg ? arg->extent : launch->spec.workspace_bytes,
                         .word = word};
    if (arg && arg->memory)
        kernel->aligned &= (UINT64_C(1) << arg->align_log2) % SPIRV_ALIGN == 0;
}

static void add_addresses(frit_recording *recording, const struct captured *launch,
                          const struct places *places, const frit_launch *given)
{
    for (uint32_t i = launch->first; i < launch->first + launch->n_kernels; i++) {
        struct kernel *kernel = &recording->kernels[i];
        const struct code *code = kernel->is.code;
        const uint64_t before = recording->n_addresses;
        const uint32_t each = kernel->is.n_args + kernel->is.n_words;

        for (uint32_t s = 0; s < kernel->is.n_spaces; s++)
            for (uint32_t k = 0; k < kernel->is.n_args; k++)
                add_address(recording, kernel, launch, places, given,
                            kernel->is.args[s * kernel->is.n_args + k],
                            kernel->first + (uint64_t)s * each + k);
        for (uint64_t k = before; k < recording->n_addresses; k++)
            recording->addresses[k].aligned = kernel->aligned;
        kernel->form = !code->inside || launch->late     ? WORDS_FAR
                       : recording->n_addresses > before ? WORDS_PUSHED
                                                         : WORDS_NEAR;
    }
}

static frit_status add_launch_params(struct device *device, frit_recording *recording,
                                     struct captured *to, const frit_launch *given,
                                     const frit_param *const *params, uint32_t n_params,
                                     frit_err *err)
{
    struct places places = {.n = given->n_args};
    frit_status status = FRIT_OK;

    places.at = vulkan_alloc(device->instance, (places.n + UINT64_C(1)) * sizeof *places.at);
    if (!places.at)
        return no_memory(device, err);
    for (uint32_t i = 0; i < n_params && !status; i++)
        status = add_param(device, recording, to, &places, params[i], err);
    if (!status)
        add_addresses(recording, to, &places, given);
    vulkan_free(device->instance, places.at);
    return status;
}

/* Parameters by command: `ends` has one entry more than there are commands. */
static frit_status sort_params(struct device *device, const frit_recording *recording,
                               const frit_param *params, uint32_t n_params, uint32_t stride,
                               const frit_param **sorted, uint32_t *ends, frit_err *err)
{
    for (uint32_t i = 0; i < n_params; i++) {
        const uint32_t command = param_at(params, stride, i)->command;

        if (command >= recording->n_cmds || recording->cmds[command].kind != FRIT_CMD_LAUNCH)
            return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                             "a parameter of a command that is no launch");
        ends[command + 1]++;
    }
    for (uint32_t i = 0; i < recording->n_cmds; i++)
        ends[i + 1] += ends[i];
    for (uint32_t i = n_params; i-- > 0;) {
        const frit_param *param = param_at(params, stride, i);

        sorted[--ends[param->command + 1]] = param;
    }
    return FRIT_OK;
}

static frit_status add_sorted(struct device *device, frit_recording *recording,
                              const frit_cmd *cmds, uint32_t stride,
                              const frit_param *const *sorted, const uint32_t *begins,
                              uint32_t n_params, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0, n = 0; i < recording->n_cmds && !status; i++) {
        const uint32_t end = i + 1 < recording->n_cmds ? begins[i + 2] : n_params;

        if (recording->cmds[i].kind == FRIT_CMD_LAUNCH)
            status = add_launch_params(device, recording, &recording->launches[n++],
                                       command_at(cmds, stride, i)->launch, sorted + begins[i + 1],
                                       end - begins[i + 1], err);
    }
    return status;
}

static frit_status add_params(struct device *device, frit_recording *recording,
                              const frit_cmd *cmds, uint32_t stride, const frit_param *params,
                              uint32_t n_params, uint32_t param_stride, frit_err *err)
{
    const struct instance *instance = device->instance;
    const frit_param **sorted = vulkan_alloc(instance, (n_params + UINT64_C(1)) * sizeof *sorted);
    uint32_t *begins = vulkan_alloc(instance, (recording->n_cmds + UINT64_C(2)) * sizeof *begins);
    frit_status status = sorted && begins ? FRIT_OK : no_memory(device, err);

    if (!status)
        status =
            sort_params(device, recording, params, n_params, param_stride, sorted, begins, err);
    if (!status)
        status = add_sorted(device, recording, cmds, stride, sorted, begins, n_params, err);
    vulkan_free(instance, (void *)sorted);
    vulkan_free(instance, begins);
    return status;
}

static frit_status make_kernels(struct device *device, frit_recording *recording,
                                const struct captured *launch, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = launch->first; i < launch->first + launch->n_kernels && !status; i++) {
        struct kernel *kernel = &recording->kernels[i];

        if (kernel->form != WORDS_NEAR)
            status = code_make_far(device, kernel->is.code,
                                   kernel->form == WORDS_PUSHED ? FAR_ARGS : FAR_ALL,
                                   kernel->aligned, err);
    }
    return status;
}

static frit_status make_all(struct device *device, frit_recording *recording, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < recording->n_launches && !status; i++)
        status = make_kernels(device, recording, &recording->launches[i], err);
    return status;
}

/* ---- record ---- */

static frit_status copy_all(struct device *device, frit_recording *recording, const frit_cmd *cmds,
                            uint32_t count, uint32_t stride, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = copy_commands(device, recording, cmds, count, stride, err);
    if (!status)
        status = make_arrays(device, recording, err);
    if (!status)
        status = fill_all(device, recording, cmds, stride, err);
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
        status = create(device, count, n_params, &made, err);
    if (!status)
        status = copy_all(device, made, cmds, count, stride, err);
    if (!status)
        status = add_params(device, made, cmds, stride, params, n_params, param_stride, err);
    if (!status)
        status = make_all(device, made, err);
    if (!status) {
        pthread_mutex_lock(&device->queue.lock);
        status = capture_instances(device, made, err);
        pthread_mutex_unlock(&device->queue.lock);
    }
    if (status)
        destroy(device, made);
    else
        *out = made;
    return status;
}
