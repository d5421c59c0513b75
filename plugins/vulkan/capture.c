/* SPDX-License-Identifier: Apache-2.0 */
/* Makes recordings: copies the commands, lays out the argument blocks of all kernels in a region,
 * and turns the parameters of replays into patches of the region's words. */
#include "capture.h"

#include <inttypes.h>
#include <string.h>

#include "gpu/arg_block.h"
#include "device.h"
#include "launch.h"
#include "plugin.h"
#include "replay.h"
#include "submit.h"

static const frit_param *param_at(const frit_param *params, uint32_t stride, uint32_t i)
{
    return (const frit_param *)(const void *)((const char *)params + (size_t)i * stride);
}

/* ---- create and destroy ---- */

static void destroy(struct device *device, frit_recording *recording)
{
    const struct instance *instance = device->instance;

    if (!recording)
        return;
    if (recording->pool)
        device->api.DestroyCommandPool(device->handle, recording->pool, NULL);
    buffer_destroy(device, &recording->regions);
    for (uint32_t i = 0; i < recording->n_launches; i++) {
        vulkan_free(instance, recording->launches[i].scalars);
        vulkan_free(instance, recording->launches[i].bounds);
    }
    vulkan_free(instance, recording->cmds);
    vulkan_free(instance, recording->launches);
    vulkan_free(instance, recording->kernels);
    vulkan_free(instance, recording->address_patches);
    vulkan_free(instance, recording->scalar_patches);
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

/* Creates a recording whose arrays have room for `count` commands and `n_params` parameters. */
static frit_status create(struct device *device, uint32_t count, uint32_t n_params,
                          frit_recording **out, frit_err *err)
{
    const struct instance *instance = device->instance;
    frit_recording *made = vulkan_alloc(instance, sizeof *made);

    if (!made)
        return no_memory(device, err);
    made->cmds = vulkan_alloc(instance, ((uint64_t)count + 1) * sizeof *made->cmds);
    made->launches = vulkan_alloc(instance, ((uint64_t)count + 1) * sizeof *made->launches);
    made->scalar_patches =
        vulkan_alloc(instance, ((uint64_t)n_params + 1) * sizeof *made->scalar_patches);
    if (!made->cmds || !made->launches || !made->scalar_patches) {
        destroy(device, made);
        return no_memory(device, err);
    }
    *out = made;
    return FRIT_OK;
}

/* ---- commands ---- */

/* Whether a recording may contain the command.  It may not if the command reads the parameter ring,
 * whose bytes are freed after one submission, or is a timestamp. */
static bool is_recordable(const frit_cmd *cmd)
{
    if (cmd->kind != FRIT_CMD_FILL)
        return cmd->kind != FRIT_CMD_DISPATCH && cmd->kind != FRIT_CMD_TIMESTAMP;
    return ((cmd->dst_offset | cmd->bytes) % 4 == 0 && cmd->pattern_bytes <= 4);
}

static frit_status copy_launch(struct device *device, frit_recording *recording,
                               const frit_launch *from, frit_err *err)
{
    const struct instance *instance = device->instance;
    struct captured_launch *to = &recording->launches[recording->n_launches++];

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

/* Adds the kernels of a launch to the counts of the recording. */
static frit_status measure_launch(struct device *device, frit_recording *recording,
                                  struct captured_launch *launch, frit_err *err)
{
    struct kernels_launch kernel;
    frit_status status = launch_first_kernel(device, &launch->launch, &kernel, err);

    launch->first_kernel = recording->n_kernels;
    if (status)
        return status;
    do {
        launch->n_kernels++;
        recording->n_words += (arg_block_layout(&kernel).bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * 2;
        recording->n_address_patches += (uint64_t)kernel.n_spaces * kernel.n_args;
    } while (kernels_next(&kernel));
    recording->n_kernels += launch->n_kernels;
    return FRIT_OK;
}

/* Copies the commands and counts their kernels, words and addresses.  Needs the lock. */
static frit_status copy_commands(struct device *device, frit_recording *recording,
                                 const frit_cmd *cmds, uint32_t count, uint32_t stride,
                                 frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < count && !status; i++) {
        const frit_cmd *cmd = submit_command_at(cmds, stride, i);

        status = submit_check_command(device, cmd, err);
        if (!status && !is_recordable(cmd))
            status = plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                               "cannot record a command of kind %u", cmd->kind);
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
    if (!status && region_bytes(recording) > MAX_REGION_BYTES)
        status = plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                           "cannot record commands with %" PRIu64 " bytes of arguments",
                           region_bytes(recording));
    return status;
}

/* Allocates the arrays whose sizes copy_commands has counted. */
static frit_status make_arrays(struct device *device, frit_recording *recording, frit_err *err)
{
    const struct instance *instance = device->instance;

    recording->kernels =
        vulkan_alloc(instance, ((uint64_t)recording->n_kernels + 1) * sizeof *recording->kernels);
    recording->words = vulkan_alloc(instance, (recording->n_words + 1) * sizeof *recording->words);
    recording->address_patches = vulkan_alloc(instance, (recording->n_address_patches + 1) *
                                                            sizeof *recording->address_patches);
    recording->n_address_patches = 0;
    return recording->kernels && recording->words && recording->address_patches
               ? FRIT_OK
               : no_memory(device, err);
}

/* Writes the argument blocks of a launch from the word with the index `word` on, and sets `word` to
 * the index behind them.  `given` is the caller's launch, with its arguments.  Needs the lock. */
static frit_status write_launch(struct device *device, frit_recording *recording,
                                const struct captured_launch *launch, const frit_launch *given,
                                uint64_t *word, frit_err *err)
{
    struct captured_kernel *to = &recording->kernels[launch->first_kernel];
    struct kernels_launch kernel;
    frit_status status = launch_first_kernel(device, &launch->launch, &kernel, err);

    if (status)
        return status;
    do {
        const struct arg_block block = arg_block_layout(&kernel);

        *to = (struct captured_kernel){.launch = kernel, .first_word = *word};
        to->aligned = arg_block_write(&block, &kernel, given, recording->words + *word);
        *word += (block.bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * 2;
        to++;
    } while (kernels_next(&kernel));
    return FRIT_OK;
}

static frit_status write_all(struct device *device, frit_recording *recording, const frit_cmd *cmds,
                             uint32_t stride, frit_err *err)
{
    frit_status status = FRIT_OK;
    uint64_t word = 0;

    for (uint32_t i = 0, n = 0; i < recording->n_cmds && !status; i++) {
        const frit_cmd *cmd = submit_command_at(cmds, stride, i);

        if (cmd->kind == FRIT_CMD_LAUNCH)
            status =
                write_launch(device, recording, &recording->launches[n++], cmd->launch, &word, err);
    }
    return status;
}

/* ---- parameters ---- */

/* Which arguments of a launch replays set: for each argument, then for the workspace, 1 + the
 * offset of its frit_place in the parameters of a replay; 0: it stays as recorded. */
struct param_offsets {
    uint64_t *at;
    uint32_t n; /* number of arguments: index of the workspace */
};

static frit_status add_param(struct device *device, frit_recording *recording,
                             struct captured_launch *to, const struct param_offsets *offsets,
                             const frit_param *param, frit_err *err)
{
    struct scalar_patch *patch = &recording->scalar_patches[recording->n_scalar_patches];

    switch (param->kind) {
    case FRIT_PARAM_SCALAR:
        *patch = (struct scalar_patch){param->at, &to->scalars[param->index].bits};
        break;
    case FRIT_PARAM_BOUND:
        *patch = (struct scalar_patch){param->at, &to->bounds[param->index]};
        break;
    case FRIT_PARAM_ARG:
        offsets->at[param->index] = param->at + 1;
        return FRIT_OK;
    case FRIT_PARAM_WORKSPACE:
        offsets->at[offsets->n] = param->at + 1;
        return FRIT_OK;
    case FRIT_PARAM_COOKIE: /* not used: a failure of a replay names no command */
        return FRIT_OK;
    default:
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "cannot record a parameter of kind %" PRIu32, param->kind);
    }
    to->has_scalar_patches = true;
    recording->n_scalar_patches++;
    return FRIT_OK;
}

/* Adds a patch for `word`, the index of the word with the address of argument `number`, if replays
 * set that argument. */
static void add_address_patch(frit_recording *recording, struct captured_kernel *kernel,
                              const struct captured_launch *launch,
                              const struct param_offsets *offsets, const frit_launch *given,
                              uint32_t number, uint64_t word)
{
    const frit_arg *arg = number == KERNELS_WORKSPACE ? NULL : launch_arg(given, number);
    const uint64_t at = offsets->at[arg ? number : offsets->n];

    if (at == 0)
        return;
    recording->address_patches[recording->n_address_patches++] =
        (struct address_patch){.param_offset = at - 1,
                               .origin = arg ? arg->origin : 0,
                               .extent = arg ? arg->extent : launch->spec.workspace_bytes,
                               .word = word};
    if (arg && arg->memory)
        kernel->aligned &= (UINT64_C(1) << arg->align_log2) % SPIRV_ALIGN == 0;
}

/* Adds the address patches of a launch and chooses the mode of each kernel: as submitted if no word
 * is patched, split if only addresses are. */
static void add_address_patches(frit_recording *recording, const struct captured_launch *launch,
                                const struct param_offsets *offsets, const frit_launch *given)
{
    for (uint32_t i = launch->first_kernel; i < launch->first_kernel + launch->n_kernels; i++) {
        struct captured_kernel *kernel = &recording->kernels[i];
        const struct kernel_code *code = kernel->launch.code;
        const uint64_t before = recording->n_address_patches;
        const uint32_t space_words = kernel->launch.n_args + kernel->launch.n_words;

        for (uint32_t s = 0; s < kernel->launch.n_spaces; s++)
            for (uint32_t k = 0; k < kernel->launch.n_args; k++)
                add_address_patch(recording, kernel, launch, offsets, given,
                                  kernel->launch.args[s * kernel->launch.n_args + k],
                                  kernel->first_word + (uint64_t)s * space_words + k);
        for (uint64_t k = before; k < recording->n_address_patches; k++)
            recording->address_patches[k].aligned = kernel->aligned;
        kernel->mode = !code->block_is_pushed || launch->has_scalar_patches ? BLOCK_BY_ADDRESS
                       : recording->n_address_patches > before              ? BLOCK_SPLIT
                                                                            : BLOCK_AS_SUBMITTED;
    }
}

static frit_status add_launch_params(struct device *device, frit_recording *recording,
                                     struct captured_launch *to, const frit_launch *given,
                                     const frit_param *const *params, uint32_t n_params,
                                     frit_err *err)
{
    struct param_offsets offsets = {.n = given->n_args};
    frit_status status = FRIT_OK;

    offsets.at = vulkan_alloc(device->instance, (offsets.n + UINT64_C(1)) * sizeof *offsets.at);
    if (!offsets.at)
        return no_memory(device, err);
    for (uint32_t i = 0; i < n_params && !status; i++)
        status = add_param(device, recording, to, &offsets, params[i], err);
    if (!status)
        add_address_patches(recording, to, &offsets, given);
    vulkan_free(device->instance, offsets.at);
    return status;
}

/* Sorts the parameters by command.  `ends` has n_cmds + 2 entries, all 0.  Afterwards the
 * parameters of command `i` are those from ends[i + 1] to ends[i + 2], or to `n_params` for the
 * last one. */
static frit_status sort_params(struct device *device, const frit_recording *recording,
                               const frit_param *params, uint32_t n_params, uint32_t stride,
                               const frit_param **sorted, uint32_t *ends, frit_err *err)
{
    for (uint32_t i = 0; i < n_params; i++) {
        const uint32_t command = param_at(params, stride, i)->command;

        if (command >= recording->n_cmds || recording->cmds[command].kind != FRIT_CMD_LAUNCH)
            return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                             "cannot record a parameter of a command other than LAUNCH");
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
                                       submit_command_at(cmds, stride, i)->launch,
                                       sorted + begins[i + 1], end - begins[i + 1], err);
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

/* Creates the pipelines that the kernels of a launch need. */
static frit_status make_pipelines(struct device *device, frit_recording *recording,
                                  const struct captured_launch *launch, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = launch->first_kernel; i < launch->first_kernel + launch->n_kernels && !status;
         i++) {
        struct captured_kernel *kernel = &recording->kernels[i];

        if (kernel->mode != BLOCK_AS_SUBMITTED)
            status = compile_for_capture(device, kernel->launch.code, kernel->mode, kernel->aligned,
                                         err);
    }
    return status;
}

