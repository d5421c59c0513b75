/* SPDX-License-Identifier: Apache-2.0 */
/* Operands, records and deaths are allocated in the arena; lists of deaths have power-of-two
 * capacities. */
#include "plan/relative.h"

#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/str.h"
#include "graph/custom.h"
#include "graph/dtype.h"
#include "graph/graph.h"
#include "graph/op.h"

void relative_fini(struct relative *relative)
{
    free(relative->ops);
    free(relative->extents);
    arena_fini(&relative->arena);
    *relative = (struct relative){0};
}

void relative_reset(struct relative *relative)
{
    arena_reset(&relative->arena);
    relative->n_ops = 0;
    relative->n_values = 0;
    relative->n_extents = 0;
    relative->n_scalars = 0;
    relative->n_deaths = 0;
}

/* Returns the number of an extent, which is added if it is new. */
static uint32_t number_extent(int64_t *extents, uint32_t *n_extents, int64_t extent)
{
    if (extent <= 1)
        return (uint32_t)extent;
    for (uint32_t i = 0; i < *n_extents; i++) {
        if (extents[i] == extent)
            return i + 2;
    }
    extents[(*n_extents)++] = extent;
    return *n_extents + 1;
}

void relative_tensor(int64_t *extents, uint32_t *n_extents, const struct op_type *type,
                     uint32_t value, frit_operand *out)
{
    *out = (frit_operand){
        .kind = FRIT_OPERAND_TENSOR, .dtype = type->dtype, .value = value, .rank = type->rank};
    for (uint32_t d = 0; d < type->rank; d++)
        out->extent[d] = number_extent(extents, n_extents, type->dims[d]);
}

static void fill_tensor(struct relative *relative, const struct op_type *type, uint32_t value,
                        frit_operand *out)
{
    relative_tensor(relative->extents, &relative->n_extents, type, value, out);
    if (value >= relative->n_values)
        relative->n_values = value + 1;
}

static void fill_operands(struct relative *relative, const struct graph *graph,
                          const struct graph_op *op, frit_operand *out)
{
    for (uint32_t i = 0; i < op->n_in; i++, out++) {
        const struct graph_operand *in = &op->in[i];

        if (in->kind == FRIT_OPERAND_TENSOR)
            fill_tensor(relative, &graph->values[in->value].type, in->value, out);
        else if (in->kind == FRIT_OPERAND_SCALAR)
            *out = (frit_operand){
                .kind = in->kind, .dtype = in->dtype, .value = relative->n_scalars++};
    }
    for (uint32_t i = 0; i < op->n_out; i++, out++) {
        if (op->out[i] != GRAPH_NO_VALUE)
            fill_tensor(relative, &graph->values[op->out[i]].type, op->out[i], out);
    }
}

void relative_attrs(const frit_record_info *record, const void *attrs, unsigned char *out)
{
    uint64_t size = record->size;

    memcpy(out, &size, sizeof(size));
    for (uint32_t i = 0; i < record->n_fields && attrs; i++) {
        const frit_field_info *field = &record->field[i];

        if (field->use == FRIT_USE_KEY)
            memcpy(out + field->offset, (const unsigned char *)attrs + field->offset, field->size);
    }
}

static uint32_t death_capacity(uint32_t n_dead)
{
    uint32_t capacity = 1;

    while (capacity < n_dead)
        capacity *= 2;
    return capacity;
}

