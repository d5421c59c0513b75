/* SPDX-License-Identifier: Apache-2.0 */
#include "run/choice.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/programs.h"
#include "graph/decompose/decompose.h"
#include "plan/automaton.h"
#include "record/context.h"
#include "run/explore.h"
#include "run/frame.h"
#include "run/launch.h"
#include "run/launch_parts.h"
#include "run/measure.h"
#include "run/run.h"
#include "run/trial_graph.h"
#include "run/trial_run.h"
#include "tune/store.h"

enum { MOST = FRIT_OP_MAX_IN + FRIT_OP_MAX_OUT, MIN_SAMPLES = 5 };

/* ---- which ops ---- */

static bool has_other_form(const struct program_call *call)
{
    const struct op_call checked = {.op = call->op,
                                    .n_in = call->n_in,
                                    .in = (struct op_input *)(uintptr_t)call->in,
                                    .attrs = (void *)(uintptr_t)call->attrs};

    return decompose_fits_other(&checked);
}

/* Elementwise rows are taken apart by fusers, or gain nothing. */
static bool has_two_forms(const struct program_call *call)
{
    const frit_op_info *row = op_row(call->op);

    switch (row->cls) {
    case FRIT_CLASS_VIEW:
    case FRIT_CLASS_COPY:
    case FRIT_CLASS_CAST:
    case FRIT_CLASS_INIT:
    case FRIT_CLASS_RANDOM:
    case FRIT_CLASS_MAP:
    case FRIT_CLASS_COLLECTIVE:
        return false;
    default:
        return call->n_in && call->n_in <= FRIT_OP_MAX_IN &&
               !(row->traits & (FRIT_OP_ORDERED | FRIT_OP_SEEDED)) &&
               (decompose_has(call->op, call->n_in) || has_other_form(call));
    }
}

static uint32_t class_of(const frit_device *device, uint32_t context)
{
    const uint32_t allowed = context_numeric_class(context);

    return allowed < device->config.numeric_class ? allowed : device->config.numeric_class;
}

/* ---- keys ---- */

/* What is decided for: the op, and its types as tune_key sees those of a launch. */
struct choice_key {
    uint8_t digest[TUNE_DIGEST];
    frit_arg_sig args[MOST];
    frit_signature signature;
    struct str bytes;
};

static void sign(const struct op_type *type, frit_arg_sig *out)
{
    struct layout layout;

    if (type->dtype == FRIT_NO_DTYPE)
        return;
    layout_dense(type, &layout);
    out->dtype = type->dtype;
    out->rank = type->rank;
    memcpy(out->dims, type->dims, type->rank * sizeof(*out->dims));
    memcpy(out->strides, layout.strides, type->rank * sizeof(*out->strides));
}

/* The form has numbers of a row, which are the same everywhere, or a custom op's name. */
static void digest(const struct op_form *form, uint8_t out[TUNE_DIGEST])
{
    const frit_op_desc *desc = &form->desc;
    const uint32_t head[] = {desc->name.len ? 0 : desc->id, desc->rev, desc->n_in, desc->n_out};
    struct str text = {0};
    XXH128_canonical_t hash;

    str_addf(&text, "choice ");
    str_add(&text, desc->name.ptr, desc->name.len);
    str_add(&text, (const char *)head, sizeof(head));
    str_add(&text, (const char *)form->operands,
            (desc->n_in + desc->n_out) * sizeof(*form->operands));
    str_add(&text, (const char *)form->attrs, (size_t)form->attrs[0]);
    XXH128_canonicalFromHash(&hash, XXH3_128bits(text.text ? text.text : "", text.length));
    memcpy(out, hash.digest, TUNE_DIGEST);
    str_fini(&text);
}

