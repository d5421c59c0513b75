/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, tensors and launches on a bare plugin. */
#include "conform/launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conform/bare.h"

/* ---- memory and queue ---- */

frit_status bare_alloc(struct bare *bare, uint64_t bytes, uint64_t align, frit_allocation *out)
{
    uint64_t least = bare->info.align_bytes ? bare->info.align_bytes : 64;
    const frit_alloc_desc desc = {
        .struct_size = sizeof(desc), .bytes = bytes, .align = align > least ? align : least};
    frit_status status;

    *out = (frit_allocation){.struct_size = sizeof(*out)};
    status = bare->backend->alloc(bare->device, &desc, out, &bare->err);
    if (status)
        return bare_fail(bare, "alloc", status);
    return out->memory ? FRIT_OK : bare_fail_text(bare, "alloc gives no memory, and no failure");
}

void bare_set_last(struct bare *bare, uint64_t value)
{
    bare->last = value > bare->last ? value : bare->last;
}

/* Waits once, with a time limit below that of the case: a queue that hangs fails the case by a
 * message of its own. */
static frit_status wait_once(struct bare *bare, uint64_t value, frit_failure *failure,
                             frit_err *err)
{
    uint64_t timeout = (uint64_t)(bare->options->timeout / 2 * 1e9);
    frit_status status =
        bare->late ? FRIT_TIMEOUT
                   : bare->backend->wait(bare->device, NULL, value, timeout, failure, err);

    bare->late = status == FRIT_TIMEOUT;
    if (!bare->late && value > bare->reached)
        bare->reached = value;
    return status;
}

frit_status bare_late(struct bare *bare)
{
    bare_fail_text(bare, "wait: no answer after %g s", bare->options->timeout / 2);
    return FRIT_TIMEOUT;
}

void bare_free(struct bare *bare, frit_memory *memory)
{
    frit_failure failure = {
        .struct_size = sizeof(failure), .value = bare->last, .command = FRIT_ALL_COMMANDS};

    if (bare->reached < bare->last)
        (void)wait_once(bare, bare->last, &failure, NULL);
    if (!bare->late)
        bare->backend->free(bare->device, memory);
}

frit_status bare_wait(struct bare *bare, uint64_t value)
{
    frit_failure failure = {.struct_size = sizeof(failure),
                            .value = value ? value - 1 : 0,
                            .command = FRIT_ALL_COMMANDS};
    frit_status status = wait_once(bare, value, &failure, &bare->err);

    if (bare->late)
        return bare_late(bare);
    if (status)
        return bare_fail(bare, "wait", status);
    return failure.status ? bare_fail(bare, "a command", failure.status) : FRIT_OK;
}

frit_status bare_write(struct bare *bare, frit_memory *memory, uint64_t offset, const void *from,
                       uint64_t bytes)
{
    const frit_transfer to = {
        .struct_size = sizeof(to), .memory = memory, .offset = offset, .bytes = bytes};
    uint64_t value = 0;
    frit_status status = bare->backend->write(bare->device, &to, from, &value, &bare->err);

    if (status)
        return bare_fail(bare, "write", status);
    bare_set_last(bare, value);
    return FRIT_OK;
}

frit_status bare_read(struct bare *bare, frit_memory *memory, uint64_t offset, void *into,
                      uint64_t bytes)
{
    const frit_transfer from = {
        .struct_size = sizeof(from), .memory = memory, .offset = offset, .bytes = bytes};
    uint64_t value = 0;
    frit_status status = bare->backend->read(bare->device, &from, into, &value, &bare->err);

    if (status)
        return bare_fail(bare, "read", status);
    bare_set_last(bare, value);
    return bare_wait(bare, value);
}

/* ---- tensors ---- */

/* Bytes before and after; none where a tensor must be all of its memory. */
static uint64_t guard_of(const struct bare *bare)
{
    return bare->info.caps & FRIT_CAP_NO_SUBALLOC ? 0
           : bare->info.align_bytes > 256         ? bare->info.align_bytes
                                                  : 256;
}

static uint64_t bytes_of(const struct bare_tensor *tensor)
{
    return 2 * tensor->guard + tensor->count * sizeof(float);
}

