/* SPDX-License-Identifier: Apache-2.0 */
/* Slots that do their work, or none, and say what is not so. */
#include <stdint.h>
#include <string.h>

#include "sin.h"

/* An escape sequence, a C1 control character, bytes that are no UTF-8, the end of a line. */
#define DIRT "dirty\033[31m\302\233\377\300\200\n text"

/* The sins of a slot share a function: `IS(act)` says whether it is this one. */
#define IS(act) reached(table, slot, act)

/* ---- devices and memory ---- */

static frit_status device_open(void *instance, uint32_t index, const frit_open_params *params,
                               void **out, frit_err *err)
{
    static const char table[] = "backend", slot[] = "device_open";
    frit_status status = inner.backend.device_open(instance, index, params, out, err);

    if (IS("null"))
        *out = NULL;
    if (IS("lost") && params->lost) { /* inside of the slot, where it may not be called */
        const frit_err why = {.struct_size = sizeof(why),
                              .status = FRIT_DEVICE_LOST,
                              .text = "lost while it is opened"};

        params->lost(params->ctx, &why);
    }
    if (IS("dirty_text")) {
        inner.backend.device_close(*out);
        *out = NULL;
        memcpy(err->text, DIRT, sizeof(DIRT));
        status = err->status = FRIT_IO;
    }
    return status;
}

static frit_status memory_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    static const char table[] = "backend", slot[] = "alloc";
    const frit_status status = inner.backend.alloc(self, desc, out, err);

    if (IS("null"))
        out->memory = NULL;
    if (IS("no_pointer"))
        out->host_pointer = NULL;
    if (IS("odd_address"))
        out->address += 1;
    if (IS("odd_pointer"))
        out->host_pointer = (char *)out->host_pointer + 1;
    return status;
}

static frit_status import_host(void *self, const frit_import_desc *desc, frit_allocation *out,
                               frit_err *err)
{
    static const char table[] = "backend", slot[] = "import_host";
    const frit_status status = inner.backend.import_host(self, desc, out, err);

    if (IS("null"))
        out->memory = NULL;
    return status;
}

static frit_status kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err)
{
    static const char table[] = "backend", slot[] = "kernel_load";
    const frit_status status = inner.backend.kernel_load(self, format, bytes, n_bytes, kernel, err);

    if (IS("null"))
        *kernel = NULL;
    return status;
}

static frit_status queue_create(void *self, const frit_queue_desc *desc, frit_queue **out,
                                frit_err *err)
{
    static const char table[] = "backend", slot[] = "queue_create";
    const frit_status status = inner.backend.queue_create(self, desc, out, err);

    if (IS("null"))
        *out = NULL;
    return status;
}

static uint64_t heap_budget(void *self, uint32_t heap)
{
    static const char table[] = "backend", slot[] = "heap_budget";

    (void)self;
    (void)heap;
    return IS("none") ? 1 : IS("endless") ? UINT64_MAX : 1u << 30;
}

static frit_status compute_info(void *instance, uint32_t index, frit_compute_info *out,
                                frit_err *err)
{
    static const char table[] = "backend", slot[] = "compute_info";

    (void)instance;
    (void)index;
    (void)err;
    if (IS("dirty"))
        out->text = FRIT_STR(DIRT);
    if (IS("null_text"))
        out->text = (frit_str){NULL, 5};
    if (IS("slow"))
        out->is_slow = UINT32_MAX;
    return FRIT_OK;
}

/* ---- queues ---- */

static void change_value(const char *slot, uint64_t *value)
{
    static const char table[] = "backend";
    static uint64_t first;

    first = first ? first : *value;
    if (IS("zero"))
        *value = 0;
    if (IS("same"))
        *value = first;
    if (IS("back"))
        *value -= 1;
    if (IS("far"))
        *value = UINT64_MAX;
    if (IS("ahead"))
        *value += 1000;
}

static frit_status memory_write(void *self, const frit_transfer *to, const void *from,
                                uint64_t *value, frit_err *err)
{
    const frit_status status = inner.backend.write(self, to, from, value, err);

    change_value("write", value);
    return status;
}

static frit_status memory_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                               frit_err *err)
{
    const frit_status status = inner.backend.read(self, from, into, value, err);

    change_value("read", value);
    return status;
}

