/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes of a group do together: tiles, barriers, values of other lanes.
 *
 * A value comes from another lane of the same thread by its name; from another thread by a shuffle
 * where one warp has both; else through shared memory, a place per lane, in which threads that are
 * neighbours are neighbours.  There a barrier stands in front of the reading; one in front of the
 * next writing is not needed where two areas are used in turn, since the barrier of the one
 * exchange lies between what is read before it and what is written after it. */
#include "emit/c/threads.h"

#include <stdio.h>

#include "emit/c/args.h"
#include "emit/c/rows.h"
#include "emit/reuse.h"

static uint32_t size_of(uint32_t type)
{
    return type == KIR_I64 || type == KIR_F64 ? 8 : 4;
}

/* Up to this many bytes there are two areas for exchanges: more would cost groups that run at the
 * same time. */
enum { MAX_DOUBLE = 4096 };

/* ---- tiles ---- */

static bool is_of_group(const struct writer *w, uint32_t at)
{
    return w->phase->tiles[writer_inst(w, at)->imm].space == KIR_GROUP;
}

/* The element of its own tile that an access of lane j is to. */
static void write_element(struct writer *w, struct str *out, const struct kir_inst *inst,
                          uint32_t j)
{
    str_addf(out, "MINE(t%u_%u)[", (uint32_t)inst->imm, j);
    str_addf(out, writer_inst(w, inst->a[0])->type == KIR_I64 ? "(i64)" : "(i32)");
    writer_value(w, out, inst->a[0], j);
    str_addf(out, "]");
}

void threads_tload(struct writer *w, uint32_t at)
{
    if (is_of_group(w, at)) {
        args_load(w, at);
        return;
    }
    for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, at)) {
        struct str *out = writer_begin(w, at, j);

        write_element(w, out, writer_inst(w, at), j);
        str_addf(out, ";\n");
    }
}

void threads_tstore(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);

    if (is_of_group(w, at)) {
        args_store(w, at);
        return;
    }
    for (uint32_t j = 0; j < w->shape.per_thread; j++) {
        struct str *out = writer_line(w);

        if (inst->op == KIR_tstore_if) {
            str_addf(out, "if (");
            writer_value(w, out, inst->a[2], j);
            str_addf(out, ") ");
        }
        write_element(w, out, inst, j);
        str_addf(out, " = ");
        writer_value(w, out, inst->a[1], j);
        str_addf(out, ";\n");
    }
}

void threads_barrier(struct writer *w, uint32_t at)
{
    (void)at;
    writer_barrier(w);
}

/* ---- values of other threads ---- */

/* Whether threads that are less than `span` apart from its multiples are in one warp. */
static bool is_near(const struct writer *w, uint32_t span)
{
    return span <= w->target->warp;
}

static bool stays_in_thread(const struct shape *shape, const struct kir_inst *inst)
{
    uint32_t lanes = (uint32_t)inst->imm;

    return shape->striped ? lanes >= shape->threads : lanes < shape->per_thread;
}

bool threads_communicate(const struct shape *shape, uint32_t at)
{
    const struct kir_inst *inst = &shape->phase->inst[at];
    uint32_t same;

    if (inst->op == KIR_barrier || inst->op == KIR_mfill || inst->op == KIR_mload ||
        inst->op == KIR_mstore || inst->op == KIR_mma || inst->op == KIR_mlargest ||
        inst->op == KIR_mtotal || inst->op == KIR_mnarrow || inst->op == KIR_mscale)
        return true;
    if (inst->op != KIR_exchange && inst->op != KIR_shift && inst->op != KIR_first)
        return false;
    same = shape->facts->of[inst->a[0]].same;
    if (shape->threads == 1 || same == shape->phase->lanes)
        return false;
    return inst->op != KIR_exchange || (inst->imm >= same && !stays_in_thread(shape, inst));
}

/* Whether it goes through shared memory. */
static bool is_far(const struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    uint32_t lanes = (uint32_t)inst->imm;

    if ((inst->op != KIR_exchange && inst->op != KIR_shift && inst->op != KIR_first) ||
        !threads_communicate(&w->shape, at))
        return false;
    if (inst->op == KIR_exchange)
        return !is_near(w, 2 * (w->shape.striped ? lanes : lanes / w->shape.per_thread));
    return !is_near(w, w->shape.threads) || (inst->op == KIR_shift && w->shape.striped);
}

