/* SPDX-License-Identifier: Apache-2.0 */
#include "run/capture.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frit/capture.h>

#include "base/array.h"
#include "device/device.h"
#include "device/profile.h"
#include "device/retired.h"
#include "memory/memory.h"
#include "run/bound_plan.h"

/* Estimate of the bytes that a driver keeps per command, which the host cannot know. */
enum { DRIVER_BYTES = 1024 };

/* Recordings of a submit in which places that differed so far are parameters, and all others are
 * constant; the next one has all as parameters. */
enum {
    MAX_LEARNING = 6,
    LASTING = 256 /* replays of a recording after which these are counted anew */
};

/* Where the driver compiles for a recording, it is tried again after as many replays as there were,
 * at most these. */
enum { MOST_PATIENCE = 32 };

/* A parameter of eight bytes: its place in the launches, and in the block. */
struct number {
    const void *from;
    uint64_t at;
};

/* A place: a parameter, or constant in the recording. */
struct place {
    struct buffer *const *current;
    uint64_t first; /* bytes after the start of the buffer */
    bool varies;
    uint64_t at;               /* of a parameter: in the block */
    const frit_memory *memory; /* else: as it was recorded */
    uint64_t offset;
};

/* Memory derived from an operand: a launch that fills it is not one that finds it, and knows the
 * contents by their number. */
struct derived_state {
    const struct bound_derived *use;
    uint64_t content;
    bool fill;
};

/* A recording, for as long as launches in flight may need it. */
struct recorded {
    struct retired_entry retired; /* first */
    frit_device *device;
    frit_recording *handle;
    uint32_t queue;
};

struct captured_submit {
    bool tried;
    uint64_t resume; /* replay of the bound plan from which on it may be recorded */
    uint32_t n_cmds;
    struct recorded *recorded; /* NULL: it is submitted */
    uint64_t *block;
    struct number *numbers;
    struct place *places;
    struct derived_state *derived;
    frit_param *params; /* while it is recorded */
    uint32_t n_numbers, numbers_capacity, n_places, places_capacity, n_params, params_capacity;
    uint32_t n_derived, derived_capacity;
    uint64_t block_bytes;
    bool *varies; /* by number of the place: it differed between replays */
    uint32_t varies_capacity, n_recordings, n_replays;
    uint64_t frees; /* of the device's memory when it was recorded: memory is known by its handle
                       until one goes */
};

struct capture {
    struct captured_submit *submits; /* by first launch */
    uint32_t n_launches;
    bool apart;      /* the driver refused to record all submits as one */
    bool one_submit; /* so that the first of `submits` holds what was learnt of all */
};

/* ---- life ---- */

static void release(struct retired_entry *entry)
{
    struct recorded *recorded = (struct recorded *)entry;

    recorded->device->capture->release(recorded->device->self, recorded->handle);
    free(recorded);
}

/* The recording goes; what was learnt of its places stays. */
static void drop(struct captured_submit *submit)
{
    if (submit->recorded)
        retired_add(submit->recorded->device, &submit->recorded->retired);
    free(submit->block);
    free(submit->numbers);
    free(submit->places);
    free(submit->derived);
    free(submit->params);
    *submit = (struct captured_submit){.tried = true,
                                       .resume = submit->resume,
                                       .varies = submit->varies,
                                       .varies_capacity = submit->varies_capacity,
                                       .n_recordings = submit->n_recordings};
}

