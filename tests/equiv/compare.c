/* SPDX-License-Identifier: Apache-2.0 */
/* Two plays of one script: every reading bit for bit, but that all NaNs are alike. */
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

bool play_compare(const struct script *script, uint32_t variant, const struct play *plain,
                  const struct play *fused, char *text, size_t size)
{
    for (uint32_t i = 0; i < script->n_actions + script->n_vars; i++) {
        const struct reading *a = &plain->readings[i], *b = &fused->readings[i];
        const struct var *var;
        uint32_t number;
        int64_t at;

        if (!a->data || !b->data)
            continue;
        var = var_of(script, i, &number);
        if (a->status != b->status) {
            snprintf(text, size, "v%u reads at %u with status %s op by op, %s fused", number, i,
                     frit_status_name(a->status), frit_status_name(b->status));
            return false;
        }
        at = a->status
                 ? -1
                 : first_other(var->dtype, shape_count(&var->shape, variant), a->data, b->data);
        if (at >= 0) {
            snprintf(text, size, "v%u reads at %u, element %lld, as %.9g op by op, %.9g fused",
                     number, i, (long long)at, element(var->dtype, a->data, at),
                     element(var->dtype, b->data, at));
            return false;
        }
    }
    return true;
}
