/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a script, and what each action does.
 *
 * A script's threads begin one after the other, so that their streams get the same ordinals in
 * every play; they meet at the end of each phase.  The main thread plays the last phase when they
 * are gone. */
#include "play.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stage {
    struct play *play;
    frit_device *device;
    const struct script *script;
    uint32_t variant;
    pthread_barrier_t barrier;
    pthread_mutex_t lock; /* of the fault */
    frit_tensor *tensors[SCRIPT_VARS];
    frit_scope scopes[SCRIPT_ACTIONS];
};

struct actor {
    struct stage *stage;
    uint8_t thread;
    uint16_t open[SCRIPT_ACTIONS]; /* scopes */
    uint32_t depth;
    frit_tensor *first; /* of its stream */
};

static void fault(struct stage *stage, const char *what, uint32_t action, frit_tensor *tensor)
{
    pthread_mutex_lock(&stage->lock);
    if (!stage->play->fault) {
        stage->play->fault = what;
        snprintf(stage->play->text, sizeof(stage->play->text), "%s at action %u: %s", what, action,
                 tensor ? frit_tensor_error(tensor) : "");
    }
    pthread_mutex_unlock(&stage->lock);
}

/* ---- numbers ---- */

static uint64_t mix(uint32_t seed, uint32_t variant)
{
    struct chance chance = {(uint64_t)variant << 32 | seed};

    return chance_next(&chance);
}

static double real_of(struct chance *chance)
{
    static const double special[] = {0, -0.0, INFINITY, NAN, 1, -1};

    if (chance_below(chance, 60) == 0)
        return special[chance_below(chance, 6)];
    return (double)(int32_t)(chance_next(chance) >> 32) / 1073741824.0 * 1.5;
}

static char *data_create(uint32_t dtype, int64_t count, uint32_t seed, uint32_t variant)
{
    struct chance chance = {mix(seed, variant)};
    uint64_t size = frit_dtype_bits(dtype) / 8;
    char *data = malloc((size_t)count * size + 1);

    for (int64_t i = 0; data && i < count; i++) {
        double real = real_of(&chance);
        float narrow = (float)real;
        int32_t whole = (int32_t)chance_below(&chance, 19) - 9;
        uint8_t truth = (uint8_t)chance_below(&chance, 2);
        const void *from = dtype == FRIT_F64   ? (const void *)&real
                           : dtype == FRIT_F32 ? (const void *)&narrow
                           : dtype == FRIT_I32 ? (const void *)&whole
                                               : (const void *)&truth;

        memcpy(data + (uint64_t)i * size, from, size);
    }
    return data;
}

/* A scalar operand; of the classes that code may be specialised on, and others. */
static frit_scalar scalar_of(uint32_t dtype, uint64_t chosen)
{
    static const double reals[] = {0, 1, -1, 2, 0.5, 3, -0.75, 1.3};
    static const int64_t wholes[] = {0, 1, -1, 2, 3, -7, 5, 11};

    if (dtype == FRIT_BOOL)
        return frit_scalar_i(chosen & 1);
    if (dtype == FRIT_I32)
        return frit_scalar_i(wholes[chosen % 8]);
    return frit_scalar_f(reals[chosen % 8]);
}

/* ---- ops ---- */

union attrs {
    uint64_t struct_size;
    frit_attrs_dims dims;
    frit_attrs_init init;
    frit_attrs_order order;
    frit_attrs_slice slice;
    frit_attrs_axes axes;
    frit_attrs_unfold unfold;
    frit_attrs_cast cast;
    frit_attrs_reduce reduce;
    frit_attrs_axis axis;
    frit_attrs_swap swap;
    frit_attrs_norm_axes norm_axes;
    frit_attrs_max_pool max_pool;
};

static frit_axes axes_of(const struct action *action)
{
    frit_axes axes = {.count = action->n_axes};

    for (uint32_t k = 0; k < action->n_axes; k++)
        axes.axis[k] = action->axes[k];
    return axes;
}

/* Takes `wanted` of `extent` elements, from a random place on. */
static frit_range part(int64_t extent, int64_t wanted, uint64_t chosen)
{
    int64_t step = wanted > 1 && (wanted - 1) * 2 < extent && chosen & 1 ? 2 : 1;
    int64_t span = (wanted - 1) * step + 1;
    int64_t start = (int64_t)(chosen / 2 % (uint64_t)(extent - span + 1));

    return (frit_range){start, start + span, step};
}

