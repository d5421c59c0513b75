/* SPDX-License-Identifier: Apache-2.0 */
/* The text of phases.  Two texts grow at the same time: `out`, and `body`, the open region.  When
 * the region ends its body goes to `out` in a loop over threads and lanes.  Values of the group go
 * to `out` at once, in front of the open region: they are pure, so nothing in it changes them. */
#include "emit/c/ctext.h"

#include "base/fail.h"

#include "emit/c/head.h"
#include "emit/c/plan.h"

struct writer {
    const struct kir_module *module;
    const struct kir_phase *phase;
    struct plan plan;
    struct str *out;
    struct str body;
    uint32_t deep, body_deep; /* indentation */
};

typedef void (*write_fn)(struct writer *w, uint32_t at);

static const struct kir_inst *inst_of(const struct writer *w, uint32_t at)
{
    return &w->phase->inst[at];
}

static void indent(struct str *out, uint32_t deep)
{
    str_addf(out, "%*s", (int)(4 * deep), "");
}

static void add_value(const struct writer *w, struct str *out, uint32_t value)
{
    if (inst_of(w, value)->op == KIR_lane && w->plan.home[value] == PLAN_LOCAL)
        str_addf(out, "LANE");
    else
        str_addf(out, w->plan.home[value] == PLAN_HELD ? "MINE(v%u)" : "v%u", value);
}

/* A value that is the same in all lanes, between regions. */
static void add_uniform(struct writer *w, uint32_t value)
{
    str_addf(w->out, w->plan.home[value] == PLAN_HELD ? "UNIFORM(v%u)" : "v%u", value);
}

/* ---- regions ---- */

static void begin_line(struct writer *w)
{
    indent(&w->body, w->body_deep);
}

static void end_stretch(struct writer *w)
{
    if (w->body.length) {
        indent(w->out, w->deep);
        str_addf(w->out, "FOR_THREADS FOR_LANES {\n");
        str_add(w->out, w->body.text, w->body.length);
        indent(w->out, w->deep);
        str_addf(w->out, "}\n");
        w->body.length = 0;
    }
    w->body_deep = w->deep + 1;
}

/* The text that the value at `at` is defined in, up to its "=". */
static struct str *begin_value(struct writer *w, uint32_t at)
{
    bool of_group = w->plan.home[at] == PLAN_GROUP;
    struct str *out = of_group ? w->out : &w->body;

    indent(out, of_group ? w->deep : w->body_deep);
    if (w->plan.home[at] != PLAN_HELD)
        str_addf(out, "const %s ", head_type(inst_of(w, at)->type));
    add_value(w, out, at);
    str_addf(out, " = ");
    return out;
}

/* ---- leaves ---- */

static void write_const(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);
    unsigned long long bits = inst->imm;
    struct str *out = begin_value(w, at);

    if (inst->type == KIR_F32)
        str_addf(out, "f32_of_bits(0x%llxu);\n", bits);
    else if (inst->type == KIR_F64)
        str_addf(out, "f64_of_bits(0x%llxull);\n", bits);
    else
        str_addf(out, inst->type == KIR_I64 ? "0x%llxull;\n" : "0x%llxu;\n", bits);
}

static void write_param(struct writer *w, uint32_t at)
{
    static const char *const forms[KIR_TYPES] = {
        [KIR_B] = "(u32)(words[%u] & 1);\n",
        [KIR_I32] = "(u32)words[%u];\n",
        [KIR_I64] = "words[%u];\n",
        [KIR_F32] = "f32_of_bits((u32)words[%u]);\n",
        [KIR_F64] = "f64_of_bits(words[%u]);\n",
    };
    const struct kir_inst *inst = inst_of(w, at);

    str_addf(begin_value(w, at), forms[inst->type], (uint32_t)inst->imm);
}

/* Where it is local it is written at each use. */
static void write_lane(struct writer *w, uint32_t at)
{
    if (w->plan.home[at] == PLAN_HELD)
        str_addf(begin_value(w, at), "LANE;\n");
}

static void write_group(struct writer *w, uint32_t at)
{
    str_addf(begin_value(w, at), "group[%u];\n", (uint32_t)inst_of(w, at)->imm);
}

