/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a phase in one pass over its instructions: leaves, rows, control, and the function around
 * them. */
#include "emit/c/phase.h"

#include "base/fail.h"

#include "emit/c/args.h"
#include "emit/c/fragments.h"
#include "emit/c/rows.h"
#include "emit/c/threads.h"
#include "emit/c/writer.h"

/* ---- leaves ---- */

static void write_const(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    unsigned long long bits = inst->imm;
    struct str *out = writer_begin(w, at, 0);

    if (inst->type == KIR_F32)
        str_addf(out, "f32_of_bits(0x%xu);\n", (uint32_t)bits);
    else if (inst->type == KIR_F64)
        str_addf(out, "f64_of_bits(0x%llxull);\n", bits);
    else if (inst->type == KIR_I64)
        str_addf(out, "0x%llxull;\n", bits);
    else
        str_addf(out, "0x%xu;\n", (uint32_t)bits);
}

/* Word `number` of the block: addresses, then parameters. */
static void write_word(const struct writer *w, struct str *out, uint32_t number)
{
    if (w->by_value)
        str_addf(out, "WORD(%u)", number + 1);
    else
        str_addf(out, "READ_ONLY(block + %u)", number);
}

static void write_param(struct writer *w, uint32_t at)
{
    static const char *const forms[KIR_TYPES][2] = {
        [KIR_B] = {"(u32)(", " & 1)"},
        [KIR_I32] = {"(u32)", ""},
        [KIR_I64] = {"", ""},
        [KIR_F32] = {"f32_of_bits((u32)", ")"},
        [KIR_F64] = {"f64_of_bits(", ")"},
    };
    const struct kir_inst *inst = writer_inst(w, at);
    struct str *out = writer_begin(w, at, 0);

    str_addf(out, "%s", forms[inst->type][0]);
    write_word(w, out, w->module->n_args + (uint32_t)inst->imm);
    str_addf(out, "%s;\n", forms[inst->type][1]);
}

/* Where it is local it is written at each use. */
static void write_lane(struct writer *w, uint32_t at)
{
    for (uint32_t j = 0; w->plan.home[at] == PLAN_HELD && j < w->shape.per_thread; j++) {
        struct str *out = writer_begin(w, at, j);

        writer_lane(w, out, j);
        str_addf(out, ";\n");
    }
}

static void write_group(struct writer *w, uint32_t at)
{
    static const char *const forms[2][3] = {
        {"BLOCK_0;\n", "BLOCK_1 + (u32)WORD(0);\n", "BLOCK_2 + (u32)(WORD(0) >> 32);\n"},
        {"group_0;\n", "0u;\n", "0u;\n"},
    };

    str_addf(writer_begin(w, at, 0), "%s", forms[w->module->spaces][writer_inst(w, at)->imm]);
}

/* ---- elementwise ---- */

static void write_row(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    const struct kir_op_info *info = kir_op_info(inst->op);

    for (uint32_t j = 0; j < writer_lanes(w); j += writer_run(w, at)) {
        struct str *out = writer_begin(w, at, j);

        str_addf(out, "%s_%s(", info->name,
                 inst->op == KIR_round ? rows_memory_name((uint32_t)inst->imm)
                                       : rows_type_name(writer_inst(w, inst->a[0])->type));
        for (uint32_t k = 0; k < info->n; k++) {
            str_addf(out, k ? ", " : "");
            writer_value(w, out, inst->a[k], j);
        }
        if (inst->op == KIR_wrap)
            str_addf(out, ", %lld", (long long)inst->imm);
        str_addf(out, ");\n");
    }
}

/* ---- control ---- */

static void write_phi_firsts(struct writer *w, uint32_t loop)
{
    uint32_t n = writer_inst(w, writer_inst(w, loop)->pair)->a[1];

    for (uint32_t phi = loop + 1; phi <= loop + n; phi++) {
        for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, phi)) {
            struct str *out = writer_begin_variable(w, phi, j);

            writer_value(w, out, writer_inst(w, phi)->a[0], j);
            str_addf(out, ";\n");
        }
    }
}

/* A bound or condition: by one thread where it is control of the group. */
static void write_same(struct writer *w, struct str *out, uint32_t value, bool of_group)
{
    if (of_group)
        writer_uniform(w, out, value);
    else
        writer_value(w, out, value, 0);
}

/* Where a line of control begins. */
static struct str *begin_control(struct writer *w, bool of_group)
{
    if (!of_group)
        return writer_line(w);
    threads_end_exchange(w);
    writer_end_region(w);
    return writer_group_line(w);
}

static void open_control(struct writer *w, bool of_group)
{
    w->deep += of_group;
    w->body_deep += 1;
    fragments_control(w);
}

