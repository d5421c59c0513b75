/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a program answers to a signature: a candidate takes any layout, or dense operands where its
 * flags say so, if the driver accepts them; the driver's compiler may add to the spec. */
#include "prepare.h"

#include <string.h>

#include "kit/code.h"
#include "kit/inside.h"

/* Row-major strides of the argument's dims; whether it lies so. */
static bool is_dense(const frit_arg_sig *arg, int64_t *strides)
{
    int64_t step = 1;
    bool dense = true;

    for (uint32_t d = arg->rank; d-- > 0;) {
        strides[d] = step;
        dense &= arg->dims[d] == 1 || arg->strides[d] == step;
        step *= arg->dims[d];
    }
    return dense;
}

void *kit_spec_alloc(const struct kit_program *program, frit_launch_spec *spec, uint64_t bytes)
{
    struct choice *choice = (struct choice *)(uintptr_t)program;

    return specs_alloc(&choice->program->specs, spec, bytes);
}

/* The first operand that must be laid out anew, n_in if none. */
static uint32_t first_strided(const frit_signature *sig, int64_t *strides)
{
    uint32_t i = 0;

    while (i < sig->n_in && (frit_arg_sig_at(sig, i)->dtype == FRIT_NO_DTYPE ||
                             is_dense(frit_arg_sig_at(sig, i), strides)))
        i++;
    return i;
}

/* The host lays operands out anew by this row. */
static bool has_copy(const struct kit_driver *driver)
{
    for (uint32_t i = 0; i < driver->n_rows; i++)
        if (driver->rows[i].op == FRIT_OP_copy)
            return true;
    return false;
}

/* Dense operands, as far as the flags want them. */
static frit_status lay_out(const struct choice *choice, const frit_signature *sig,
                           frit_launch_spec *out, frit_err *err)
{
    const struct kit_instance *instance = choice->pub.device->instance;
    int64_t dense[FRIT_MAX_RANK] = {0}, *wanted;
    uint32_t arg;

    if (!(choice->flags & KIT_DENSE))
        return FRIT_OK;
    arg = first_strided(sig, dense);
    if (arg == sig->n_in)
        return FRIT_OK;
    if (!has_copy(instance->driver))
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED,
                         "%s wants dense operands, and there is no row `copy`",
                         choice->program->name);
    wanted = kit_spec_alloc(&choice->pub, out, sizeof dense);
    if (!wanted)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a launch spec");
    memcpy(wanted, dense, sizeof dense);
    out->wanted_arg = arg;
    out->wanted_strides = wanted;
    return FRIT_PREPARE_RELAYOUT;
}

/* What the driver says, and whether the code is there. */
static frit_status specialise(struct choice *choice, const frit_signature *sig,
                              frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    const struct kit_compiler *compiler = choice->pub.device->instance->driver->compiler;
    frit_status status = FRIT_OK;

    if (!(choice->flags & KIT_COMPILED))
        return FRIT_OK;
    if (compiler->prepare)
        status = compiler->prepare(&choice->pub, sig, out, variant, err);
    if (status)
        return status;
    return codes_find(&choice->codes, variant) ? FRIT_OK : FRIT_PREPARE_NEEDS_COMPILE;
}

static frit_status check(const struct program *program, uint32_t candidate,
                         const frit_signature *sig, frit_err *err)
{
    const struct plug *plug = &program->device->instance->plug;
    uint32_t n_in = program->block.n_in, n_out = program->block.n_args - n_in;

    if (candidate >= program->n_choices || sig->n_in != n_in || sig->n_out != n_out)
        return plug_fail(
            plug, err, FRIT_INVALID,
            "%s has candidates up to %u, %u inputs, %u outputs; requested: candidate %u, %u, %u",
            program->name, program->n_choices - 1, n_in, n_out, candidate, sig->n_in, sig->n_out);
    if (sig->flags & FRIT_MUST_UNDERSTAND)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "unknown flags in the signature of %s",
                         program->name);
    return FRIT_OK;
}

static frit_status check_accepted(const struct choice *choice, const frit_signature *sig,
                                  frit_err *err)
{
    const struct kit_candidate *own = choice->pub.candidate;

    if (!own || !own->accepts || own->accepts(&choice->pub, sig))
        return FRIT_OK;
    return plug_fail(&choice->pub.device->instance->plug, err, FRIT_UNSUPPORTED,
                     "%s: candidate %.*s does not take such operands", choice->program->name,
                     (int)own->identity.len, own->identity.ptr);
}

frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct program *program = self;
    frit_status status = check(program, candidate, sig, err), aliases;
    struct choice *choice = &program->choices[status ? 0 : candidate];

    variant->n_bytes = 0;
    if (!status)
        status = check_accepted(choice, sig, err);
    if (!status)
        status = lay_out(choice, sig, out, err);
    if (!status)
        status = specialise(choice, sig, out, variant, err);
    if ((status == FRIT_OK || status == FRIT_PREPARE_NEEDS_COMPILE) &&
        choice->flags & KIT_INPLACE) {
        aliases = specs_alias(&program->specs, sig, out, err);
        status = aliases ? aliases : status;
    }
    if (status < 0)
        specs_release(&program->specs, out);
    return status;
}