void capture_destroy(struct capture *capture)
{
    if (!capture)
        return;
    for (uint32_t i = 0; i < capture->n_launches; i++) {
        drop(&capture->submits[i]);
        free(capture->submits[i].varies);
    }
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
            bytes += submit->block_bytes + submit->numbers_capacity * sizeof(*submit->numbers) +
                     submit->places_capacity * sizeof(*submit->places) +
                     submit->derived_capacity * sizeof(*submit->derived) +
                     submit->varies_capacity * sizeof(*submit->varies) +
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

/* False if out of memory, as all that follow. */
static bool add_param(struct captured_submit *submit, uint32_t command, uint32_t kind,
                      uint32_t index, uint64_t bytes)
{
    if (!array_grow(&submit->params, &submit->params_capacity, submit->n_params, 1,
                    sizeof(*submit->params)))
        return false;
    submit->params[submit->n_params++] =
        (frit_param){.command = command, .kind = kind, .index = index, .at = submit->block_bytes};
    submit->block_bytes += bytes;
    return true;
}

static bool add_number(struct captured_submit *submit, uint32_t command, uint32_t kind,
                       uint32_t index, const void *from)
{
    if (!array_grow(&submit->numbers, &submit->numbers_capacity, submit->n_numbers, 1,
                    sizeof(*submit->numbers)))
        return false;
    submit->numbers[submit->n_numbers++] = (struct number){from, submit->block_bytes};
    return add_param(submit, command, kind, index, sizeof(uint64_t));
}

static bool is_varying(const struct captured_submit *submit, uint32_t place)
{
    return submit->n_recordings >= MAX_LEARNING || submit->varies[place];
}

static bool add_place(struct captured_submit *submit, uint32_t command, uint32_t kind,
                      uint32_t index, struct buffer *const *current, uint64_t first)
{
    uint32_t n = submit->n_places, known = submit->varies_capacity;
    struct place place = {.current = current,
                          .first = first,
                          .at = submit->block_bytes,
                          .memory = (*current)->handle,
                          .offset = (*current)->offset};

    if (!array_grow(&submit->places, &submit->places_capacity, n, 1, sizeof(*submit->places)) ||
        !array_grow(&submit->varies, &submit->varies_capacity, n, 1, sizeof(*submit->varies)))
        return false;
    memset(submit->varies + known, 0, (submit->varies_capacity - known) * sizeof(*submit->varies));
    place.varies = is_varying(submit, n);
    submit->places[submit->n_places++] = place;
    return !place.varies || add_param(submit, command, kind, index, sizeof(frit_place));
}

static bool add_scalars(struct captured_submit *submit, const struct bound_launch *l,
                        uint32_t command)
{
    bool ok = true;

    for (uint32_t u = 0; u < l->n_updates; u++) {
        const struct bound_scalars *w = &l->updates[u];

        for (uint32_t i = w->scalar; i < w->scalar + w->count.n_scalars && ok; i++)
            ok = add_number(submit, command, FRIT_PARAM_SCALAR, i, &l->scalars[i].bits);
        for (uint32_t i = w->bound; i < w->bound + w->count.n_bounds && ok; i++)
            ok = add_number(submit, command, FRIT_PARAM_BOUND, i, &l->bounds[i]);
    }
    return ok;
}

/* The workspace's place, NULL where there is none. */
static const struct bound_ref *workspace_of(const struct bound_launch *l)
{
    return l->launch.workspace ? &l->workspaces[0] : NULL;
}

/* What is kept beside its operand lies where it was found, or is filled. */
static bool add_derived(struct captured_submit *submit, const struct bound_launch *l,
                        uint32_t command)
{
    uint32_t space = !!workspace_of(l);

    for (uint32_t i = 0; i < l->launch.n_derived; i++) {
        const struct bound_derived *use = &l->derived[i];
        struct buffer *const *current = &use->memory;

        if (!use->kept) {
            assert(l->workspaces);
            current = l->workspaces[space++].current;
        }
        if (!array_grow(&submit->derived, &submit->derived_capacity, submit->n_derived, 1,
                        sizeof(*submit->derived)) ||
            !add_place(submit, command, FRIT_PARAM_DERIVED, i, current, 0))
            return false;
        submit->derived[submit->n_derived++] = (struct derived_state){use, use->content, use->fill};
    }
    return true;
}

static bool add_places(struct captured_submit *submit, const struct bound_launch *l,
                       uint32_t command)
{
    const struct bound_ref *workspace = workspace_of(l);
    bool ok = add_derived(submit, l, command);

    for (uint32_t i = 0; i < l->launch.n_args && ok; i++) {
        if (l->args[i].current)
            ok =
                add_place(submit, command, FRIT_PARAM_ARG, i, l->args[i].current, l->args[i].first);
    }
    if (workspace)
        ok = ok && add_place(submit, command, FRIT_PARAM_WORKSPACE, 0, workspace->current, 0);
    return ok;
}

/* A FILL is that of the next launch's workspace.  False too where there are commands that programs
 * recorded. */
static bool add_params(struct captured_submit *submit, const struct bound_launch *l,
                       const frit_cmd *cmds, uint32_t count)
{
    bool ok = true;

    for (uint32_t i = 0; i < count && ok; i++) {
        if (cmds[i].kind == FRIT_CMD_FILL) {
            ok = add_place(submit, i, FRIT_PARAM_DST, 0, workspace_of(l)->current, 0);
        } else if (cmds[i].kind == FRIT_CMD_LAUNCH && cmds[i].launch == &l->launch) {
            ok = add_scalars(submit, l, i) && add_places(submit, l, i) &&
                 add_number(submit, i, FRIT_PARAM_COOKIE, 0, &l->launch.cookie);
            l++;
        } else {
            ok = cmds[i].kind == FRIT_CMD_BARRIER;
        }
    }
    return ok;
}

/* ---- recording ---- */

/* FRIT_BUSY: the driver compiles for it in the background.  Where launches wait for compiles, so
 * does this. */
static frit_status call_record(struct captured_submit *submit, const struct replay_range *range,
                               const frit_cmd *cmds, uint32_t count, frit_recording **out)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    frit_status st;

    while ((st = device_record(range->device, range->queue, cmds, count, submit->params,
                               submit->n_params, out)) == FRIT_BUSY &&
           !range->device->config.compile_ahead)
        (void)nanosleep(&pause, NULL);
    return st;
}

