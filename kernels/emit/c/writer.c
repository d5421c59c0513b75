/* SPDX-License-Identifier: Apache-2.0 */
#include "emit/c/writer.h"

#include "emit/c/rows.h"

uint32_t writer_run(const struct writer *w, uint32_t value)
{
    return w->plan.home[value] == PLAN_GROUP ? w->shape.per_thread : shape_run(&w->shape, value);
}

void writer_name(const struct writer *w, struct str *out, uint32_t value, uint32_t j)
{
    uint32_t run = writer_run(w, value);

    str_addf(out, run == w->shape.per_thread ? "v%u" : "v%u_%u", value, j - j % run);
}

void writer_lane(const struct writer *w, struct str *out, uint32_t j)
{
    uint32_t threads = w->shape.threads, per_thread = w->shape.per_thread;

    if (threads == 1)
        str_addf(out, "%uu", j);
    else if (per_thread == 1)
        str_addf(out, "THREAD");
    else if (w->shape.striped)
        str_addf(out, "(THREAD + %uu)", j * threads);
    else
        str_addf(out, "(THREAD * %uu + %uu)", per_thread, j);
}

void writer_value(const struct writer *w, struct str *out, uint32_t value, uint32_t j)
{
    bool is_held = w->plan.home[value] == PLAN_HELD;

    if (writer_inst(w, value)->op == KIR_lane && !is_held) {
        writer_lane(w, out, j);
        return;
    }
    str_addf(out, is_held ? "MINE(" : "");
    writer_name(w, out, value, j);
    str_addf(out, is_held ? ")" : "");
}

void writer_uniform(const struct writer *w, struct str *out, uint32_t value)
{
    bool is_held = w->plan.home[value] == PLAN_HELD;

    str_addf(out, is_held ? "UNIFORM(" : "");
    writer_name(w, out, value, 0);
    str_addf(out, is_held ? ")" : "");
}

/* ---- lines ---- */

static void indent(struct str *out, uint32_t deep)
{
    str_addf(out, "%*s", (int)(4 * deep), "");
}

struct str *writer_line(struct writer *w)
{
    indent(&w->body, w->body_deep);
    return &w->body;
}

struct str *writer_group_line(struct writer *w)
{
    indent(w->out, w->deep);
    return w->out;
}

static struct str *begin(struct writer *w, uint32_t at, uint32_t j, const char *qualifier)
{
    uint32_t home = w->plan.home[at];
    struct str *out = home == PLAN_GROUP ? writer_group_line(w) : writer_line(w);

    if (home != PLAN_HELD)
        str_addf(out, "%s%s ", qualifier, rows_type(writer_inst(w, at)->type));
    writer_value(w, out, at, j);
    str_addf(out, " = ");
    return out;
}

struct str *writer_begin(struct writer *w, uint32_t at, uint32_t j)
{
    return begin(w, at, j, "const ");
}

struct str *writer_begin_variable(struct writer *w, uint32_t at, uint32_t j)
{
    return begin(w, at, j, "");
}

void writer_end_region(struct writer *w)
{
    if (w->body.length) {
        str_addf(writer_group_line(w), "FOR_THREADS {\n");
        str_add(w->out, w->body.text, w->body.length);
        str_addf(writer_group_line(w), "}\n");
        w->body.length = 0;
    }
    w->body_deep = w->deep + 1;
}

void writer_barrier(struct writer *w)
{
    writer_end_region(w);
    if (w->shape.threads > 1)
        str_addf(writer_group_line(w),
                 w->shape.threads > w->target->warp ? "BARRIER;\n" : "WARP_BARRIER;\n");
    w->is_read[0] = w->is_read[1] = false;
}
