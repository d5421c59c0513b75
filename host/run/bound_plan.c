/* SPDX-License-Identifier: Apache-2.0 */
/* Recording.  A buffer of the run is found again by its address, the newest first: one that was
 * given back and handed out anew is another buffer. */
#include "run/bound_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "device/device.h"
#include "device/prepared_cache.h"
#include "graph/graph.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "run/bind_args.h"
#include "run/bind_derived.h"
#include "run/capture.h"
#include "run/collective.h"
#include "run/launch_parts.h"

/* ---- life ---- */

struct bound_plan *bound_plan_create(uint32_t n_values)
{
    struct bound_plan *bound = calloc(1, sizeof(*bound));

    if (!bound)
        return NULL;
    bound->n_values = n_values;
    bound->values = arena_array(&bound->arena, (size_t)n_values + 1, sizeof(*bound->values));
    if (bound->values)
        return bound;
    bound_plan_destroy(bound);
    return NULL;
}

void bound_plan_destroy(struct bound_plan *bound)
{
    if (!bound)
        return;
    capture_destroy(bound->capture);
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        if (bound->launches[i].collective)
            continue;
        prepared_unref(bound->launches[i].prepared);
        program_unref(program_of(bound->launches[i].launch.program));
    }
    free(bound->launches);
    free(bound->serials);
    free(bound->buffers);
    free(bound->cmds);
    arena_fini(&bound->arena);
    free(bound);
}

uint64_t bound_plan_bytes(const struct bound_plan *bound)
{
    return sizeof(*bound) + arena_bytes(&bound->arena) +
           (uint64_t)bound->launches_capacity * sizeof(*bound->launches) +
           (uint64_t)bound->buffers_capacity * sizeof(*bound->buffers) +
           (uint64_t)bound->cmds_capacity * sizeof(*bound->cmds) + capture_bytes(bound->capture);
}

/* ---- recording ---- */

void bound_plan_spoil(struct bound_plan *bound)
{
    if (bound)
        bound->spoiled = true;
}

void *bound_plan_copy(struct bound_plan *bound, const void *from, size_t count, size_t bytes)
{
    void *to = arena_array(&bound->arena, count + 1, bytes);

    if (to && count)
        memcpy(to, from, count * bytes);
    bound->spoiled |= !to;
    return to;
}

void bound_plan_add_buffer(struct bound_plan *bound, const struct buffer *buffer, bool persistent)
{
    if (!bound)
        return;
    if (!array_grow(&bound->buffers, &bound->buffers_capacity, bound->n_buffers, 1,
                    sizeof(*bound->buffers))) {
        bound->spoiled = true;
        return;
    }
    bound->buffers[bound->n_buffers] = (struct bound_buffer){.bytes = buffer->bytes,
                                                             .persistent = persistent,
                                                             .made_in = bound->n_submits + 1,
                                                             .taker = BOUND_NOWHERE,
                                                             .memory_of = bound->n_buffers,
                                                             .seen = buffer};
    bound->n_buffers++;
}

/* BOUND_ABSENT: the run did not allocate it. */
static struct bound_ref find_buffer(const struct bound_plan *bound, const struct buffer *buffer)
{
    for (uint32_t i = bound->n_buffers; i-- > 0;) {
        if (bound->buffers[i].seen == buffer)
            return (struct bound_ref){.place = BOUND_BUFFER, .index = i};
    }
    return (struct bound_ref){.place = BOUND_ABSENT};
}

/* Where a value of the plan lies; one that was not made is an operand. */
static struct bound_ref place_of(const struct bound_plan *bound, uint32_t value)
{
    const struct bound_ref *at = &bound->values[value].at;

    return at->place == BOUND_ABSENT ? (struct bound_ref){.place = BOUND_OPERAND, .index = value}
                                     : *at;
}

void bound_plan_add_made(struct bound_plan *bound, uint32_t value, const struct buffer *buffer,
                         uint32_t of)
{
    struct bound_ref *at;

    if (!bound)
        return;
    at = &bound->values[value].at;
    *at = find_buffer(bound, buffer);
    if (at->place == BOUND_ABSENT && of != GRAPH_NO_VALUE)
        *at = place_of(bound, of);
    bound->spoiled |= at->place == BOUND_ABSENT;
}

