/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that runs neg, add, maximum and copy of f32, and fuses them, each shared object with one
 * thing wrong: `wrong_row`, or none with WRONG_NOTHING.  All else is right, so that nothing but
 * that can be what `frit conform` complains about. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include <frit/profile.h>

#include "wrong.h"
#include "wrong_memory.h"
#include "wrong_queue.h"

/* ---- what its programs say of a launch ---- */

const frit_phase *wrong_phase(void)
{
    static const frit_phase right = {{1, 1, 1}, {1, 1, 1}}, large = {{1, 1, 1}, {2048, 1, 1}};

    return wrong_row == WRONG_LIMITS ? &large : &right;
}

static const uint32_t first_input;
const frit_output_spec wrong_aliased = {.alias = &first_input, .n_alias = 1};

/* neg packs the last element of its operand. */
static const frit_derived_spec packed = {.tag = 1, .bytes = 8};

/* ---- a program: one op ---- */

struct wrong_program {
    const struct fake *fake;
    uint32_t op;
    float scalar; /* the first it saw */
    int64_t count;
    uint32_t runs;
    float packed; /* the first that it packed */
    bool has_packed;
};

/* ---- elements ---- */

int64_t wrong_count(const frit_arg *arg)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < arg->rank; i++)
        count *= arg->dims[i];
    return count;
}

static bool is_stretched(const frit_arg *arg, const frit_arg *out)
{
    return arg != out && wrong_count(arg) < wrong_count(out);
}

float *wrong_element(const frit_arg *arg, const frit_arg *out, int64_t i)
{
    char *start = (char *)arg->memory + arg->offset + arg->origin;
    int64_t offset = 0, dense = 1;

    for (uint32_t d = out->rank; d > 0; d--) {
        int64_t at = i % out->dims[d - 1], own = (int64_t)d - 1 + arg->rank - out->rank, stride;

        i /= out->dims[d - 1];
        if (own < 0)
            continue;
        stride = arg->dims[own] == 1 ? 0 : arg->strides[own];
        if (wrong_row == WRONG_STRIDES && arg != out && stride > 0)
            stride = dense;
        if (wrong_row == WRONG_REVERSED && stride < 0)
            stride = 0;
        if (wrong_row == WRONG_BROADCAST && is_stretched(arg, out))
            stride = 0;
        dense *= arg->dims[own];
        offset += at * stride;
    }
    return (float *)(void *)start + offset;
}

static float sum(float a, float b)
{
    float result = a + b;

    if (wrong_row == WRONG_ROUNDING && isfinite(result) &&
        fabs((double)result) > fabs((double)a + (double)b))
        result = nextafterf(result, 0);
    return result;
}

float wrong_result(uint32_t op, float a, float b)
{
    if (op == FRIT_OP_add)
        return sum(a, b);
    if (op == FRIT_OP_neg)
        return wrong_row == WRONG_ZERO_SIGN ? 0 - a : -a;
    if (op == FRIT_OP_copy)
        return a;
    if (isnan(a) || isnan(b))
        return wrong_row == WRONG_NANS && !isnan(a) ? a : wrong_row == WRONG_NANS ? b : NAN;
    return a >= b ? a : b;
}

/* ---- launches ---- */

static void misbehave(const struct wrong_program *program, uint32_t rank)
{
    if (rank > 0)
        return;
    if (wrong_row == WRONG_CRASHES && program->op == FRIT_OP_neg)
        raise(SIGSEGV);
    if (wrong_row == WRONG_ABORTS && program->op == FRIT_OP_add)
        abort();
    if (wrong_row == WRONG_EXITS && program->op == FRIT_OP_neg)
        _exit(3);
    while (wrong_row == WRONG_HANGS && program->op == FRIT_OP_neg)
        pause();
}

/* How many elements the program does; those after stay as they are. */
static int64_t done_of(struct wrong_program *program, const frit_arg *out)
{
    int64_t count = wrong_count(out);

    if (program->count == 0 && out->rank > 0)
        program->count = count;
    if (wrong_row == WRONG_ODD && count > 1)
        return count & ~(int64_t)1;
    if (wrong_row == WRONG_FORGETS && out->rank == 0)
        return 0;
    if (wrong_row == WRONG_SHAPE && out->rank > 0 && program->count < count)
        return program->count;
    return count;
}