static frit_slices slices_of(const struct stage *stage, const struct action *action)
{
    const struct shape *from = &stage->script->vars[action->in[0].var].shape;
    const struct shape *to = &stage->script->vars[action->out[0]].shape;
    frit_slices slices = {.count = action->n_axes};

    for (uint32_t d = 0; d < action->n_axes; d++) {
        int64_t extent = dim_extent(from->code[d], stage->variant);
        uint64_t chosen = mix(action->seed + d, stage->variant);

        switch ((enum slice_form)action->axes[d]) {
        case SLICE_WHOLE:
            break;
        case SLICE_BACK:
            slices.dim[d] = (frit_range){-1, FRIT_SLICE_END, -1};
            break;
        case SLICE_ONE:
            slices.dim[d] = part(extent, 1, chosen);
            break;
        case SLICE_NONE:
            slices.dim[d] = (frit_range){extent / 2, extent / 2, 1};
            break;
        case SLICE_PART:
            slices.dim[d] = part(extent, dim_extent(to->code[d], stage->variant), chosen);
            break;
        }
    }
    return slices;
}

#define SIZED(record, ...)                                \
    attrs->record = (frit_attrs_##record)                 \
    {                                                     \
        .struct_size = sizeof(attrs->record), __VA_ARGS__ \
    }

/* NULL where the action has no attributes. */
static const void *attrs_of(const struct stage *stage, const struct action *action,
                            union attrs *attrs)
{
    const struct var *out = &stage->script->vars[action->out[0]];
    frit_dims dims = shape_dims(&out->shape, stage->variant);

    switch ((enum attr_form)action->attrs) {
    case ATTR_NONE:
        return NULL;
    case ATTR_DIMS:
        SIZED(dims, .dims = dims);
        break;
    case ATTR_INIT:
        SIZED(init, .dtype = out->dtype, .dims = dims);
        break;
    case ATTR_ORDER:
        SIZED(order, .order = axes_of(action));
        break;
    case ATTR_SLICE:
        SIZED(slice, .slices = slices_of(stage, action));
        break;
    case ATTR_AXES:
        SIZED(axes, .axes = axes_of(action));
        break;
    case ATTR_UNFOLD:
        SIZED(unfold, .axis = action->axis, .size = dim_extent(action->with, stage->variant),
              .step = action->step);
        break;
    case ATTR_CAST:
        SIZED(cast, .dtype = out->dtype);
        break;
    case ATTR_REDUCE:
        SIZED(reduce, .axes = axes_of(action), .keep = action->keep);
        break;
    case ATTR_AXIS:
        SIZED(axis, .axis = action->axis);
        break;
    case ATTR_SWAP:
        SIZED(swap, .axis = action->axis, .with = action->with);
        break;
    case ATTR_NORM_AXES:
        SIZED(norm_axes, .axes = axes_of(action));
        break;
    case ATTR_POOL:
        SIZED(max_pool, .kernel = {action->step}, .stride = {1});
        break;
    }
    return attrs;
}

/* The element type of a scalar operand: that of the tensors beside it, or of the result. */
static uint32_t scalar_dtype(const struct script *script, const struct action *action)
{
    for (uint32_t i = 0; i < action->n_in; i++)
        if (action->in[i].var != NO_VAR && script->vars[action->in[i].var].dtype != FRIT_BOOL)
            return script->vars[action->in[i].var].dtype;
    for (uint32_t i = 0; i < action->n_in; i++)
        if (action->in[i].var != NO_VAR)
            return FRIT_BOOL;
    return script->vars[action->out[0]].dtype;
}

static void play_op(struct stage *stage, const struct action *action, uint32_t index)
{
    const struct script *script = stage->script;
    frit_input in[SCRIPT_INPUTS] = {{0}};
    frit_tensor *out[SCRIPT_OUTPUTS] = {NULL};
    union attrs attrs;
    frit_call call = {.struct_size = sizeof(call),
                      .op = action->op,
                      .n_in = action->n_in,
                      .in = in,
                      .attrs = attrs_of(stage, action, &attrs)};

    for (uint32_t i = 0; i < action->n_in; i++) {
        const struct operand *operand = &action->in[i];

        if (operand->var == NO_VAR && action->attrs == ATTR_NORM_AXES)
            continue; /* absent */
        if (operand->var == NO_VAR)
            in[i].scalar =
                scalar_of(scalar_dtype(script, action), mix(action->seed + i, stage->variant) >> 7);
        else if (operand->take)
            in[i].tensor = frit_take(stage->tensors[operand->var]);
        else
            in[i].tensor = stage->tensors[operand->var];
    }
    frit_op(stage->device, &call, out, action->n_out);
    for (uint32_t k = 0; k < action->n_out; k++) {
        stage->tensors[action->out[k]] = out[k];
        if (frit_tensor_status(out[k]) == FRIT_INVALID)
            fault(stage, "a call was refused", index, out[k]);
    }
}

/* ---- the other actions ---- */

static void play_from_host(struct stage *stage, const struct action *action)
{
    const struct var *var = &stage->script->vars[action->out[0]];
    int64_t count = shape_count(&var->shape, stage->variant);
    char *data = data_create(var->dtype, count, action->seed, stage->variant);

    stage->tensors[action->out[0]] =
        frit_from_host(stage->device, var->dtype, shape_dims(&var->shape, stage->variant), data,
                       frit_storage_bytes(var->dtype, count));
    free(data);
}

/* Random rows run by themselves, and what is larger than the device has no memory, whatever runs
 * beside it. */
static void play_broken(struct stage *stage, const struct action *action)
{
    frit_tensor *large =
        frit_random_uniform(stage->device, FRIT_F32, FRIT_SHAPE(1 << 14, 1 << 14), 0, 1);

    stage->tensors[action->out[0]] = frit_sum(frit_take(large));
}

static void play_write(struct stage *stage, const struct action *action, uint32_t index)
{
    const struct var *var = &stage->script->vars[action->in[0].var];
    int64_t count = shape_count(&var->shape, stage->variant);
    char *data = data_create(var->dtype, count, action->seed, stage->variant);

    if (frit_write(stage->tensors[action->in[0].var], data, frit_storage_bytes(var->dtype, count)))
        fault(stage, "a write failed", index, stage->tensors[action->in[0].var]);
    free(data);
}

static void read_value(struct stage *stage, uint16_t v, bool take, uint32_t index)
{
    const struct var *var = &stage->script->vars[v];
    struct reading *reading = &stage->play->readings[index];
    frit_tensor *tensor = stage->tensors[v];
    uint64_t bytes = frit_storage_bytes(var->dtype, shape_count(&var->shape, stage->variant));

    reading->data = calloc(1, bytes + 1);
    reading->status = frit_read(take ? frit_take(tensor) : tensor, reading->data, bytes);
    if (reading->status && !var->tainted)
        fault(stage, "a read failed", index, take ? NULL : tensor);
}

static void play_scope(struct actor *actor, const struct action *action)
{
    struct stage *stage = actor->stage;

    if (action->kind == ACT_SCOPE_BEGIN) {
        stage->scopes[action->number] = frit_scope_begin(stage->device);
        actor->open[actor->depth++] = action->number;
        return;
    }
    frit_scope_end(stage->scopes[action->number]);
    while (actor->open[--actor->depth] != action->number)
        ;
}

static void play_action(struct actor *actor, uint32_t index)
{
    struct stage *stage = actor->stage;
    const struct action *action = &stage->script->actions[index];
    uint16_t var = action->in[0].var;

    switch ((enum action_kind)action->kind) {
    case ACT_FROM_HOST:
        play_from_host(stage, action);
        break;
    case ACT_OP:
        play_op(stage, action, index);
        break;
    case ACT_BROKEN:
        play_broken(stage, action);
        break;
    case ACT_READ:
    case ACT_TAKE_READ:
        read_value(stage, var, action->kind == ACT_TAKE_READ, index);
        break;
    case ACT_WRITE:
        play_write(stage, action, index);
        break;
    case ACT_RELEASE:
        frit_release(stage->tensors[var]);
        break;
    case ACT_REF:
        frit_ref(stage->tensors[var]);
        break;
    case ACT_KEEP:
        frit_keep(stage->tensors[var]);
        break;
    case ACT_SCOPE_BEGIN:
    case ACT_SCOPE_END:
        play_scope(actor, action);
        break;
    case ACT_SYNC: /* a broken value is told here too; its readings are compared */
        (void)frit_sync(stage->device);
        break;
    case ACT_SYNC_ALL:
        (void)frit_sync_all(stage->device);
        break;
    case ACT_FLUSH:
        (void)frit_flush(stage->device);
        break;
    case ACT_KINDS:
        break;
    }
}

/* ---- threads ---- */

static void play_phase(struct actor *actor, uint32_t phase)
{
    const struct script *script = actor->stage->script;

    for (uint32_t i = 0; i < script->n_actions; i++) {
        const struct action *action = &script->actions[i];

        if (action->thread == actor->thread && action->phase == phase && !action->off)
            play_action(actor, i);
    }
}

/* The stream gets its ordinal. */
static void first_op(struct stage *stage)
{
    frit_release(frit_full(stage->device, FRIT_F32, FRIT_RANK0, 0));
}

static void end_scopes(struct actor *actor)
{
    if (actor->depth)
        frit_scope_end(actor->stage->scopes[actor->open[0]]);
}

static void *run_thread(void *ctx)
{
    struct actor *actor = ctx;
    struct stage *stage = actor->stage;
    const struct script *script = stage->script;

    for (uint32_t turn = 0; turn < script->n_threads; turn++) {
        if (turn == actor->thread)
            first_op(stage);
        pthread_barrier_wait(&stage->barrier);
    }
    for (uint32_t phase = 0; phase + 1 < script->n_phases; phase++) {
        play_phase(actor, phase);
        pthread_barrier_wait(&stage->barrier);
    }
    end_scopes(actor);
    return NULL;
}

static void run_threads(struct stage *stage)
{
    uint32_t n = stage->script->n_threads, started = 0;
    pthread_t threads[SCRIPT_THREADS];
    struct actor actors[SCRIPT_THREADS];

    pthread_barrier_init(&stage->barrier, NULL, n);
    for (; started < n; started++) {
        actors[started] = (struct actor){.stage = stage, .thread = (uint8_t)started};
        if (pthread_create(&threads[started], NULL, run_thread, &actors[started])) {
            fprintf(stderr, "equiv: no thread could be started\n");
            exit(2); /* those that were wait for it for ever */
        }
    }
    while (started > 0)
        pthread_join(threads[--started], NULL);
    pthread_barrier_destroy(&stage->barrier);
}

static void check_nothing_left(struct stage *stage)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    (void)frit_sync_all(stage->device);
    frit_stats_get(stage->device, &stats);
    if (stats.tensors_now || stats.queued_now || stats.buffers_now) {
        fault(stage, "something is left", stage->script->n_actions, NULL);
        snprintf(stage->play->text, sizeof(stage->play->text),
                 "left at the end: %llu tensors, %llu queued ops, %llu buffers",
                 (unsigned long long)stats.tensors_now, (unsigned long long)stats.queued_now,
                 (unsigned long long)stats.buffers_now);
    }
}

