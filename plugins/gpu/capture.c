/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/capture.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "gpu/arg_block.h"
#include "gpu/command.h"
#include "gpu/launch_words.h"
#include "gpu/memory.h"
#include "util/plug.h"

static const frit_param *param_at(const frit_param *params, uint32_t stride, uint32_t i)
{
    return (const frit_param *)(const void *)((const char *)params + (size_t)i * stride);
}

/* ---- create and destroy ---- */

/* Zeroed memory for `n` elements, of one at least. */
static void *make_array(const struct capture *capture, uint64_t n, uint64_t each)
{
    void *made = plug_alloc(capture->plug, (n + 1) * each, _Alignof(max_align_t));

    return made ? memset(made, 0, (n + 1) * each) : NULL;
}

static frit_status fail_no_memory(const struct capture *capture, frit_err *err)
{
    return plug_fail(capture->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a recording");
}

void capture_fini(struct capture *capture)
{
    const struct plug *plug = capture->plug;

    for (uint32_t i = 0; i < capture->n_launches; i++) {
        plug_free(plug, capture->launches[i].scalars);
        plug_free(plug, capture->launches[i].bounds);
    }
    plug_free(plug, capture->cmds);
    plug_free(plug, capture->launches);
    plug_free(plug, capture->kernels);
    plug_free(plug, capture->address_patches);
    plug_free(plug, capture->scalar_patches);
    plug_free(plug, capture->words);
    *capture = (struct capture){.plug = plug};
}

/* ---- commands ---- */

static frit_status copy_launch(struct capture *capture, const frit_launch *from, frit_err *err)
{
    struct captured_launch *to = &capture->launches[capture->n_launches++];

    to->launch = *from;
    to->program = *from->program;
    to->spec = *from->spec;
    to->launch.program = &to->program;
    to->launch.spec = &to->spec;
    to->launch.args = NULL;
    to->launch.n_args = 0;
    to->scalars = make_array(capture, from->n_scalars, sizeof *to->scalars);
    to->bounds = make_array(capture, from->n_bounds, sizeof *to->bounds);
    if (!to->scalars || !to->bounds)
        return fail_no_memory(capture, err);
    if (from->n_scalars)
        memcpy(to->scalars, from->scalars, from->n_scalars * sizeof *to->scalars);
    if (from->n_bounds)
        memcpy(to->bounds, from->bounds, from->n_bounds * sizeof *to->bounds);
    to->launch.scalars = to->scalars;
    to->launch.bounds = to->bounds;
    return FRIT_OK;
}

static uint64_t padded_words(const struct kernels_launch *kernel)
{
    const uint64_t bytes =
        kernel->product ? PRODUCT_WORDS * sizeof(uint64_t) : arg_block_layout(kernel).bytes;

    return (bytes + CAPTURE_BLOCK_ALIGN - 1) / CAPTURE_BLOCK_ALIGN *
           (CAPTURE_BLOCK_ALIGN / sizeof(uint64_t));
}

/* Adds the kernels of a launch to the counts of the recording. */
static frit_status measure_launch(struct capture *capture, struct captured_launch *launch,
                                  struct launch_words *buffer, frit_err *err)
{
    struct kernels_launch kernel;
    frit_status status = launch_words_first(buffer, &launch->launch, &kernel, err);

    launch->first_kernel = capture->n_kernels;
    if (status)
        return status;
    do {
        launch->n_kernels++;
        capture->n_words += padded_words(&kernel);
        capture->n_address_patches +=
            kernel.product ? PRODUCT_WORDS : (uint64_t)kernel.n_spaces * kernel.n_args;
    } while (kernels_next(&kernel));
    capture->n_kernels += launch->n_kernels;
    return FRIT_OK;
}

/* Copies the commands and counts their kernels, words and addresses. */
static frit_status copy_commands(struct capture *capture, const struct capture_source *source,
                                 struct launch_words *buffer, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < source->count && !status; i++) {
        const frit_cmd *cmd = command_at(source->cmds, source->stride, i);

        status = source->check(source->ctx, cmd, err);
        if (status)
            break;
        capture->cmds[capture->n_cmds++] = *cmd;
        if (cmd->kind != FRIT_CMD_LAUNCH)
            continue;
        status = copy_launch(capture, cmd->launch, err);
        if (!status)
            status =
                measure_launch(capture, &capture->launches[capture->n_launches - 1], buffer, err);
    }
    if (!status && capture->n_words * sizeof(uint64_t) > CAPTURE_MAX_BYTES)
        status = plug_fail(capture->plug, err, FRIT_UNSUPPORTED,
                           "cannot record commands with %" PRIu64 " bytes of arguments",
                           capture->n_words * sizeof(uint64_t));
    return status;
}