frit_status bare_tensor(struct bare *bare, const int64_t *dims, uint32_t rank, const float *numbers,
                        struct bare_tensor *out)
{
    frit_allocation got;
    frit_status status;
    char *data;

    *out = (struct bare_tensor){.guard = guard_of(bare), .count = 1, .rank = rank};
    for (uint32_t d = rank; d-- > 0; out->count *= (uint64_t)dims[d]) {
        out->dims[d] = dims[d];
        out->strides[d] = (int64_t)out->count;
    }
    data = malloc(bytes_of(out));
    if (!data)
        return bare_fail_text(bare, "no memory");
    memset(data, GUARD_BYTE, bytes_of(out));
    for (uint64_t i = 0; i < out->count; i++)
        ((float *)(void *)(data + out->guard))[i] = numbers ? numbers[i] : NAN;
    status = bare_alloc(bare, bytes_of(out), out->guard, &got);
    if (!status) {
        out->memory = got.memory;
        status = bare_write(bare, out->memory, 0, data, bytes_of(out));
    }
    free(data);
    return status;
}

frit_status bare_numbers(struct bare *bare, const struct bare_tensor *tensor, float *out)
{
    uint64_t whole = bytes_of(tensor), bytes = tensor->count * sizeof(float), written = 0;
    char *data = malloc(whole);
    frit_status status;

    if (!data)
        return bare_fail_text(bare, "no memory");
    status = bare_read(bare, tensor->memory, 0, data, whole);
    for (uint64_t i = 0; i < tensor->guard && !status; i++)
        written += data[i] != GUARD_BYTE || data[tensor->guard + bytes + i] != GUARD_BYTE;
    memcpy(out, data + tensor->guard, bytes);
    if (!bare->late) /* else a read may still come */
        free(data);
    if (!status && written)
        return bare_fail_text(bare, "%llu bytes beside a tensor were written",
                              (unsigned long long)written);
    return status;
}

void bare_tensor_free(struct bare *bare, struct bare_tensor *tensor)
{
    if (tensor->memory)
        bare_free(bare, tensor->memory);
    *tensor = (struct bare_tensor){0};
}

/* ---- prepare ---- */

static uint8_t class_of(double x)
{
    return x == 0              ? FRIT_SCALAR_CLASS_ZERO
           : x == 1            ? FRIT_SCALAR_CLASS_ONE
           : x == -1           ? FRIT_SCALAR_CLASS_MINUS_ONE
           : x == 2            ? FRIT_SCALAR_CLASS_TWO
           : x == 0.5          ? FRIT_SCALAR_CLASS_HALF
           : x == nearbyint(x) ? FRIT_SCALAR_CLASS_INTEGER
                               : FRIT_SCALAR_CLASS_OTHER;
}

static uint32_t log2_of(uint64_t bytes)
{
    uint32_t log2 = 0;

    while (bytes >> (log2 + 1))
        log2++;
    return log2;
}

static void sign(const struct bare *bare, const struct bare_launch *launch, uint32_t i,
                 frit_arg_sig *out)
{
    const struct bare_tensor *tensor = launch->args[i];

    *out = (frit_arg_sig){.flags = i < launch->n_in ? FRIT_ARG_READ : FRIT_ARG_WRITE};
    if (!tensor) {
        out->flags = 0;
        return;
    }
    out->dtype = FRIT_F32;
    out->rank = tensor->rank;
    out->align_log2 = log2_of(tensor->guard ? tensor->guard : bare->info.align_bytes);
    out->flags |= tensor->guard ? 0 : FRIT_ARG_START;
    memcpy(out->dims, tensor->dims, sizeof(out->dims));
    memcpy(out->strides, tensor->strides, sizeof(out->strides));
}

/* A signature, and what it points to. */
struct bare_question {
    frit_signature signature;
    struct wide_sig args[BARE_ARGS];
    uint8_t classes[BARE_SCALARS];
};

static void question_init(const struct bare *bare, const struct bare_launch *launch,
                          struct bare_question *out)
{
    const uint32_t stride = bare->wide ? sizeof(out->args[0]) : sizeof(out->args[0].sig);