/* Of one area: what the largest exchange needs. */
static uint32_t exchange_bytes(const struct writer *w)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < w->phase->n; i++) {
        const struct kir_inst *inst = writer_inst(w, i);
        uint32_t per_thread = w->shape.per_thread, bytes;

        if (!is_far(w, i))
            continue;
        bytes =
            size_of(inst->type) * w->shape.threads * (per_thread - writer_run(w, inst->a[0]) + 1);
        if (inst->op == KIR_first)
            bytes = size_of(inst->type);
        most = bytes > most ? bytes : most;
    }
    return (most + 15) / 16 * 16;
}

void threads_declare(struct writer *w)
{
    uint32_t *places = arena_array(&w->arena, w->phase->n_tiles + 1u, sizeof(*places)), place;

    if (!places) {
        w->out->failed = true;
        return;
    }
    place = reuse_tiles(w->phase, places);
    for (uint32_t i = 0; i < w->phase->n_tiles; i++) {
        const struct kir_tile *tile = &w->phase->tiles[i];
        const char *type =
            tile->space == KIR_GROUP ? rows_memory_type(tile->dtype) : rows_type(tile->type);

        if (tile->space == KIR_GROUP)
            str_addf(writer_group_line(w), "m_%s *const t%u = (m_%s *)((u8 *)shared + %u);\n", type,
                     i, type, places[i]);
        for (uint32_t j = 0; tile->space == KIR_LANE && j < w->shape.per_thread; j++)
            str_addf(writer_group_line(w), "HELD_TILE(%s, t%u_%u, %u);\n", type, i, j, tile->count);
    }
    w->exchange[0] = place;
    place += exchange_bytes(w);
    w->exchange[1] = w->exchange[0];
    if (place - w->exchange[0] <= MAX_DOUBLE) {
        w->exchange[1] = place;
        place += place - w->exchange[0];
    }
    w->shared_bytes = place;
}

/* The place of a value at lane j of this thread, or of another one as `thread` says, in the area of
 * the last exchange. */
static void write_place(struct writer *w, struct str *out, uint32_t type, const char *thread,
                        uint32_t j)
{
    str_addf(out, "((m_%s *)((u8 *)shared + %u))[%s + %uu]", rows_type(type), w->exchange[w->area],
             thread, j * w->shape.threads);
}

void threads_end_exchange(struct writer *w)
{
    if (w->is_read[0] || w->is_read[1])
        writer_barrier(w);
}

/* Where the next exchange may write. */
static void begin_exchange(struct writer *w)
{
    if (w->exchange[0] != w->exchange[1])
        w->area = !w->area;
    if (w->is_read[w->area])
        writer_barrier(w);
}

/* Makes the values that were written visible to all threads, which read them from here on. */
static void end_exchange(struct writer *w)
{
    writer_barrier(w);
    w->is_read[w->area] = true;
}

/* Every thread's values, for all to read. */
static void put_all(struct writer *w, uint32_t value)
{
    uint32_t type = writer_inst(w, value)->type;

    begin_exchange(w);
    for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, value)) {
        struct str *out = writer_line(w);

        write_place(w, out, type, "THREAD", j);
        str_addf(out, " = ");
        writer_value(w, out, value, j);
        str_addf(out, ";\n");
    }
    end_exchange(w);
}

/* The value of lane `from` of this thread as that of lane j. */
static void copy(struct writer *w, uint32_t at, uint32_t j, uint32_t from)
{
    struct str *out = writer_begin(w, at, j);

    writer_value(w, out, writer_inst(w, at)->a[0], from);
    str_addf(out, ";\n");
}

/* ---- exchange ---- */

static void exchange_threads(struct writer *w, uint32_t at, uint32_t by)
{
    uint32_t value = writer_inst(w, at)->a[0];
    char other[32];

    if (!is_far(w, at)) {
        writer_end_region(w);
        for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, at)) {
            str_addf(writer_group_line(w), "SHUFFLE_XOR(");
            writer_name(w, w->out, at, j);
            str_addf(w->out, ", ");
            writer_name(w, w->out, value, j);
            str_addf(w->out, ", %uu);\n", by);
        }
        return;
    }
    put_all(w, value);
    snprintf(other, sizeof(other), "(THREAD ^ %uu)", by);
    for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, at)) {
        struct str *out = writer_begin(w, at, j);

        write_place(w, out, writer_inst(w, value)->type, other, j - j % writer_run(w, value));
        str_addf(out, ";\n");
    }
}

