/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

/* ---- memory and transfers ---- */

static frit_status open_device(void *instance, uint32_t index, void **out, frit_err *err)
{
    (void)index;
    (void)err;
    *out = instance;
    return FRIT_OK;
}

static void close_device(void *self)
{
    (void)self;
}

static frit_status alloc_memory(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    (void)self;
    out->memory = malloc(desc->bytes);
    if (!out->memory)
        return fail_memory(err, desc->bytes);
    memset(out->memory, 0xa5, desc->bytes);
    return FRIT_OK;
}

static void free_memory(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static frit_status write_bytes(void *self, const frit_transfer *to, const void *from,
                               uint64_t *value, frit_err *err)
{
    struct driver *driver = self;

    (void)err;
    memcpy((char *)to->memory + to->offset, from, to->bytes);
    *value = ++driver->timeline;
    if (driver->fail_writes)
        driver->failure = (frit_failure){0, FRIT_TIMEOUT, *value, 0};
    driver->fail_writes = false;
    return FRIT_OK;
}

static frit_status read_bytes(void *self, const frit_transfer *from, void *into, uint64_t *value,
                              frit_err *err)
{
    struct driver *driver = self;

    (void)err;
    memcpy(into, (char *)from->memory + from->offset, from->bytes);
    *value = ++driver->timeline;
    return FRIT_OK;
}

/* ---- programs ---- */

struct program {
    struct driver *driver;
    uint32_t op;
};

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    (void)self;
    (void)err;
    out->n_ops = 1;
    return FRIT_OK;
}

static bool is_dense(const frit_arg_sig *arg)
{
    int64_t stride = 1;

    for (uint32_t d = arg->rank; d-- > 0;) {
        if (arg->dims[d] != 1 && arg->strides[d] != stride)
            return false;
        stride *= arg->dims[d];
    }
    return true;
}

static frit_status ask_relayout(const frit_arg_sig *arg, frit_launch_spec *out)
{
    int64_t stride = 1;

    for (uint32_t d = arg->rank; d-- > 0;) {
        out->wanted_strides[d] = stride;
        stride *= arg->dims[d];
    }
    out->wanted_arg = 0;
    return FRIT_PREPARE_RELAYOUT;
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct program *program = self;
    struct driver *driver = program->driver;

    (void)candidate;
    driver->prepares++;
    driver->last_in = sig->args[0];
    if (sig->n_scalars)
        driver->last_class = sig->scalar_classes[0];
    if (program->op == driver->refuse_prepare)
        return fail(err, FRIT_UNSUPPORTED, "not this shape");
    if (program->op != FRIT_OP_neg)
        return FRIT_OK;
    if (driver->wants_dense && !is_dense(&sig->args[0]))
        return ask_relayout(&sig->args[0], out);
    out->workspace_bytes = driver->workspace;
    out->workspace_zeroed = driver->workspace > 0;
    if (driver->derived) {
        out->n_derived = driver->n_derived ? driver->n_derived : 1;
        out->derived[0].bytes = driver->derived;
    }
    out->outputs[0].align = driver->out_align;
    out->outputs[0].bytes = driver->out_bytes;
    if (driver->out_strides) {
        out->outputs[0].flags = 1;
        memcpy(out->outputs[0].strides, driver->out_strides, sig->args[1].rank * sizeof(int64_t));
    }
    variant->n_bytes = 1;
    variant->bytes[0] = 7;
    return driver->needs_compile ? FRIT_PREPARE_NEEDS_COMPILE : driver->odd_answer;
}

static frit_status compile(void *self, uint32_t candidate, const frit_variant *variant,
                           const frit_cancel *cancel, frit_err *err)
{
    struct program *program = self;

    (void)candidate;
    (void)cancel;
    (void)err;
    assert_int_equal(variant->bytes[0], 7);
    program->driver->compiles++;
    return FRIT_OK;
}

static void destroy(void *self)
{
    struct program *program = self;

    program->driver->programs_alive--;
    free(program);
}

static const frit_program_table table = {.struct_size = sizeof(table),
                                         .describe = describe,
                                         .prepare = prepare,
                                         .compile = compile,
                                         .destroy = destroy};
static const frit_program_table bad_table = {
    .struct_size = sizeof(table), .describe = describe, .compile = compile, .destroy = destroy};

static frit_status supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err)
{
    struct driver *driver = self;

    (void)err;
    assert_int_equal(count, 1);
    assert_true(stride >= sizeof(frit_op_desc));
    *bits = ops->id == FRIT_OP_copy || ops->id == FRIT_OP_add || ops->id == FRIT_OP_floor ||
            ops->id == FRIT_OP_ceil || (ops->id == FRIT_OP_neg && !driver->refuse_neg);
    return FRIT_OK;
}