float wrong_scalar(const frit_launch *launch, uint32_t index)
{
    double wide;

    memcpy(&wide, &launch->scalars[index].bits, sizeof(wide));
    return (float)wide;
}

static float scalar_of(struct wrong_program *program, const frit_launch *launch, uint32_t *next)
{
    float value = wrong_scalar(launch, (*next)++);

    if (program->runs++ == 0)
        program->scalar = value;
    return wrong_row == WRONG_SCALAR ? program->scalar : value;
}

static bool strided(const frit_arg *arg)
{
    return arg->rank > 0 && arg->strides[arg->rank - 1] > 1;
}

/* The result for the last element, which is derived from the operand. */
static float unpack(struct wrong_program *program, const frit_launch *launch, float element)
{
    const frit_derived *derived = launch->derived;
    float *at = (float *)(void *)((char *)derived->memory + derived->offset);

    if (derived->fill)
        at[0] = wrong_result(program->op, element, 0);
    if (wrong_row == WRONG_REWRITES)
        at[1] = (float)program->runs++;
    if (!program->has_packed) {
        program->packed = at[0];
        program->has_packed = true;
    }
    return wrong_row == WRONG_STALE ? program->packed : at[0];
}

static void run(struct wrong_program *program, const frit_launch *launch)
{
    const frit_arg *in[2] = {frit_arg_at(launch, 0), frit_arg_at(launch, 1)};
    const frit_arg *out = frit_arg_at(launch, launch->n_args - 1);
    int64_t count = done_of(program, out);
    float value[2] = {0, 0};
    uint32_t n_in = launch->n_args - 1, next = 0;

    misbehave(program, out->rank);
    for (uint32_t k = 0; k < n_in; k++)
        if (in[k]->dtype == FRIT_NO_DTYPE)
            value[k] = scalar_of(program, launch, &next);
    for (int64_t i = 0; i < count && wrong_row == WRONG_ALIAS; i++)
        *wrong_element(out, out, i) = 0;
    for (int64_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < n_in; k++)
            if (in[k]->dtype != FRIT_NO_DTYPE)
                value[k] = *wrong_element(in[k], out, i);
        *wrong_element(out, out, i) = launch->n_derived && i == wrong_count(out) - 1
                                          ? unpack(program, launch, value[0])
                                          : wrong_result(program->op, value[0], value[1]);
    }
    if (wrong_row == WRONG_PAST_END && count > 1)
        wrong_element(out, out, count - 1)[1] = 1;
    if (wrong_row == WRONG_VARIES && count > 1)
        *wrong_element(out, out, 0) += (float)(program->runs++ % 2) / 1048576;
    if (wrong_row == WRONG_OPERAND && program->op == FRIT_OP_add && count > 1 && in[0]->dtype)
        *wrong_element(in[0], out, 0) += 1;
}

/* ---- the tables ---- */

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    static const frit_candidate only = {.struct_size = sizeof(only), .identity = {"only", 4}};

    (void)self;
    (void)err;
    out->n_candidates = 1;
    out->candidate_stride = sizeof(only);
    out->n_ops = 1;
    out->name = FRIT_STR("wrong");
    out->candidates = &only;
    return FRIT_OK;
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    const struct wrong_program *program = self;

    (void)candidate;
    (void)variant;
    if (sig->flags & FRIT_MUST_UNDERSTAND)
        return fake_fail(program->fake, err, FRIT_UNSUPPORTED, "unknown flags");
    if (program->op == FRIT_OP_relu)
        return fake_fail(program->fake, err, FRIT_INTERNAL, "a kernel that is not valid");
    out->n_phases = 1;
    out->phases = wrong_phase();
    out->n_outputs = wrong_row == WRONG_ALIAS;
    out->output_stride = sizeof(wrong_aliased);
    out->outputs = &wrong_aliased;
    out->n_derived = program->op == FRIT_OP_neg;
    out->derived_stride = sizeof(packed);
    out->derived = &packed;
    return FRIT_OK;
}