    memset(out, 0, sizeof(*out));
    memset(out->args, GUARD_BYTE, sizeof(out->args));
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++)
        sign(bare, launch, i, (frit_arg_sig *)(void *)((char *)out->args + (size_t)i * stride));
    for (uint32_t i = 0; i < launch->n_scalars; i++)
        out->classes[i] = class_of(launch->scalars[i]);
    out->signature = (frit_signature){.struct_size = sizeof(out->signature),
                                      .n_in = launch->n_in,
                                      .n_out = launch->n_out,
                                      .arg_stride = stride,
                                      .n_scalars = launch->n_scalars,
                                      .index_width = 32,
                                      .args = &out->args[0].sig,
                                      .scalar_classes = out->classes,
                                      .bound_classes = out->classes};
}

void bare_prepare(struct bare *bare, const struct bare_launch *launch, struct bare_answer *out)
{
    struct bare_question question;

    question_init(bare, launch, &question);
    *out =
        (struct bare_answer){.spec = {.struct_size = FRIT_END_OF(frit_launch_spec, wanted_strides)},
                             .variant = {.struct_size = sizeof(out->variant)}};
    out->status =
        launch->program->table->prepare(launch->program->self, launch->candidate,
                                        &question.signature, &out->spec, &out->variant, &bare->err);
}

int32_t bare_priority(struct bare *bare, const struct bare_launch *launch)
{
    const frit_program_table *table = launch->program->table;
    struct bare_question question;

    if (!FRIT_HAS(table, frit_program_table, priority) || !table->priority)
        return 0;
    question_init(bare, launch, &question);
    return table->priority(launch->program->self, launch->candidate, &question.signature);
}

void bare_release(const frit_program *program, struct bare_answer *answer)
{
    const frit_program_table *table = program->table;

    if (answer->status >= 0 && FRIT_HAS(table, frit_program_table, spec_release) &&
        table->spec_release)
        table->spec_release(program->self, &answer->spec);
    answer->status = FRIT_INVALID;
}

const frit_output_spec *bare_output(const struct bare_answer *answer, uint32_t output)
{
    static const frit_output_spec dense;
    const frit_launch_spec *spec = &answer->spec;

    if (output >= spec->n_outputs)
        return &dense;
    return (const frit_output_spec *)(const void *)((const char *)spec->outputs +
                                                    (size_t)output * spec->output_stride);
}

/* ---- running ---- */

void bare_derived_free(struct bare *bare, struct bare_derived *derived)
{
    for (uint32_t i = 0; i < derived->n; i++)
        bare_free(bare, derived->at[i].memory);
    *derived = (struct bare_derived){0};
}

static void extras_free(struct bare *bare, struct bare_extras *extras)
{
    if (extras->workspace.memory)
        bare_free(bare, extras->workspace.memory);
    bare_derived_free(bare, &extras->own);
}

static const frit_derived_spec *derived_at(const frit_launch_spec *spec, uint32_t index)
{
    return (const frit_derived_spec *)(const void *)((const char *)spec->derived +
                                                     (size_t)index * spec->derived_stride);
}

/* Memory for all, with garbage in it. */
static frit_status derived_make(struct bare *bare, const frit_launch_spec *spec,
                                struct bare_derived *derived)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = derived->n; i < spec->n_derived && !status; i++) {
        uint64_t bytes = derived_at(spec, i)->bytes;
        void *garbage = malloc(bytes ? bytes : 1);

        if (!garbage)
            return bare_fail_text(bare, "no memory");
        memset(garbage, GUARD_BYTE, bytes);
        status = bare_alloc(bare, bytes, 0, &derived->at[i]);
        if (!status) {
            derived->bytes[i] = bytes;
            derived->n++;
            status = bare_write(bare, derived->at[i].memory, 0, garbage, bytes);
        }
        free(garbage);
    }
    return status;
}

