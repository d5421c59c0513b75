/* SPDX-License-Identifier: Apache-2.0 */
#include "run/driver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "graph/custom.h"
#include "record/stream.h"
#include "run/drain.h"

/* ---- ops of its own ---- */

static frit_status infer(const void *self, const frit_custom_call *call, frit_custom_type *out,
                         frit_err *err)
{
    (void)self;
    (void)err;
    if (call->n_out)
        *out = call->in[0].type;
    return FRIT_OK;
}

static uint32_t add_op(frit_str name, uint32_t n_slots)
{
    static const frit_custom_slot in = {{"x", 1}, FRIT_ROLE_IN, FRIT_LETTER_F};
    static const frit_custom_slot out = {{"y", 1}, FRIT_ROLE_OUT, FRIT_LETTER_F};
    const frit_custom_op op = {.struct_size = sizeof(op),
                               .rev = 1,
                               .name = name,
                               .meaning = FRIT_STR("Has an effect."),
                               .traits = FRIT_OP_ORDERED,
                               .n_in = n_slots,
                               .n_out = n_slots,
                               .slot_stride = sizeof(in),
                               .in = &in,
                               .out = &out,
                               .infer = infer};
    frit_err err = ERR_INIT;
    uint32_t id = 0;

    if (custom_add("scripted", &op, &id, &err))
        fail_msg("%s", err.text);
    return id;
}

uint32_t driver_effect_op(void)
{
    static uint32_t id;

    return id ? id : (id = add_op(FRIT_STR("test.effect/1"), 1));
}

uint32_t driver_unknown_op(void)
{
    static uint32_t id;

    return id ? id : (id = add_op(FRIT_STR("test.unknown/1"), 0));
}

/* ---- memory ---- */

static frit_status open_device(void *instance, uint32_t index, const frit_open_params *params,
                               void **out, frit_err *err)
{
    struct driver *driver = instance;

    (void)params;
    (void)err;
    *out = index ? driver->peer : driver;
    return FRIT_OK;
}

static void close_device(void *self)
{
    (void)self;
}

struct memory_block {
    _Alignas(64) uint64_t bytes;
};

static frit_status check_lost(const struct driver *driver, frit_err *err)
{
    return driver->is_lost ? fail(err, FRIT_DEVICE_LOST, "gone") : FRIT_OK;
}

/* Whether the script wants this one to fail. */
static bool alloc_fails(struct driver *driver)
{
    if (driver->fail_allocs == 0 || (driver->fail_alloc > 1 && driver->fail_alloc--))
        return false;
    driver->fail_allocs--;
    return true;
}

static frit_status alloc_memory(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    struct driver *driver = self;
    struct memory_block *block;
    void *bytes;

    TRY(check_lost(driver, err));
    if (alloc_fails(driver))
        return fail(err, FRIT_NO_DEVICE_MEMORY, "none left");
    if (driver->capacity && driver->allocated + desc->bytes > driver->capacity)
        return fail(err, FRIT_NO_DEVICE_MEMORY, "full");
    block = aligned_alloc(64, (sizeof(*block) + desc->bytes + 63) / 64 * 64);
    if (!block)
        return fail_memory(err, desc->bytes);
    block->bytes = desc->bytes;
    driver->allocated += desc->bytes;
    bytes = memset(block + 1, 0xa5, desc->bytes);
    out->memory = bytes;
    out->host_pointer = driver->host_visible ? bytes : NULL;
    return FRIT_OK;
}

static void free_memory(void *self, frit_memory *memory)
{
    struct driver *driver = self;
    struct memory_block *block = (struct memory_block *)(void *)memory;

    if (!memory)
        return;
    driver->allocated -= block[-1].bytes;
    free(block - 1);
}

/* ---- queues ---- */

static frit_status create_queue(void *self, const frit_queue_desc *desc, frit_queue **out,
                                frit_err *err)
{
    struct driver *driver = self;

    (void)desc;
    if (driver->n_queues == driver->more_queues)
        return fail(err, FRIT_UNSUPPORTED, "no more queues");
    *out = (frit_queue *)(void *)&driver->queues[driver->n_queues++];
    return FRIT_OK;
}