static void destroy(void *self)
{
    const struct wrong_program *program = self;

    program->fake->core->mem_free(program->fake->host->self, self);
}

bool wrong_takes(const frit_op_desc *op)
{
    if (op->id != FRIT_OP_neg && op->id != FRIT_OP_add && op->id != FRIT_OP_maximum &&
        op->id != FRIT_OP_copy && !(wrong_row == WRONG_REFUSES && op->id == FRIT_OP_relu))
        return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (frit_operand_at(op, op->in, i)->dtype != FRIT_F32)
            return false;
    return true;
}

static frit_status supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err)
{
    (void)self;
    (void)err;
    memset(bits, 0, (count + 63) / 64 * sizeof(*bits));
    for (uint32_t i = 0; i < count; i++) {
        const frit_op_desc *op =
            (const frit_op_desc *)(const void *)((const char *)ops + (size_t)stride * i);

        if (wrong_takes(op))
            bits[i / 64] |= (uint64_t)1 << i % 64;
    }
    return FRIT_OK;
}

static frit_status op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    static const frit_program_table table = {.struct_size =
                                                 FRIT_END_OF(frit_program_table, destroy),
                                             .describe = describe,
                                             .prepare = prepare,
                                             .destroy = destroy};
    const struct fake *fake = fake_of(self);
    struct wrong_program *program;

    if (!wrong_takes(op))
        return fake_fail(fake, err, FRIT_UNSUPPORTED, "neg, add, maximum and copy of f32 only");
    if (wrong_row == WRONG_NO_PROGRAM && op->id == FRIT_OP_neg)
        return fake_fail(fake, err, FRIT_INTERNAL, "there is no program");
    program = fake->core->mem_alloc(fake->host->self, sizeof(*program), 64);
    if (!program)
        return fake_fail(fake, err, FRIT_NO_HOST_MEMORY, "no memory for a program");
    *program = (struct wrong_program){.fake = fake, .op = op->id};
    out->table = &table;
    out->self = program;
    return FRIT_OK;
}

/* ---- the queue ---- */

static const frit_cmd *cmd_at(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)stride * i);
}

/* What cannot be done is found before anything is. */
static frit_status check(const struct fake *fake, const frit_cmd *cmd, frit_err *err)
{
    if (cmd->kind == FRIT_CMD_TIMESTAMP)
        return FRIT_OK;
    if (wrong_row != WRONG_KINDS && (cmd->kind < FRIT_CMD_COPY || cmd->kind > FRIT_CMD_BARRIER))
        return fake_fail(fake, err, FRIT_UNSUPPORTED, "a command of unknown kind");
    return FRIT_OK;
}

static frit_status launch(const struct fake *fake, const frit_launch *given, frit_err *err)
{
    struct wrong_program *program = given->program->self;

    if (fused_owns(given->program)) {
        fused_run(given);
        return FRIT_OK;
    }
    if (wrong_row == WRONG_FAILS && program->op == FRIT_OP_add && strided(frit_arg_at(given, 0)))
        return fake_fail(fake, err, FRIT_IO, "not today");
    run(program, given);
    return FRIT_OK;
}

/* ---- the clock ---- */

enum { EARLY_NS = 50000000 };

static uint64_t ticks_now(const struct fake *fake)
{
    const uint64_t now = fake->core->now_ns(fake->host->self);

    return wrong_row == WRONG_RATE ? now / 2 : now;
}

static void timestamp(const struct fake *fake, const frit_cmd *cmd)
{
    static uint64_t back;
    uint64_t ticks = ticks_now(fake);

    if (wrong_row == WRONG_CLOCK)
        ticks -= (back += EARLY_NS / 1000);
    if (wrong_row == WRONG_EARLY)
        ticks -= EARLY_NS;
    memcpy((char *)cmd->dst + cmd->dst_offset, &ticks, sizeof(ticks));
}