static frit_status extras_make(struct bare *bare, const struct bare_launch *launch,
                               const frit_launch_spec *spec, struct bare_extras *extras)
{
    frit_status status = FRIT_OK;

    *extras = (struct bare_extras){0};
    extras->derived = launch->derived ? launch->derived : &extras->own;
    if (spec->n_derived > BARE_DERIVED)
        return bare_fail_text(bare, "prepare wants %u derived pieces of memory", spec->n_derived);
    if (spec->workspace_bytes)
        status = bare_alloc(bare, spec->workspace_bytes, spec->workspace_align, &extras->workspace);
    if (!status)
        status = derived_make(bare, spec, extras->derived);
    for (uint32_t i = 0; i < spec->n_derived && !status; i++)
        extras->list[i] = (frit_derived){.memory = extras->derived->at[i].memory,
                                         .fill = !extras->derived->valid};
    return status;
}

static uint32_t arg_stride(const struct bare *bare)
{
    return bare->wide ? sizeof(struct wide_arg) : sizeof(frit_arg);
}

static void fill_args(const struct bare *bare, const struct bare_launch *launch,
                      struct wide_arg args[BARE_ARGS])
{
    memset(args, GUARD_BYTE, BARE_ARGS * sizeof(args[0]));
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        const struct bare_tensor *tensor = launch->args[i];
        frit_arg *arg = (frit_arg *)(void *)((char *)args + (size_t)i * arg_stride(bare));
        frit_arg_sig sig;

        sign(bare, launch, i, &sig);
        *arg = (frit_arg){
            .dtype = sig.dtype, .rank = sig.rank, .align_log2 = sig.align_log2, .flags = sig.flags};
        if (!tensor)
            continue;
        arg->memory = tensor->memory;
        arg->offset = tensor->guard;
        arg->extent = tensor->count * sizeof(float);
        memcpy(arg->dims, sig.dims, sizeof(sig.dims));
        memcpy(arg->strides, sig.strides, sizeof(sig.strides));
    }
}

enum { RECORDED = 16 };

static bool has_record(const frit_program *program)
{
    return FRIT_HAS(program->table, frit_program_table, record) && program->table->record;
}

/* A LAUNCH, or what a program for another plugin's device records, at most RECORDED commands. */
static frit_status record(struct bare *bare, const frit_launch *launch, frit_cmd *cmds, uint32_t *n)
{
    const frit_program *program = launch->program;
    frit_status status;

    cmds[0] = (frit_cmd){.struct_size = sizeof(cmds[0]), .kind = FRIT_CMD_LAUNCH, .launch = launch};
    *n = 1;
    if (!has_record(program))
        return FRIT_OK;
    for (uint32_t i = 0; i < RECORDED; i++)
        cmds[i] = (frit_cmd){.struct_size = sizeof(cmds[0])};
    status = program->table->record(program->self, launch, cmds, RECORDED, n, &bare->err);
    if (status)
        return bare_fail(bare, "record", status);
    if (*n == 0 || *n > RECORDED)
        return bare_fail_text(bare, "record gives %u commands", *n);
    for (uint32_t i = 0; i < *n; i++)
        if (cmds[i].kind != FRIT_CMD_DISPATCH && cmds[i].kind != FRIT_CMD_BARRIER)
            return bare_fail_text(bare, "record gives a command of kind %u", cmds[i].kind);
    return FRIT_OK;
}

/* What submit borrows for its call alone. */
struct borrowed {
    frit_launch launch;
    struct wide_arg args[BARE_ARGS];
    frit_scalar scalars[BARE_SCALARS];
    frit_derived derived[BARE_DERIVED];
};

static void borrow(const frit_launch *launch, struct borrowed *out)
{
    out->launch = *launch;
    memcpy(out->args, launch->args, (size_t)launch->n_args * launch->arg_stride);
    if (launch->n_scalars)
        memcpy(out->scalars, launch->scalars, launch->n_scalars * sizeof(out->scalars[0]));
    if (launch->n_derived)
        memcpy(out->derived, launch->derived, launch->n_derived * sizeof(out->derived[0]));
    out->launch.args = &out->args[0].arg;
    out->launch.scalars = out->scalars;
    out->launch.derived = out->derived;
}