static void write_for(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    const uint32_t *links = w->module->links + inst->a[0];
    bool of_group = w->plan.of_group[at];
    const char *type = inst->type == KIR_I64 ? "i64" : "i32";
    struct str *out;

    write_phi_firsts(w, at);
    out = begin_control(w, of_group);
    str_addf(out, "for (%s c%u = (%s)", type, at, type);
    write_same(w, out, links[0], of_group);
    str_addf(out, "; c%u < (%s)", at, type);
    write_same(w, out, links[1], of_group);
    str_addf(out, "; c%u += %lld) {\n", at, (long long)inst->imm);
    open_control(w, of_group);
    str_addf(writer_begin(w, at, 0), "(%s)c%u;\n", rows_type(inst->type), at);
}

static void write_nothing(struct writer *w, uint32_t at)
{
    (void)w;
    (void)at;
}

/* All phis get their values at once. */
static void write_next(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    const uint32_t *links = w->module->links + inst->a[0];

    for (uint32_t i = 0; i < inst->a[1]; i++) {
        uint32_t phi = inst->pair + 1 + i;

        for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, phi)) {
            struct str *out = writer_line(w);

            str_addf(out, "const %s n%u_%u = ", rows_type(writer_inst(w, phi)->type), phi, j);
            writer_value(w, out, links[i], j);
            str_addf(out, ";\n");
        }
    }
    for (uint32_t i = 0; i < inst->a[1]; i++) {
        uint32_t phi = inst->pair + 1 + i;

        for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, phi)) {
            struct str *out = writer_line(w);

            writer_value(w, out, phi, j);
            str_addf(out, " = n%u_%u;\n", phi, j);
        }
    }
}

/* Closes what `opened` opened. */
static void write_close(struct writer *w, uint32_t opened)
{
    fragments_control(w);
    if (w->plan.of_group[opened]) {
        threads_end_exchange(w);
        writer_end_region(w);
        w->deep--;
        str_addf(writer_group_line(w), "}\n");
        w->body_deep = w->deep + 1;
    } else {
        w->body_deep--;
        str_addf(writer_line(w), "}\n");
    }
}

static void write_loop_end(struct writer *w, uint32_t at)
{
    write_next(w, at);
    write_close(w, writer_inst(w, at)->pair);
}

static void write_if(struct writer *w, uint32_t at)
{
    bool of_group = w->plan.of_group[at];
    struct str *out = begin_control(w, of_group);

    str_addf(out, "if (");
    write_same(w, out, writer_inst(w, at)->a[0], of_group);
    str_addf(out, ") {\n");
    open_control(w, of_group);
}

static void write_end(struct writer *w, uint32_t at)
{
    write_close(w, writer_inst(w, at)->pair);
}

/* What is not here is a row of rows.def. */
static const write_fn writers[KIR_OPS] = {
    [KIR_const] = write_const,
    [KIR_param] = write_param,
    [KIR_lane] = write_lane,
    [KIR_group] = write_group,
    [KIR_load] = args_load,
    [KIR_load_if] = args_load,
    [KIR_store] = args_store,
    [KIR_store_if] = args_store,
    [KIR_atomic_add] = args_atomic,
    [KIR_tload] = threads_tload,
    [KIR_tstore] = threads_tstore,
    [KIR_tstore_if] = threads_tstore,
    [KIR_barrier] = threads_barrier,
    [KIR_exchange] = threads_exchange,
    [KIR_shift] = threads_shift,
    [KIR_first] = threads_first,
    [KIR_for] = write_for,
    [KIR_phi] = write_nothing,
    [KIR_next] = write_loop_end,
    [KIR_if] = write_if,
    [KIR_end] = write_end,
    [KIR_mfill] = fragments_fill,
    [KIR_mload] = fragments_load,
    [KIR_mstore] = fragments_store,
    [KIR_mma] = fragments_multiply,
    [KIR_mlargest] = fragments_fold,
    [KIR_mtotal] = fragments_fold,
    [KIR_mnarrow] = fragments_narrow,
    [KIR_mscale] = fragments_scale,
    [KIR_each] = fragments_each,
    [KIR_peer] = fragments_peer,
    [KIR_row] = fragments_coordinate,
    [KIR_column] = fragments_coordinate,
    [KIR_mbatch] = fragments_batch,
    [KIR_mwait] = fragments_wait,
    [KIR_done] = fragments_done,
    [KIR_tcopy] = args_copy,
    [KIR_tbatch] = args_batch,
    [KIR_twait] = args_wait,
};

/* ---- the function ---- */

/* The space of the block: a table has that of every 2^shift-th group, from which the block's own is
 * few steps away. */
static const char find_space[] =
    "    GLOBAL const m_u32 *const first = (GLOBAL const m_u32 *)WORD(2);\n"
    "    u32 space = READ_ONLY((GLOBAL const m_u32 *)WORD(3) + (BLOCK_0 >> (u32)WORD(4)));\n"
    "    while (READ_ONLY(first + space + 1) <= BLOCK_0) space++;\n"
    "    const u32 group_0 = BLOCK_0 - READ_ONLY(first + space);\n";

_Static_assert(CTEXT_FIRST == 2 && CTEXT_TABLE == 3 && CTEXT_SHIFT == 4, "as in find_space");