static frit_status device_clock(void *self, frit_clock *out, frit_err *err)
{
    const struct fake *fake = fake_of(self);

    (void)err;
    out->valid_bits = 64;
    out->host_ns = fake->core->now_ns(fake->host->self);
    out->ticks = ticks_now(fake);
    out->ns_per_tick = 1;
    return FRIT_OK;
}

/* What submit of the fake driver does, one command after the other, and launches. */
static frit_status submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    const struct fake *fake = fake_of(self);
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < count && !status && wrong_row != WRONG_HALF; i++)
        status = check(fake, cmd_at(cmds, stride, i), err);
    if (!status)
        status = wrong_queue_enter(self, queue, waits, n_waits, err);
    if (!status && wrong_queue_hold(self, queue, cmds, count, stride))
        return fake->plain.submit(self, queue, NULL, 0, 0, NULL, 0, value, err);
    for (uint32_t i = 0; i < count && !status; i++) {
        frit_cmd plain = *cmd_at(cmds, stride, wrong_row == WRONG_LATE ? count - 1 - i : i);

        status = check(fake, &plain, err);
        if (!status && plain.kind == FRIT_CMD_LAUNCH) {
            status = launch(fake, plain.launch, err);
            plain.kind = FRIT_CMD_BARRIER;
        }
        if (!status && plain.kind == FRIT_CMD_TIMESTAMP) {
            timestamp(fake, &plain);
            plain.kind = FRIT_CMD_BARRIER;
        }
        if (!status)
            status = fake->plain.submit(self, queue, &plain, 1, sizeof(plain), waits, n_waits,
                                        value, err);
    }
    return status;
}

/* ---- memory ---- */

static const void *stuck; /* the device whose queue hangs */

static frit_status queue_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                              frit_failure *failure, frit_err *err)
{
    const struct timespec time = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                                  .tv_nsec = (long)(timeout_ns % 1000000000)};
    frit_status status = wrong_queue_check(self, queue, NULL, 0, err);

    if (status)
        return status;
    if (!queue && timeout_ns)
        (void)wrong_queue_enter(self, queue, NULL, 0, err);
    if (self != stuck)
        return fake_of(self)->plain.wait(self, queue, value, timeout_ns, failure, err);
    nanosleep(&time, NULL);
    return FRIT_TIMEOUT;
}

static frit_status memory_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    const struct fake *fake = fake_of(self);
    frit_alloc_desc loose = *desc;
    frit_status status;

    if (desc->heap == 1)
        return wrong_alloc_pinned(self, desc, out, err);
    loose.align = wrong_row == WRONG_ALIGN ? 64 : loose.align;
    if (wrong_row == WRONG_STUCK && desc->bytes == 1)
        stuck = self;
    status = fake->plain.alloc(self, &loose, out, err);
    return status && wrong_row == WRONG_MEMORY ? FRIT_INTERNAL : status;
}

static frit_status memory_write(void *self, const frit_transfer *to, const void *from,
                                uint64_t *value, frit_err *err)
{
    enum { LOST = 1 << 16 };
    const struct fake *fake = fake_of(self);
    frit_transfer even = *to;
    frit_status status;
    void *lost;

    if (wrong_row == WRONG_OFFSETS)
        even.offset &= ~(uint64_t)1;
    if (wrong_row == WRONG_LEAKS) {
        lost = fake->core->mem_alloc(fake->host->self, LOST, 64);
        if (lost)
            memset(lost, 1, LOST);
    }
    status = wrong_queue_enter(self, to->queue, to->waits, to->n_waits, err);
    return status ? status : fake->plain.write(self, &even, from, value, err);
}

static frit_status memory_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                               frit_err *err)
{
    const struct fake *fake = fake_of(self);
    frit_transfer part = *from;
    frit_status status;

    if (wrong_row == WRONG_TRANSFER && part.bytes > 4096)
        part.bytes &= ~(uint64_t)3;
    if (wrong_row == WRONG_FILES)
        (void)!dup(STDERR_FILENO);
    status = wrong_queue_enter(self, from->queue, from->waits, from->n_waits, err);
    if (!status)
        status = fake->plain.read(self, &part, into, value, err);
    *value -= wrong_row == WRONG_TIME;
    return status;
}