static frit_status make_all_pipelines(struct device *device, frit_recording *recording,
                                      frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < recording->n_launches && !status; i++)
        status = make_pipelines(device, recording, &recording->launches[i], err);
    return status;
}

/* ---- the slot record ---- */

static frit_status record_locked(struct device *device, frit_recording *recording,
                                 const frit_cmd *cmds, uint32_t count, uint32_t stride,
                                 frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = copy_commands(device, recording, cmds, count, stride, err);
    if (!status)
        status = make_arrays(device, recording, err);
    if (!status)
        status = write_all(device, recording, cmds, stride, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}

frit_status capture_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, const frit_param *params, uint32_t n_params,
                           uint32_t param_stride, frit_recording **out, frit_err *err)
{
    struct device *device = self;
    frit_recording *made = NULL;
    frit_status status = queue_check_handle(device, queue, err);

    *out = NULL;
    if (!status)
        status = create(device, count, n_params, &made, err);
    if (!status)
        status = record_locked(device, made, cmds, count, stride, err);
    if (!status)
        status = add_params(device, made, cmds, stride, params, n_params, param_stride, err);
    if (!status)
        status = make_all_pipelines(device, made, err);
    if (!status) {
        pthread_mutex_lock(&device->queue.lock);
        status = replay_open(device, made, err);
        pthread_mutex_unlock(&device->queue.lock);
    }
    if (status)
        destroy(device, made);
    else
        *out = made;
    return status;
}