static frit_status record(struct captured_submit *submit, const struct replay_range *range,
                          const frit_cmd *cmds, uint32_t count)
{
    struct recorded *recorded = calloc(1, sizeof(*recorded));
    frit_status st;

    submit->block =
        calloc(submit->block_bytes / sizeof(*submit->block) + 1, sizeof(*submit->block));
    if (!recorded || !submit->block) {
        free(recorded);
        return FRIT_NO_HOST_MEMORY;
    }
    *recorded = (struct recorded){
        .retired.destroy = release, .device = range->device, .queue = range->queue};
    st = call_record(submit, range, cmds, count, &recorded->handle);
    if (st)
        free(recorded);
    else
        submit->recorded = recorded;
    return st;
}

/* What fails inside its submit spoils all that the submit writes, so these stay apart.  Where the
 * host runs collectives, the submits between two of them are one. */
bool capture_is_one_submit(const struct bound_plan *bound, const frit_device *device)
{
    return bound->n_submits > 1 && device->capture && bound->n_replays >= CAPTURE_AFTER &&
           !(device->info->caps & FRIT_CAP_INLINE_QUEUE) && !profile_is_on(device->profile) &&
           !(bound->capture && bound->capture->apart);
}

static bool has_moved(const struct place *place)
{
    return !place->varies && ((*place->current)->handle != place->memory ||
                              (*place->current)->offset != place->offset);
}

/* Whether every constant place is where it was recorded. */
static bool stays(const struct captured_submit *submit, const frit_device *device)
{
    if (submit->frees != memory_frees(device->memory) && submit->n_recordings <= MAX_LEARNING)
        return false;
    for (uint32_t i = 0; i < submit->n_places; i++) {
        if (has_moved(&submit->places[i]))
            return false;
    }
    return true;
}

static void learn(struct captured_submit *submit)
{
    for (uint32_t i = 0; i < submit->n_places; i++)
        submit->varies[i] |= has_moved(&submit->places[i]);
}

static bool derives_same(const struct captured_submit *submit)
{
    for (uint32_t i = 0; i < submit->n_derived; i++) {
        const struct derived_state *derived = &submit->derived[i];

        if (derived->use->fill != derived->fill || derived->use->content != derived->content)
            return false;
    }
    return true;
}

/* Drops a recording with a constant place that is elsewhere now: it is recorded again. */
static void forget_if_moved(struct captured_submit *submit, const frit_device *device)
{
    if (submit->recorded && (stays(submit, device) || !derives_same(submit)))
        return;
    learn(submit);
    if (!submit->recorded)
        return;
    if (submit->n_replays >= LASTING)
        submit->n_recordings = 0;
    drop(submit);
    submit->tried = false;
}