static void destroy_queue(void *self, frit_queue *queue)
{
    (void)self;
    (void)queue;
}

static bool is_queue(const struct driver *driver, const frit_queue *queue)
{
    const char *handle = (const char *)queue;

    return !queue || (handle >= driver->queues && handle < driver->queues + driver->n_queues);
}

/* ---- transfers ---- */

void driver_fails(struct driver *driver, frit_status status, uint64_t value, uint32_t command,
                  uint64_t cookie)
{
    assert_true(driver->n_failures < 8);
    driver->failures[driver->n_failures++] =
        (frit_failure){.status = status, .value = value, .command = command, .cookie = cookie};
}

static frit_status write_bytes(void *self, const frit_transfer *to, const void *from,
                               uint64_t *value, frit_err *err)
{
    struct driver *driver = self;

    TRY(check_lost(driver, err));
    memcpy((char *)to->memory + to->offset, from, to->bytes);
    *value = ++driver->timeline;
    driver->writes++;
    if (driver->fail_writes)
        driver_fails(driver, FRIT_TIMEOUT, *value, 1, 0);
    driver->fail_writes = false;
    return FRIT_OK;
}

static frit_status read_bytes(void *self, const frit_transfer *from, void *into, uint64_t *value,
                              frit_err *err)
{
    struct driver *driver = self;

    TRY(check_lost(driver, err));
    memcpy(into, (char *)from->memory + from->offset, from->bytes);
    *value = ++driver->timeline;
    driver->reads++;
    return FRIT_OK;
}

static frit_status copy_peer(void *self, const frit_transfer *to, const frit_peer_source *from,
                             uint64_t *value, frit_err *err)
{
    struct driver *driver = self;
    const struct driver *peer = from->device;

    assert_ptr_not_equal(driver, peer);
    assert_true(atomic_load(&peer->waited) == atomic_load(&peer->timeline));
    TRY(check_lost(driver, err));
    if (driver->copy_status)
        return driver->silent ? driver->copy_status
                              : fail(err, driver->copy_status, "copy refused");
    memcpy((char *)to->memory + to->offset, (char *)from->memory + from->offset, to->bytes);
    *value = driver->copied_value = ++driver->timeline;
    driver->peer_copies++;
    if (driver->fail_copies)
        driver_fails(driver, FRIT_TIMEOUT, *value, 1, 0);
    driver->fail_copies = false;
    return FRIT_OK;
}

static void *host_pointer(void *self, frit_memory *memory, frit_str name)
{
    (void)self;
    return name.len == 8 && memcmp(name.ptr, "host.ptr", 8) == 0 ? memory : NULL;
}

/* ---- programs ---- */

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    static const frit_candidate candidates[] = {
        {.struct_size = sizeof(frit_candidate), .identity = {"first", 5}},
        {.struct_size = sizeof(frit_candidate), .identity = {"second", 6}},
        {.struct_size = sizeof(frit_candidate), .identity = {"third", 5}},
    };
    struct driver_program *program = self;

    (void)err;
    assert_true(program->n_candidates <= sizeof(candidates) / sizeof(candidates[0]));
    out->n_ops = program->n_ops ? program->n_ops : 1;
    out->n_candidates = program->n_candidates;
    out->candidate_stride = sizeof(candidates[0]);
    for (uint32_t i = 0; i < 3; i++) {
        program->candidates[i] = candidates[i];
        program->candidates[i].numeric_class = program->numeric[i];
    }
    out->candidates = program->candidates;
    out->serial = &program->serial;
    return FRIT_OK;
}

static uint64_t generation(void *self, uint32_t candidate, const frit_variant *variant)
{
    const struct driver_program *program = self;

    (void)candidate;
    (void)variant;
    return __atomic_load_n(&program->serial, __ATOMIC_ACQUIRE);
}

void driver_improves(struct driver_program *program)
{
    __atomic_fetch_add(&program->serial, 1, __ATOMIC_RELEASE);
}