static frit_status submit(struct bare *bare, const frit_launch *given)
{
    enum { BEFORE = 2 };
    static struct borrowed borrowed;
    const frit_launch *launch = &borrowed.launch;
    const frit_launch_spec *spec = given->spec;
    frit_cmd cmds[BEFORE + RECORDED] = {{.struct_size = sizeof(cmds[0]),
                                         .kind = FRIT_CMD_FILL,
                                         .dst = given->workspace,
                                         .bytes = spec->workspace_bytes,
                                         .pattern_bytes = 1},
                                        {.struct_size = sizeof(cmds[0]), .kind = FRIT_CMD_BARRIER}};
    uint32_t first = spec->workspace_zeroed && spec->workspace_bytes ? 0 : BEFORE, n;
    uint64_t value = 0;
    frit_status status;

    borrow(given, &borrowed);
    status = record(bare, launch, cmds + BEFORE, &n);
    if (status)
        return status;
    status = bare->backend->submit(bare->device, NULL, cmds + first, BEFORE - first + n,
                                   sizeof(cmds[0]), NULL, 0, &value, &bare->err);
    memset(cmds, GUARD_BYTE, sizeof(cmds));
    memset(&borrowed, GUARD_BYTE, sizeof(borrowed));
    if (status)
        return bare_fail(bare, "submit", status);
    bare_set_last(bare, value);
    return bare_wait(bare, value);
}

frit_status bare_bind(struct bare *bare, const struct bare_launch *launch,
                      const struct bare_answer *answer, struct bare_bound *out)
{
    frit_status status = extras_make(bare, launch, &answer->spec, &out->extras);

    fill_args(bare, launch, out->args);
    for (uint32_t i = 0; i < launch->n_scalars; i++) {
        out->scalars[i] = (frit_scalar){.kind = FRIT_SCALAR_F64};
        memcpy(&out->scalars[i].bits, &launch->scalars[i], sizeof(out->scalars[i].bits));
    }
    out->launch = (frit_launch){.struct_size = sizeof(out->launch),
                                .n_args = launch->n_in + launch->n_out,
                                .arg_stride = arg_stride(bare),
                                .n_scalars = launch->n_scalars,
                                .n_derived = answer->spec.n_derived,
                                .cookie = 1,
                                .program = launch->program,
                                .spec = &answer->spec,
                                .variant = &answer->variant,
                                .args = &out->args[0].arg,
                                .scalars = out->scalars,
                                .derived = out->extras.list,
                                .workspace = out->extras.workspace.memory,
                                .candidate = launch->candidate};
    return status;
}

void bare_unbind(struct bare *bare, struct bare_bound *bound)
{
    extras_free(bare, &bound->extras);
}

frit_status bare_run_prepared(struct bare *bare, const struct bare_launch *launch,
                              const struct bare_answer *answer)
{
    struct bare_bound bound;
    frit_status status = bare_bind(bare, launch, answer, &bound);

    if (!status)
        status = submit(bare, &bound.launch);
    bound.extras.derived->valid = !status;
    bare_unbind(bare, &bound);
    return status;
}

frit_status bare_compile(struct bare *bare, const struct bare_launch *launch,
                         struct bare_answer *answer)
{
    if (answer->status == FRIT_PREPARE_NEEDS_COMPILE)
        answer->status = launch->program->table->compile(launch->program->self, launch->candidate,
                                                         &answer->variant, NULL, &bare->err);
    if (!answer->status)
        return FRIT_OK;
    bare_fail(bare, "prepare or compile", answer->status);
    return answer->status; /* unsupported: not in this layout, or by this candidate */
}

static frit_status run_answer(struct bare *bare, const struct bare_launch *launch,
                              struct bare_answer *answer)
{
    frit_status status;

    if (answer->status == FRIT_PREPARE_RELAYOUT) {
        bare_fail_text(bare, "it wants other strides than dense ones");
        return FRIT_UNSUPPORTED;
    }
    status = bare_compile(bare, launch, answer);
    if (status)
        return status;
    for (uint32_t k = 0; k < launch->n_out; k++)
        if (bare_output(answer, k)->strided) {
            bare_fail_text(bare, "it wants outputs that are not dense");
            return FRIT_UNSUPPORTED;
        }
    return bare_run_prepared(bare, launch, answer);
}

frit_status bare_run(struct bare *bare, const struct bare_launch *launch)
{
    static struct bare_answer answer;
    frit_status status;

    bare_prepare(bare, launch, &answer);
    status = run_answer(bare, launch, &answer);
    bare_release(launch->program, &answer);
    return status;
}
