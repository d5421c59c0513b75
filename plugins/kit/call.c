/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A launch as the functions of rows and fusers read it. */
#include <math.h>
#include <string.h>

#include "kit/code.h"
#include "kit/inside.h"
#include "kit/program.h"

static const struct kit_tensor *argument(const struct kit_call *call, uint16_t value)
{
    const struct kit_tensor *tensor;

    if (value == KIT_NONE || call->block->values[value].arg == KIT_NONE)
        return NULL;
    tensor = &call->args[call->block->values[value].arg];
    return tensor->dtype != FRIT_NO_DTYPE ? tensor : NULL;
}

const struct kit_tensor *kit_in(const struct kit_call *call, uint32_t op, uint32_t i)
{
    return argument(call, call->block->ops[op].in_value[i]);
}

const struct kit_tensor *kit_out(const struct kit_call *call, uint32_t op, uint32_t k)
{
    return argument(call, call->block->ops[op].out_value[k]);
}

/* ---- scalars ---- */

static const frit_scalar *scalar_of(const struct kit_call *call, uint32_t op, uint32_t i)
{
    const struct kit_op *own = &call->block->ops[op];
    uint32_t slot = own->first_scalar;

    for (uint32_t before = 0; before < i; before++)
        slot += own->in[before].kind == FRIT_OPERAND_SCALAR;
    return &call->launch->scalars[slot];
}

static double as_real(const frit_scalar *scalar)
{
    double value;

    if (scalar->kind == FRIT_SCALAR_U64)
        return (double)scalar->bits;
    if (scalar->kind == FRIT_SCALAR_I64)
        return (double)(int64_t)scalar->bits;
    memcpy(&value, &scalar->bits, sizeof value);
    return value;
}

double kit_scalar(const struct kit_call *call, uint32_t op, uint32_t i)
{
    return as_real(scalar_of(call, op, i));
}

int64_t kit_scalar_i64(const struct kit_call *call, uint32_t op, uint32_t i)
{
    const frit_scalar *scalar = scalar_of(call, op, i);
    double real;

    if (scalar->kind == FRIT_SCALAR_I64)
        return (int64_t)scalar->bits;
    if (scalar->kind == FRIT_SCALAR_U64)
        return scalar->bits < INT64_MAX ? (int64_t)scalar->bits : INT64_MAX;
    real = as_real(scalar);
    if (isnan(real))
        return 0;
    if (real <= -0x1p63)
        return INT64_MIN;
    return real < 0x1p63 ? (int64_t)real : INT64_MAX;
}

uint64_t kit_scalar_u64(const struct kit_call *call, uint32_t op, uint32_t i)
{
    const frit_scalar *scalar = scalar_of(call, op, i);
    double real;

    if (scalar->kind == FRIT_SCALAR_U64)
        return scalar->bits;
    if (scalar->kind == FRIT_SCALAR_I64)
        return (int64_t)scalar->bits > 0 ? scalar->bits : 0;
    real = as_real(scalar);
    if (!(real > 0))
        return 0;
    return real < 0x1p64 ? (uint64_t)real : UINT64_MAX;
}

/* ---- tensors ---- */

int64_t kit_stride(const struct kit_tensor *tensor, uint32_t rank, uint32_t d)
{
    uint32_t own = d + tensor->rank - rank; /* wraps where the tensor has no such dim */

    return own < tensor->rank && tensor->dims[own] != 1 ? tensor->strides[own] : 0;
}

void kit_walk(const struct kit_call *call, struct walk *walk)
{
    const struct kit_tensor *space = &call->args[call->block->n_in];
    int64_t strides[KIT_ARGS];

    _Static_assert((int)KIT_ARGS <= (int)WALK_OPERANDS, "all arguments are walked together");
    walk_init(walk, WALK_ROWS, call->block->n_args);
    for (uint32_t d = 0; d < space->rank; d++) {
        for (uint32_t i = 0; i < call->block->n_args; i++)
            strides[i] = kit_stride(&call->args[i], space->rank, d);
        walk_push(walk, space->dims[d], strides);
    }
}

/* ---- launches ---- */