/* What a spec points to. */
struct arrays {
    frit_output_spec output;
    uint32_t alias[64];
    frit_derived_spec derived[8];
    int64_t wanted_strides[FRIT_MAX_RANK];
};

/* Output 0 and all arrays, empty; NULL if out of memory. */
static struct arrays *arrays_create(struct driver_program *program, const frit_signature *sig,
                                    frit_launch_spec *out)
{
    struct arrays *arrays = calloc(1, sizeof(*arrays));

    if (!arrays)
        return NULL;
    program->specs++;
    arrays->output.alias = arrays->alias;
    out->n_outputs = sig->n_out > 0;
    out->output_stride = sizeof(arrays->output);
    out->outputs = &arrays->output;
    out->derived_stride = sizeof(arrays->derived[0]);
    out->derived = arrays->derived;
    out->wanted_strides = arrays->wanted_strides;
    return arrays;
}

static void spec_release(void *self, const frit_launch_spec *spec)
{
    struct driver_program *program = self;

    assert_true(program->launched_at <= atomic_load(&program->driver->waited));
    assert_true(program->specs > 0);
    program->specs--;
    free((void *)spec->outputs);
}

static void allow_aliases(struct arrays *arrays, uint64_t inputs)
{
    for (uint32_t i = 0; i < 64; i++) {
        if (inputs >> i & 1)
            arrays->alias[arrays->output.n_alias++] = i;
    }
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

static frit_status request_relayout(const frit_arg_sig *arg, struct arrays *arrays)
{
    int64_t stride = 1;

    for (uint32_t d = arg->rank; d-- > 0;) {
        arrays->wanted_strides[d] = stride;
        stride *= arg->dims[d];
    }
    return FRIT_PREPARE_RELAYOUT;
}

static frit_status prepare_neg(struct driver *driver, const frit_signature *sig,
                               struct arrays *arrays, frit_launch_spec *out, frit_variant *variant)
{
    if (driver->wants_dense && !is_dense(&sig->args[0]))
        return request_relayout(&sig->args[0], arrays);
    out->workspace_bytes = driver->workspace;
    out->workspace_zeroed = driver->workspace > 0 && !driver->workspace_dirty;
    if (driver->derived) {
        out->n_derived = driver->n_derived ? driver->n_derived : 1;
        assert_true(out->n_derived <= sizeof(arrays->derived) / sizeof(arrays->derived[0]));
        for (uint32_t i = 0; i < out->n_derived; i++)
            arrays->derived[i] = (frit_derived_spec){
                .tag = 1 + i, .bytes = driver->derived, .arg = driver->derived_arg};
    }
    arrays->output.align = driver->out_align;
    arrays->output.bytes = driver->out_bytes;
    if (driver->out_strides) {
        arrays->output.strided = 1;
        memcpy(arrays->output.strides, driver->out_strides, sig->args[1].rank * sizeof(int64_t));
    }
    out->n_phases = driver->phase.group[0] > 0;
    out->phases = &driver->phase;
    variant->n_bytes = 1;
    variant->bytes[0] = 7;
    return driver->needs_compile ? FRIT_PREPARE_NEEDS_COMPILE : FRIT_OK;
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct driver_program *program = self;
    struct driver *driver = program->driver;
    struct arrays *arrays;

    driver->prepares++;
    program->prepares++;
    driver->last_in = sig->args[0];
    if (sig->n_scalars)
        driver->last_class = sig->scalar_classes[0];
    if (sig->n_bounds)
        driver->last_bound_class = sig->bound_classes[0];
    for (uint32_t i = sig->n_in; i < sig->n_in + sig->n_out && driver->refuse_assigned; i++) {
        if (sig->args[i].flags & FRIT_ARG_PREASSIGNED)
            return fail(err, FRIT_UNSUPPORTED, "not there");
    }
    if (program->refuse >> candidate & 1 || (program->n_ops && driver->refuse_blocks) ||
        (!program->n_ops && program->op == driver->refuse_prepare))
        return fail(err, FRIT_UNSUPPORTED, "not this shape");
    if (driver->odd_answer && !program->n_ops && program->op == FRIT_OP_neg)
        return driver->odd_answer;
    arrays = arrays_create(program, sig, out);
    if (!arrays)
        return fail_memory(err, sizeof(*arrays));
    if (program->relayout_first && candidate == 0 && sig->args[0].strides[0] == 1) {
        arrays->wanted_strides[0] = 2;
        return FRIT_PREPARE_RELAYOUT;
    }
    if (is_dense(&sig->args[0])) /* element by element */
        allow_aliases(arrays, program->n_ops ? program->alias : driver->alias);
    if (program->n_ops)
        out->workspace_bytes = program->workspace;
    return !program->n_ops && program->op == FRIT_OP_neg
               ? prepare_neg(driver, sig, arrays, out, variant)
               : FRIT_OK;
}

static frit_status compile(void *self, uint32_t candidate, const frit_variant *variant,
                           const frit_cancel *cancel, frit_err *err)
{
    struct driver_program *program = self;

    (void)candidate;
    (void)cancel;
    (void)err;
    assert_int_equal(variant->bytes[0], 7);
    program->driver->compiles++;
    return FRIT_OK;
}

static void destroy(void *self)
{
    struct driver_program *program = self;

    assert_true(program->launched_at <= atomic_load(&program->driver->waited));
    assert_int_equal(program->specs, 0);
    program->driver->programs_alive--;
    free(program);
}

static frit_status record(void *self, const frit_launch *launch, frit_cmd *cmds, uint32_t capacity,
                          uint32_t *count, frit_err *err)
{
    (void)err;
    *count = 2;
    if (capacity < 2)
        return FRIT_OK;
    cmds[0].kind = FRIT_CMD_BARRIER;
    cmds[1].kind = FRIT_CMD_DISPATCH;
    cmds[1].launch = launch;
    cmds[1].kernel = self;
    memcpy(cmds[1].grid, ((struct driver_program *)self)->driver->phase.grid, sizeof(cmds[1].grid));
    memcpy(cmds[1].group, ((struct driver_program *)self)->driver->phase.group,
           sizeof(cmds[1].group));
    return FRIT_OK;
}

static int32_t priority_of(void *self, uint32_t candidate, const frit_signature *sig)
{
    (void)sig;
    return ((struct driver_program *)self)->priority[candidate];
}

#define SLOTS                                                                            \
    .struct_size = sizeof(frit_program_table), .describe = describe, .compile = compile, \
    .destroy = destroy, .spec_release = spec_release, .generation = generation,          \
    .priority = priority_of

static const frit_program_table table = {SLOTS, .prepare = prepare};
static const frit_program_table foreign_table = {SLOTS, .prepare = prepare, .record = record};
static const frit_program_table bad_table = {SLOTS};

static frit_status supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err)
{
    const uint32_t rows[] = {FRIT_OP_copy, FRIT_OP_add, FRIT_OP_mul,
                             FRIT_OP_exp,  FRIT_OP_neg, FRIT_OP_floor,
                             FRIT_OP_ceil, FRIT_OP_pad, driver_effect_op()};
    struct driver *driver = self;

    (void)err;
    assert_int_equal(count, 1);
    assert_true(stride >= sizeof(frit_op_desc));
    assert_int_not_equal(op_row(ops->id)->cls, FRIT_CLASS_COLLECTIVE);
    *bits = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        *bits |= ops->id == rows[i] && !(ops->id == FRIT_OP_neg && driver->refuse_neg);
    for (size_t i = 0; i < sizeof(driver->refuse) / sizeof(driver->refuse[0]); i++)
        *bits &= ops->id != driver->refuse[i];
    return FRIT_OK;
}

