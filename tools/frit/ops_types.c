/* SPDX-License-Identifier: Apache-2.0 */
/* Queries support with the first case that `frit conform` has for the op and dtype. */
#include "ops_types.h"

#include <stdlib.h>
#include <string.h>

#include "conform/cases.h"
#include "conform/conform.h"
#include "conform/program.h"

static const char *const names[] = {
    [FRIT_SUPPORT_NONE] = "-",
    [FRIT_SUPPORT_NATIVE] = "native",
    [FRIT_SUPPORT_DECOMPOSED] = "decomposed",
    [FRIT_SUPPORT_HOST] = "host",
    [FRIT_SUPPORT_FALLBACK] = "fallback",
};
enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

const char *ops_support_name(uint32_t support)
{
    return support < N_NAMES ? names[support] : "?";
}

static uint32_t support_of(frit_device *device, const struct conform_case *one)
{
    struct conform_program program;
    frit_graph *graph;
    uint32_t how;

    if (!conform_program_of(one, false, &program) || conform_graph_of(&program, &graph, NULL))
        return FRIT_SUPPORT_NONE;
    how = frit_graph_support(graph, device);
    frit_graph_free(graph);
    return how;
}

/* Prefers the shape class that every dtype has, then the first case. */
static bool is_better(const struct conform_case *one, const struct conform_case *than)
{
    return !than || (strcmp(one->form->shape, "odd") == 0 && strcmp(than->form->shape, "odd") != 0);
}

static void query_support(frit_device *device, const struct conform_cases *cases,
                          struct ops_types *out)
{
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++) {
        const struct conform_case *usual = NULL;

        for (size_t i = 0; i < cases->count; i++) {
            const struct conform_case *one = &cases->at[i];

            if (one->dtype == dtype && one->layout == LAYOUT_DENSE && !one->special &&
                is_better(one, usual))
                usual = one;
        }
        if (!usual)
            continue;
        out->takes[dtype] = true;
        out->how[dtype] = support_of(device, usual);
    }
}

static uint32_t usual_of(const struct ops_types *types, uint32_t otherwise)
{
    if (types->takes[FRIT_F32])
        return types->how[FRIT_F32];
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
        if (types->takes[dtype])
            return types->how[dtype];
    return otherwise;
}

bool ops_types_of(frit_device *device, const frit_op_info *row, struct ops_types *out)
{
    struct conform_cases cases = {0};
    struct conform_row one;
    bool added = true;

    *out = (struct ops_types){0};
    for (size_t i = 0; conform_row_at(i, &one) && added; i++)
        if (one.op->id == row->id)
            added = conform_cases_add(&cases, &one, true);
    query_support(device, &cases, out);
    out->usual = usual_of(out, frit_op_support(device, row->id));
    free(cases.at);
    return added;
}

void ops_types_show(const struct ops_types *types)
{
    static const uint32_t order[] = {FRIT_SUPPORT_HOST, FRIT_SUPPORT_NATIVE,
                                     FRIT_SUPPORT_DECOMPOSED, FRIT_SUPPORT_FALLBACK,
                                     FRIT_SUPPORT_NONE};
    bool any = false;

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        bool named = false;

        for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++) {
            if (!types->takes[dtype] || types->how[dtype] != order[i])
                continue;
            if (!named)
                printf("%s%s", any ? "; " : "", ops_support_name(order[i]));
            printf(" %s", frit_dtype_name(dtype));
            named = any = true;
        }
    }
    printf("%s\n", any ? "" : ops_support_name(types->usual));
}
