/* SPDX-License-Identifier: Apache-2.0 */
#include "run/capture.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/retired.h"

/* What a driver keeps of a command, in bytes: the host cannot know. */
enum { DRIVER_BYTES = 1024 };

/* Where a parameter's bytes stand in the launches, and in the block. */
struct source {
    const void *from;
    uint32_t at, bytes;
};

/* An output whose place may change what no parameter is. */
struct fixed {
    const frit_arg *arg;
    uint64_t flags, tail;
};

/* A recording, for as long as launches in flight may need it. */
struct recorded {
    struct retired_entry retired; /* first */
    frit_device *device;
    frit_recording *handle;
};

struct captured_submit {
    bool tried;
    uint32_t n_cmds;
    struct recorded *recorded; /* NULL: it is submitted */
    uint64_t *block;
    struct source *sources;
    struct fixed *fixed;
    frit_param *params; /* while it is recorded */
    uint32_t n_sources, sources_capacity, params_capacity, n_fixed, fixed_capacity;
    uint32_t block_bytes;
};

struct capture {
    struct captured_submit *submits; /* by first launch */
    uint32_t n_launches;
};

/* A driver's table has launches' places where frit_place has them. */
_Static_assert(offsetof(frit_arg, offset) == offsetof(frit_arg, memory) + 8, "a frit_place");
_Static_assert(offsetof(frit_derived, offset) == offsetof(frit_derived, memory) + 8, "likewise");
_Static_assert(offsetof(frit_launch, workspace_offset) == offsetof(frit_launch, workspace) + 8,
               "likewise");

/* ---- life ---- */

static void release(struct retired_entry *entry)
{
    struct recorded *recorded = (struct recorded *)entry;

    recorded->device->capture->release(recorded->device->self, recorded->handle);
    free(recorded);
}

static void drop(struct captured_submit *submit)
{
    if (submit->recorded)
        retired_add(submit->recorded->device, &submit->recorded->retired);
    free(submit->block);
    free(submit->sources);
    free(submit->fixed);
    free(submit->params);
    *submit = (struct captured_submit){.tried = true};
}

void capture_destroy(struct capture *capture)
{
    if (!capture)
        return;
    for (uint32_t i = 0; i < capture->n_launches; i++)
        drop(&capture->submits[i]);
    free(capture->submits);
    free(capture);
}

uint64_t capture_bytes(const struct capture *capture)
{
    uint64_t bytes = 0;

    if (!capture)
        return 0;
    for (uint32_t i = 0; i < capture->n_launches; i++) {
        const struct captured_submit *submit = &capture->submits[i];

        if (submit->recorded)
            bytes += submit->block_bytes + submit->sources_capacity * sizeof(*submit->sources) +
                     submit->fixed_capacity * sizeof(*submit->fixed) +
                     (uint64_t)submit->n_cmds * DRIVER_BYTES;
    }
    return bytes + sizeof(*capture) + capture->n_launches * sizeof(*capture->submits);
}

static struct capture *capture_create(uint32_t n_launches)
{
    struct capture *capture = calloc(1, sizeof(*capture));

    if (!capture)
        return NULL;
    capture->n_launches = n_launches;
    capture->submits = calloc(n_launches, sizeof(*capture->submits));
    if (capture->submits)
        return capture;
    free(capture);
    return NULL;
}

/* ---- parameters ---- */

/* False without memory. */
static bool add_param(struct captured_submit *submit, frit_param param, const void *from)
{
    uint32_t bytes = param.kind >= FRIT_PARAM_ARG && param.kind <= FRIT_PARAM_SRC
                         ? sizeof(frit_place)
                         : sizeof(uint64_t);

    if (!array_grow(&submit->sources, &submit->sources_capacity, submit->n_sources, 1,
                    sizeof(*submit->sources)) ||
        !array_grow(&submit->params, &submit->params_capacity, submit->n_sources, 1,
                    sizeof(*submit->params)))
        return false;
    param.at = submit->block_bytes;
    submit->params[submit->n_sources] = param;
    submit->sources[submit->n_sources++] = (struct source){from, submit->block_bytes, bytes};
    submit->block_bytes += bytes;
    return true;
}

static bool add_scalars(struct captured_submit *submit, const struct bound_launch *l,
                        uint32_t command)
{
    bool ok = true;

    for (uint32_t u = 0; u < l->n_updates; u++) {
        const struct bound_scalars *w = &l->updates[u];

        for (uint32_t i = w->scalar; i < w->scalar + w->count.n_scalars && ok; i++)
            ok = add_param(submit,
                           (frit_param){.command = command, .kind = FRIT_PARAM_SCALAR, .index = i},
                           &l->scalars[i].bits);
        for (uint32_t i = w->bound; i < w->bound + w->count.n_bounds && ok; i++)
            ok = add_param(submit,
                           (frit_param){.command = command, .kind = FRIT_PARAM_BOUND, .index = i},
                           &l->bounds[i]);
    }
    return ok;
}