static struct driver_program *driver_program_create(struct driver *driver, uint32_t op)
{
    struct driver_program *program = calloc(1, sizeof(*program));

    if (!program)
        return NULL;
    *program = (struct driver_program){.driver = driver, .op = op, .n_candidates = 1};
    driver->programs_alive++;
    return program;
}

static frit_status op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    struct driver *driver = self;

    out->table = driver->bad_table ? &bad_table : &table;
    if (driver->bad_table)
        return FRIT_OK;
    out->self = driver_program_create(driver, op->id);
    return out->self ? FRIT_OK : fail_memory(err, sizeof(struct driver_program));
}

frit_program driver_block(struct driver *driver, const struct driver_op *ops, uint32_t n_ops,
                          const int *out, bool foreign)
{
    struct driver_program *program = driver_program_create(driver, 0);

    assert_non_null(program);
    program->ops = ops;
    program->n_ops = n_ops;
    program->out = out;
    return (frit_program){.struct_size = sizeof(frit_program),
                          .table = foreign ? &foreign_table : &table,
                          .self = program};
}

/* ---- the queue ---- */

static float *element(const frit_arg *arg, const int64_t *at, uint32_t rank)
{
    int64_t where = 0;

    for (uint32_t d = 0; d < arg->rank; d++) {
        if (arg->dims[d] != 1)
            where += at[rank - arg->rank + d] * arg->strides[d];
    }
    return (float *)(void *)((char *)arg->memory + arg->offset + arg->origin) + where;
}