/* ---- frit.capture/1 ---- */

static frit_status record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_param *params, uint32_t n_params,
                          uint32_t param_stride, frit_recording **out, frit_err *err)
{
    const struct fake *fake = fake_of(self);
    struct cmd_arena arena = {0};
    uint64_t value;

    (void)recording_keep(&arena, cmds, count, stride, params, n_params, param_stride);
    arena.at = fake->core->mem_alloc(fake->host->self, arena.used, 64);
    if (!arena.at)
        return fake_fail(fake, err, FRIT_NO_HOST_MEMORY, "no memory for a recording");
    arena.used = 0;
    *out = recording_keep(&arena, cmds, count, stride, params, n_params, param_stride);
    return wrong_row == WRONG_RECORDS
               ? submit(self, queue, cmds, count, stride, NULL, 0, &value, err)
               : FRIT_OK;
}

/* What is wrong stays as it was recorded. */
static bool is_baked(const frit_param *param)
{
    return (wrong_row == WRONG_BAKED_SCALAR && param->kind == FRIT_PARAM_SCALAR) ||
           (wrong_row == WRONG_BAKED_PLACE && param->kind == FRIT_PARAM_ARG) ||
           (wrong_row == WRONG_BAKED_INPUT && param->kind == FRIT_PARAM_ARG && param->index == 0);
}

static frit_status replay(void *self, frit_recording *recording, const void *block,
                          const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    for (uint32_t i = 0; i < recording->n_params; i++)
        if (!is_baked(&recording->params[i]))
            recording_put(recording->cmds, &recording->params[i], block);
    return submit(self, NULL, recording->cmds, recording->n_cmds, sizeof(*recording->cmds), waits,
                  n_waits, value, err);
}

static void release(void *self, frit_recording *recording)
{
    const struct fake *fake = fake_of(self);

    fake->core->mem_free(fake->host->self, recording);
}

static const frit_capture_table captures = {
    .struct_size = sizeof(captures), .record = record, .replay = replay, .release = release};

/* ---- the plugin ---- */

const void *wrong_interface(void *instance, frit_str id)
{
    static const frit_profile_table profile = {.struct_size = sizeof(profile),
                                               .clock = device_clock};

    if (id.len == sizeof(FRIT_CAPTURE_TABLE) - 1 && memcmp(id.ptr, FRIT_CAPTURE_TABLE, id.len) == 0)
        return &captures;
    if (id.len == sizeof(FRIT_PROFILE_TABLE) - 1 && memcmp(id.ptr, FRIT_PROFILE_TABLE, id.len) == 0)
        return &profile;
    return id.len == sizeof(FRIT_FUSER_TABLE) - 1 && memcmp(id.ptr, FRIT_FUSER_TABLE, id.len) == 0
               ? &wrong_fusers
               : fake_get_interface(instance, id);
}

frit_status wrong_plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    struct fake *fake = NULL;
    frit_status status = fake_open(host, "wrong", &fake, err);

    if (status)
        return status;
    fake->backend.enumerate = wrong_enumerate;
    fake->backend.device_open = wrong_open;
    fake->backend.alloc = memory_alloc;
    fake->backend.free = wrong_free;
    fake->backend.write = memory_write;
    fake->backend.read = memory_read;
    fake->backend.submit = submit;
    fake->backend.wait = queue_wait;
    fake->backend.supports = supports;
    fake->backend.op_program = op_program;
    fake->backend.struct_size = FRIT_END_OF(frit_backend, copy_from);
    fake->backend.import_host = wrong_import;
    fake->backend.queue_create = wrong_queue_create;
    fake->backend.queue_destroy = wrong_queue_destroy;
    fake->backend.copy_from = wrong_copy_from;
    fake->n_devices = 2;
    *instance = fake;
    return FRIT_OK;
}
