/* SPDX-License-Identifier: Apache-2.0 */
/* Whether prepare answers one question twice in the same way. */
#include "conform/answer.h"

#include <string.h>

#include "conform/launch.h"

static bool same_outputs(const struct bare_answer *a, const struct bare_answer *b)
{
    uint32_t n = a->spec.n_outputs > b->spec.n_outputs ? a->spec.n_outputs : b->spec.n_outputs;

    for (uint32_t i = 0; i < n; i++) {
        const frit_output_spec *x = bare_output(a, i), *y = bare_output(b, i);

        if (x->bytes != y->bytes || x->align != y->align || x->strided != y->strided ||
            (x->strided && memcmp(x->strides, y->strides, sizeof(x->strides)) != 0) ||
            x->n_alias != y->n_alias ||
            (x->n_alias && memcmp(x->alias, y->alias, x->n_alias * sizeof(*x->alias)) != 0))
            return false;
    }
    return true;
}

static bool same_spec(const struct bare_answer *a, const struct bare_answer *b)
{
    const frit_launch_spec *x = &a->spec, *y = &b->spec;

    return x->n_phases == y->n_phases && x->n_derived == y->n_derived &&
           x->workspace_zeroed == y->workspace_zeroed && x->workspace_bytes == y->workspace_bytes &&
           x->workspace_align == y->workspace_align &&
           (!x->n_phases || memcmp(x->phases, y->phases, x->n_phases * sizeof(*x->phases)) == 0) &&
           same_outputs(a, b);
}

frit_status answer_same(struct bare *bare, const struct bare_answer *a, const struct bare_answer *b,
                        const char *when)
{
    if ((a->status != FRIT_PREPARE_NEEDS_COMPILE || b->status != FRIT_OK) && a->status != b->status)
        return bare_fail_text(bare, "%s prepare returns %d, before %d", when, b->status, a->status);
    if (a->status >= 0 && !same_spec(a, b))
        return bare_fail_text(bare, "%s prepare gives another launch spec", when);
    if (a->variant.n_bytes > sizeof(a->variant.bytes) || a->variant.n_bytes != b->variant.n_bytes ||
        memcmp(a->variant.bytes, b->variant.bytes, a->variant.n_bytes) != 0)
        return bare_fail_text(bare, "%s prepare gives another variant", when);
    return FRIT_OK;
}