frit_status relative_append(struct relative *relative, const struct graph *graph, uint32_t op,
                            const uint32_t *dead, uint32_t n_dead, frit_err *err)
{
    const struct graph_op *from = &graph->ops[op];
    const frit_op_info *row = op_row(from->op);
    const frit_record_info *record = op_record(row);
    uint32_t n = from->n_in + from->n_out;
    frit_operand *operands = arena_array(&relative->arena, (size_t)n + 1, sizeof(*operands));
    unsigned char *attrs = arena_alloc(&relative->arena, record->size);
    uint32_t *died = arena_array(&relative->arena, death_capacity(n_dead), sizeof(*died));

    if (!operands || !attrs || !died)
        return fail_memory(err, ((size_t)n + 1) * sizeof(*operands));
    if (!array_grow(&relative->ops, &relative->ops_capacity, relative->n_ops, 1,
                    sizeof(*relative->ops)) ||
        !array_grow(&relative->extents, &relative->extents_capacity, relative->n_extents,
                    n * FRIT_MAX_RANK, sizeof(*relative->extents)))
        return fail_memory(err, sizeof(*relative->ops));
    fill_operands(relative, graph, from, operands);
    relative_attrs(record, from->attrs, attrs);
    if (n_dead)
        memcpy(died, dead, n_dead * sizeof(*died));
    relative->n_deaths += n_dead;
    relative->ops[relative->n_ops++] =
        (frit_op_desc){.struct_size = FRIT_END_OF(frit_op_desc, name),
                       .id = from->op,
                       .rev = row->rev,
                       .n_in = from->n_in,
                       .n_out = from->n_out,
                       .n_dead = n_dead,
                       .operand_stride = sizeof(frit_operand),
                       .n_extra = row->traits & FRIT_OP_SEEDED ? 2 : 0,
                       .in = operands,
                       .out = operands + from->n_in,
                       .attrs = attrs,
                       .dead = died,
                       .name = custom_name(from->op)};
    return FRIT_OK;
}

frit_status relative_add_death(struct relative *relative, uint32_t op, uint32_t value,
                               frit_err *err)
{
    frit_op_desc *desc = &relative->ops[op];
    uint32_t *dead = (uint32_t *)desc->dead; /* it is allocated in this arena */
    uint32_t capacity = death_capacity(desc->n_dead);

    if (desc->n_dead == capacity) {
        dead = arena_array(&relative->arena, (size_t)capacity * 2, sizeof(*dead));
        if (!dead)
            return fail_memory(err, (size_t)capacity * 2 * sizeof(*dead));
        memcpy(dead, desc->dead, capacity * sizeof(*dead));
        desc->dead = dead;
    }
    dead[desc->n_dead++] = value;
    relative->n_deaths++;
    return FRIT_OK;
}

/* Per value: 1 + the last op that has it, or 0. */
static void last_ops(const struct relative *relative, uint32_t *last)
{
    for (uint32_t i = 0; i < relative->n_ops; i++) {
        const frit_op_desc *op = &relative->ops[i];

        for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
            const frit_operand *operand = k < op->n_in ? &op->in[k] : &op->out[k - op->n_in];

            if (operand->kind == FRIT_OPERAND_TENSOR)
                last[operand->value] = i + 1;
        }
    }
}

frit_status relative_last_uses(const struct relative *relative, struct arena *arena,
                               struct relative_deaths *out, frit_err *err)
{
    size_t n = (size_t)relative->n_values + 1;
    uint32_t *last = arena_array(arena, n, sizeof(*last));
    bool *dies = arena_array(arena, n, sizeof(*dies));

    out->first = arena_array(arena, (size_t)relative->n_ops + 2, sizeof(*out->first));
    out->values = arena_array(arena, n, sizeof(*out->values));
    if (!last || !dies || !out->first || !out->values)
        return fail_memory(err, n * sizeof(*last));
    last_ops(relative, last);
    for (uint32_t i = 0; i < relative->n_ops; i++) {
        const frit_op_desc *op = &relative->ops[i];

        for (uint32_t k = 0; k < op->n_dead; k++) {
            if (op->dead[k] < relative->n_values && last[op->dead[k]])
                dies[op->dead[k]] = true;
        }
    }
    /* Counting sort by op: counts are stored one index later and summed; filling a list then moves
     * its start to its final position. */
    for (uint32_t v = 0; v < relative->n_values; v++)
        out->first[last[v] + 1] += dies[v] && last[v];
    for (uint32_t i = 1; i <= relative->n_ops + 1; i++)
        out->first[i] += out->first[i - 1];
    for (uint32_t v = 0; v < relative->n_values; v++) {
        if (dies[v])
            out->values[out->first[last[v]]++] = v;
    }
    return FRIT_OK;
}

static bool same_operand(const frit_operand *a, const frit_operand *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->value == b->value &&
           a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof(*a->extent)) == 0;
}