void bound_plan_add_assigned(struct bound_plan *bound, uint32_t value, const frit_arg *arg,
                             const struct buffer *memory, bool in_bucket)
{
    struct bound_ref whole;
    struct bound_value *v;

    if (!bound)
        return;
    v = &bound->values[value];
    v->at = (struct bound_ref){.place = BOUND_ASSIGNED, .index = value};
    v->start = buffer_starts(memory, 0);
    v->align_log2 = arg->align_log2;
    v->bytes = memory->bytes;
    v->tail = memory->tail;
    v->in_bucket = in_bucket;
    if (!in_bucket)
        return;
    whole = find_buffer(bound, memory->whole);
    v->bucket = whole.index;
    v->bucket_first = memory->offset - memory->whole->offset;
    bound->spoiled |= whole.place == BOUND_ABSENT;
}

static uint64_t first_of(const struct value *value)
{
    return launch_extent(value).first;
}

static struct bound_ref bind_arg(const struct bound_plan *bound, const struct bind_launch *from,
                                 uint32_t index)
{
    const struct value *value = &from->values[index];
    struct bound_ref at;

    if (value->type.dtype == FRIT_NO_DTYPE)
        return (struct bound_ref){.place = BOUND_ABSENT};
    at = find_buffer(bound, value->buffer);
    if (at.place == BOUND_ABSENT)
        at = place_of(bound, index < from->n_in ? from->in[index] : from->out[index - from->n_in]);
    at.first = first_of(value);
    return at;
}

static struct bound_ref *bind_args(struct bound_plan *bound, const struct bind_launch *from)
{
    uint32_t n = from->n_in + from->n_out;
    struct bound_ref *args = arena_array(&bound->arena, (size_t)n + 1, sizeof(*args));

    bound->spoiled |= !args;
    for (uint32_t i = 0; i < n && args; i++) {
        args[i] = bind_arg(bound, from, i);
        if (i >= from->n_in && args[i].place == BOUND_OPERAND)
            bound->values[args[i].index].overwritten = true;
    }
    return args;
}

/* Memory that is free when the launch has ended. */
static struct bound_ref *bind_workspaces(struct bound_plan *bound, const struct bind_launch *from)
{
    struct bound_ref *workspaces =
        arena_array(&bound->arena, (size_t)from->n_workspaces + 1, sizeof(*workspaces));

    bound->spoiled |= !workspaces;
    for (uint32_t i = 0; i < from->n_workspaces && workspaces; i++) {
        workspaces[i] = find_buffer(bound, from->workspaces[i]);
        bound->spoiled |= workspaces[i].place == BOUND_ABSENT;
        if (workspaces[i].place == BOUND_BUFFER)
            bound->buffers[workspaces[i].index].dies_after = bound->n_submits + 1;
    }
    return workspaces;
}

static struct bound_derived *bind_derived(struct bound_plan *bound, const struct bind_launch *from)
{
    uint32_t n = from->launch->n_derived;
    struct bound_derived *derived = arena_array(&bound->arena, (size_t)n + 1, sizeof(*derived));

    bound->spoiled |= !derived;
    bound->n_derived += n;
    for (uint32_t i = 0; i < n && derived; i++) {
        const struct derived_use *use = &from->derived[i];

        derived[i] = (struct bound_derived){.kept = use->kept, .arg = use->arg, .key = use->key};
    }
    return derived;
}

/* Programs of one driver share one, as a rule. */
static void add_serial(struct bound_plan *bound, const struct bound_serial *serial)
{
    for (uint32_t i = 0; i < bound->n_serials; i++) {
        if (bound->serials[i].at == serial->at)
            return;
    }
    if (!array_grow(&bound->serials, &bound->serials_capacity, bound->n_serials, 1,
                    sizeof(*bound->serials))) {
        bound->spoiled = true;
        return;
    }
    bound->serials[bound->n_serials++] = *serial;
}

/* Of what may require other code, or another candidate. */
static void add_serials(struct bound_plan *bound, const struct bind_launch *from)
{
    const uint64_t *code = prepared_cache_serial(from->cache);

    if (code)
        add_serial(bound,
                   &(struct bound_serial){code, __atomic_load_n(code, __ATOMIC_ACQUIRE), false});
    add_serial(bound,
               &(struct bound_serial){&from->prepared->device->decisions, from->decisions, true});
}