/* False: there is no memory.  `key->bytes` is to be freed. */
static bool make_key(const frit_device *device, const struct program_call *call,
                     uint32_t numeric_class, struct choice_key *key)
{
    struct op_form form;

    memset(key, 0, sizeof(*key));
    if (op_form_init(call, &form, NULL))
        return false;
    digest(&form, key->digest);
    op_form_fini(&form);
    for (uint32_t i = 0; i < call->n_in; i++)
        if (call->in[i].kind == FRIT_OPERAND_TENSOR)
            sign(&call->in[i].type, &key->args[i]);
    for (uint32_t k = 0; k < call->n_out; k++)
        sign(&call->out[k], &key->args[call->n_in + k]);
    key->signature = (frit_signature){.struct_size = sizeof(key->signature),
                                      .n_in = call->n_in,
                                      .n_out = call->n_out,
                                      .arg_stride = sizeof(*key->args),
                                      .index_width = 64,
                                      .args = key->args};
    tune_key(key->digest, &key->signature, device->config.tune.level, numeric_class, &key->bytes);
    return !key->bytes.failed;
}

/* ---- what was decided ---- */

static bool is_decomposed(const struct tune_record *record)
{
    return record->n_candidates && record->candidates[0].state == TUNE_RIGHT &&
           strcmp(record->candidates[0].identity, TUNE_DECOMPOSED) == 0;
}

bool choice_is_decomposed(frit_device *device, const struct program_call *call, uint32_t context)
{
    const struct tune_config *config = &device->config.tune;
    const uint32_t numeric_class = class_of(device, context);
    const bool forced = config->force && strcmp(config->force, TUNE_DECOMPOSED) == 0;
    const struct tune_record *record = NULL;
    struct choice_key key;

    if ((!forced && (config->level == TUNE_OFF || tune_store_is_empty(device->tune_store))) ||
        numeric_class < FRIT_NUMERIC_REORDERED || !has_two_forms(call))
        return false;
    if (forced)
        return true;
    if (make_key(device, call, numeric_class, &key))
        record = tune_store_find(device->tune_store, key.bytes.text, key.bytes.length);
    str_fini(&key.bytes);
    return record && is_decomposed(record);
}

/* ---- measuring ---- */

/* The op over inputs and outputs of its own, which are the first values. */
static frit_status add_values(const struct graph *from, const struct graph_op *op,
                              struct graph_operand *in, struct graph_op *to, struct graph *graph,
                              frit_err *err)
{
    *to = *op;
    to->in = in;
    for (uint32_t i = 0; i < op->n_in; i++) {
        in[i] = op->in[i];
        if (in[i].kind == FRIT_OPERAND_TENSOR)
            TRY(graph_add_value(graph, GRAPH_INPUT, &from->values[in[i].value].type, &in[i].value,
                                err));
    }
    for (uint32_t k = 0; k < op->n_out; k++)
        if (op->out[k] != GRAPH_NO_VALUE)
            TRY(graph_add_value(graph, GRAPH_RESULT, &from->values[op->out[k]].type, &to->out[k],
                                err));
    return FRIT_OK;
}

static frit_status create_form(const struct launch *l, uint32_t number, bool expanded,
                               struct launch_trial **out, frit_err *err)
{
    const struct graph *from = l->frame->graph;
    const struct graph_op *op = &from->ops[number];
    struct explorer explorer = {0};
    struct graph_operand in[FRIT_OP_MAX_IN];
    struct graph_op own;
    frit_status st = add_values(from, op, in, &own, &explorer.graph, err);

    *out = NULL;
    if (!st)
        st = explorer_add(&explorer, l->frame->device, &own, expanded, err);
    if (!st)
        st = trial_create_graph(l->frame->device,
                                &(struct trial_graph){.label = op_row(op->op)->name,
                                                      .graph = &explorer.graph,
                                                      .out = own.out,
                                                      .n_out = op->n_out,
                                                      .context = l->frame->ops[number].context},
                                out, err);
    explorer_fini(&explorer);
    return st;
}

/* One trial, whose TRIAL_DECOMPOSED is the other's. */
static frit_status create_trial(const struct launch *l, uint32_t number, struct launch_trial **out,
                                frit_err *err)
{
    struct launch_trial *native, *decomposed;
    frit_status st = create_form(l, number, false, &native, err);

    *out = NULL;
    if (st)
        return st;
    st = create_form(l, number, true, &decomposed, err);
    if (st) {
        trial_destroy(native);
        return st;
    }
    native->decomposed = decomposed;
    *out = native;
    return FRIT_OK;
}