static frit_status submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    const frit_status status =
        inner.backend.submit(self, queue, cmds, count, stride, waits, n_waits, value, err);

    change_value("submit", value);
    return status;
}

static frit_status fail_command(frit_failure *failure, frit_status status, uint64_t value)
{
    failure->status = status;
    failure->value = value;
    failure->command = 1;
    failure->cookie = 0x1234567890abcdef;
    return FRIT_OK;
}

static frit_status wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                        frit_failure *failure, frit_err *err)
{
    static const char table[] = "backend", slot[] = "wait";

    if (IS("timeout"))
        return FRIT_TIMEOUT;
    if (IS("lost"))
        return FRIT_DEVICE_LOST;
    if (IS("failed_seven"))
        return fail_command(failure, 7, value);
    if (IS("failed_unlisted"))
        return fail_command(failure, -99, value);
    if (IS("failed_before"))
        return fail_command(failure, FRIT_IO, 0);
    if (IS("failed_ahead"))
        return fail_command(failure, FRIT_IO, UINT64_MAX - 1);
    if (IS("failed_cookie"))
        return fail_command(failure, FRIT_IO, value);
    if (IS("dirty_text")) {
        memcpy(err->text, DIRT, sizeof(DIRT));
        return err->status = FRIT_IO;
    }
    return inner.backend.wait(self, queue, value, timeout_ns, failure, err);
}

static frit_status supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err)
{
    static const char table[] = "backend", slot[] = "supports";
    const frit_status status = inner.backend.supports(self, ops, count, stride, bits, err);

    if (IS("all"))
        memset(bits, 0xff, (count + 63) / 64 * sizeof(*bits));
    return status;
}

/* ---- programs ---- */

static frit_status op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    static const char table[] = "backend", slot[] = "op_program";
    static frit_program_table other;
    const frit_status status = inner.backend.op_program(self, op, out, err);

    if (status)
        return status;
    other = *out->table;
    if (IS("null_table"))
        out->table = NULL;
    if (IS("short_table"))
        other.struct_size = 16;
    if (IS("no_describe"))
        other.describe = NULL;
    if (IS("no_prepare"))
        other.prepare = NULL;
    if (IS("no_destroy"))
        other.destroy = NULL;
    if (out->table && !is_sin(table, slot, "null_table"))
        out->table = &other;
    return FRIT_OK;
}

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    static const char table[] = "program", slot[] = "describe";
    const frit_status status = inner.program.describe(self, out, err);

    if (IS("no_candidates"))
        out->n_candidates = 0;
    if (IS("endless"))
        out->n_candidates = UINT32_MAX;
    if (IS("null_candidates"))
        out->candidates = NULL;
    if (IS("no_stride"))
        out->candidate_stride = 0;
    if (IS("dirty_name"))
        out->name = FRIT_STR(DIRT);
    if (IS("null_name"))
        out->name = (frit_str){NULL, 5};
    if (IS("many_ops"))
        out->n_ops = 1000;
    return status;
}

/* Two candidates, which alone are compared. */
static frit_status describe_two(void *self, frit_program_info *out, frit_err *err)
{
    static frit_candidate two[2];
    const frit_status status = inner.program.describe(self, out, err);

    if (status)
        return status;
    two[0] = two[1] = *out->candidates;
    two[0].struct_size = two[1].struct_size = sizeof(two[0]);
    two[1].identity = FRIT_STR("the other");
    out->n_candidates = 2;
    out->candidate_stride = sizeof(two[0]);
    out->candidates = two;
    return FRIT_OK;
}

void put_two_candidates(struct tables *outer)
{
    outer->program.describe = describe_two;
}

