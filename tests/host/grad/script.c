/* SPDX-License-Identifier: Apache-2.0 */
#include "host/grad/script.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

const struct domain any = {-2, 2}, positive = {0.5, 2.5}, within_one = {-0.9, 0.9},
                    above_one = {1.2, 3}, away = {0.6, 2.2};

void script_init(struct script *s, const frit_op_info *row, uint64_t seed)
{
    memset(s, 0, sizeof(*s));
    s->row = row;
    s->state = seed * 0x9e3779b97f4a7c15u + row->id;
    s->step = 2e-4;
    s->tolerance = 1e-7;
}

void script_fini(struct script *s)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        free(s->in[i].floats);
        free(s->in[i].integers);
    }
}

/* ---- random numbers: splitmix64 (Steele et al. 2014) ---- */

static uint64_t next(struct script *s)
{
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t script_draw(struct script *s, uint64_t n)
{
    return (next(s) >> 11) % n;
}

int64_t script_between(struct script *s, int64_t low, int64_t high)
{
    return low + (int64_t)script_draw(s, (uint64_t)(high - low + 1));
}

bool script_chance(struct script *s, unsigned percent)
{
    return script_draw(s, 100) < percent;
}

double script_real(struct script *s, double low, double high)
{
    return low + (high - low) * (double)(next(s) >> 11) * 0x1p-53;
}

/* ---- dims ---- */

frit_dims script_filled(struct script *s, int64_t low, int64_t high, int64_t most)
{
    frit_dims dims = {.rank = script_between(s, low, high)};

    for (int64_t d = 0; d < dims.rank; d++)
        dims.dim[d] = script_between(s, 1, most);
    return dims;
}

frit_dims script_dims(struct script *s, int64_t low, int64_t high, int64_t most)
{
    frit_dims dims = script_filled(s, low, high, most);

    if (dims.rank && script_chance(s, 4))
        dims.dim[script_draw(s, (uint64_t)dims.rank)] = 0;
    return dims;
}

int64_t script_batch(struct script *s)
{
    return script_chance(s, 4) ? 0 : script_between(s, 1, 2);
}

uint64_t script_count(frit_dims dims)
{
    uint64_t count = 1;

    for (int64_t d = 0; d < dims.rank; d++)
        count *= (uint64_t)dims.dim[d];
    return count;
}

/* ---- text ---- */

struct words script_format(const char *format, ...)
{
    struct words words;
    va_list args;

    va_start(args, format);
    vsnprintf(words.text, sizeof(words.text), format, args);
    va_end(args);
    return words;
}

void script_line(struct script *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    s->length += (size_t)vsnprintf(s->text + s->length, sizeof(s->text) - s->length, format, args);
    va_end(args);
    assert_true(s->length + 2 < sizeof(s->text));
    s->text[s->length++] = '\n';
    s->text[s->length] = '\0';
}

struct words script_name(struct script *s)
{
    return script_format("v%u", s->n_names++);
}

struct words script_list(const int64_t *numbers, int64_t n)
{
    struct words words = {"["};
    size_t at = 1;

    for (int64_t i = 0; i < n; i++)
        at += (size_t)snprintf(words.text + at, sizeof(words.text) - at, "%s%lld", i ? ", " : "",
                               (long long)numbers[i]);
    snprintf(words.text + at, sizeof(words.text) - at, "]");
    return words;
}

struct words script_text(frit_dims dims)
{
    return script_list(dims.dim, dims.rank);
}

int64_t script_axis(struct script *s, int64_t rank)
{
    return script_between(s, -rank, rank - 1);
}

struct words script_axes(struct script *s, int64_t rank, bool may_be_none)
{
    int64_t axes[FRIT_MAX_RANK], n = 0;

    for (int64_t d = 0; d < rank; d++) {
        if (script_chance(s, 50))
            axes[n++] = script_chance(s, 20) ? d - rank : d;
    }
    if (!n && !may_be_none && rank)
        axes[n++] = (int64_t)script_draw(s, (uint64_t)rank);
    return n ? script_format(", axes=%s", script_list(axes, n).text) : (struct words){""};
}

/* ---- inputs ---- */

static struct script_input *add_input(struct script *s, uint32_t dtype, frit_dims dims)
{
    struct script_input *in = &s->in[s->n_in];

    assert_true(s->n_in < SCRIPT_INPUTS);
    *in = (struct script_input){.dtype = dtype, .dims = dims, .count = script_count(dims)};
    snprintf(in->name, sizeof(in->name), "x%u", s->n_in++);
    script_line(s, "input %s : %s%s", in->name, frit_dtype_name(dtype), script_text(dims).text);
    return in;
}

/* Points 0.016 apart, in a random order; each of the first four operands has points of its own. */
static void fill_floats(struct script *s, struct script_input *in, struct domain domain)
{
    const double apart = 0.016, lane = 0.004 * (s->n_floats++ % 4) + 0.002;
    const int64_t first = (int64_t)ceil(domain.low / apart);
    const uint64_t points = (uint64_t)((domain.high - domain.low) / apart) - 1;
    uint64_t order[512];

    in->floats = calloc(in->count + 1, sizeof(*in->floats));
    assert_non_null(in->floats);
    assert_true(points <= sizeof(order) / sizeof(order[0]));
    for (uint64_t i = 0; i < points; i++)
        order[i] = i;
    for (uint64_t i = 0; i < in->count; i++) {
        const uint64_t at = i % points, with = at + script_draw(s, points - at);
        const uint64_t taken = order[with];

        order[with] = order[at];
        order[at] = taken;
        in->floats[i] =
            (double)(first + (int64_t)taken) * apart + lane + script_real(s, -0.0005, 0.0005);
    }
}

struct words script_plain(struct script *s, frit_dims dims, struct domain domain)
{
    struct script_input *in = add_input(s, FRIT_F64, dims);

    fill_floats(s, in, domain);
    return script_format("%s", in->name);
}

void script_zeros(struct script *s)
{
    struct script_input *in = &s->in[s->n_in - 1];

    for (uint64_t i = 0; in->floats && i < in->count; i++)
        in->floats[i] = script_chance(s, 30) ? 0 : in->floats[i];
}

struct words script_integers(struct script *s, uint32_t dtype, frit_dims dims, int64_t low,
                             int64_t high)
{
    struct script_input *in = add_input(s, dtype, dims);

    in->integers = calloc(in->count + 1, sizeof(*in->integers));
    assert_non_null(in->integers);
    for (uint64_t i = 0; i < in->count; i++)
        in->integers[i] = script_between(s, low, high);
    return script_format("%s", in->name);
}

struct words script_index(struct script *s, frit_dims dims, int64_t low, int64_t high)
{
    return script_integers(s, script_chance(s, 50) ? FRIT_I64 : FRIT_I32, dims, low, high);
}

struct words script_mask(struct script *s, frit_dims dims)
{
    struct script_input *in = add_input(s, FRIT_BOOL, dims);

    in->integers = calloc(in->count + 1, sizeof(*in->integers));
    assert_non_null(in->integers);
    for (uint64_t i = 0; i < in->count; i++)
        in->integers[i] = script_chance(s, 50);
    return script_format("%s", in->name);
}

/* ---- views ---- */

static struct words permuted(struct script *s, frit_dims dims, struct domain domain)
{
    int64_t order[FRIT_MAX_RANK];
    frit_dims base = dims;
    struct words x, y = script_name(s);

    for (int64_t d = 0; d < dims.rank; d++)
        order[d] = d;
    for (int64_t d = 0; d < dims.rank; d++) {
        const int64_t with = script_between(s, d, dims.rank - 1), axis = order[with];

        order[with] = order[d];
        order[d] = axis;
    }
    for (int64_t d = 0; d < dims.rank; d++)
        base.dim[order[d]] = dims.dim[d];
    x = script_plain(s, base, domain);
    script_line(s, "%s = permute %s, order=%s", y.text, x.text, script_list(order, dims.rank).text);
    return y;
}

static struct words flipped(struct script *s, frit_dims dims, struct domain domain)
{
    const struct words x = script_plain(s, dims, domain), y = script_name(s);

    script_line(s, "%s = flip %s%s", y.text, x.text, script_axes(s, dims.rank, true).text);
    return y;
}

/* A part of a larger input: of every dim, with steps forwards and backwards. */
static struct words sliced(struct script *s, frit_dims dims, struct domain domain)
{
    struct words slices = {""}, x, y = script_name(s);
    frit_dims base = dims;
    size_t at = 0;

    for (int64_t d = 0; d < dims.rank; d++) {
        const int64_t step = script_between(s, 1, 2), start = script_between(s, 0, 1);
        const bool back = dims.dim[d] && script_chance(s, 25);
        const int64_t span = dims.dim[d] ? (dims.dim[d] - 1) * step + 1 : 0;
        char *to = slices.text + at;
        const size_t room = sizeof(slices.text) - at;

        base.dim[d] = start + span + script_between(s, 0, 1);
        if (back && start == 0)
            at += (size_t)snprintf(to, room, "%s%lld::-%lld", d ? ", " : "", (long long)span - 1,
                                   (long long)step);
        else if (back)
            at += (size_t)snprintf(to, room, "%s%lld:%lld:-%lld", d ? ", " : "",
                                   (long long)(start + span - 1), (long long)start - 1,
                                   (long long)step);
        else
            at += (size_t)snprintf(to, room, "%s%lld:%lld:%lld", d ? ", " : "", (long long)start,
                                   (long long)(start + span), (long long)step);
    }
    x = script_plain(s, base, domain);
    script_line(s, "%s = slice %s, slices=[%s]", y.text, x.text, slices.text);
    return y;
}

static struct words expanded(struct script *s, frit_dims dims, struct domain domain)
{
    const struct words y = script_name(s);
    frit_dims base = dims;
    struct words x;

    for (int64_t d = 0; d < dims.rank; d++) {
        if (script_chance(s, 40))
            base.dim[d] = 1;
    }
    if (dims.rank && script_chance(s, 20)) { /* of a lower rank */
        base.rank--;
        memmove(base.dim, base.dim + 1, (size_t)base.rank * sizeof(*base.dim));
    }
    x = script_plain(s, base, domain);
    script_line(s, "%s = expand %s, dims=%s", y.text, x.text, script_text(dims).text);
    return y;
}

static struct words reshaped(struct script *s, frit_dims dims, struct domain domain)
{
    const frit_dims line = {.rank = 1, .dim = {(int64_t)script_count(dims)}};
    const struct words x = script_plain(s, line, domain), y = script_name(s);

    script_line(s, "%s = reshape %s, dims=%s", y.text, x.text, script_text(dims).text);
    return y;
}

/* What some op computed. */
static struct words computed(struct script *s, frit_dims dims, struct domain domain)
{
    const struct words x = script_plain(s, dims, domain), y = script_name(s);

    script_line(s, "%s = mul %s, 1.0", y.text, x.text);
    return y;
}

struct words script_operand(struct script *s, frit_dims dims, struct domain domain)
{
    static struct words (*const kinds[])(struct script *, frit_dims, struct domain) = {
        script_plain, script_plain, script_plain, permuted, flipped,
        sliced,       expanded,     reshaped,     computed};
    const uint64_t kind = script_draw(s, sizeof(kinds) / sizeof(kinds[0]));

    return dims.rank || kind < 3 ? kinds[kind](s, dims, domain) : computed(s, dims, domain);
}

struct words script_broadcast(struct script *s, frit_dims dims, struct domain domain)
{
    const int64_t less = dims.rank && script_chance(s, 20) ? script_between(s, 1, dims.rank) : 0;

    dims.rank -= less;
    memmove(dims.dim, dims.dim + less, (size_t)dims.rank * sizeof(*dims.dim));
    for (int64_t d = 0; d < dims.rank; d++) {
        if (script_chance(s, 20))
            dims.dim[d] = 1;
    }
    return script_operand(s, dims, domain);
}