static bool add_fixed(struct captured_submit *submit, const frit_arg *arg)
{
    if (!array_grow(&submit->fixed, &submit->fixed_capacity, submit->n_fixed, 1,
                    sizeof(*submit->fixed)))
        return false;
    submit->fixed[submit->n_fixed++] = (struct fixed){arg, arg->flags, arg->tail};
    return true;
}

static bool add_places(struct captured_submit *submit, const struct bound_launch *l,
                       uint32_t command)
{
    bool ok = true;

    for (uint32_t i = 0; i < l->launch.n_args && ok; i++) {
        if (!l->args[i].now)
            continue;
        ok = add_param(submit, (frit_param){.command = command, .kind = FRIT_PARAM_ARG, .index = i},
                       &l->launch.args[i].memory) &&
             (i < l->n_in || add_fixed(submit, &l->launch.args[i]));
    }
    for (uint32_t i = 0; i < l->launch.n_derived && ok && l->n_spaces; i++)
        ok = add_param(submit,
                       (frit_param){.command = command, .kind = FRIT_PARAM_DERIVED, .index = i},
                       &l->launch.derived[i].memory);
    if (l->n_spaces > l->launch.n_derived)
        ok = ok && add_param(submit, (frit_param){.command = command, .kind = FRIT_PARAM_WORKSPACE},
                             &l->launch.workspace);
    return ok && add_param(submit, (frit_param){.command = command, .kind = FRIT_PARAM_COOKIE},
                           &l->launch.cookie);
}

/* A FILL is that of the next launch's workspace.  False: without memory, or there are commands that
 * programs recorded. */
static bool add_params(struct captured_submit *submit, const struct bound_launch *launches,
                       const frit_cmd *cmds, uint32_t count)
{
    bool ok = true;

    for (uint32_t i = 0; i < count && ok; i++) {
        if (cmds[i].kind == FRIT_CMD_FILL) {
            ok = add_param(submit, (frit_param){.command = i, .kind = FRIT_PARAM_DST},
                           &launches->launch.workspace);
        } else if (cmds[i].kind == FRIT_CMD_LAUNCH && cmds[i].launch == &launches->launch) {
            ok = add_scalars(submit, launches, i) && add_places(submit, launches, i);
            launches++;
        } else {
            ok = cmds[i].kind == FRIT_CMD_BARRIER;
        }
    }
    return ok;
}

/* ---- recording ---- */

static frit_status record(struct captured_submit *submit, frit_device *device, const frit_cmd *cmds,
                          uint32_t count)
{
    struct recorded *recorded = calloc(1, sizeof(*recorded));
    frit_status st;

    submit->block =
        calloc(submit->block_bytes / sizeof(*submit->block) + 1, sizeof(*submit->block));
    if (!recorded || !submit->block) {
        free(recorded);
        return FRIT_NO_HOST_MEMORY;
    }
    *recorded = (struct recorded){.retired.destroy = release, .device = device};
    st = device_record(device, cmds, count, submit->params, submit->n_sources, &recorded->handle);
    if (st)
        free(recorded);
    else
        submit->recorded = recorded;
    return st;
}

void capture_record(struct bound_plan *bound, frit_device *device, uint32_t from, uint32_t end,
                    const frit_cmd *cmds, uint32_t count)
{
    struct captured_submit *submit;

    if (!device->capture || bound->n_replays < CAPTURE_AFTER || from == end)
        return;
    if (!bound->capture)
        bound->capture = capture_create(bound->n_launches);
    if (!bound->capture || bound->capture->submits[from].tried)
        return;
    submit = &bound->capture->submits[from];
    submit->tried = true;
    submit->n_cmds = count;
    if (!add_params(submit, &bound->launches[from], cmds, count) ||
        record(submit, device, cmds, count)) {
        drop(submit);
        return;
    }
    free(submit->params);
    submit->params = NULL;
    submit->params_capacity = 0;
    bound->grew = true;
}

/* ---- replaying ---- */

bool capture_fits(const struct bound_plan *bound, uint32_t from)
{
    const struct captured_submit *submit;

    if (!bound->capture)
        return false;
    submit = &bound->capture->submits[from];
    for (uint32_t i = 0; i < submit->n_fixed; i++) {
        const struct fixed *fixed = &submit->fixed[i];

        if (fixed->arg->flags != fixed->flags || fixed->arg->tail != fixed->tail)
            return false;
    }
    return submit->recorded;
}

frit_status capture_replay(struct bound_plan *bound, frit_device *device, uint32_t from,
                           uint64_t *value, frit_err *err)
{
    const struct captured_submit *submit = &bound->capture->submits[from];
    char *block = (char *)submit->block;

    for (uint32_t i = 0; i < submit->n_sources; i++) {
        const struct source *source = &submit->sources[i];

        memcpy(block + source->at, source->from, sizeof(uint64_t));
        if (source->bytes > sizeof(uint64_t))
            memcpy(block + source->at + sizeof(uint64_t),
                   (const char *)source->from + sizeof(uint64_t), sizeof(uint64_t));
    }
    return device_replay(device, submit->recorded->handle, submit->block, value, err);
}

void capture_drop(struct bound_plan *bound, uint32_t from)
{
    drop(&bound->capture->submits[from]);
}