static void measure_within(struct measure *m, uint64_t budget_ns)
{
    measure_keep(m, measure_run(m, clock_ns() + budget_ns));
}

static void measure_forms(const struct launch *l, uint32_t number, const struct choice_key *key)
{
    static const uint32_t list[] = {TRIAL_NATIVE, TRIAL_DECOMPOSED};
    frit_device *device = l->frame->device;
    const char *name = op_row(l->frame->graph->ops[number].op)->name;
    struct measure_params params = {
        .digest = key->digest,
        .key = key->bytes.text,
        .key_bytes = key->bytes.length,
        .list = list,
        .n = 2,
        .checks = true,
        .rules = {.min_samples = MIN_SAMPLES, .max_samples = CONTEST_SAMPLES}};
    struct launch_trial *trial;
    struct measure *m = NULL;
    struct str what = {0};
    frit_err err = ERR_INIT;
    frit_status st = create_trial(l, number, &trial, &err);

    str_addf(&what, "form: %s ", name);
    tune_key_print(&key->signature, &what);
    params.what = what.text ? what.text : "";
    if (!st)
        st = measure_create(trial, &params, &m, &err);
    if (st)
        log_write(FRIT_LOG_DEBUG, "tune", "%s: the forms of %s are not measured: %s", device->name,
                  name, err.text);
    else
        measure_within(m, device->config.tune.budget_ms * 1000000);
    measure_destroy(m);
    str_fini(&what);
}

/* Plans are looked for anew where the op is expanded from now on. */
static void apply(frit_device *device, const struct tune_record *record)
{
    if (record && is_decomposed(record))
        automaton_renew(device->automaton);
}

/* Once for all threads and processes; what another process has found is here after a claim. */
static void measure_once(const struct launch *l, uint32_t number, const struct choice_key *key)
{
    frit_device *device = l->frame->device;
    const struct str *bytes = &key->bytes;
    const struct tune_record *record;
    uint64_t begun;

    if (!tune_store_claim(device->tune_store, bytes->text, bytes->length)) {
        apply(device, tune_store_find(device->tune_store, bytes->text, bytes->length));
        return;
    }
    begun = timeline_begin();
    measure_forms(l, number, key);
    record = tune_store_find(device->tune_store, bytes->text, bytes->length);
    if (record)
        atomic_fetch_add(&device->count.tuned, 1);
    apply(device, record);
    timeline_end(begun, "tune", str_of(op_row(l->frame->graph->ops[number].op)->name));
    tune_store_release(device->tune_store, bytes->text, bytes->length);
}

static void measure_op(const struct launch *l, uint32_t number)
{
    frit_device *device = l->frame->device;
    const struct graph *graph = l->frame->graph;
    const struct graph_op *op = &graph->ops[number];
    const uint32_t numeric_class = class_of(device, l->frame->ops[number].context);
    struct op_input in[FRIT_OP_MAX_IN];
    struct op_type out[FRIT_OP_MAX_OUT];
    struct program_call call;
    struct choice_key key;
    bool has = false;

    if (numeric_class < FRIT_NUMERIC_REORDERED || op->n_in > FRIT_OP_MAX_IN)
        return;
    call = program_call_of(graph, op, in, out);
    if (!has_two_forms(&call) || programs_have(device, &call, &has, NULL) || !has)
        return;
    if (make_key(device, &call, numeric_class, &key) &&
        !tune_store_find(device->tune_store, key.bytes.text, key.bytes.length))
        measure_once(l, number, &key);
    str_fini(&key.bytes);
}

void choice_measure(const struct launch *l)
{
    if (l->frame->device->config.decompose)
        return;
    for (uint32_t i = 0; i < l->call->n_ops; i++)
        measure_op(l, l->call->ops[i]);
}