static double compute(uint32_t op, double a, double b)
{
    if (op == FRIT_OP_neg)
        return -a;
    if (op == FRIT_OP_exp)
        return exp(a);
    if (op == FRIT_OP_add)
        return a + b;
    return op == FRIT_OP_mul ? a * b : a;
}

static double number(const frit_scalar *scalar)
{
    double value;

    memcpy(&value, &scalar->bits, sizeof(value));
    return value;
}

static bool is_first(const int64_t *at, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (at[d])
            return false;
    }
    return true;
}

static void effect(struct driver *driver, double value)
{
    assert_true(driver->n_effects < 64);
    driver->effects[driver->n_effects++] = (float)value;
}

/* A row as a block of one: register 0 and, if it is there, 1 or a scalar. */
static void run_element(const struct driver_program *program, const frit_launch *launch,
                        const frit_arg *out, uint32_t n_out, const int64_t *at)
{
    uint32_t n_in = launch->n_args - n_out, scalar = 0;
    const struct driver_op one = {program->op, 0, n_in > 1 && launch->args[1].memory ? 1 : -1};
    const struct driver_op *ops = program->n_ops ? program->ops : &one;
    const int last = (int)n_in;
    const int *result = program->n_ops ? program->out : &last;
    double registers[64] = {0};

    for (uint32_t i = 0; i < n_in; i++)
        registers[i] =
            launch->args[i].memory ? (double)*element(&launch->args[i], at, out->rank) : 0;
    for (uint32_t i = 0; i < (program->n_ops ? program->n_ops : 1); i++) {
        bool takes_scalar = ops[i].b == -1 && scalar < launch->n_scalars;
        double b = takes_scalar    ? number(&launch->scalars[scalar++])
                   : ops[i].b >= 0 ? registers[ops[i].b]
                                   : 0;

        if (ops[i].op == driver_effect_op() && is_first(at, out->rank))
            effect(program->driver, registers[ops[i].a]);
        registers[n_in + i] = compute(ops[i].op, registers[ops[i].a], b);
    }
    for (uint32_t k = 0; k < n_out; k++)
        *element(&out[k], at, out->rank) = (float)registers[result[k]];
}

static uint32_t n_outputs(const frit_launch *launch)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < launch->n_args; i++)
        n += launch->args[i].flags & FRIT_ARG_WRITE ? 1 : 0;
    return n;
}

static void run(const struct driver_program *program, const frit_launch *launch)
{
    uint32_t n_out = n_outputs(launch);
    const frit_arg *out = &launch->args[launch->n_args - n_out];
    int64_t count = 1, at[FRIT_MAX_RANK];

    for (uint32_t d = 0; d < out->rank; d++)
        count *= out->dims[d];
    for (int64_t n = 0; n < count; n++) {
        int64_t rest = n;

        for (uint32_t d = out->rank; d-- > 0;) {
            at[d] = rest % out->dims[d];
            rest /= out->dims[d];
        }
        run_element(program, launch, out, n_out, at);
    }
}