static frit_status op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    struct driver *driver = self;
    struct program *program;

    (void)err;
    out->table = driver->bad_table ? &bad_table : &table;
    if (driver->bad_table)
        return FRIT_OK;
    program = malloc(sizeof(*program));
    *program = (struct program){driver, op->id};
    driver->programs_alive++;
    out->self = program;
    return FRIT_OK;
}

/* ---- the queue ---- */

static float *element(const frit_arg *arg, const int64_t *at)
{
    int64_t where = 0;

    for (uint32_t d = 0; d < arg->rank; d++)
        where += at[d] * arg->strides[d];
    return (float *)(void *)((char *)arg->memory + arg->offset + arg->origin) + where;
}

static void run(const struct program *program, const frit_launch *launch)
{
    const frit_arg *in = &launch->args[0], *out = &launch->args[launch->n_args - 1];
    int64_t count = 1, at[FRIT_MAX_RANK];

    for (uint32_t d = 0; d < out->rank; d++)
        count *= out->dims[d];
    for (int64_t n = 0; n < count; n++) {
        int64_t rest = n;

        for (uint32_t d = out->rank; d-- > 0;) {
            at[d] = rest % out->dims[d];
            rest /= out->dims[d];
        }
        *element(out, at) = program->op == FRIT_OP_neg ? -*element(in, at) : *element(in, at);
    }
}

static void launch_one(struct driver *driver, const frit_launch *launch)
{
    const struct program *program = launch->program->self;

    driver->launches++;
    driver->last_spec = *launch->spec;
    driver->workspace_was_zero = true;
    for (uint64_t i = 0; program->op == FRIT_OP_neg && i < driver->workspace; i++) {
        if (((char *)launch->workspace)[launch->workspace_offset + i] != 0)
            driver->workspace_was_zero = false;
    }
    for (uint32_t i = 0; i < launch->n_derived; i++)
        driver->derived_fills += launch->derived[i].fill && launch->derived[i].memory;
    run(program, launch);
}

static frit_status submit(void *self, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                          const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    struct driver *driver = self;
    frit_status st = driver->submit_status;

    (void)waits;
    assert_int_equal(stride, sizeof(frit_cmd));
    assert_int_equal(n_waits, 0);
    driver->submit_status = FRIT_OK;
    if (st)
        return driver->silent ? st : fail(err, st, "submit refused");
    *value = ++driver->timeline;
    for (uint32_t i = 0; i < count; i++) {
        if (cmds[i].kind == FRIT_CMD_FILL)
            memset((char *)cmds[i].dst + cmds[i].dst_offset, (int)cmds[i].pattern, cmds[i].bytes);
        if (cmds[i].kind == FRIT_CMD_LAUNCH && driver->complete_status)
            driver->failure =
                (frit_failure){0, driver->complete_status, *value, cmds[i].launch->cookie};
        else if (cmds[i].kind == FRIT_CMD_LAUNCH)
            launch_one(driver, cmds[i].launch);
    }
    driver->complete_status = FRIT_OK;
    return FRIT_OK;
}

static frit_status wait_value(void *self, uint64_t value, uint64_t timeout_ns, frit_failure *out,
                              frit_err *err)
{
    struct driver *driver = self;
    const frit_failure *known = &driver->failure;

    (void)timeout_ns;
    assert_true(value <= driver->timeline);
    if (known->status && known->value > out->value && known->value <= value) {
        out->status = known->status;
        out->value = driver->nameless ? out->value : known->value;
        out->cookie = known->cookie;
        fail(err, out->status, "smoke came out");
        if (driver->on_tell)
            driver->on_tell(driver);
    }
    return FRIT_OK;
}

frit_device *driver_device(struct driver *driver, int64_t max_ops)
{
    struct device_config config = {.max_ops = max_ops,
                                   .block_bytes = 1 << 16,
                                   .keep_bytes = 1 << 20,
                                   .decompose = driver->decompose,
                                   .seed = &driver->seed,
                                   .epoch = &driver->epoch};
    frit_device *device;
    frit_err err = ERR_INIT;

    driver->plugin.backend = (frit_backend){.struct_size = sizeof(frit_backend),
                                            .device_open = open_device,
                                            .device_close = close_device,
                                            .alloc = alloc_memory,
                                            .free = free_memory,
                                            .write = write_bytes,
                                            .read = read_bytes,
                                            .submit = submit,
                                            .wait = wait_value,
                                            .supports = supports,
                                            .op_program = op_program};
    driver->plugin.instance = driver;
    driver->info.caps = driver->inline_queue ? FRIT_CAP_INLINE_QUEUE : 0;
    driver->entry = (struct device_entry){&driver->plugin, &driver->info, "scripted:0"};
    assert_int_equal(device_create(&driver->entry, &config, &device, &err), FRIT_OK);
    return device;
}