static uint32_t readings_of(const struct script *script)
{
    return script->n_actions + script->n_vars;
}

void play_script(struct play *play, frit_device *device, const struct script *script,
                 uint32_t variant, const uint8_t *left)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    struct actor main_actor = {.stage = stage, .thread = SCRIPT_THREADS};

    *play = (struct play){.readings = calloc(readings_of(script), sizeof(*play->readings))};
    if (!stage || !play->readings) {
        play->fault = "no memory";
        free(stage);
        return;
    }
    stage->play = play;
    stage->device = device;
    stage->script = script;
    stage->variant = variant;
    pthread_mutex_init(&stage->lock, NULL);
    first_op(stage);
    if (script->n_threads)
        run_threads(stage);
    play_phase(&main_actor, script->n_phases - 1);
    end_scopes(&main_actor);
    for (uint16_t v = 0; v < script->n_vars; v++)
        if (left[v])
            read_value(stage, v, false, script->n_actions + v);
    for (uint32_t v = 0; v < script->n_vars; v++)
        for (uint32_t k = 0; k < left[v]; k++)
            frit_release(stage->tensors[v]);
    check_nothing_left(stage);
    pthread_mutex_destroy(&stage->lock);
    free(stage);
}

void play_fini(struct play *play, const struct script *script)
{
    for (uint32_t i = 0; play->readings && i < readings_of(script); i++)
        free(play->readings[i].data);
    free(play->readings);
}