/* What is derived is a digest of the operand. */
static void derive(struct driver *driver, const frit_launch *launch, uint32_t index)
{
    const frit_derived_spec *spec = &launch->spec->derived[index];
    const frit_derived *derived = &launch->derived[index];
    const frit_arg *arg = &launch->args[spec->arg];
    const unsigned char *from = (const unsigned char *)arg->memory + arg->offset;
    unsigned char *at = (unsigned char *)derived->memory + derived->offset;
    uint64_t digest = spec->tag * 0x9e3779b97f4a7c15u;

    for (uint64_t i = 0; i < arg->extent; i++)
        digest = (digest ^ from[i]) * 0x100000001b3u;
    assert_true(spec->bytes >= sizeof(digest));
    driver->derived_fills += derived->fill && derived->memory;
    if (derived->fill) {
        memset(at, 0x55, spec->bytes);
        memcpy(at, &digest, sizeof(digest));
    } else if (memcmp(at, &digest, sizeof(digest)) != 0) {
        driver->derived_stale++;
    }
    driver->last_content = arg->content_id;
}

static void launch_one(struct driver *driver, const frit_launch *launch)
{
    struct driver_program *program = launch->program->self;

    driver->launches++;
    program->launches++;
    program->last_candidate = launch->candidate;
    program->launched_at = driver->timeline;
    driver->last_tail = launch->args[0].tail;
    driver->last_cookie = launch->cookie;
    driver->last_out = launch->args[launch->n_args - 1];
    driver->workspace_was_zero = true;
    for (uint64_t i = 0; program->op == FRIT_OP_neg && i < driver->workspace; i++) {
        if (((char *)launch->workspace)[launch->workspace_offset + i] != 0)
            driver->workspace_was_zero = false;
    }
    if (launch->workspace)
        memset((char *)launch->workspace + launch->workspace_offset, 0x77,
               launch->spec->workspace_bytes);
    for (uint32_t i = 0; i < launch->n_derived; i++)
        derive(driver, launch, i);
    run(program, launch);
}

/* ---- the contract of BARRIERs ---- */

struct touched {
    const char *begin;
    uint64_t bytes;
    bool write;
    uint32_t cmd;
};

static uint32_t touches_of(const frit_cmd *cmd, uint32_t index, struct touched *out)
{
    const frit_launch *launch = cmd->launch;
    uint32_t n = 0;

    if (cmd->kind == FRIT_CMD_FILL)
        out[n++] = (struct touched){(char *)cmd->dst + cmd->dst_offset, cmd->bytes, true, index};
    if (cmd->kind == FRIT_CMD_COPY) {
        out[n++] = (struct touched){(char *)cmd->dst + cmd->dst_offset, cmd->bytes, true, index};
        out[n++] =
            (struct touched){(const char *)cmd->src + cmd->src_offset, cmd->bytes, false, index};
    }
    if (!launch)
        return n;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = &launch->args[i];

        if (arg->memory)
            out[n++] = (struct touched){(char *)arg->memory + arg->offset, arg->extent,
                                        arg->flags & FRIT_ARG_WRITE, index};
    }
    if (launch->workspace)
        out[n++] = (struct touched){(char *)launch->workspace + launch->workspace_offset,
                                    launch->spec->workspace_bytes, true, index};
    for (uint32_t i = 0; i < launch->n_derived; i++)
        out[n++] = (struct touched){(char *)launch->derived[i].memory + launch->derived[i].offset,
                                    launch->spec->derived[i].bytes, launch->derived[i].fill, index};
    return n;
}

static bool overlap(const struct touched *a, const struct touched *b)
{
    return a->begin < b->begin + b->bytes && b->begin < a->begin + a->bytes;
}

static void check_group(const frit_cmd *cmds, uint32_t count)
{
    struct touched all[1024];
    uint32_t n = 0;

    for (uint32_t i = 0; i < count && n < 900; i++)
        n += touches_of(&cmds[i], i, all + n);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (all[i].cmd != all[k].cmd && (all[i].write || all[k].write) &&
                overlap(&all[i], &all[k]))
                fail_msg("commands %u and %u touch common bytes and no BARRIER is between",
                         all[k].cmd, all[i].cmd);
        }
    }
}

