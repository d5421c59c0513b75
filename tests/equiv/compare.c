/* SPDX-License-Identifier: Apache-2.0 */
/* Plays of one script: every reading bit for bit, but that all NaNs are alike; or as near as
 * drivers must be. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "play.h"

static double element(uint32_t dtype, const char *data, int64_t i)
{
    float narrow;
    double real;
    int32_t whole;

    switch (dtype) {
    case FRIT_F32:
        memcpy(&narrow, data + i * 4, 4);
        return (double)narrow;
    case FRIT_F64:
        memcpy(&real, data + i * 8, 8);
        return real;
    case FRIT_I32:
        memcpy(&whole, data + i * 4, 4);
        return whole;
    default:
        return (double)(uint8_t)data[i];
    }
}

static bool alike(uint32_t dtype, const char *a, const char *b, int64_t i)
{
    int64_t size = frit_dtype_bits(dtype) / 8;
    bool real = dtype == FRIT_F32 || dtype == FRIT_F64;

    return memcmp(a + i * size, b + i * size, (size_t)size) == 0 ||
           (real && isnan(element(dtype, a, i)) && isnan(element(dtype, b, i)));
}

/* The first element that differs, or -1. */
static int64_t first_other(uint32_t dtype, int64_t count, const char *a, const char *b)
{
    for (int64_t i = 0; i < count; i++)
        if (!alike(dtype, a, b, i))
            return i;
    return -1;
}

/* What a reading is of: a reading action's operand, or a value that was left. */
static const struct var *var_of(const struct script *script, uint32_t reading, uint32_t *number)
{
    *number = reading < script->n_actions ? script->actions[reading].in[0].var
                                          : reading - script->n_actions;
    return &script->vars[*number];
}

bool play_compare(const struct script *script, uint32_t variant, const struct play *like,
                  const struct play *play, char *text, size_t size)
{
    for (uint32_t i = 0; i < script->n_actions + script->n_vars; i++) {
        const struct reading *a = &like->readings[i], *b = &play->readings[i];
        const struct var *var;
        uint32_t number;
        int64_t at;

        if (!b->data)
            continue;
        var = var_of(script, i, &number);
        if (!a->data) {
            snprintf(text, size, "v%u reads at %u, and nowhere else", number, i);
            return false;
        }
        if (a->status != b->status) {
            snprintf(text, size, "v%u reads at %u with status %s, not %s", number, i,
                     frit_status_name(b->status), frit_status_name(a->status));
            return false;
        }
        at = a->status
                 ? -1
                 : first_other(var->dtype, shape_count(&var->shape, variant), a->data, b->data);
        if (at >= 0) {
            snprintf(text, size, "v%u reads at %u, element %lld, as %.9g, not %.9g", number, i,
                     (long long)at, element(var->dtype, b->data, at),
                     element(var->dtype, a->data, at));
            return false;
        }
    }
    return true;
}

/* ---- drivers beside each other ---- */

enum { ULPS = 4, WORSE = 4 };

/* Of a float's type: a unit in the last place at 1, and the smallest normal number. */
static double unit_of(uint32_t dtype)
{
    return dtype == FRIT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
}

static double least_of(uint32_t dtype)
{
    return dtype == FRIT_F64 ? DBL_MIN : (double)FLT_MIN;
}

struct near_tensor {
    uint32_t dtype;
    int64_t count;
    const char *own, *wide, *other;
    const char *disturbed[PLAY_ERRORS];
    uint32_t n_disturbed;
    double error, largest; /* of the finite elements */
};

static void measure(struct near_tensor *tensor)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        double wide = element(FRIT_F64, tensor->wide, i);
        double error = fabs(element(tensor->dtype, tensor->own, i) - wide);

        if (!isfinite(wide))
            continue;
        tensor->largest = fmax(tensor->largest, fabs(wide));
        for (uint32_t k = 0; k < tensor->n_disturbed; k++)
            error = fmax(error, fabs(element(FRIT_F64, tensor->disturbed[k], i) - wide));
        tensor->error = fmax(tensor->error, error);
    }
}

/* The first element that is not what it may be, or -1. */
static int64_t first_far(const struct near_tensor *tensor, struct play_seen *seen)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        double wide = element(FRIT_F64, tensor->wide, i);
        double other = element(tensor->dtype, tensor->other, i), allowed, away;

        if (!isfinite(wide) || !isfinite(other)) {
            if (!(isnan(wide) && isnan(other)) && wide != other)
                return i;
            continue;
        }
        allowed = WORSE * tensor->error + ULPS * unit_of(tensor->dtype) * fabs(wide) +
                  least_of(tensor->dtype);
        away = fabs(other - wide);
        seen->elements++;
        seen->rough += allowed - least_of(tensor->dtype) > tensor->largest / 100;
        seen->most = fmax(seen->most, away / allowed);
        if (away > allowed)
            return i;
    }
    return -1;
}

