/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs: which ops they are for, what they are, how they are made. */
#include "kit/program.h"

#include <string.h>

#include "kit/code.h"
#include "kit/inside.h"
#include "kit/state.h"
#include "prepare.h"
#include "util/op.h"

/* ---- which ops ---- */

static bool takes_dtype(const void *row, uint32_t dtype)
{
    return dtype < FRIT_DTYPE_LIMIT && ((const struct kit_row *)row)->dtypes & KIT_TYPE(dtype);
}

/* Rows of any number of tensors are not for the kit. */
const struct kit_row *kit_row_of(const struct kit_driver *driver, const frit_op_desc *op)
{
    const frit_op_info *info = op_known(op);

    for (uint32_t i = 0; info && i < driver->n_rows; i++) {
        const struct kit_row *row = &driver->rows[i];

        if (row->op == op->id)
            return info->in[0].role != FRIT_ROLE_MANY && op_dtypes_fit(op, takes_dtype, row) ? row
                                                                                             : NULL;
    }
    return NULL;
}

static bool runs(const void *driver, const frit_op_desc *op)
{
    return kit_row_of(driver, op);
}

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err)
{
    const struct kit_device *device = self;

    (void)err;
    op_supports(ops, count, stride, bits, runs, device->instance->driver);
    return FRIT_OK;
}

/* ---- slots ---- */

static const struct plug *plug_of(const struct program *program)
{
    return &program->device->instance->plug;
}

static frit_status program_describe(void *self, frit_program_info *out, frit_err *err)
{
    struct program *program = self;

    (void)err;
    out->n_candidates = program->n_choices;
    out->candidate_stride = sizeof program->choices[0];
    out->n_ops = program->block.n_ops;
    out->name = (frit_str){program->name, strlen(program->name)};
    out->candidates = &program->choices[0].described;
    out->serial = program->flags & KIT_COMPILED ? &program->device->serial : NULL;
    return FRIT_OK;
}

static uint64_t program_generation(void *self, uint32_t candidate, const frit_variant *variant)
{
    struct choice *choice = &((struct program *)self)->choices[candidate];

    return choice->flags & KIT_COMPILED ? codes_generation(&choice->pub, &choice->codes, variant)
                                        : 0;
}

/* Below 0 it is not offered at all, which prepare would refuse. */
static int32_t program_priority(void *self, uint32_t candidate, const frit_signature *sig)
{
    const struct choice *choice = &((struct program *)self)->choices[candidate];
    const struct kit_candidate *own = choice->pub.candidate;

    if (!own)
        return 0;
    if (own->accepts && !own->accepts(&choice->pub, sig))
        return -1;
    return own->priority ? own->priority(&choice->pub, sig) : 0;
}

static void program_spec_release(void *self, const frit_launch_spec *spec)
{
    specs_release(&((struct program *)self)->specs, spec);
}

static frit_status program_compile(void *self, uint32_t candidate, const frit_variant *variant,
                                   const frit_cancel *cancel, frit_err *err)
{
    struct program *program = self;

    if (candidate >= program->n_choices || !(program->choices[candidate].flags & KIT_COMPILED))
        return plug_fail(plug_of(program), err, FRIT_INVALID,
                         "compile of %s: a candidate or variant that prepare never returned",
                         program->name);
    return codes_compile(&program->choices[candidate].pub, &program->choices[candidate].codes,
                         variant, cancel, err);
}

static frit_status program_to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    const struct program *program = self;

    if (!program->fuser)
        return plug_fail(plug_of(program), err, FRIT_UNSUPPORTED,
                         "the program of one op is not saved");
    *n_bytes = state_write(&program->block, program->fuser->version, bytes, *n_bytes);
    return FRIT_OK;
}

static void program_destroy(void *self)
{
    struct program *program = self;

    for (uint32_t i = 0; i < program->n_choices; i++)
        codes_fini(&program->choices[i].pub, &program->choices[i].codes);
    specs_fini(&program->specs);
    plug_free(plug_of(program), program);
}