/* What a launch writes lies over nothing else of it; but output 0 may begin where an input does, if
 * the program allows it. */
static void check_aliases(const frit_launch *launch)
{
    struct touched all[64];
    frit_cmd cmd = {.launch = launch};
    uint32_t n = touches_of(&cmd, 0, all);

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (!(all[i].write || all[k].write) || !overlap(&all[i], &all[k]))
                continue;
            assert_true(launch->spec->n_outputs && launch->spec->outputs->n_alias);
            assert_true(all[i].write && !all[k].write);
            assert_ptr_equal(all[i].begin, all[k].begin);
        }
    }
}

/* What is said to begin its memory does. */
static void check_starts(const frit_launch *launch)
{
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = &launch->args[i];

        if (arg->memory)
            assert_true(arg->offset == 0 || !(arg->flags & FRIT_ARG_START));
    }
}

static void run_command(struct driver *driver, const frit_cmd *cmd, uint64_t value, uint32_t number)
{
    if (cmd->kind == FRIT_CMD_FILL)
        memset((char *)cmd->dst + cmd->dst_offset, (int)cmd->pattern, cmd->bytes);
    if (cmd->kind == FRIT_CMD_COPY) {
        memcpy((char *)cmd->dst + cmd->dst_offset, (const char *)cmd->src + cmd->src_offset,
               cmd->bytes);
        driver->copies++;
    }
    if (!cmd->launch)
        return;
    check_aliases(cmd->launch);
    check_starts(cmd->launch);
    if (driver->complete_status && !driver->complete_after) {
        driver_fails(driver, driver->complete_status, value, number, cmd->launch->cookie);
        driver->complete_status = FRIT_OK;
        return;
    }
    driver->complete_after -= driver->complete_after > 0;
    if (cmd->kind == FRIT_CMD_DISPATCH)
        driver->dispatches++;
    launch_one(driver, cmd->launch);
}

static frit_status refusal_of(struct driver *driver, const frit_cmd *cmds, uint32_t count)
{
    frit_status st = driver->submit_after ? FRIT_OK : driver->submit_status;

    if (driver->submit_after)
        driver->submit_after--;
    else
        driver->submit_status = FRIT_OK;
    for (uint32_t i = 0; i < count && !st; i++) {
        if (cmds[i].launch)
            st = ((struct driver_program *)cmds[i].launch->program->self)->submit_status;
    }
    return st;
}

static frit_status submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    struct driver *driver = self;
    frit_status st = refusal_of(driver, cmds, count);

    (void)waits;
    assert_true(is_queue(driver, queue));
    assert_int_equal(stride, sizeof(frit_cmd));
    assert_true(driver->more_queues || n_waits == 0);
    TRY(check_lost(driver, err));
    if (st)
        return driver->silent ? st : fail(err, st, "submit refused");
    driver->submits++;
    if (driver->value_first)
        *value = ++driver->timeline;
    if (driver->on_submit)
        driver->on_submit(driver);
    if (!driver->value_first)
        *value = ++driver->timeline;
    for (uint32_t i = 0, end; i < count; i = end + 1) {
        for (end = i; end < count && cmds[end].kind != FRIT_CMD_BARRIER;)
            end++;
        driver->barriers += end < count;
        check_group(cmds + i, end - i);
        for (uint32_t k = i; k < end; k++) {
            uint32_t at = driver->reverse ? end - 1 - (k - i) : k;

            run_command(driver, &cmds[at], *value, at + 1);
        }
    }
    return FRIT_OK;
}

/* Behind what is known. */
static const frit_failure *first_failure(const struct driver *driver, const frit_failure *known)
{
    for (uint32_t i = 0; i < driver->n_failures; i++) {
        const frit_failure *failure = &driver->failures[i];

        if (failure->value > known->value ||
            (failure->value == known->value && known->command && failure->command > known->command))
            return failure;
    }
    return NULL;
}

