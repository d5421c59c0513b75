/* SPDX-License-Identifier: Apache-2.0 */
/* Modules to text.  Nothing is taken for granted: broken modules are what is printed most. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ir/half.h"
#include "ir/text.h"
#include "ir/text_words.h"

static const char *type_name(uint32_t type)
{
    return type < KIR_TYPES ? kir_type_name(type) : "?";
}

/* The number as a comment, whatever point the locale has. */
static void print_float(struct str *out, double value, int digits)
{
    char text[64];

    snprintf(text, sizeof(text), "%.*g", digits, value);
    for (char *c = text; *c; c++) {
        if (!strchr("0123456789+-einfa", *c))
            *c = '.';
    }
    str_addf(out, "  # %s", text);
}

static void print_const(struct str *out, const struct kir_inst *inst)
{
    double wide;

    switch (inst->type) {
    case KIR_I32:
        str_addf(out, " %" PRId32, (int32_t)(uint32_t)inst->imm);
        break;
    case KIR_I64:
        str_addf(out, " %" PRId64, (int64_t)inst->imm);
        break;
    case KIR_F32:
        str_addf(out, " 0x%08" PRIx64, inst->imm);
        print_float(out, (double)half_real_of((uint32_t)inst->imm), 9);
        break;
    case KIR_F64:
        memcpy(&wide, &inst->imm, sizeof(wide));
        str_addf(out, " 0x%016" PRIx64, inst->imm);
        print_float(out, wide, 17);
        break;
    default:
        str_addf(out, " %" PRIu64, inst->imm);
    }
}

static void print_place(struct str *out, uint64_t imm)
{
    const struct kir_fragment_place place = kir_fragment_place_of(imm);

    str_addf(out, " f%u %c%u %s", place.fragment, place.is_tile ? 't' : 'a', place.place,
             text_layouts[place.by_columns + 2 * place.in_blocks]);
}

static void print_imm(struct str *out, const struct kir_inst *inst)
{
    switch (kir_op_info(inst->op)->imm) {
    case KIR_IMM_NONE:
    case KIR_IMM_LOOP:
        break;
    case KIR_IMM_BITS:
        print_const(out, inst);
        break;
    case KIR_IMM_NARROW:
        str_addf(out, " %s", text_dtype(text_narrow((int64_t)inst->imm)));
        break;
    case KIR_IMM_ARG:
        str_addf(out, " a%" PRIu64, inst->imm);
        break;
    case KIR_IMM_TILE:
        str_addf(out, " t%" PRIu64, inst->imm);
        break;
    case KIR_IMM_FRAGMENT:
        str_addf(out, " f%" PRIu64, inst->imm);
        break;
    case KIR_IMM_PLACE:
        print_place(out, inst->imm);
        break;
    case KIR_IMM_PRODUCT:
        str_addf(out, " f%u f%u f%u", kir_factor(inst->imm, 0), kir_factor(inst->imm, 1),
                 kir_factor(inst->imm, 2));
        break;
    case KIR_IMM_PAIR:
        str_addf(out, " f%u f%u", kir_factor(inst->imm, 0), kir_factor(inst->imm, 1));
        break;
    case KIR_IMM_COPY:
        str_addf(out, " t%u a%u", kir_copy_of(inst->imm).tile, kir_copy_of(inst->imm).arg);
        break;
    case KIR_IMM_NUMBER:
    case KIR_IMM_DIM:
    case KIR_IMM_LANES:
        str_addf(out, " %" PRIu64, inst->imm);
        break;
    }
}

static void print_value(struct str *out, uint32_t value)
{
    if (value == KIR_NONE)
        str_addf(out, " %%?");
    else
        str_addf(out, " %%%u", value);
}

static uint32_t link_at(const struct kir_module *module, uint64_t at)
{
    return at < module->n_links ? module->links[at] : KIR_NONE;
}

static void print_links(struct str *out, const struct kir_module *module,
                        const struct kir_inst *inst)
{
    if (inst->op == KIR_for) {
        print_value(out, link_at(module, inst->a[0]));
        str_addf(out, " to");
        print_value(out, link_at(module, (uint64_t)inst->a[0] + 1));
        str_addf(out, " step %" PRIu64, inst->imm);
        return;
    }
    for (uint64_t i = 0; i < inst->a[1] && i < module->n_links; i++)
        print_value(out, link_at(module, inst->a[0] + i));
}

static void print_inst(struct str *out, const struct kir_module *module,
                       const struct kir_inst *inst, uint32_t at)
{
    bool closes = kir_closes(inst->op);
    const struct kir_op_info *info;

    for (uint32_t i = closes; i <= inst->level; i++)
        str_addf(out, "    ");
    if (inst->op >= KIR_OPS) {
        str_addf(out, "? # %%%u\n", at);
        return;
    }
    info = kir_op_info(inst->op);
    if (inst->type != KIR_VOID)
        str_addf(out, "%%%u %s = ", at, type_name(inst->type));
    str_addf(out, "%s", info->name);
    if (inst->op == KIR_for || inst->op == KIR_next)
        print_links(out, module, inst);
    print_imm(out, inst);
    for (uint32_t i = 0; i < info->n; i++)
        print_value(out, inst->a[i]);
    str_addf(out, "\n");
}

static void print_phase(struct str *out, const struct kir_module *module,
                        const struct kir_phase *phase)
{
    str_addf(out, "phase %u\n", phase->lanes);
    if (phase->per_thread)
        str_addf(out, "per_thread %u\n", phase->per_thread);
    for (uint32_t i = 0; i < phase->n_tiles; i++) {
        const struct kir_tile *tile = &phase->tiles[i];

        str_addf(out, "tile t%u %s %s %u\n", i, tile->space == KIR_GROUP ? "group" : "lane",
                 text_dtype(tile->dtype), tile->count);
    }
    if (phase->team)
        str_addf(out, "team %u\n", phase->team);
    for (uint32_t i = 0; i < phase->n_fragments; i++) {
        const struct kir_fragment *f = &phase->fragments[i];

        str_addf(out, "fragment f%u %s %s %u %u\n", i, text_use(f->use), text_dtype(f->dtype),
                 f->rows, f->columns);
    }
    for (uint32_t i = 0; i < phase->n; i++)
        print_inst(out, module, &phase->inst[i], i);
}

void kir_print(const struct kir_module *module, struct str *out)
{
    str_addf(out, "kernel %s\n", module->name ? module->name : "?");
    if (module->wide)
        str_addf(out, "wide\n");
    if (module->spaces)
        str_addf(out, "spaces\n");
    if (module->n_params)
        str_addf(out, "params %u\n", module->n_params);
    for (uint32_t i = 0; i < module->n_args; i++) {
        const struct kir_arg *arg = &module->args[i];

        str_addf(out, "arg a%u %s%s%s\n", i, text_dtype(arg->dtype),
                 arg->access & KIR_READ ? " read" : "", arg->access & KIR_WRITE ? " write" : "");
    }
    for (uint32_t i = 0; i < module->n_phases; i++)
        print_phase(out, module, &module->phases[i]);
}