/* ---- elementwise ---- */

static void write_row(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);
    const struct kir_op_info *info = kir_op_info(inst->op);
    struct str *out = begin_value(w, at);

    str_addf(out, "%s_%s(", info->name,
             inst->op == KIR_round ? head_memory_name((uint32_t)inst->imm)
                                   : head_type_name(inst_of(w, inst->a[0])->type));
    for (uint32_t k = 0; k < info->n; k++) {
        str_addf(out, k ? ", " : "");
        add_value(w, out, inst->a[k]);
    }
    if (inst->op == KIR_wrap)
        str_addf(out, ", %lluull", (unsigned long long)inst->imm);
    str_addf(out, ");\n");
}

/* ---- memory ---- */

/* The element that an access is to, of an argument or tile. */
static void add_element(struct writer *w, const struct kir_inst *inst)
{
    bool is_arg = kir_op_info(inst->op)->imm == KIR_IMM_ARG;
    uint32_t number = (uint32_t)inst->imm;

    str_addf(&w->body,
             is_arg                                      ? "a%u["
             : w->phase->tiles[number].space == KIR_LANE ? "MINE(t%u)["
                                                         : "t%u[",
             number);
    str_addf(&w->body, inst_of(w, inst->a[0])->type == KIR_I64 ? "(i64)" : "(i32)");
    add_value(w, &w->body, inst->a[0]);
    str_addf(&w->body, "]");
}

static const char *memory_name(const struct writer *w, const struct kir_inst *inst)
{
    return head_memory_name(w->module->args[inst->imm].dtype);
}

static void write_load(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);

    begin_value(w, at);
    if (inst->op == KIR_load_if) {
        add_value(w, &w->body, inst->a[1]);
        str_addf(&w->body, " ? ");
    }
    str_addf(&w->body, "load_%s(", memory_name(w, inst));
    add_element(w, inst);
    str_addf(&w->body, ")");
    if (inst->op == KIR_load_if) {
        str_addf(&w->body, " : ");
        add_value(w, &w->body, inst->a[2]);
    }
    str_addf(&w->body, ";\n");
}

static void write_tload(struct writer *w, uint32_t at)
{
    begin_value(w, at);
    add_element(w, inst_of(w, at));
    str_addf(&w->body, ";\n");
}

/* "if (mask) " where there is one. */
static void begin_store(struct writer *w, const struct kir_inst *inst)
{
    begin_line(w);
    if (kir_op_info(inst->op)->n < 3)
        return;
    str_addf(&w->body, "if (");
    add_value(w, &w->body, inst->a[2]);
    str_addf(&w->body, ") ");
}

static void write_store(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);

    begin_store(w, inst);
    add_element(w, inst);
    str_addf(&w->body, " = store_%s(", memory_name(w, inst));
    add_value(w, &w->body, inst->a[1]);
    str_addf(&w->body, ");\n");
}

static void write_tstore(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);

    begin_store(w, inst);
    add_element(w, inst);
    str_addf(&w->body, " = ");
    add_value(w, &w->body, inst->a[1]);
    str_addf(&w->body, ";\n");
}

static void write_atomic_add(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);

    begin_store(w, inst);
    str_addf(&w->body, "atomic_add_%s(&", memory_name(w, inst));
    add_element(w, inst);
    str_addf(&w->body, ", ");
    add_value(w, &w->body, inst->a[1]);
    str_addf(&w->body, ");\n");
}

/* ---- the group ---- */

static void write_barrier(struct writer *w, uint32_t at)
{
    (void)at;
    end_stretch(w);
    indent(w->out, w->deep);
    str_addf(w->out, "BARRIER;\n");
}

static void write_first(struct writer *w, uint32_t at)
{
    uint32_t from = inst_of(w, at)->a[0];

    end_stretch(w);
    str_addf(begin_value(w, at), w->plan.home[from] == PLAN_HELD ? "FIRST(v%u);\n" : "v%u;\n",
             from);
}