/* Allocates the arrays whose sizes copy_commands has counted. */
static frit_status make_counted(struct capture *capture, frit_err *err)
{
    capture->kernels = make_array(capture, capture->n_kernels, sizeof *capture->kernels);
    capture->words = make_array(capture, capture->n_words, sizeof *capture->words);
    capture->address_patches =
        make_array(capture, capture->n_address_patches, sizeof *capture->address_patches);
    capture->n_address_patches = 0;
    return capture->kernels && capture->words && capture->address_patches
               ? FRIT_OK
               : fail_no_memory(capture, err);
}

/* Writes the argument blocks of a launch from the word with the index `word` on, and sets `word` to
 * the index after them.  `given` is the caller's launch, with its arguments. */
static frit_status write_launch(struct capture *capture, const struct captured_launch *launch,
                                const frit_launch *given, struct launch_words *buffer,
                                uint64_t *word, frit_err *err)
{
    struct captured_kernel *to = &capture->kernels[launch->first_kernel];
    struct kernels_launch kernel;
    frit_status status = launch_words_first(buffer, &launch->launch, &kernel, err);

    if (status)
        return status;
    do {
        const struct arg_block block = arg_block_layout(&kernel);

        *to = (struct captured_kernel){.launch = kernel, .first_word = *word};
        if (kernel.product)
            arg_block_write_product(kernel.product, given, capture->words + *word);
        else
            to->aligned = arg_block_write(&block, &kernel, given, capture->words + *word);
        *word += padded_words(&kernel);
        to++;
    } while (kernels_next(&kernel));
    return FRIT_OK;
}

static frit_status write_all(struct capture *capture, const struct capture_source *source,
                             struct launch_words *buffer, frit_err *err)
{
    frit_status status = FRIT_OK;
    uint64_t word = 0;

