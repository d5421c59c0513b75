/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: completes the parameter values that prepare computed with the scalars and bounds of a
 * launch.  Takes no lock: everything it reads is constant, except compiled code, which is set once.
 */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "fuse/codes.h"
#include "fuse/program.h"
#include "kernels.h"

/* ---- scalars ---- */

static double as_f64(const frit_scalar *s)
{
    double value;

    if (s->kind == FRIT_SCALAR_U64)
        return (double)s->bits;
    if (s->kind == FRIT_SCALAR_I64)
        return (double)(int64_t)s->bits;
    memcpy(&value, &s->bits, sizeof(value));
    return value;
}

/* Converts with a single rounding. */
static float as_f32(const frit_scalar *s)
{
    if (s->kind == FRIT_SCALAR_U64)
        return (float)s->bits;
    return s->kind == FRIT_SCALAR_I64 ? (float)(int64_t)s->bits : (float)as_f64(s);
}

/* Converts like a cast: rounds toward 0, saturates, NaN becomes 0. */
static int64_t as_int(const frit_scalar *s, double low, double high, int64_t min, int64_t max)
{
    double value;

    if (s->kind != FRIT_SCALAR_F64)
        return (int64_t)s->bits;
    value = as_f64(s);
    if (isnan(value))
        return 0;
    if (value <= low)
        return min;
    return value >= high ? max : (int64_t)value;
}

static uint64_t scalar_word(const frit_scalar *s, uint32_t type)
{
    uint64_t bits = 0;
    double wide;
    float narrow;

    switch (type) {
    case KIR_B:
        return as_f64(s) != 0;
    case KIR_I32:
        return (uint32_t)as_int(s, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX);
    case KIR_I64:
        return (uint64_t)as_int(s, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
    case KIR_F32:
        narrow = as_f32(s);
        memcpy(&bits, &narrow, sizeof(narrow));
        return bits;
    default:
        wide = as_f64(s);
        memcpy(&bits, &wide, sizeof(wide));
        return bits;
    }
}

static uint64_t bound_word(int64_t bound, const struct sched_late *late)
{
    bound = bound < late->min ? late->min : bound > late->max ? late->max : bound;
    return (uint64_t)(bound + late->offset);
}

/* ---- launches ---- */

static frit_status complete_words(const struct prepared *p, const frit_launch *launch,
                                  uint64_t *words, uint32_t capacity, const uint64_t **out,
                                  frit_err *err)
{
    *out = p->words;
    if (!p->n_late)
        return FRIT_OK;
    if (capacity < p->n_words)
        return fail(err, FRIT_INTERNAL, "%u parameters do not fit into %u", p->n_words, capacity);
    memcpy(words, p->words, p->n_words * sizeof(*words));
    for (uint32_t i = 0; i < p->n_late; i++) {
        const struct sched_late *late = &p->late[i];

        words[late->word] = late->from == SCHED_BOUND
                                ? bound_word(launch->bounds[late->number], late)
                                : scalar_word(&launch->scalars[late->number], late->type);
    }
    *out = words;
    return FRIT_OK;
}

/* Sets `out` to kernel number `number`; false: it is not compiled. */
static bool fill_body(struct kernels_launch *out, uint32_t number)
{
    const struct prepared *p = out->prepared;
    const struct body *body = &p->bodies[number];

    if (number)
        out->words += body->first_word - p->bodies[out->body].first_word;
    out->body = number;
    out->product = body->product;
    if (body->product) {
        out->code = NULL;
        out->name = "product";
        out->n_phases = 0;
        return true;
    }
    out->code = code_compiled(body->code);
    out->name = code_name(body->code);
    out->n_phases = body->n_phases;
    out->n_spaces = body->n_spaces;
    out->n_words = body->n_words;
    out->n_args = body->n_args;
    out->args = body->args;
    out->fill_phases = body->fill_phases;
    out->brief_phases = body->brief_phases;
    out->grid = body->grid;
    out->first = body->first;
    return out->code;
}

bool kernels_next(struct kernels_launch *launch)
{
    return launch->body + 1 < launch->n_bodies && fill_body(launch, launch->body + 1);
}

static bool has_codes(const struct prepared *p)
{
    for (uint32_t i = 0; i < p->n_bodies; i++)
        if (p->bodies[i].code && !code_compiled(p->bodies[i].code))
            return false;
    return true;
}

frit_status kernels_launch(const frit_launch *launch, uint64_t *words, uint32_t capacity,
                           struct kernels_launch *out, frit_err *err)
{
    const struct program *program;
    const struct prepared *p = (const struct prepared *)(uintptr_t)launch->spec->driver[0];

    if (!p || !kernels_owns(launch->program))
        return fail(err, FRIT_INTERNAL, "the launch was not prepared by a program of this library");
    program = launch->program->self;
    *out = (struct kernels_launch){.total_words = p->n_words,
                                   .n_bodies = p->n_bodies,
                                   .bytes = p->bytes,
                                   .flops = p->flops,
                                   .prepared = p};
    if (!has_codes(p))
        return fail(err, FRIT_INTERNAL, "%s: launched before it is compiled", program->name);
    fill_body(out, 0);
    if (launch->n_scalars != program->block.n_scalars)
        return fail(err, FRIT_INTERNAL, "%s: launched with %u scalars instead of %u", program->name,
                    launch->n_scalars, program->block.n_scalars);
    if (launch->n_bounds != program->block.n_bounds)
        return fail(err, FRIT_INTERNAL, "%s: launched with %u bounds instead of %u", program->name,
                    launch->n_bounds, program->block.n_bounds);
    return complete_words(p, launch, words, capacity, &out->words, err);
}