static void write_across(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);

    end_stretch(w);
    if (w->plan.home[at] == PLAN_GROUP) { /* the same in all lanes */
        str_addf(begin_value(w, at), "v%u;\n", inst->a[0]);
        return;
    }
    indent(w->out, w->deep);
    str_addf(w->out, "%s(v%u, v%u, %uu);\n", inst->op == KIR_exchange ? "EXCHANGE" : "SHIFT", at,
             inst->a[0], (uint32_t)inst->imm);
}

/* ---- control ---- */

static void write_phi_firsts(struct writer *w, uint32_t loop)
{
    uint32_t n = inst_of(w, inst_of(w, loop)->pair)->a[1];

    for (uint32_t phi = loop + 1; phi <= loop + n; phi++) {
        begin_line(w);
        if (w->plan.home[phi] == PLAN_LOCAL)
            str_addf(&w->body, "%s ", head_type(inst_of(w, phi)->type));
        add_value(w, &w->body, phi);
        str_addf(&w->body, " = ");
        add_value(w, &w->body, inst_of(w, phi)->a[0]);
        str_addf(&w->body, ";\n");
    }
}

/* The counter is `c`: one that is past its end is never computed. */
static void write_for(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);
    const uint32_t *links = w->module->links + inst->a[0];
    bool of_group = w->plan.of_group[at];
    const char *type = inst->type == KIR_I64 ? "i64" : "i32";
    struct str *out = of_group ? w->out : &w->body;

    write_phi_firsts(w, at);
    if (of_group)
        end_stretch(w);
    indent(out, of_group ? w->deep : w->body_deep);
    str_addf(out, "for (i64 c%u = (%s)", at, type);
    of_group ? add_uniform(w, links[0]) : add_value(w, out, links[0]);
    str_addf(out, ", e%u = (%s)", at, type);
    of_group ? add_uniform(w, links[1]) : add_value(w, out, links[1]);
    str_addf(out, "; c%u < e%u; c%u = (u64)e%u - (u64)c%u > %lluu ? c%u + %lld : e%u) {\n", at, at,
             at, at, at, (unsigned long long)inst->imm, at, (long long)inst->imm, at);
    w->deep += of_group;
    w->body_deep += 1;
    begin_value(w, at);
    str_addf(out, "(%s)c%u;\n", head_type(inst->type), at);
}

static void write_nothing(struct writer *w, uint32_t at)
{
    (void)w;
    (void)at;
}

/* All phis get their values at once. */
static void write_next(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = inst_of(w, at);
    const uint32_t *links = w->module->links + inst->a[0];

    for (uint32_t i = 0; i < inst->a[1]; i++) {
        begin_line(w);
        str_addf(&w->body, "const %s n%u = ", head_type(inst_of(w, inst->pair + 1 + i)->type),
                 inst->pair + 1 + i);
        add_value(w, &w->body, links[i]);
        str_addf(&w->body, ";\n");
    }
    for (uint32_t i = 0; i < inst->a[1]; i++) {
        begin_line(w);
        add_value(w, &w->body, inst->pair + 1 + i);
        str_addf(&w->body, " = n%u;\n", inst->pair + 1 + i);
    }
}

/* Closes what `at` opened. */
static void write_close(struct writer *w, uint32_t opened)
{
    if (w->plan.of_group[opened]) {
        end_stretch(w);
        indent(w->out, --w->deep);
        str_addf(w->out, "}\n");
        w->body_deep = w->deep + 1;
    } else {
        indent(&w->body, --w->body_deep);
        str_addf(&w->body, "}\n");
    }
}

static void write_loop_end(struct writer *w, uint32_t at)
{
    write_next(w, at);
    write_close(w, inst_of(w, at)->pair);
}

static void write_if(struct writer *w, uint32_t at)
{
    uint32_t condition = inst_of(w, at)->a[0];
    bool of_group = w->plan.of_group[at];
    struct str *out = of_group ? w->out : &w->body;

    if (of_group)
        end_stretch(w);
    indent(out, of_group ? w->deep : w->body_deep);
    str_addf(out, "if (");
    of_group ? add_uniform(w, condition) : add_value(w, out, condition);
    str_addf(out, ") {\n");
    w->deep += of_group;
    w->body_deep += 1;
}

static void write_end(struct writer *w, uint32_t at)
{
    write_close(w, inst_of(w, at)->pair);
}