static frit_status wait_value(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                              frit_failure *out, frit_err *err)
{
    struct driver *driver = self;
    const frit_failure *failure = first_failure(driver, out);

    assert_true(is_queue(driver, queue));
    if (timeout_ns && timeout_ns < UINT64_MAX && driver->late_waits) {
        driver->late_waits--;
        return fail(err, FRIT_TIMEOUT, "not yet");
    }
    TRY(check_lost(driver, err));
    if (driver->lose) {
        driver->is_lost = true;
        return fail(err, FRIT_DEVICE_LOST, "the server closed the connection");
    }
    assert_true(value <= driver->timeline);
    atomic_fetch_add(&driver->waits, 1);
    if (value > atomic_load(&driver->waited))
        atomic_store(&driver->waited, value);
    if (failure && failure->value <= value) {
        out->status = failure->status;
        out->value = driver->nameless ? out->value : failure->value;
        out->command = driver->nameless ? out->command : failure->command;
        out->cookie = failure->cookie;
        fail(err, out->status, "smoke came out");
        if (driver->on_report)
            driver->on_report(driver);
    }
    return FRIT_OK;
}

static void set_plugin(struct driver *driver)
{
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
                                            .op_program = op_program,
                                            .queue_create = create_queue,
                                            .queue_destroy = destroy_queue,
                                            .copy_from = driver->no_copies ? NULL : copy_peer};
    driver->plugin.native = (frit_native_table){.struct_size = sizeof(frit_native_table),
                                                .get = driver->host_visible ? host_pointer : NULL};
    driver->plugin.instance = driver;
    driver->ops[0] = (struct plugin_op){"test.effect/1", driver_effect_op(), ""};
    driver->ops[1] = (struct plugin_op){"test.unknown/1", driver_unknown_op(), ""};
    driver->plugin.ops = driver->ops;
    driver->plugin.n_ops = 2;
    driver->registry.plugins = &driver->plugin;
    driver->registry.n_plugins = 1;
}

static void set_info(struct driver *driver)
{
    driver->info.caps = (driver->inline_queue ? FRIT_CAP_INLINE_QUEUE : 0) |
                        (driver->host_visible ? FRIT_CAP_HOST_VISIBLE : 0);
    driver->info.max_bindings = driver->max_bindings;
    driver->info.max_binding = driver->max_binding;
    driver->info.max_group = driver->max_group;
    driver->info.max_grid[1] = driver->max_grid;
    driver->info.n_heaps = 1;
    driver->info.heap_stride = sizeof(driver->heap);
    driver->info.heaps = &driver->heap;
}

/* `owner` has the plugin. */
static frit_device *open_one(struct driver *driver, const struct driver *owner, const char *name,
                             int64_t max_ops)
{
    struct device_config config = {.max_ops = max_ops,
                                   .note_failure = stream_note_failure,
                                   .queues = 1 + driver->more_queues,
                                   .chunk_bytes = 1 << 16,
                                   .keep_bytes = 1 << 20,
                                   .decompose = driver->decompose,
                                   .poison = driver->poison,
                                   .capture = true,
                                   .store_bytes = 1 << 20,
                                   .registry = &owner->registry,
                                   .run_orphan = stream_run_orphan};
    frit_device *device;
    frit_err err = ERR_INIT;

    set_info(driver);
    driver->entry = (struct device_entry){.plugin = &owner->plugin, .info = &driver->info};
    snprintf(driver->entry.name, sizeof(driver->entry.name), "%s", name);
    assert_int_equal(device_create(&driver->entry, &config, &device, &err), FRIT_OK);
    return device;
}

frit_device *driver_device(struct driver *driver, int64_t max_ops)
{
    set_plugin(driver);
    return open_one(driver, driver, "scripted:0", max_ops);
}

frit_device *driver_peer(struct driver *driver, struct driver *peer)
{
    driver->peer = peer;
    peer->info.index = 1;
    return open_one(peer, driver, "scripted:1", 100);
}