bool relative_same_op(const frit_op_desc *a, const frit_op_desc *b)
{
    uint32_t size_a, size_b;

    if (a->id != b->id || a->rev != b->rev || a->n_in != b->n_in || a->n_out != b->n_out)
        return false;
    for (uint32_t i = 0; i < a->n_in; i++) {
        if (!same_operand(&a->in[i], &b->in[i]))
            return false;
    }
    for (uint32_t i = 0; i < a->n_out; i++) {
        if (!same_operand(&a->out[i], &b->out[i]))
            return false;
    }
    memcpy(&size_a, a->attrs, sizeof(size_a));
    memcpy(&size_b, b->attrs, sizeof(size_b));
    return size_a == size_b && memcmp(a->attrs, b->attrs, size_a) == 0;
}

/* ---- bytes ---- */

static void write_operand(const frit_operand *operand, struct str *out)
{
    uint32_t words[] = {operand->kind, operand->dtype, operand->value, operand->rank};

    str_add(out, (const char *)words, sizeof(words));
    str_add(out, (const char *)operand->extent, operand->rank * sizeof(*operand->extent));
}

static void write_op(const frit_op_desc *op, struct str *out)
{
    bool custom = op->id >= FRIT_OP_CUSTOM;
    uint32_t head[] = {custom ? FRIT_OP_CUSTOM : op->id, op->rev, op->n_in, op->n_out};
    uint64_t size;

    str_add(out, (const char *)head, sizeof(head));
    if (custom)
        str_addf(out, "%s%c", op_row(op->id)->name, '\0');
    for (uint32_t i = 0; i < op->n_in; i++)
        write_operand(&op->in[i], out);
    for (uint32_t i = 0; i < op->n_out; i++)
        write_operand(&op->out[i], out);
    memcpy(&size, op->attrs, sizeof(size));
    str_add(out, op->attrs, (size_t)size);
}

void relative_write(const struct relative *relative, uint32_t first, uint32_t end, struct str *out)
{
    for (uint32_t i = first; i < end; i++)
        write_op(&relative->ops[i], out);
}

/* ---- text ---- */

/* Number 2 is a, 27 is z, 28 is aa. */
static void print_extent(uint32_t number, struct str *out)
{
    char text[8];
    uint32_t at = sizeof(text);

    if (number < 2) {
        str_addf(out, "%u", number);
        return;
    }
    for (uint32_t n = number - 1; n; n = (n - 1) / 26)
        text[--at] = (char)('a' + (n - 1) % 26);
    str_add(out, text + at, sizeof(text) - at);
}

static void print_type(const frit_operand *operand, struct str *out)
{
    str_addf(out, "%s[", dtype_name(operand->dtype));
    for (uint32_t d = 0; d < operand->rank; d++) {
        str_addf(out, d ? ", " : "");
        print_extent(operand->extent[d], out);
    }
    str_addf(out, "]");
}

static void print_operand(const frit_operand *operand, struct str *out)
{
    if (operand->kind == FRIT_OPERAND_TENSOR)
        str_addf(out, "%%%u", operand->value);
    else
        str_addf(out, operand->kind == FRIT_OPERAND_SCALAR ? "s" : "_");
}

static void print_op(const frit_op_desc *op, struct str *out)
{
    const frit_op_info *row = op_row(op->id);

    if (row)
        str_addf(out, "%s", row->name);
    else
        str_addf(out, "op %u", op->id);
    if (op->n_out && op->out[0].kind == FRIT_OPERAND_TENSOR) {
        str_addf(out, " ");
        print_type(&op->out[0], out);
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        str_addf(out, i ? ", " : " ");
        print_operand(&op->in[i], out);
    }
    for (uint32_t i = 0; i < op->n_out; i++) {
        str_addf(out, i ? ", " : " -> ");
        print_operand(&op->out[i], out);
    }
    for (uint32_t i = 0; i < op->n_dead; i++)
        str_addf(out, i ? ", %%%u" : " | dead %%%u", op->dead[i]);
}

void relative_print(const struct relative *relative, struct str *out)
{
    for (uint32_t i = 0; i < relative->n_ops; i++) {
        str_addf(out, "%u: ", i);
        print_op(&relative->ops[i], out);
        str_addf(out, "\n");
    }
}
