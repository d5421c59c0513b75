/* SPDX-License-Identifier: Apache-2.0 */
#include "device/prepared.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/limits.h"
#include "load/guard.h"
#include "load/registry.h"
#include "plan/program.h"
#include "search/fuser.h"

void prepared_ref(struct prepared *prepared)
{
    atomic_fetch_add_explicit(&prepared->refs, 1, memory_order_relaxed);
}

static const frit_program_table *table_of(const struct prepared *prepared)
{
    return prepared->program->program.table;
}

static void destroy(struct retired_entry *entry)
{
    struct prepared *p =
        (struct prepared *)(void *)((char *)entry - offsetof(struct prepared, retired));
    const frit_program_table *table = table_of(p);

    if (p->has_spec && FRIT_HAS(table, frit_program_table, spec_release) && table->spec_release)
        table->spec_release(p->program->program.self, &p->spec);
    program_unhold(p->program);
    free(p);
}

void prepared_unref(struct prepared *prepared)
{
    if (!prepared || atomic_fetch_sub_explicit(&prepared->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (!prepared->program) {
        free(prepared);
        return;
    }
    prepared->retired.destroy = destroy;
    retired_add(prepared->device, &prepared->retired);
}

/* ---- the spec ---- */

const frit_output_spec *prepared_output(const struct prepared *prepared, uint32_t output)
{
    static const frit_output_spec dense;
    const frit_launch_spec *spec = &prepared->spec;

    if (output >= spec->n_outputs)
        return &dense;
    return (const frit_output_spec *)(const void *)((const char *)spec->outputs +
                                                    (size_t)output * spec->output_stride);
}

bool prepared_may_alias(const frit_output_spec *output, uint32_t input)
{
    for (uint32_t i = 0; i < output->n_alias; i++) {
        if (output->alias[i] == input)
            return true;
    }
    return false;
}

const frit_derived_spec *prepared_derived(const struct prepared *prepared, uint32_t index)
{
    const frit_launch_spec *spec = &prepared->spec;

    return (const frit_derived_spec *)(const void *)((const char *)spec->derived +
                                                     (size_t)index * spec->derived_stride);
}

static uint64_t generation(const struct prepared *p)
{
    const frit_program_table *table = table_of(p);

    return FRIT_HAS(table, frit_program_table, generation) && table->generation
               ? table->generation(p->program->program.self, p->candidate, &p->variant)
               : 0;
}

bool prepared_is_outdated(const struct prepared *prepared)
{
    return prepared->program && generation(prepared) > prepared->generation;
}

/* ---- checking ---- */

/* Strides that the host can give a tensor of these dims: not negative, and the elements within what
 * can be addressed. */
static frit_status check_strides(const frit_device *device, const frit_arg_sig *arg,
                                 const int64_t *strides, const char *what, frit_err *err)
{
    int64_t high = 0, reach;

    for (uint32_t d = 0; d < arg->rank; d++) {
        if (strides[d] < 0)
            return fail(err, FRIT_INTERNAL, "%s: prepare gives %s a negative stride", device->name,
                        what);
        if (arg->dims[d] < 2)
            continue;
        if (__builtin_mul_overflow(strides[d], arg->dims[d] - 1, &reach) ||
            __builtin_add_overflow(high, reach, &high) || high > INT64_MAX / 64)
            return fail(err, FRIT_INTERNAL, "%s: prepare gives %s strides beyond any memory",
                        device->name, what);
    }
    return FRIT_OK;
}

static frit_status check_output(const frit_device *device, const frit_arg_sig *arg, uint32_t index,
                                const frit_output_spec *out, frit_err *err)
{
    uint64_t have = device->info->align_bytes ? device->info->align_bytes : 64;
    char what[32];

    if (out->align > have || (out->align & (out->align - 1)))
        return fail(err, FRIT_INTERNAL,
                    "%s: output %u requires alignment %llu, the device declared "
                    "%llu",
                    device->name, index, (unsigned long long)out->align, (unsigned long long)have);
    if (!out->strided)
        return FRIT_OK;
    snprintf(what, sizeof(what), "output %u", index);
    return check_strides(device, arg, out->strides, what, err);
}

static frit_status check_arrays(const char *name, const frit_signature *sig,
                                const frit_launch_spec *spec, frit_err *err)
{
    if (spec->n_outputs > sig->n_out)
        return fail(err, FRIT_INTERNAL, "%s: prepare describes %u outputs of %u", name,
                    spec->n_outputs, sig->n_out);
    if ((spec->n_phases && !spec->phases) ||
        (spec->n_outputs && (!spec->outputs || spec->output_stride < sizeof(frit_output_spec))) ||
        (spec->n_derived && (!spec->derived || spec->derived_stride < sizeof(frit_derived_spec))))
        return fail(err, FRIT_INTERNAL, "%s: prepare counts what it does not give", name);
    return FRIT_OK;
}

static frit_status check_outputs(const frit_device *device, const frit_signature *sig,
                                 const struct prepared *p, frit_err *err)
{
    for (uint32_t i = 0; i < p->spec.n_outputs; i++) {
        const frit_output_spec *output = prepared_output(p, i);

        if (sig->args[sig->n_in + i].dtype != FRIT_NO_DTYPE)
            TRY(check_output(device, &sig->args[sig->n_in + i], i, output, err));
        for (uint32_t k = 0; k < output->n_alias; k++) {
            if (!output->alias || output->alias[k] >= sig->n_in)
                return fail(err, FRIT_INTERNAL,
                            "%s: output %u may alias an input that is not there", device->name, i);
        }
    }
    return FRIT_OK;
}

static frit_status check_derived(const char *name, const frit_signature *sig,
                                 const struct prepared *p, frit_err *err)
{
    for (uint32_t i = 0; i < p->spec.n_derived; i++) {
        const frit_derived_spec *derived = prepared_derived(p, i);

        if (!derived->bytes || derived->arg >= sig->n_in ||
            sig->args[derived->arg].dtype == FRIT_NO_DTYPE)
            return fail(err, FRIT_INTERNAL, "%s: prepare derives memory from no operand", name);
    }
    return FRIT_OK;
}

/* A program is not trusted: the host checks that it can provide all that the spec requires. */
static frit_status check(const frit_device *device, const frit_signature *sig,
                         const struct prepared *p, frit_err *err)
{
    const char *name = device->name;
    const frit_launch_spec *spec = &p->spec;
    uint64_t have = device->info->align_bytes ? device->info->align_bytes : 64;

    if (p->status == FRIT_PREPARE_RELAYOUT) {
        if (spec->wanted_arg >= sig->n_in || !spec->wanted_strides ||
            sig->args[spec->wanted_arg].dtype == FRIT_NO_DTYPE)
            return fail(err, FRIT_INTERNAL, "%s: prepare wants a relayout of no operand", name);
        return check_strides(device, &sig->args[spec->wanted_arg], spec->wanted_strides,
                             "an operand", err);
    }
    if (p->variant.n_bytes > sizeof(p->variant.bytes))
        return fail(err, FRIT_INTERNAL, "%s: prepare gives a variant of %u bytes, at most %zu",
                    name, p->variant.n_bytes, sizeof(p->variant.bytes));
    if (spec->workspace_align > have || (spec->workspace_align & (spec->workspace_align - 1)))
        return fail(err, FRIT_INTERNAL,
                    "%s: a workspace requires alignment %llu, the device declared %llu", name,
                    (unsigned long long)spec->workspace_align, (unsigned long long)have);
    TRY(check_arrays(name, sig, spec, err));
    for (uint32_t i = 0; i < spec->n_phases; i++)
        TRY(limits_check_grid(device, spec->phases[i].grid, spec->phases[i].group, "prepare", err));
    TRY(check_derived(name, sig, p, err));
    return check_outputs(device, sig, p, err);
}

static bool may_pass(frit_status status)
{
    return status == FRIT_NO_HOST_MEMORY || status == FRIT_NO_DEVICE_MEMORY ||
           status == FRIT_BUSY || status == FRIT_TIMEOUT || status == FRIT_CANCELLED;
}

/* Keeps why not. */
static void refuse(struct prepared *p, const frit_err *err)
{
    p->status = err->status;
    snprintf(p->text, sizeof(p->text), "%.*s", (int)sizeof(p->text) - 1, err->text);
}

/* Calls prepare and checks what it returned. */
static void call_prepare(struct prepared *p, const struct prepare_query *query, bool *compile)
{
    const frit_program *program = &p->program->program;
    frit_err err = ERR_INIT;

    if (limits_check_args(p->device, query->signature, &err)) {
        refuse(p, &err);
        return;
    }
    p->status = program->table->prepare(program->self, query->candidate, query->signature, &p->spec,
                                        &p->variant, &err);
    if (p->status < 0 || p->status > FRIT_PREPARE_RELAYOUT)
        p->status = fail_from(&err, p->status, "prepare");
    p->has_spec = p->status >= 0;
    p->passing = may_pass(p->status) || p->status == FRIT_INTERNAL;
    if (p->status == FRIT_PREPARE_NEEDS_COMPILE) {
        *compile = true;
        p->status = FRIT_OK;
    }
    if (p->status < 0 || check(p->device, query->signature, p, &err)) {
        refuse(p, &err);
        *compile = false;
        return;
    }
    p->generation = generation(p);
}

struct prepared *prepared_create(frit_device *device, struct program *program,
                                 const struct prepare_query *query, bool *compile)
{
    struct prepared *p = calloc(1, sizeof(*p));

    *compile = false;
    if (!p)
        return NULL;
    atomic_init(&p->refs, 1);
    program_hold(program);
    p->program = program;
    p->device = device;
    p->candidate = query->candidate;
    p->spec.struct_size = sizeof(p->spec);
    p->variant.struct_size = sizeof(p->variant);
    call_prepare(p, query, compile);
    return p;
}

frit_status prepared_busy(struct prepared **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    **out = (struct prepared){
        .refs = 1, .status = FRIT_BUSY, .passing = true, .text = "it is being compiled"};
    return FRIT_OK;
}

/* ---- compiling ---- */

/* The plugin whose program it is. */
static const char *supplier(const struct prepared *p)
{
    return p->program->fuser == PROGRAM_OF_OP ? p->device->entry->plugin->path
                                              : p->device->fusers->list[p->program->fuser].plugin;
}

static frit_status compile(const struct prepared *p, const frit_cancel *cancel, frit_err *err)
{
    const frit_program *program = &p->program->program;
    struct guard guard;
    frit_status st;

    if (!FRIT_HAS(program->table, frit_program_table, compile) || !program->table->compile)
        return fail(err, FRIT_INTERNAL,
                    "%s: prepare wants a compile that the program does not have", p->device->name);
    atomic_fetch_add(&p->device->count.compiles, 1);
    guard_enter_beside(&guard, supplier(p), "compile");
    st = fail_from(err,
                   program->table->compile(program->self, p->candidate, &p->variant, cancel, err),
                   "compile");
    guard_leave(&guard);
    return st;
}

void prepared_compile(struct prepared *p, const frit_cancel *cancel)
{
    frit_err err = ERR_INIT;

    if (compile(p, cancel, &err))
        refuse(p, &err);
    p->passing = may_pass(p->status);
}