    for (uint32_t i = 0, n = 0; i < capture->n_cmds && !status; i++) {
        const frit_cmd *cmd = command_at(source->cmds, source->stride, i);

        if (cmd->kind == FRIT_CMD_LAUNCH)
            status =
                write_launch(capture, &capture->launches[n++], cmd->launch, buffer, &word, err);
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

static frit_status add_param(struct capture *capture, struct captured_launch *to,
                             const struct param_offsets *offsets, const frit_param *param,
                             frit_err *err)
{
    struct scalar_patch *patch = &capture->scalar_patches[capture->n_scalar_patches];

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
        return plug_fail(capture->plug, err, FRIT_UNSUPPORTED,
                         "cannot record a parameter of kind %" PRIu32, param->kind);
    }
    to->has_scalar_patches = true;
    capture->n_scalar_patches++;
    return FRIT_OK;
}

/* Adds a patch for `word`, the index of the word with the address of argument `number`, if replays
 * set that argument. */
static void add_address_patch(struct capture *capture, struct captured_kernel *kernel,
                              const struct captured_launch *launch,
                              const struct param_offsets *offsets, const frit_launch *given,
                              const struct kernels_place *place, uint64_t word)
{
    const frit_arg *arg = place->arg == KERNELS_WORKSPACE ? NULL : frit_arg_at(given, place->arg);
    const uint64_t at = offsets->at[arg ? place->arg : offsets->n];

    if (at == 0)
        return;
    capture->address_patches[capture->n_address_patches++] =
        (struct address_patch){.param_offset = at - 1,
                               .origin = (arg ? arg->origin : 0) + place->first,
                               .extent = arg ? arg->extent : launch->spec.workspace_bytes,
                               .word = word};
    kernel->addresses_change = true;
    if (arg && arg->memory)
        kernel->aligned &= (UINT64_C(1) << arg->align_log2) % ARG_ALIGN == 0;
}

static void add_kernel_patches(struct capture *capture, struct captured_kernel *kernel,
                               const struct captured_launch *launch,
                               const struct param_offsets *offsets, const frit_launch *given)
{
    const uint32_t n_args = kernel->launch.n_args, space_words = n_args + kernel->launch.n_words;

    kernel->params_change = launch->has_scalar_patches;
    for (uint32_t s = 0; s < kernel->launch.n_spaces; s++)
        for (uint32_t k = 0; k < n_args; k++)
            add_address_patch(capture, kernel, launch, offsets, given,
                              &(struct kernels_place){kernel->launch.args[s * n_args + k], 0},
                              kernel->first_word + (uint64_t)s * space_words + k);
}

static void add_product_patches(struct capture *capture, struct captured_kernel *kernel,
                                const struct captured_launch *launch,
                                const struct param_offsets *offsets, const frit_launch *given)
{
    for (uint32_t i = 0; i < PRODUCT_WORDS; i++) {
        const struct kernels_place *place =
            arg_block_product_place(kernel->launch.product, (enum product_word)i);

        if (place)
            add_address_patch(capture, kernel, launch, offsets, given, place,
                              kernel->first_word + i);
    }
}

static void add_address_patches(struct capture *capture, const struct captured_launch *launch,
                                const struct param_offsets *offsets, const frit_launch *given)
{
    for (uint32_t i = launch->first_kernel; i < launch->first_kernel + launch->n_kernels; i++) {
        struct captured_kernel *kernel = &capture->kernels[i];
        const uint64_t before = capture->n_address_patches;

        if (kernel->launch.product)
            add_product_patches(capture, kernel, launch, offsets, given);
        else
            add_kernel_patches(capture, kernel, launch, offsets, given);
        for (uint64_t k = before; k < capture->n_address_patches; k++)
            capture->address_patches[k].aligned = kernel->aligned;
    }
}

static frit_status add_launch_params(struct capture *capture, struct captured_launch *to,
                                     const frit_launch *given, const frit_param *const *params,
                                     uint32_t n_params, frit_err *err)
{
    struct param_offsets offsets = {.n = given->n_args};
    frit_status status = FRIT_OK;

    offsets.at = make_array(capture, offsets.n, sizeof *offsets.at);
    if (!offsets.at)
        return fail_no_memory(capture, err);
    for (uint32_t i = 0; i < n_params && !status; i++)
        status = add_param(capture, to, &offsets, params[i], err);
    if (!status)
        add_address_patches(capture, to, &offsets, given);
    plug_free(capture->plug, offsets.at);
    return status;
}

/* Sorts the parameters by command.  `ends` has n_cmds + 2 entries, all 0.  Afterwards the
 * parameters of command `i` are those from ends[i + 1] to ends[i + 2], or to `n_params` for the
 * last one. */
static frit_status sort_params(const struct capture *capture, const struct capture_source *source,
                               const frit_param **sorted, uint32_t *ends, frit_err *err)
{
    for (uint32_t i = 0; i < source->n_params; i++) {
        const uint32_t command = param_at(source->params, source->param_stride, i)->command;

        if (command >= capture->n_cmds || capture->cmds[command].kind != FRIT_CMD_LAUNCH)
            return plug_fail(capture->plug, err, FRIT_UNSUPPORTED,
                             "cannot record a parameter of a command other than LAUNCH");
        ends[command + 1]++;
    }
    for (uint32_t i = 0; i < capture->n_cmds; i++)
        ends[i + 1] += ends[i];
    for (uint32_t i = source->n_params; i-- > 0;) {
        const frit_param *param = param_at(source->params, source->param_stride, i);

        sorted[--ends[param->command + 1]] = param;
    }
    return FRIT_OK;
}

static frit_status add_sorted(struct capture *capture, const struct capture_source *source,
                              const frit_param *const *sorted, const uint32_t *begins,
                              frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0, n = 0; i < capture->n_cmds && !status; i++) {
        const uint32_t end = i + 1 < capture->n_cmds ? begins[i + 2] : source->n_params;

        if (capture->cmds[i].kind == FRIT_CMD_LAUNCH)
            status = add_launch_params(capture, &capture->launches[n++],
                                       command_at(source->cmds, source->stride, i)->launch,
                                       sorted + begins[i + 1], end - begins[i + 1], err);
    }
    return status;
}