/* The places of all submits are those of the one recording, in the same order. */
static bool join_learnt(struct capture *capture)
{
    struct captured_submit *all = &capture->submits[0];
    uint32_t n = all->n_places;

    for (uint32_t i = 1; i < capture->n_launches; i++) {
        struct captured_submit *submit = &capture->submits[i];

        learn(submit);
        if (!array_grow(&all->varies, &all->varies_capacity, n, submit->n_places,
                        sizeof(*all->varies)))
            return false;
        if (submit->n_places)
            memcpy(all->varies + n, submit->varies, submit->n_places * sizeof(*all->varies));
        n += submit->n_places;
        drop(submit);
        submit->tried = false;
    }
    if (all->varies)
        memset(all->varies + n, 0, (all->varies_capacity - n) * sizeof(*all->varies));
    return true;
}

/* Before it is recorded: which places differ from one replay to the next. */
static void observe(struct captured_submit *submit, const struct bound_launch *l,
                    const frit_cmd *cmds, uint32_t count)
{
    learn(submit);
    drop(submit);
    submit->tried = !add_params(submit, l, cmds, count);
}

/* The driver compiles for the recording.  The places stay, so that the next replay sees which ones
 * have moved. */
static void postpone(struct captured_submit *submit, uint64_t n_replays)
{
    submit->tried = false;
    submit->resume = n_replays + (n_replays < MOST_PATIENCE ? n_replays : MOST_PATIENCE);
}

void capture_record(struct bound_plan *bound, const struct replay_range *range,
                    const frit_cmd *cmds, uint32_t count)
{
    uint32_t from = range->from;
    const struct bound_launch *l = &bound->launches[from];
    struct captured_submit *submit;
    frit_status st;

    if (!range->device->capture || bound->n_replays == 0 || from == range->end)
        return;
    if (!bound->capture)
        bound->capture = capture_create(bound->n_launches);
    if (!bound->capture)
        return;
    submit = &bound->capture->submits[from];
    forget_if_moved(submit, range->device);
    if (submit->tried)
        return;
    if (bound->n_replays < CAPTURE_AFTER || bound->n_replays < submit->resume) {
        observe(submit, l, cmds, count);
        return;
    }
    if (bound->one_submit && !bound->capture->one_submit && !join_learnt(bound->capture))
        return;
    bound->capture->one_submit = bound->one_submit;
    drop(submit);
    submit->n_cmds = count;
    submit->frees = memory_frees(range->device->memory);
    st = add_params(submit, l, cmds, count) ? record(submit, range, cmds, count)
                                            : FRIT_NO_HOST_MEMORY;
    if (st == FRIT_BUSY) {
        postpone(submit, bound->n_replays);
        return;
    }
    if (st) {
        drop(submit);
        submit->tried = !bound->one_submit;
        bound->capture->apart = bound->one_submit;
        return;
    }
    submit->n_recordings++;
    free(submit->params);
    submit->params = NULL;
    submit->params_capacity = 0;
    bound->grew = true;
}

/* ---- replaying ---- */

bool capture_fits(const struct bound_plan *bound, const frit_device *device, uint32_t from)
{
    const struct captured_submit *submit;

    if (!bound->capture)
        return false;
    submit = &bound->capture->submits[from];
    return submit->recorded && derives_same(submit) && stays(submit, device);
}

frit_status capture_replay(struct bound_plan *bound, const struct replay_range *range,
                           uint64_t *point, frit_err *err)
{
    struct captured_submit *submit = &bound->capture->submits[range->from];
    char *block = (char *)submit->block;

    for (uint32_t i = 0; i < submit->n_numbers; i++)
        memcpy(block + submit->numbers[i].at, submit->numbers[i].from, sizeof(uint64_t));
    for (uint32_t i = 0; i < submit->n_places; i++) {
        const struct place *place = &submit->places[i];
        const struct buffer *buffer = *place->current;

        if (place->varies)
            *(frit_place *)(void *)(block + place->at) =
                (frit_place){buffer->handle, buffer->offset + place->first};
    }
    submit->n_replays++;
    return device_replay(
        range->device,
        &(struct device_replay){submit->recorded->handle, submit->recorded->queue, submit->block},
        range->after, point, err);
}

void capture_drop(struct bound_plan *bound, uint32_t from)
{
    drop(&bound->capture->submits[from]);
}