static void lie_about_outputs(frit_launch_spec *out)
{
    static const char table[] = "program", slot[] = "prepare";
    static const uint32_t far_input = 77;
    static frit_output_spec output;
    static const frit_derived_spec derived = {.tag = 1, .bytes = 8, .arg = 77};

    memset(&output, 0, sizeof(output));
    if (IS("alias"))
        output = (frit_output_spec){.alias = &far_input, .n_alias = 1};
    if (IS("null_alias"))
        output = (frit_output_spec){.n_alias = 1};
    if (IS("endless_output"))
        output.bytes = (uint64_t)1 << 62;
    if (IS("odd_output"))
        output.align = 3;
    if (IS("small_output"))
        output.bytes = 1;
    if (IS("wide_strides"))
        output = (frit_output_spec){.strided = 1, .strides = {INT64_MAX, INT64_MAX / 2}};
    if (output.n_alias || output.bytes || output.align || output.strided) {
        out->n_outputs = 1;
        out->output_stride = sizeof(output);
        out->outputs = &output;
    }
    if (IS("many_outputs"))
        out->n_outputs = 1000;
    if (IS("derived")) {
        out->n_derived = 1;
        out->derived_stride = sizeof(derived);
        out->derived = &derived;
    }
    if (IS("null_derived")) {
        out->n_derived = 1;
        out->derived = NULL;
    }
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    static const char table[] = "program", slot[] = "prepare";
    const frit_status status = inner.program.prepare(self, candidate, sig, out, variant, err);

    lie_about_outputs(out);
    if (IS("endless_workspace"))
        out->workspace_bytes = (uint64_t)1 << 62;
    if (IS("odd_workspace")) {
        out->workspace_bytes = 64;
        out->workspace_align = 3;
    }
    if (IS("endless_phases")) {
        out->n_phases = UINT32_MAX;
        out->phases = NULL;
    }
    if (IS("variant"))
        variant->n_bytes = UINT32_MAX;
    if (IS("relayout")) {
        out->wanted_arg = 77;
        return FRIT_PREPARE_RELAYOUT;
    }
    if (IS("relayout_null")) {
        out->wanted_arg = 0;
        out->wanted_strides = NULL;
        return FRIT_PREPARE_RELAYOUT;
    }
    return IS("needs_compile") ? FRIT_PREPARE_NEEDS_COMPILE : status;
}

static frit_status to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    static const char table[] = "program", slot[] = "to_state";
    const frit_status status = inner.program.to_state(self, bytes, n_bytes, err);

    if (IS("endless"))
        *n_bytes = UINT64_MAX;
    if (IS("more"))
        *n_bytes += 1;
    return status;
}

static frit_status program_record(void *self, const frit_launch *launch, struct frit_cmd *cmds,
                                  uint32_t capacity, uint32_t *count, frit_err *err)
{
    static const char table[] = "program", slot[] = "record";
    const frit_status status = inner.program.record(self, launch, cmds, capacity, count, err);

    if (IS("none"))
        *count = 0;
    if (IS("endless"))
        *count = UINT32_MAX;
    if (IS("kind"))
        cmds->kind = 99;
    return status;
}

static uint64_t generation(void *self, uint32_t candidate, const frit_variant *variant)
{
    static const char table[] = "program", slot[] = "generation";
    static uint64_t n;

    (void)self;
    (void)candidate;
    (void)variant;
    return IS("grows") ? ++n : 0;
}

/* ---- fusers ---- */

static frit_status prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                              uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    static const char table[] = "fuser", slot[] = "prototypes";
    const frit_status status =
        inner.fuser.prototypes(instance, device, out, stride, capacity, count, err);

    if (capacity && *count) {
        if (IS("null"))
            out->prototype = NULL;
        if (IS("null_name"))
            out->name = (frit_str){NULL, 3};
        if (IS("dirty_name"))
            out->name = FRIT_STR(DIRT);
    }
    if (IS("endless"))
        *count = UINT32_MAX;
    return status;
}

static frit_status fuser_clone(const void *fuser, void **out, frit_err *err)
{
    static const char table[] = "fuser", slot[] = "clone";
    const frit_status status = inner.fuser.clone(fuser, out, err);

    if (IS("null"))
        *out = NULL;
    return status;
}

static void fuser_state(const void *fuser, frit_fuser_state *out)
{
    static const char table[] = "fuser", slot[] = "state";

    inner.fuser.state(fuser, out);
    if (IS("many"))
        out->accepted = UINT32_MAX;
    if (IS("one_more"))
        out->accepted += 1;
    if (IS("quality"))
        out->quality = UINT32_MAX;
    if (IS("ready")) {
        out->ready = 1;
        out->accepted = 0;
    }
    if (IS("open"))
        out->open = 1;
}