static const frit_program_table program_table = {
    .struct_size = sizeof(frit_program_table),
    .describe = program_describe,
    .prepare = program_prepare,
    .compile = program_compile,
    .destroy = program_destroy,
    .to_state = program_to_state,
    .spec_release = program_spec_release,
    .generation = program_generation,
    .priority = program_priority,
};

struct program *program_of(const frit_launch *launch)
{
    return launch->program->table == &program_table ? launch->program->self : NULL;
}

struct choice *choice_of(const frit_launch *launch)
{
    struct program *program = program_of(launch);

    return program && launch->candidate < program->n_choices ? &program->choices[launch->candidate]
                                                             : NULL;
}

/* ---- making ---- */

/* Slots may be replaced after kit_open: whose queue runs the program is known only here. */
static frit_status check_run(const struct program *program, frit_err *err)
{
    const struct kit_instance *instance = program->device->instance;

    for (uint32_t i = 0; i < program->n_choices; i++)
        if (!program->choices[i].run && instance->backend.submit == hosted_submit)
            return plug_fail(&instance->plug, err, FRIT_INTERNAL,
                             "%s has no function `run`, and the driver has no submit of its own",
                             program->name);
    return FRIT_OK;
}

static uint32_t count_candidates(const struct kit_candidate *list)
{
    uint32_t n = 0;

    while (list && list[n].identity.len)
        n++;
    return n;
}

/* Way `i` of the program; 0: that of the row or fuser. */
static struct choice choice_at(struct program *program, const struct kit_row *row,
                               const struct kit_candidate *list, uint32_t i)
{
    const struct kit_fuser *fuser = program->fuser;
    const struct kit_candidate first = {.identity = FRIT_STR("plain"),
                                        .version = fuser ? fuser->version : 1,
                                        .flags = fuser ? fuser->flags : row->flags,
                                        .run = fuser ? fuser->run : row->run};
    const struct kit_candidate *own = i ? &list[i - 1] : NULL, *from = own ? own : &first;

    return (struct choice){.pub = {program->device, row, fuser, &program->block, own},
                           .program = program,
                           .described = {.struct_size = sizeof(frit_candidate),
                                         .version = from->version,
                                         .numeric_class = from->numeric_class,
                                         .identity = from->identity},
                           .run = from->run,
                           .flags = from->flags};
}

frit_status program_make(const struct kit_device *device, const struct kit_row *row,
                         const struct kit_fuser *fuser, const struct kit_block *block,
                         frit_program *out, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    const char *name = fuser ? fuser->name.ptr : frit_op_info_at(row->op)->name;
    const struct kit_candidate *list = fuser ? fuser->candidates : row->candidates;
    const uint32_t n_choices = 1 + count_candidates(list);
    const struct kit_op *last = &block->ops[block->n_ops - 1];
    struct program *program = plug_alloc(plug, sizeof *program + n_choices * sizeof(struct choice),
                                         _Alignof(struct program));
    frit_status status;

    if (!program)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for a program of %s", name);
    program->device = device;
    program->fuser = fuser;
    program->name = name;
    program->n_scalars = last->first_scalar + last->n_scalars;
    program->n_bounds = last->first_bound + last->n_bounds;
    program->flags = 0;
    program->n_choices = n_choices;
    for (uint32_t i = 0; i < n_choices; i++) {
        program->choices[i] = choice_at(program, row, list, i);
        program->flags |= program->choices[i].flags;
        codes_init(&program->choices[i].codes);
    }
    specs_init(&program->specs, plug);
    block_copy(&program->block, block);
    status = check_run(program, err);
    if (status) {
        program_destroy(program);
        return status;
    }
    out->table = &program_table;
    out->self = program;
    return FRIT_OK;
}

frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    const struct kit_device *device = self;
    const struct kit_instance *instance = device->instance;
    const struct kit_row *row = kit_row_of(instance->driver, op);
    struct kit_block block;

    memset(&block, 0, offsetof(struct kit_block, values));
    if (!row || !block_push(&block, op)) {
        const frit_op_info *info = frit_op_info_at(op->id);

        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "no program for op %u %s, rev %u",
                         op->id, info ? info->name : "of unknown name", op->rev);
    }
    block_bind_one(&block);
    return program_make(device, row, NULL, &block, out, err);
}
