/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write a phase share: the text as it grows, and how a value of the IR is
 * variables.
 *
 * Two texts grow at the same time: `out`, and `body`, the open region: what each thread does up to
 * the next op of the group.  When the region ends its body goes to `out` after FOR_THREADS.
 * Values of the group go to `out` at once, in front of the open region: they are pure, so nothing
 * in it changes them.
 *
 * A value is a variable for each lane of a thread, v7_0, v7_1, ..., or for each run of lanes in
 * which it is the same; one for all of a thread's lanes is v7. */
#ifndef EMIT_C_WRITER_H
#define EMIT_C_WRITER_H

#include "emit/c/ctext.h"
#include "emit/c/plan.h"
#include "emit/shape.h"

enum { WRITER_PRODUCTS = 8 };

struct writer {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct ctext_target *target;
    struct facts facts;
    struct arena arena; /* of the shape */
    struct shape shape;
    struct plan plan;
    bool by_value;
    struct str *out;
    struct str body;
    uint32_t deep, body_deep; /* indentation */
    uint32_t shared_bytes;    /* tiles, then areas for exchanges */
    uint32_t exchange[2];     /* where in it the areas begin; both are one where it is large */
    uint32_t area;            /* of the last exchange */
    bool is_read[2];          /* of an area, since the last barrier */
    bool multiplies;          /* wide products may go on */
    uint32_t n_products, products[WRITER_PRODUCTS]; /* instructions that are to be written as one */
    uint32_t each; /* the fragment whose elements the lines are for; KIR_NONE */
};

typedef void (*write_fn)(struct writer *w, uint32_t at);

static inline const struct kir_inst *writer_inst(const struct writer *w, uint32_t at)
{
    return &w->phase->inst[at];
}

/* Lanes for which an instruction is written: in an each one element takes their place. */
static inline uint32_t writer_lanes(const struct writer *w)
{
    return w->each == KIR_NONE ? w->shape.per_thread : 1;
}

/* ---- writer.c ---- */

/* How many lanes, from each multiple of it on, have one variable. */
uint32_t writer_run(const struct writer *w, uint32_t value);

/* The name that the value's variable at lane j is declared by. */
void writer_name(const struct writer *w, struct str *out, uint32_t value, uint32_t j);
/* The value of lane j in a region. */
void writer_value(const struct writer *w, struct str *out, uint32_t value, uint32_t j);
/* A value that is the same in all lanes, between regions. */
void writer_uniform(const struct writer *w, struct str *out, uint32_t value);
/* The number of lane j. */
void writer_lane(const struct writer *w, struct str *out, uint32_t j);

/* Begins a line of the open region; of `out`, for which the region is to be ended before. */
struct str *writer_line(struct writer *w);
struct str *writer_group_line(struct writer *w);
/* A line of the open region up to "=", after which the value of lane j is written. */
struct str *writer_begin(struct writer *w, uint32_t at, uint32_t j);
/* The same of a variable that is assigned again. */
struct str *writer_begin_variable(struct writer *w, uint32_t at, uint32_t j);
void writer_end_region(struct writer *w);
/* Ends the region by a barrier of the group. */
void writer_barrier(struct writer *w);

#endif