static frit_status add_params(struct capture *capture, const struct capture_source *source,
                              frit_err *err)
{
    const frit_param **sorted = make_array(capture, source->n_params, sizeof *sorted);
    uint32_t *begins = make_array(capture, capture->n_cmds + UINT64_C(1), sizeof *begins);
    frit_status status = sorted && begins ? FRIT_OK : fail_no_memory(capture, err);

    if (!status)
        status = sort_params(capture, source, sorted, begins, err);
    if (!status)
        status = add_sorted(capture, source, sorted, begins, err);
    plug_free(capture->plug, (void *)sorted);
    plug_free(capture->plug, begins);
    return status;
}

frit_status capture_init(struct capture *capture, const struct plug *plug,
                         const struct capture_source *source, struct launch_words *buffer,
                         frit_err *err)
{
    frit_status status = FRIT_OK;

    *capture = (struct capture){.plug = plug};
    capture->cmds = make_array(capture, source->count, sizeof *capture->cmds);
    capture->launches = make_array(capture, source->count, sizeof *capture->launches);
    capture->scalar_patches =
        make_array(capture, source->n_params, sizeof *capture->scalar_patches);
    if (!capture->cmds || !capture->launches || !capture->scalar_patches)
        status = fail_no_memory(capture, err);
    if (!status)
        status = copy_commands(capture, source, buffer, err);
    if (!status)
        status = make_counted(capture, err);
    if (!status)
        status = write_all(capture, source, buffer, err);
    if (!status)
        status = add_params(capture, source, err);
    if (status)
        capture_fini(capture);
    return status;
}

/* ---- replay ---- */

bool capture_changes(const struct capture *capture)
{
    return capture->n_address_patches || capture->n_scalar_patches;
}

static frit_status patch_addresses(struct capture *capture, const char *block, frit_err *err)
{
    for (uint64_t i = 0; i < capture->n_address_patches; i++) {
        const struct address_patch *patch = &capture->address_patches[i];
        const frit_place *place = (const frit_place *)(const void *)(block + patch->param_offset);
        uint64_t word;

        if (place->memory && !memory_holds(place->memory, place->offset, patch->extent))
            return memory_check_range(capture->plug, place->memory, place->offset, patch->extent,
                                      err);
        word = place->memory ? place->memory->address + place->offset + patch->origin : 0;
        if (patch->aligned && word % ARG_ALIGN)
            return plug_fail(capture->plug, err, FRIT_INVALID,
                             "an argument whose address is less aligned than when it was recorded");
        capture->words[patch->word] = word;
    }
    return FRIT_OK;
}

/* Computes the parameters of a launch from its scalars and bounds, which have changed. */
static frit_status patch_params(struct capture *capture, const struct captured_launch *launch,
                                struct launch_words *buffer, frit_err *err)
{
    const struct captured_kernel *to = &capture->kernels[launch->first_kernel];
    struct kernels_launch kernel;
    frit_status status = launch_words_first(buffer, &launch->launch, &kernel, err);

    if (status)
        return status;
    do {
        if (!kernel.product)
            arg_block_write_params(&kernel, capture->words + to->first_word);
        to++;
    } while (kernels_next(&kernel));
    return FRIT_OK;
}

frit_status capture_patch(struct capture *capture, const void *block, struct launch_words *buffer,
                          frit_err *err)
{
    const char *params = block;
    frit_status status = patch_addresses(capture, params, err);

    for (uint32_t i = 0; i < capture->n_scalar_patches && !status; i++)
        memcpy(capture->scalar_patches[i].target, params + capture->scalar_patches[i].param_offset,
               sizeof(uint64_t));
    for (uint32_t i = 0; i < capture->n_launches && !status; i++)
        if (capture->launches[i].has_scalar_patches)
            status = patch_params(capture, &capture->launches[i], buffer, err);
    return status;
}
