/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stddef.h>
#include <string.h>

/* A launch with all that it points at. */
struct kept_launch {
    frit_launch launch;
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
};

/* ---- copies ---- */

/* A copy of `bytes` bytes (`from` NULL: room for them), NULL while it is measured or where there
 * are none. */
static void *keep(struct cmd_arena *arena, const void *from, uint64_t bytes)
{
    void *copy = arena->at && bytes ? arena->at + arena->used : NULL;

    if (copy && from)
        memcpy(copy, from, bytes);
    arena->used +=
        (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    return copy;
}

static const frit_launch *keep_launch(struct cmd_arena *arena, const frit_launch *from)
{
    struct kept_launch *kept = keep(arena, &(struct kept_launch){.launch = *from}, sizeof *kept);
    void *args = keep(arena, from->args, (uint64_t)from->n_args * from->arg_stride);
    void *scalars = keep(arena, from->scalars, from->n_scalars * sizeof *from->scalars);
    void *bounds = keep(arena, from->bounds, from->n_bounds * sizeof *from->bounds);
    void *derived = keep(arena, from->derived, from->n_derived * sizeof *from->derived);

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

frit_cmd *commands_keep(struct cmd_arena *arena, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride)
{
    frit_cmd *copies = keep(arena, NULL, count * sizeof *copies);

    for (uint32_t i = 0; i < count; i++) {
        const void *at = (const char *)cmds + (size_t)i * stride;
        const frit_cmd *from = at;
        const frit_launch *launch = from->launch ? keep_launch(arena, from->launch) : NULL;

        if (!copies)
            continue;
        copies[i] = *from;
        copies[i].launch = launch;
    }
    return copies;
}

/* ---- recordings ---- */

frit_recording *recording_keep(struct cmd_arena *arena, const frit_cmd *cmds, uint32_t count,
                               uint32_t stride, const frit_param *params, uint32_t n_params,
                               uint32_t param_stride)
{
    frit_recording *made = keep(arena, NULL, sizeof *made);
    frit_param *kept = keep(arena, NULL, n_params * sizeof *kept);
    frit_cmd *copies = commands_keep(arena, cmds, count, stride);

    if (!made)
        return NULL;
    *made = (frit_recording){.cmds = copies, .params = kept, .n_cmds = count, .n_params = n_params};
    for (uint32_t i = 0; i < n_params; i++)
        memcpy(&kept[i], (const char *)params + (size_t)i * param_stride, sizeof *kept);
    return made;
}

/* What a replay gives of a launch. */
static void put_launch(frit_launch *launch, const frit_param *param, const void *from)
{
    const frit_place *place = from;
    frit_arg *arg = (frit_arg *)(void *)((char *)(uintptr_t)launch->args +
                                         (size_t)launch->arg_stride * param->index);

    switch (param->kind) {
    case FRIT_PARAM_SCALAR:
        memcpy(&((frit_scalar *)(uintptr_t)launch->scalars)[param->index].bits, from, 8);
        break;
    case FRIT_PARAM_BOUND:
        memcpy(&((int64_t *)(uintptr_t)launch->bounds)[param->index], from, 8);
        break;
    case FRIT_PARAM_ARG:
        arg->memory = place->memory;
        arg->offset = place->offset;
        break;
    case FRIT_PARAM_DERIVED:
        ((frit_derived *)(uintptr_t)launch->derived)[param->index].memory = place->memory;
        ((frit_derived *)(uintptr_t)launch->derived)[param->index].offset = place->offset;
        break;
    case FRIT_PARAM_WORKSPACE:
        launch->workspace = place->memory;
        launch->workspace_offset = place->offset;
        break;
    default:
        memcpy(&launch->cookie, from, 8);
    }
}

void recording_put(frit_cmd *cmds, const frit_param *param, const void *block)
{
    const void *from = (const char *)block + param->at;
    const frit_place *place = from;
    frit_cmd *cmd = &cmds[param->command];

    if (param->kind == FRIT_PARAM_DST) {
        cmd->dst = place->memory;
        cmd->dst_offset = place->offset;
    } else if (param->kind == FRIT_PARAM_SRC) {
        cmd->src = place->memory;
        cmd->src_offset = place->offset;
    } else {
        put_launch((frit_launch *)(uintptr_t)cmd->launch, param, from);
    }
}

void recording_put_all(frit_cmd *cmds, const frit_recording *recording, const void *block)
{
    for (uint32_t i = 0; i < recording->n_params; i++)
        recording_put(cmds, &recording->params[i], block);
}