static frit_status fuser_finish(void *fuser, frit_program *out, frit_err *err)
{
    static const char table[] = "fuser", slot[] = "finish";
    const frit_status status = inner.fuser.finish(fuser, out, err);

    if (!status && IS("null_table"))
        out->table = NULL;
    return status;
}

/* ---- the rest ---- */

static void *native_get(void *device, frit_memory *memory, frit_str name)
{
    static const char table[] = "native", slot[] = "get";

    return IS("null") ? NULL : inner.native.get(device, memory, name);
}

static frit_status capture_record(void *device, frit_queue *queue, const frit_cmd *cmds,
                                  uint32_t count, uint32_t stride, const frit_param *params,
                                  uint32_t n_params, uint32_t param_stride, frit_recording **out,
                                  frit_err *err)
{
    static const char table[] = "capture", slot[] = "record";
    const frit_status status = inner.capture.record(device, queue, cmds, count, stride, params,
                                                    n_params, param_stride, out, err);

    if (IS("null"))
        *out = NULL;
    return status;
}

static frit_status capture_replay(void *device, frit_recording *recording, const void *block,
                                  const frit_point *waits, uint32_t n_waits, uint64_t *value,
                                  frit_err *err)
{
    static const char table[] = "capture", slot[] = "replay";
    const frit_status status =
        inner.capture.replay(device, recording, block, waits, n_waits, value, err);

    if (IS("back"))
        *value -= 1;
    if (IS("far"))
        *value = UINT64_MAX;
    return status;
}

static frit_status profile_clock(void *device, frit_clock *out, frit_err *err)
{
    static const char table[] = "profile", slot[] = "clock";
    const frit_status status = inner.profile.clock(device, out, err);

    if (IS("bits"))
        out->valid_bits = 99;
    if (IS("no_bits"))
        out->valid_bits = 0;
    if (IS("nan"))
        out->ns_per_tick = 0.0 / 0.0 * (double)out->valid_bits;
    if (IS("negative"))
        out->ns_per_tick = -1;
    if (IS("endless"))
        out->ns_per_tick = 1e300;
    if (IS("future"))
        out->host_ns = UINT64_MAX;
    return status;
}

static frit_status group_create(void *instance, const frit_group_params *params, frit_group **out,
                                frit_err *err)
{
    static const char table[] = "collective", slot[] = "group_create";
    const frit_status status = inner.collective.group_create(instance, params, out, err);

    if (IS("null"))
        *out = NULL;
    return status;
}

static frit_status collective_begin(frit_group *group, const frit_collective_op *op,
                                    uint64_t *value, frit_err *err)
{
    static const char table[] = "collective", slot[] = "begin";
    const frit_status status = inner.collective.begin(group, op, value, err);

    if (IS("value"))
        *value += 1;
    return status;
}

void put_lies(struct tables *outer)
{
#define LIAR(table, slot, function) \
    if (is_here(#table, #slot))     \
        outer->table.slot = function;
    LIAR(backend, device_open, device_open)
    LIAR(backend, alloc, memory_alloc)
    LIAR(backend, import_host, import_host)
    LIAR(backend, kernel_load, kernel_load)
    LIAR(backend, queue_create, queue_create)
    LIAR(backend, heap_budget, heap_budget)
    LIAR(backend, compute_info, compute_info)
    LIAR(backend, write, memory_write)
    LIAR(backend, read, memory_read)
    LIAR(backend, submit, submit)
    LIAR(backend, wait, wait)
    LIAR(backend, supports, supports)
    LIAR(backend, op_program, op_program)
    LIAR(program, describe, describe)
    LIAR(program, prepare, prepare)
    LIAR(program, to_state, to_state)
    LIAR(program, record, program_record)
    LIAR(program, generation, generation)
    LIAR(fuser, prototypes, prototypes)
    LIAR(fuser, clone, fuser_clone)
    LIAR(fuser, state, fuser_state)
    LIAR(fuser, finish, fuser_finish)
    LIAR(native, get, native_get)
    LIAR(capture, record, capture_record)
    LIAR(capture, replay, capture_replay)
    LIAR(profile, clock, profile_clock)
    LIAR(collective, group_create, group_create)
    LIAR(collective, begin, collective_begin)
#undef LIAR
}
