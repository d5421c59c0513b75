/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a script, and what each action does.
 *
 * A script's threads begin one after the other, so that their streams get the same ordinals in
 * every play; they meet at the end of each phase.  The main thread plays the last phase when they
 * are gone. */
#include "attrs.h"
#include "data.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frit/inspect.h>

struct stage {
    struct play *play;
    frit_device *device;
    const struct script *script;
    const struct play_params *params;
    pthread_barrier_t barrier;
    pthread_mutex_t lock; /* of the fault */
    frit_tensor *tensors[SCRIPT_VARS];
    frit_tensor *inputs[SCRIPT_ACTIONS]; /* laid out, of those that come from the host */
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

static uint32_t dtype_of(const struct stage *stage, uint16_t v)
{
    return data_dtype(stage->script, stage->params, v);
}

/* ---- ops ---- */

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

/* Operand `i`, as a scalar. */
static frit_scalar scalar_at(const struct stage *stage, const struct action *action, uint32_t i)
{
    uint32_t dtype = scalar_dtype(stage->script, action);
    bool divides = stage->script->well_conditioned && action->op == FRIT_OP_div;

    if (action->scalars == SCALARS_ONE)
        return dtype == FRIT_BOOL || dtype == FRIT_I32 ? frit_scalar_i(1) : frit_scalar_f(1);
    if (action->scalars == SCALARS_POWERS)
        return frit_scalar_f(1.0 /
                             (double)(1u << data_value_seed(action->seed + i, stage->params) % 6));
    return data_scalar(dtype, data_value_seed(action->seed + i, stage->params) >> 7, divides);
}

/* Whether floats of the value are to be disturbed at this op. */
static bool is_disturbed(const struct stage *stage, const struct action *action, uint16_t v,
                         bool output)
{
    enum rounding rounding = rounding_of(action);

    return stage->params->precision == PLAY_DISTURBED && v != NO_VAR &&
           dtype_of(stage, v) == FRIT_F64 &&
           (output ? rounding != OP_KEEPS || action->op == FRIT_OP_cast : rounding == OP_FOLDS);
}

static uint64_t errors_of(const struct stage *stage, uint32_t seed)
{
    return data_value_seed(seed, stage->params) + stage->params->errors;
}

/* A disturbed operand is another tensor, so that the value is released here where it is taken. */
static frit_tensor *operand_of(struct stage *stage, const struct action *action, uint32_t i)
{
    const struct operand *operand = &action->in[i];
    frit_tensor *tensor = stage->tensors[operand->var];

    if (is_disturbed(stage, action, operand->var, false))
        return frit_take(data_disturb(tensor, stage->script->vars[operand->var].dtype,
                                      errors_of(stage, action->seed ^ i << 8)));
    return operand->take ? frit_take(tensor) : tensor;
}

static void release_disturbed(struct stage *stage, const struct action *action)
{
    for (uint32_t i = 0; i < action->n_in; i++) {
        const struct operand *operand = &action->in[i];
        bool again = false;

        for (uint32_t j = 0; j < i; j++)
            again |= action->in[j].take && action->in[j].var == operand->var;
        if (operand->take && !again && is_disturbed(stage, action, operand->var, false))
            frit_release(stage->tensors[operand->var]);
    }
}

/* What an error of the mean inside of layer_norm does to its result: errors of operands say nothing
 * of it where they cancel out, as with two elements.  NULL: nothing. */
static frit_tensor *error_of_mean(struct stage *stage, const struct action *action)
{
    uint16_t v = action->in[0].var;
    frit_tensor *x, *mean, *error, *deviation;

    if (action->op != FRIT_OP_layer_norm || !is_disturbed(stage, action, v, false))
        return NULL;
    x = stage->tensors[v];
    mean = frit_mean(x, .axes = attrs_axes(action), .keep = true);
    error = data_disturb(mean, stage->script->vars[v].dtype, errors_of(stage, ~action->seed));
    error = frit_sub(frit_take(error), frit_take(mean));
    deviation = frit_add_f(frit_take(frit_var(x, .axes = attrs_axes(action), .keep = true)), 1e-5);
    error = frit_div(frit_take(error), frit_take(frit_sqrt(frit_take(deviation))));
    if (action->in[1].var != NO_VAR)
        error = frit_mul(frit_take(error), stage->tensors[action->in[1].var]);
    return error;
}

/* The value that the play uses for result `k`, from the tensor that the op returned. */
static frit_tensor *result_of(struct stage *stage, const struct action *action, uint32_t k,
                              frit_tensor *tensor)
{
    uint16_t v = action->out[k];
    uint32_t dtype = stage->script->vars[v].dtype;
    frit_tensor *result;

    if (attrs_random(action->op) && dtype_of(stage, v) != dtype)
        return frit_cast(frit_take(tensor), FRIT_F64);
    if (!is_disturbed(stage, action, v, true))
        return tensor;
    result = data_disturb(tensor, dtype, errors_of(stage, ~action->seed - k));
    if (action->op == FRIT_OP_log_softmax) { /* a logarithm of what may be close to 1 */
        frit_tensor *errors = data_errors(tensor, dtype, 0, errors_of(stage, action->seed ^ 1));

        result = frit_add(frit_take(result), frit_take(errors));
    }
    frit_release(tensor);
    return result;
}

static void play_op(struct stage *stage, const struct action *action, uint32_t index)
{
    frit_input in[SCRIPT_INPUTS] = {{0}};
    frit_tensor *out[SCRIPT_OUTPUTS] = {NULL};
    frit_tensor *error = error_of_mean(stage, action);
    union attrs attrs;
    frit_call call = {.struct_size = sizeof(call),
                      .op = action->op,
                      .n_in = action->n_in,
                      .in = in,
                      .attrs = attrs_of(stage->script, stage->params, action, &attrs)};

    for (uint32_t i = 0; i < action->n_in; i++) {
        if (action->in[i].var != NO_VAR)
            in[i].tensor = operand_of(stage, action, i);
        else if (action_has_scalars(action))
            in[i].scalar = scalar_at(stage, action, i);
    }
    frit_op(stage->device, &call, out, action->n_out);
    for (uint32_t k = 0; k < action->n_out; k++) {
        if (frit_tensor_status(out[k]) == FRIT_INVALID)
            fault(stage, "a call was refused", index, out[k]);
        stage->tensors[action->out[k]] = result_of(stage, action, k, out[k]);
    }
    if (error) {
        frit_tensor **result = &stage->tensors[action->out[0]];

        *result = frit_add(frit_take(*result), frit_take(error));
    }
    release_disturbed(stage, action);
}

/* ---- the other actions ---- */

static char *data_of(const struct stage *stage, const struct action *action, uint16_t v,
                     uint64_t *bytes)
{
    const struct var *var = &stage->script->vars[v];
    int64_t count = shape_count(&var->shape, stage->params->variant);

    *bytes = frit_storage_bytes(dtype_of(stage, v), count);
    return data_create(var->dtype, count, action->seed, stage->script, stage->params);
}

static frit_dims dims_of(const struct stage *stage, uint16_t v)
{
    return shape_dims(&stage->script->vars[v].shape, stage->params->variant);
}

/* Lays out what will come from the host, before the script begins. */
static void lay_out(struct stage *stage)
{
    for (uint32_t i = 0; i < stage->script->n_actions; i++) {
        const struct action *action = &stage->script->actions[i];
        uint16_t v = action->out[0];
        uint64_t bytes;
        char *data;

        if (action->kind != ACT_FROM_HOST || action->off)
            continue;
        data = data_of(stage, action, v, &bytes);
        stage->inputs[i] =
            data_make_tensor(stage->device, dtype_of(stage, v), dims_of(stage, v), data,
                             data_variant_seed(action->seed + 1, stage->params) >> 9);
        free(data);
    }
}

static void play_from_host(struct stage *stage, const struct action *action, uint32_t index)
{
    uint16_t v = action->out[0];
    frit_dims dims = dims_of(stage, v);
    uint64_t bytes;
    char *data;

    if (stage->inputs[index]) { /* a view, so that it is made by this thread, in this scope */
        stage->tensors[v] = frit_expand(frit_take(stage->inputs[index]), dims);
        return;
    }
    data = data_of(stage, action, v, &bytes);
    stage->tensors[v] = frit_from_host(stage->device, dtype_of(stage, v), dims, data, bytes);
    free(data);
}

/* Random ops run by themselves, and what is larger than the device has no memory, whatever runs
 * beside it. */
static void play_broken(struct stage *stage, const struct action *action)
{
    frit_tensor *large =
        frit_random_uniform(stage->device, FRIT_F32, FRIT_SHAPE(1 << 20, 1 << 20), 0, 1);
    frit_tensor *sum = frit_sum(frit_take(large));

    if (data_is_wide(FRIT_F32, stage->params))
        sum = frit_cast(frit_take(sum), FRIT_F64);
    stage->tensors[action->out[0]] = sum;
}

static void play_write(struct stage *stage, const struct action *action, uint32_t index)
{
    frit_tensor *tensor = stage->tensors[action->in[0].var];
    uint64_t bytes;
    char *data = data_of(stage, action, action->in[0].var, &bytes);

    if (frit_write(tensor, data, bytes, NULL))
        fault(stage, "a write failed", index, tensor);
    free(data);
}

static void read_value(struct stage *stage, uint16_t v, bool take, uint32_t index)
{
    const struct var *var = &stage->script->vars[v];
    struct reading *reading = &stage->play->readings[index];
    frit_tensor *tensor = stage->tensors[v];
    uint64_t bytes =
        frit_storage_bytes(dtype_of(stage, v), shape_count(&var->shape, stage->params->variant));

    reading->data = calloc(1, bytes + 1);
    reading->status = frit_read(take ? frit_take(tensor) : tensor, reading->data, bytes, NULL);
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
        play_from_host(stage, action, index);
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
    case ACT_SYNC: /* fails for a broken value, too; the readings of the value are compared */
        (void)frit_sync(stage->device, NULL);
        break;
    case ACT_SYNC_ALL:
        (void)frit_sync_all(stage->device, NULL);
        break;
    case ACT_FLUSH:
        (void)frit_flush(stage->device, NULL);
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

    (void)frit_sync_all(stage->device, NULL);
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
                 const struct play_params *params, const uint8_t *left)
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
    stage->params = params;
    pthread_mutex_init(&stage->lock, NULL);
    if (params->layouts)
        lay_out(stage);
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