/* What is not here is a row of rows.def. */
static const write_fn writers[KIR_OPS] = {
    [KIR_const] = write_const,      [KIR_param] = write_param,
    [KIR_lane] = write_lane,        [KIR_group] = write_group,
    [KIR_load] = write_load,        [KIR_load_if] = write_load,
    [KIR_store] = write_store,      [KIR_store_if] = write_store,
    [KIR_tload] = write_tload,      [KIR_tstore] = write_tstore,
    [KIR_tstore_if] = write_tstore, [KIR_atomic_add] = write_atomic_add,
    [KIR_barrier] = write_barrier,  [KIR_exchange] = write_across,
    [KIR_shift] = write_across,     [KIR_first] = write_first,
    [KIR_for] = write_for,          [KIR_phi] = write_nothing,
    [KIR_next] = write_loop_end,    [KIR_if] = write_if,
    [KIR_end] = write_end,
};

/* ---- the whole ---- */

static size_t tile_bytes(const struct kir_tile *tile)
{
    size_t each = tile->type == KIR_I64 || tile->type == KIR_F64 ? 8 : 4;

    return tile->space == KIR_GROUP ? (each * tile->count + 7) / 8 * 8 : 0;
}

size_t ctext_scratch(const struct kir_module *module, uint32_t phase)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < module->phases[phase].n_tiles; i++)
        bytes += tile_bytes(&module->phases[phase].tiles[i]);
    return bytes;
}

static void write_places(struct writer *w)
{
    size_t offset = 0;

    for (uint32_t i = 0; i < w->module->n_args; i++) {
        const char *type = head_memory_type(w->module->args[i].dtype);

        str_addf(w->out, "    %s *const a%u = (%s *)args[%u];\n", type, i, type, i);
    }
    for (uint32_t i = 0; i < w->phase->n_tiles; i++) {
        const struct kir_tile *tile = &w->phase->tiles[i];
        const char *type = head_type(tile->type);

        if (tile->space == KIR_LANE)
            str_addf(w->out, "    HELD_TILE(%s, t%u, %u);\n", type, i, tile->count);
        else
            str_addf(w->out, "    %s *const t%u = (%s *)((char *)scratch + %zu);\n", type, i, type,
                     offset);
        offset += tile_bytes(tile);
    }
    for (uint32_t at = 0; at < w->phase->n; at++) {
        if (w->plan.home[at] == PLAN_HELD)
            str_addf(w->out, "    HELD(%s, v%u);\n", head_type(inst_of(w, at)->type), at);
    }
}

static frit_status write_phase(const struct kir_module *module, uint32_t phase, const char *name,
                               uint32_t threads, struct str *out, frit_err *err)
{
    struct writer w = {.module = module, .phase = &module->phases[phase], .out = out, .deep = 1};
    bool failed;

    TRY(plan_init(&w.plan, module, phase, err));
    if (threads > w.phase->lanes)
        threads = w.phase->lanes;
    str_addf(out, "#define THREADS %uu\n#define EACH %uu\n", threads, w.phase->lanes / threads);
    str_addf(out,
             "void %s_%u(const u64 *words, void *const *args, const u32 *group, void *scratch)\n{\n"
             "    (void)words, (void)args, (void)group, (void)scratch;\n",
             name, phase);
    write_places(&w);
    end_stretch(&w);
    for (uint32_t at = 0; at < w.phase->n; at++)
        (writers[inst_of(&w, at)->op] ? writers[inst_of(&w, at)->op] : write_row)(&w, at);
    end_stretch(&w);
    str_addf(out, "}\n#undef THREADS\n#undef EACH\n");
    failed = w.body.failed || out->failed;
    plan_fini(&w.plan);
    str_fini(&w.body);
    return failed ? fail_memory(err, out->length) : FRIT_OK;
}

frit_status ctext_emit(const struct kir_module *module, const char *name, uint32_t threads,
                       struct str *out, frit_err *err)
{
    head_print(module, out);
    for (uint32_t i = 0; i < module->n_phases; i++)
        TRY(write_phase(module, i, name, threads, out, err));
    return FRIT_OK;
}