/* NULL: nothing is recorded any more. */
static struct bound_launch *add_launch(struct bound_plan *bound)
{
    if (!bound || bound->spoiled)
        return NULL;
    if (array_grow(&bound->launches, &bound->launches_capacity, bound->n_launches, 1,
                   sizeof(*bound->launches)))
        return &bound->launches[bound->n_launches++];
    bound->spoiled = true;
    return NULL;
}

void bound_plan_add_launch(struct bound_plan *bound, const struct bind_launch *from)
{
    const frit_launch *l = from->launch;
    const frit_launch_spec *spec = &from->prepared->spec;
    struct bound_launch *to = add_launch(bound);

    if (!to)
        return;
    *to = (struct bound_launch){.launch = *l,
                                .cache = from->cache,
                                .prepared = from->prepared,
                                .n_ops = from->n_ops,
                                .n_in = from->n_in,
                                .n_workspaces = from->n_workspaces,
                                .n_cmds = from->n_cmds,
                                .barrier = from->barrier,
                                .block = from->block};
    prepared_ref(to->prepared);
    program_ref(program_of(l->program));
    if (spec->workspace_bytes && spec->workspace_zeroed)
        to->zeroed_bytes = spec->workspace_bytes;
    bound->n_blocks += from->block;
    add_serials(bound, from);
    bound->spoiled |= prepared_is_outdated(to->prepared);
    to->args = bind_args(bound, from);
    to->workspaces = bind_workspaces(bound, from);
    to->derived = bind_derived(bound, from);
    to->ops = bound_plan_copy(bound, from->ops, from->n_ops, sizeof(*from->ops));
    to->classes = bound_plan_copy(bound, from->classes, l->n_scalars, 1);
    to->scalars = bound_plan_copy(bound, l->scalars, l->n_scalars, sizeof(*l->scalars));
    to->bounds = bound_plan_copy(bound, l->bounds, l->n_bounds, sizeof(*l->bounds));
    to->launch.args = bound_plan_copy(bound, l->args, l->n_args, sizeof(*l->args));
    to->launch.derived = bound_plan_copy(bound, l->derived, l->n_derived, sizeof(*l->derived));
    to->launch.scalars = to->scalars;
    to->launch.bounds = to->bounds;
    /* A copy for the launch that follows, in a buffer that is free after that one. */
    for (uint32_t i = from->n_in; !from->out && to->args && i < l->n_args; i++) {
        if (to->args[i].place == BOUND_BUFFER)
            bound->buffers[to->args[i].index].dies_after = bound->n_submits + 1;
    }
}

void bound_plan_add_collective(struct bound_plan *bound, const struct collective_call *call,
                               const uint32_t *values, uint32_t n_values)
{
    struct bound_launch *to = add_launch(bound);

    if (!to)
        return;
    *to = (struct bound_launch){.submit_after = true,
                                .collective = bound_plan_copy(bound, call, 1, sizeof(*call)),
                                .n_workspaces = n_values};
    if (to->collective)
        to->collective->in = bound_plan_copy(bound, call->in, call->n_in, sizeof(*call->in));
    to->workspaces = arena_array(&bound->arena, n_values + 1, sizeof(*to->workspaces));
    bound->spoiled |= !to->workspaces;
    for (uint32_t i = 0; to->workspaces && i < n_values; i++)
        to->workspaces[i] = place_of(bound, values[i]);
    bound->n_collectives++;
    bound->n_submits++;
}

void bound_plan_add_parts(struct bound_plan *bound)
{
    if (bound)
        bound->n_in_parts++;
}

void bound_plan_add_submit(struct bound_plan *bound)
{
    if (!bound || bound->n_launches == 0 || bound->launches[bound->n_launches - 1].submit_after)
        return;
    bound->launches[bound->n_launches - 1].submit_after = true;
    bound->n_submits++;
}

void bound_plan_add_death(struct bound_plan *bound, uint32_t value)
{
    if (bound)
        bound->values[value].dies_after = bound->n_submits + 1;
}