/* |other - wide| <= |other - own| + |own - wide|, of which the error is at least the second and 4
 * units at `wide` and 4 errors are more than 3 units at `own`: so what passes here would pass
 * beside `wide`. */
static bool near_own(const struct near_tensor *tensor, char *text, size_t size)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        double own = element(tensor->dtype, tensor->own, i);
        double other = element(tensor->dtype, tensor->other, i);

        if (isfinite(own) ? fabs(other - own) <= (ULPS - 1) * unit_of(tensor->dtype) * fabs(own)
                          : other == own || (isnan(other) && isnan(own)))
            continue;
        snprintf(text, size, "element %lld is %.9g, not %.9g", (long long)i, other, own);
        return false;
    }
    return true;
}

static bool near_float(struct near_tensor *tensor, struct play_seen *seen, char *text, size_t size)
{
    int64_t at;

    if (!tensor->wide)
        return near_own(tensor, text, size);
    measure(tensor);
    at = first_far(tensor, seen);
    if (at >= 0)
        snprintf(text, size,
                 "element %lld is %.9g, but %.17g in f64, %.9g in its own type, error %.3g",
                 (long long)at, element(tensor->dtype, tensor->other, at),
                 element(FRIT_F64, tensor->wide, at), element(tensor->dtype, tensor->own, at),
                 tensor->error);
    return at < 0;
}

/* Elements of 8 bits that are zeros of a float format: drivers may differ in their signs, as they
 * do in those of the floats that were rounded to them. */
static bool are_zeros(uint32_t dtype, const char *a, const char *b, int64_t i)
{
    return frit_dtype_bits(dtype) == 8 && frit_dtype_info_of(dtype).exponent &&
           !((a[i] | b[i]) & 0x7f);
}

static int64_t first_other_value(uint32_t dtype, int64_t count, const char *a, const char *b)
{
    for (int64_t i = 0; i < count; i++)
        if (!alike(dtype, a, b, i) && !are_zeros(dtype, a, b, i))
            return i;
    return -1;
}

static bool near_whole(const struct near_tensor *tensor, char *text, size_t size)
{
    int64_t at = first_other_value(tensor->dtype, tensor->count, tensor->own, tensor->other);
    int64_t careless =
        tensor->wide ? first_other(tensor->dtype, tensor->count, tensor->own, tensor->wide) : -1;

    if (at >= 0)
        snprintf(text, size, "element %lld is %.9g, not %.9g", (long long)at,
                 element(tensor->dtype, tensor->other, at),
                 element(tensor->dtype, tensor->own, at));
    else if (careless >= 0)
        snprintf(text, size, "element %lld depends on how floats are rounded", (long long)careless);
    return at < 0 && careless < 0;
}

bool play_compare_near(const struct script *script, uint32_t variant, const struct play_near *plays,
                       struct play_seen *seen, char *text, size_t size)
{
    for (uint32_t i = 0; i < script->n_actions + script->n_vars; i++) {
        const struct reading *own = &plays->own->readings[i], *other = &plays->other->readings[i];
        struct near_tensor tensor = {.own = own->data,
                                     .wide = plays->wide ? plays->wide->readings[i].data : NULL,
                                     .n_disturbed = plays->n_disturbed,
                                     .other = other->data};
        const struct var *var;
        uint32_t number;
        char how[400];

        if (!other->data)
            continue;
        for (uint32_t k = 0; k < plays->n_disturbed; k++)
            tensor.disturbed[k] = plays->disturbed[k]->readings[i].data;
        var = var_of(script, i, &number);
        tensor.dtype = var->dtype;
        tensor.count = !own->data || own->status ? 0 : shape_count(&var->shape, variant);
        if (!own->data)
            snprintf(how, sizeof(how), "not read by the measure");
        else if (own->status != other->status)
            snprintf(how, sizeof(how), "status %s, not %s", frit_status_name(other->status),
                     frit_status_name(own->status));
        else if (var->dtype == FRIT_F32 || var->dtype == FRIT_F64
                     ? near_float(&tensor, seen, how, sizeof(how))
                     : near_whole(&tensor, how, sizeof(how)))
            continue;
        snprintf(text, size, "v%u, read at %u: %s", number, i, how);
        return false;
    }
    return true;
}