const struct kit_program *kit_program_of(const frit_launch *launch)
{
    const struct choice *choice = choice_of(launch);

    return choice ? &choice->pub : NULL;
}

static void *code_of(const frit_launch *launch)
{
    struct choice *choice = choice_of(launch);

    return choice->flags & KIT_COMPILED ? codes_find(&choice->codes, launch->variant) : NULL;
}

/* Gives the code of a launch that passes, NULL where it needs none. */
static frit_status check(const struct plug *plug, const frit_launch *launch, void **code,
                         frit_err *err)
{
    const struct program *program = program_of(launch);

    if (!program)
        return plug_fail(plug, err, FRIT_INVALID, "a program of another driver");
    if (launch->candidate >= program->n_choices)
        return plug_fail(plug, err, FRIT_INVALID, "%s has candidates up to %u, not %u",
                         program->name, program->n_choices - 1, launch->candidate);
    if (launch->n_args != program->block.n_args)
        return plug_fail(plug, err, FRIT_INVALID, "%s takes %u arguments, not %u", program->name,
                         program->block.n_args, launch->n_args);
    if (launch->n_scalars != program->n_scalars)
        return plug_fail(plug, err, FRIT_INVALID, "%s takes %u scalars, not %u", program->name,
                         program->n_scalars, launch->n_scalars);
    if (launch->n_bounds != program->n_bounds)
        return plug_fail(plug, err, FRIT_INVALID, "%s takes %u bounds, not %u", program->name,
                         program->n_bounds, launch->n_bounds);
    *code = code_of(launch);
    if (choice_of(launch)->flags & KIT_COMPILED && !*code)
        return plug_fail(plug, err, FRIT_INVALID, "%s is launched before it is compiled",
                         program->name);
    return FRIT_OK;
}

static struct kit_tensor tensor_of(const frit_arg *arg)
{
    struct kit_tensor tensor = {.arg = arg, .dtype = arg->dtype, .rank = arg->rank};

    memcpy(tensor.dims, arg->dims, sizeof tensor.dims);
    for (uint32_t d = 0; d < arg->rank; d++)
        tensor.strides[d] = arg->strides[d] * (int64_t)frit_storage_bytes(arg->dtype, 1);
    return tensor;
}

/* Of a launch that passed the check. */
static void fill(const struct kit_device *device, const frit_launch *launch, void *code,
                 struct kit_call *call)
{
    const struct choice *choice = choice_of(launch);

    *call = (struct kit_call){.plug = &device->instance->plug,
                              .device = device,
                              .program = &choice->pub,
                              .block = &choice->program->block,
                              .code = code,
                              .launch = launch};
    for (uint32_t i = 0; i < launch->n_args; i++)
        call->args[i] = tensor_of(frit_arg_at(launch, i));
}

frit_status kit_call_of(const struct kit_device *device, const frit_launch *launch,
                        struct kit_call *call, frit_err *err)
{
    void *code = NULL;
    frit_status status = check(&device->instance->plug, launch, &code, err);

    if (!status)
        fill(device, launch, code, call);
    return status;
}

static frit_status launch_check(void *self, const frit_launch *launch, frit_err *err)
{
    void *code;

    return check(((const struct hosted *)self)->plug, launch, &code, err);
}

/* A tensor without elements may have no memory.  Positions are computed for it all the same, from
 * an address that is never read. */
static char *address_of(const frit_arg *arg)
{
    char *data = hosted_element(arg);

    return data ? data : (char *)(uintptr_t)arg;
}

static frit_status launch_run(void *self, const frit_launch *launch, frit_err *err)
{
    struct kit_call call;

    fill(self, launch, code_of(launch), &call);
    for (uint32_t i = 0; i < launch->n_args; i++)
        if (call.args[i].dtype != FRIT_NO_DTYPE)
            call.args[i].data = address_of(call.args[i].arg);
    return choice_of(launch)->run(&call, err);
}

static frit_str launch_name(const frit_launch *launch)
{
    const char *name = program_of(launch)->name;

    return (frit_str){name, strlen(name)};
}

const struct hosted_driver launch_slots = {launch_check, launch_run, launch_name};
