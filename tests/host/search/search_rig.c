/* SPDX-License-Identifier: Apache-2.0 */
#include "search_rig.h"

#include <stdio.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/str.h"
#include "graph/op.h"
#include "plan/program.h"
#include "plan/relative.h"

struct search_stats rig_stats;

static frit_operand operand_of(uint32_t value, struct relative *relative)
{
    if (value >= relative->n_values)
        relative->n_values = value + 1;
    return (frit_operand){
        .kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = value, .rank = 1, .extent = {2}};
}

void rig_op(struct relative *relative, const char *name, const uint32_t *in, uint32_t n_in,
            uint32_t out, const uint32_t *dead, uint32_t n_dead)
{
    const frit_op_info *row = op_find(str_of(name));
    frit_operand *operands = arena_array(&relative->arena, n_in + 2, sizeof(*operands));
    uint64_t *attrs;
    frit_err err = ERR_INIT;

    if (!row)
        fail_msg("no row %s", name);
    attrs = arena_alloc(&relative->arena, frit_record_info_at(row->record)->size);
    attrs[0] = frit_record_info_at(row->record)->size;
    for (uint32_t k = 0; k < n_in; k++)
        operands[k] = operand_of(in[k], relative);
    operands[n_in] = operand_of(out, relative);
    assert_true(array_grow(&relative->ops, &relative->ops_capacity, relative->n_ops, 1,
                           sizeof(*relative->ops)));
    relative->ops[relative->n_ops++] =
        (frit_op_desc){.struct_size = FRIT_END_OF(frit_op_desc, dead),
                       .id = row->id,
                       .rev = row->rev,
                       .n_in = n_in,
                       .n_out = 1,
                       .operand_stride = sizeof(frit_operand),
                       .in = operands,
                       .out = operands + n_in,
                       .attrs = attrs,
                       .dead = arena_alloc(&relative->arena, sizeof(uint32_t))};
    for (uint32_t k = 0; k < n_dead; k++)
        assert_int_equal(relative_add_death(relative, relative->n_ops - 1, dead[k], &err), FRIT_OK);
}

void rig_parse(struct relative *relative, const char *text)
{
    while (*text) {
        uint32_t in[8], dead[8], n_in = 0, n_dead = 0, out = 0, number;
        char name[32];
        int used, part = 0;

        assert_int_equal(sscanf(text, " %31s%n", name, &used), 1);
        for (text += used; *text && *text != ';';) {
            if (sscanf(text, " %u%n", &number, &used) == 1) {
                text += used;
                if (part == 0)
                    in[n_in++] = number;
                else if (part == 1)
                    out = number;
                else
                    dead[n_dead++] = number;
            } else if (*text == '>') {
                part = 1;
                text++;
            } else if (*text == '!') {
                part = 2;
                text++;
            } else {
                text++;
            }
        }
        rig_op(relative, name, in, n_in, out, dead, n_dead);
        text += *text == ';';
    }
}

void rig_cut(const struct relative *from, uint32_t first, uint32_t end, struct relative *to)
{
    for (uint32_t i = first; i < end; i++) {
        const frit_op_desc *op = &from->ops[i];
        uint32_t in[8];

        for (uint32_t k = 0; k < op->n_in; k++)
            in[k] = op->in[k].value;
        rig_op(to, op_row(op->id)->name, in, op->n_in, op->out[0].value, op->dead, op->n_dead);
    }
}

char *rig_blocks_text(const struct rig_fusers *fusers, const struct plan_block *blocks,
                      uint32_t n_blocks, char *text, size_t size)
{
    size_t at = 0;

    text[0] = 0;
    for (uint32_t b = 0; b < n_blocks && at < size; b++) {
        at += (size_t)snprintf(text + at, size - at, "%s%s%s", b ? " " : "",
                               blocks[b].program ? fusers->list[blocks[b].program->fuser].name : "",
                               blocks[b].program ? "(" : "");
        for (uint32_t i = 0; i < blocks[b].n_ops && at < size; i++)
            at += (size_t)snprintf(text + at, size - at, i ? " %u" : "%u", blocks[b].ops[i]);
        if (blocks[b].program && at < size)
            at += (size_t)snprintf(text + at, size - at, ")");
    }
    return text;
}

void rig_drop(const struct plan_block *blocks, uint32_t n_blocks)
{
    for (uint32_t b = 0; b < n_blocks; b++)
        program_unref(blocks[b].program);
}

static void assert_programs(const struct relative *relative, const struct plan_block *blocks,
                            uint32_t n_blocks)
{
    for (uint32_t b = 0; b < n_blocks; b++) {
        const uint32_t *ids;

        if (!blocks[b].program)
            continue;
        assert_int_equal(rig_program_ops(&blocks[b].program->program, &ids), blocks[b].n_ops);
        for (uint32_t i = 0; i < blocks[b].n_ops; i++)
            assert_int_equal(ids[i], relative->ops[blocks[b].ops[i]].id);
    }
}

static void expect(struct rule *rules, uint32_t n_rules, uint32_t max_blocks, const char *segment,
                   const char *expected, bool all)
{
    struct search_config config = {.n_fusers = n_rules, .max_blocks = max_blocks};
    struct rig_fusers fusers;
    struct relative relative = {0};
    const struct plan_block *blocks;
    struct plan *plan;
    struct search *search;
    uint32_t n_blocks, n_ops;
    frit_err err = ERR_INIT;
    char text[4096], covered[32] = "";

    rig_counts = (struct rig_counts){0};
    rig_fusers_init(&fusers, rules, n_rules);
    config.fusers = fusers.list;
    rig_parse(&relative, segment);
    assert_int_equal(search_create(&config, &search, &err), FRIT_OK);
    assert_int_equal(search_push(search, &relative, &err), FRIT_OK);
    assert_int_equal(search_finish(search, &relative, all, &blocks, &n_blocks, &n_ops, &err),
                     FRIT_OK);
    assert_programs(&relative, blocks, n_blocks);
    assert_int_equal(plan_create(&relative, n_ops, blocks, n_blocks, &plan, &err), FRIT_OK);
    plan_unref(plan);
    if (!all)
        snprintf(covered, sizeof(covered), " of %u", n_ops);
    rig_blocks_text(&fusers, blocks, n_blocks, text, sizeof(text) - sizeof(covered));
    strcat(text, covered);
    assert_string_equal(text, expected);
    rig_drop(blocks, n_blocks);
    search_stats(search, &rig_stats);
    search_destroy(search);
    relative_fini(&relative);
    assert_int_equal(rig_counts.clones, 0);
    assert_int_equal(rig_counts.programs, 0);
}

void rig_expect(struct rule *rules, uint32_t n_rules, uint32_t max_blocks, const char *segment,
                const char *expected)
{
    expect(rules, n_rules, max_blocks, segment, expected, true);
}

void rig_expect_some(struct rule *rules, uint32_t n_rules, uint32_t max_blocks, const char *segment,
                     const char *expected)
{
    expect(rules, n_rules, max_blocks, segment, expected, false);
}