static void declare_block(struct writer *w)
{
    if (w->module->spaces) {
        str_addf(w->out, "%s", find_space);
        str_addf(w->out,
                 "    GLOBAL const m_u64 *const block = "
                 "(GLOBAL const m_u64 *)WORD(1) + (u64)space * %u;\n",
                 w->module->n_args + w->module->n_params);
    } else if (!w->by_value) {
        str_addf(w->out, "    GLOBAL const m_u64 *const block = (GLOBAL const m_u64 *)WORD(1);\n");
    }
}

static bool touches(const struct kir_inst *inst, uint32_t arg)
{
    switch (kir_op_info(inst->op)->imm) {
    case KIR_IMM_ARG:
        return inst->imm == arg;
    case KIR_IMM_PLACE:
        return !kir_fragment_place_of(inst->imm).is_tile &&
               kir_fragment_place_of(inst->imm).place == arg;
    case KIR_IMM_COPY:
        return kir_copy_of(inst->imm).arg == arg;
    default:
        return false;
    }
}

/* Arguments that the phase touches. */
static void declare_args(struct writer *w)
{
    for (uint32_t arg = 0; arg < w->module->n_args; arg++) {
        const char *type = rows_memory_type(w->module->args[arg].dtype);
        bool is_used = false;

        for (uint32_t i = 0; i < w->phase->n && !is_used; i++)
            is_used = touches(&w->phase->inst[i], arg);
        if (!is_used)
            continue;
        str_addf(w->out, "    GLOBAL m_%s *const a%u = (GLOBAL m_%s *)", type, arg, type);
        write_word(w, w->out, arg);
        str_addf(w->out, ";\n");
    }
}

static void declare_held(struct writer *w)
{
    for (uint32_t i = 0; i < w->phase->n; i++) {
        if (w->plan.home[i] != PLAN_HELD)
            continue;
        for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, i)) {
            str_addf(writer_group_line(w), "HELD(%s, ", rows_type(writer_inst(w, i)->type));
            writer_name(w, w->out, i, j);
            str_addf(w->out, ");\n");
        }
    }
}

static void write_function(struct writer *w, uint32_t phase)
{
    str_addf(w->out, "#undef THREADS\n#define THREADS %uu\nKERNEL(k_%u, %u)\n{\n    SHARED;\n",
             w->shape.threads, phase, w->shape.threads);
    declare_block(w);
    declare_args(w);
    threads_declare(w);
    fragments_declare(w);
    declare_held(w);
    writer_end_region(w);
    for (uint32_t at = 0; at < w->phase->n; at++) {
        if (w->plan.home[at] == PLAN_UNUSED)
            continue;
        fragments_flush(w, at);
        (writers[writer_inst(w, at)->op] ? writers[writer_inst(w, at)->op] : write_row)(w, at);
    }
    writer_end_region(w);
    str_addf(w->out, "}\n");
}

/* Facts, shape and plan. */
static frit_status prepare(struct writer *w, const struct phase_text *text, uint32_t phase,
                           frit_err *err)
{
    const struct shape_target target = {.max_threads = text->target->max_threads,
                                        .least_threads = text->target->warp,
                                        .aligned = text->aligned,
                                        .team = fragments_team(w->phase, text->target)};
    bool *crosses;

    TRY(facts_init(&w->facts, w->module, phase, err));
    TRY(shape_init(&w->shape, w->module, phase, &w->facts, &target, &w->arena, err));
    crosses = arena_array(&w->arena, w->phase->n + 1, sizeof(*crosses));
    if (!crosses)
        return fail_memory(err, w->phase->n);
    for (uint32_t i = 0; i < w->phase->n; i++)
        crosses[i] = threads_communicate(&w->shape, i);
    return plan_init(&w->plan, w->module, phase, crosses, err);
}

static frit_status write_prepared(struct writer *w, uint32_t phase, struct ctext_phase *info,
                                  frit_err *err)
{
    write_function(w, phase);
    if (w->body.failed || w->out->failed)
        return fail_memory(err, w->out->length);
    *info = (struct ctext_phase){w->shape.threads, w->shared_bytes};
    if (info->shared_bytes > w->target->shared_bytes)
        return fail(err, FRIT_UNSUPPORTED,
                    "kernel `%s` needs %u bytes of shared memory per block, the device has %u",
                    w->module->name, info->shared_bytes, w->target->shared_bytes);
    return FRIT_OK;
}

frit_status phase_write(struct phase_text *text, uint32_t phase, struct str *out,
                        struct ctext_phase *info, frit_err *err)
{
    struct writer w = {.module = text->module,
                       .phase = &text->module->phases[phase],
                       .target = text->target,
                       .by_value = text->by_value,
                       .out = out,
                       .deep = 1,
                       .each = KIR_NONE};
    frit_status status = fragments_check(text->module, phase, text->target, err);

    if (!status)
        status = prepare(&w, text, phase, err);

    if (!status)
        status = write_prepared(&w, phase, info, err);
    if (!status && shape_has_chunks(&w.shape))
        text->has_chunks = true;
    plan_fini(&w.plan);
    facts_fini(&w.facts);
    arena_fini(&w.arena);
    str_fini(&w.body);
    return status;
}
