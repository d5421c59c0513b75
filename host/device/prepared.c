/* SPDX-License-Identifier: Apache-2.0 */
#include "device/prepared.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"

void prepared_ref(struct prepared *prepared)
{
    atomic_fetch_add_explicit(&prepared->refs, 1, memory_order_relaxed);
}

void prepared_unref(struct prepared *prepared)
{
    if (prepared && atomic_fetch_sub_explicit(&prepared->refs, 1, memory_order_acq_rel) == 1)
        free(prepared);
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

    if (out->align > have)
        return fail(err, FRIT_INTERNAL,
                    "%s: output %u asks for alignment %llu, the device declared "
                    "%llu",
                    device->name, index, (unsigned long long)out->align, (unsigned long long)have);
    if (!(out->flags & 1))
        return FRIT_OK;
    snprintf(what, sizeof(what), "output %u", index);
    return check_strides(device, arg, out->strides, what, err);
}

/* A program is not trusted: what it asks for must be something the host can give. */
static frit_status check(const frit_device *device, const frit_signature *sig,
                         const struct prepared *p, frit_err *err)
{
    const char *name = device->name;
    const frit_launch_spec *spec = &p->spec;
    uint64_t have = device->info->align_bytes ? device->info->align_bytes : 64;

    if (p->status == FRIT_PREPARE_RELAYOUT) {
        if (spec->wanted_arg >= sig->n_in || sig->args[spec->wanted_arg].dtype == FRIT_NO_DTYPE)
            return fail(err, FRIT_INTERNAL, "%s: prepare wants a relayout of no operand", name);
        return check_strides(device, &sig->args[spec->wanted_arg], spec->wanted_strides,
                             "an operand", err);
    }
    if (p->status > 0)
        return fail(err, FRIT_INTERNAL, "%s: prepare answered %d, which means nothing", name,
                    p->status);
    if (spec->n_derived > FRIT_MAX_DERIVED)
        return fail(err, FRIT_INTERNAL, "%s: prepare asks for %u derived memories, at most %d",
                    name, spec->n_derived, FRIT_MAX_DERIVED);
    if (p->variant.n_bytes > sizeof(p->variant.bytes))
        return fail(err, FRIT_INTERNAL, "%s: prepare gives a variant of %u bytes, at most %zu",
                    name, p->variant.n_bytes, sizeof(p->variant.bytes));
    if (spec->workspace_align > have)
        return fail(err, FRIT_INTERNAL,
                    "%s: a workspace asks for alignment %llu, the device declared %llu", name,
                    (unsigned long long)spec->workspace_align, (unsigned long long)have);
    for (uint32_t i = 0; i < spec->n_aliases; i++) {
        for (uint32_t k = 0; k < spec->aliases[i].n_inputs; k++) {
            if (spec->aliases[i].inputs[k] >= sig->n_in)
                return fail(err, FRIT_INTERNAL, "%s: output %u may take the memory of no input",
                            name, i);
        }
    }
    for (uint32_t i = 0; i < sig->n_out && i < FRIT_MAX_OUTPUTS; i++) {
        if (sig->args[sig->n_in + i].dtype != FRIT_NO_DTYPE)
            TRY(check_output(device, &sig->args[sig->n_in + i], i, &spec->outputs[i], err));
    }
    return FRIT_OK;
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

struct prepared *prepared_create(frit_device *device, const frit_program *program,
                                 const struct prepare_query *asked, bool *compile)
{
    struct prepared *p = calloc(1, sizeof(*p));
    frit_err err = ERR_INIT;

    *compile = false;
    if (!p)
        return NULL;
    atomic_init(&p->refs, 1);
    p->spec.struct_size = sizeof(p->spec);
    p->variant.struct_size = sizeof(p->variant);
    p->status = program->table->prepare(program->self, asked->candidate, asked->signature, &p->spec,
                                        &p->variant, &err);
    p->passing = may_pass(p->status) || p->status == FRIT_INTERNAL;
    fail_from(&err, p->status, "prepare");
    if (p->status == FRIT_PREPARE_NEEDS_COMPILE) {
        *compile = true;
        p->status = FRIT_OK;
    }
    if (p->status < 0 || check(device, asked->signature, p, &err)) {
        refuse(p, &err);
        *compile = false;
    }
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

static frit_status compile(frit_device *device, const frit_program *program, uint32_t candidate,
                           const frit_variant *variant, const frit_cancel *cancel, frit_err *err)
{
    if (!FRIT_HAS(program->table, frit_program_table, compile) || !program->table->compile)
        return fail(err, FRIT_INTERNAL,
                    "%s: prepare wants a compile that the program does not have", device->name);
    atomic_fetch_add(&device->count.compiles, 1);
    return fail_from(err, program->table->compile(program->self, candidate, variant, cancel, err),
                     "compile");
}

void prepared_compile(frit_device *device, const frit_program *program, uint32_t candidate,
                      struct prepared *p, const frit_cancel *cancel)
{
    frit_err err = ERR_INIT;

    if (compile(device, program, candidate, &p->variant, cancel, &err))
        refuse(p, &err);
    p->passing = may_pass(p->status);
}