void threads_exchange(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    uint32_t lanes = (uint32_t)inst->imm, per_thread = w->shape.per_thread;
    uint32_t near = w->shape.striped ? w->shape.threads : 1;

    if (threads_communicate(&w->shape, at)) {
        exchange_threads(w, at, w->shape.striped ? lanes : lanes / per_thread);
        return;
    }
    for (uint32_t j = 0; j < per_thread; j += writer_run(w, at))
        copy(w, at, j, lanes < w->facts.of[inst->a[0]].same ? j : j ^ lanes / near);
}

/* ---- shift ---- */

/* Where a lane's value comes from: lane `from` of the thread `threads` before. */
struct lane_source {
    uint32_t from, threads;
};

static struct lane_source source_of(const struct writer *w, uint32_t by, uint32_t j)
{
    uint32_t per_thread = w->shape.per_thread;

    return (struct lane_source){(j + per_thread - by % per_thread) % per_thread,
                                by / per_thread + (by % per_thread > j)};
}

/* Within a thread that is the whole group. */
static void shift_lanes(struct writer *w, uint32_t at, uint32_t by)
{
    for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, at))
        copy(w, at, j, j < by ? j : j - by);
}

static void shuffle_up(struct writer *w, uint32_t at, uint32_t by)
{
    uint32_t value = writer_inst(w, at)->a[0];

    for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, at)) {
        struct lane_source source = source_of(w, by, j);

        if (!source.threads) {
            copy(w, at, j, source.from);
            continue;
        }
        writer_end_region(w);
        str_addf(writer_group_line(w), "SHUFFLE_UP(");
        writer_name(w, w->out, at, j);
        str_addf(w->out, ", ");
        writer_name(w, w->out, value, source.from);
        str_addf(w->out, ", ");
        writer_name(w, w->out, value, j);
        str_addf(w->out, ", %uu);\n", source.threads);
    }
}

static void shift_threads(struct writer *w, uint32_t at, uint32_t by)
{
    uint32_t value = writer_inst(w, at)->a[0], run = writer_run(w, value);
    uint32_t type = writer_inst(w, at)->type;
    char other[32];

    put_all(w, value);
    for (uint32_t j = 0; j < w->shape.per_thread; j += writer_run(w, at)) {
        struct lane_source source = source_of(w, by, j);
        struct str *out;

        if (!w->shape.striped && !source.threads) {
            copy(w, at, j, source.from);
            continue;
        }
        out = writer_begin(w, at, j);
        if (w->shape.striped) {
            writer_lane(w, out, j);
            str_addf(out, " >= %uu ? ", by);
            snprintf(other, sizeof(other), "THREAD - %uu", by); /* places are lanes */
            write_place(w, out, type, other, j);
        } else {
            str_addf(out, "THREAD >= %uu ? ", source.threads);
            snprintf(other, sizeof(other), "THREAD - %uu", source.threads);
            write_place(w, out, type, other, source.from - source.from % run);
        }
        str_addf(out, " : ");
        writer_value(w, out, value, j);
        str_addf(out, ";\n");
    }
}

void threads_shift(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    uint32_t by = (uint32_t)inst->imm;

    if (w->facts.of[inst->a[0]].same == w->phase->lanes)
        shift_lanes(w, at, 0);
    else if (w->shape.threads == 1)
        shift_lanes(w, at, by);
    else if (!is_far(w, at))
        shuffle_up(w, at, by);
    else
        shift_threads(w, at, by);
}

/* ---- first ---- */

void threads_first(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    struct str *out;

    if (!threads_communicate(&w->shape, at)) {
        copy(w, at, 0, 0);
        return;
    }
    if (!is_far(w, at)) {
        writer_end_region(w);
        out = writer_begin(w, at, 0);
        str_addf(out, "FIRST(");
        writer_name(w, out, inst->a[0], 0);
        str_addf(out, ");\n");
        return;
    }
    begin_exchange(w);
    out = writer_line(w);
    str_addf(out, "if (THREAD == 0) ");
    write_place(w, out, inst->type, "0u", 0);
    str_addf(out, " = ");
    writer_value(w, out, inst->a[0], 0);
    str_addf(out, ";\n");
    end_exchange(w);
    out = writer_begin(w, at, 0);
    write_place(w, out, inst->type, "0u", 0);
    str_addf(out, ";\n");
}
