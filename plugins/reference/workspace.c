/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes by what a row needs.  Everything in a workspace is made of 64-bit units. */
#include "workspace.h"

#include "rows.h"
#include "value.h"

uint64_t workspace_wide(uint32_t dtype, uint32_t rank, const int64_t *dims)
{
    uint64_t bytes = sizeof(double);

    if (dtype == FRIT_NO_DTYPE || value_kind(dtype) != VALUE_REAL || dtype == FRIT_F64)
        return 0;
    for (uint32_t d = 0; d < rank; d++)
        bytes *= (uint64_t)dims[d];
    return bytes;
}

static uint64_t wide_bytes(const frit_signature *sig)
{
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < sig->n_out; k++) {
        const frit_arg_sig *out = frit_arg_sig_at(sig, sig->n_in + k);

        bytes += workspace_wide(out->dtype, out->rank, out->dims);
    }
    return bytes;
}

/* The line may lie along any dim. */
static uint64_t line_bytes(const frit_arg_sig *x)
{
    int64_t longest = 1;

    for (uint32_t d = 0; d < x->rank; d++)
        longest = x->dims[d] > longest ? x->dims[d] : longest;
    return 2 * sizeof(uint64_t) * (uint64_t)longest;
}

/* Two tables of steps by states; a target of length n has 2 n + 1 states. */
static uint64_t path_bytes(const frit_arg_sig *log_probs, const frit_arg_sig *targets)
{
    return 2 * sizeof(double) * (uint64_t)log_probs->dims[0] * (2 * (uint64_t)targets->dims[1] + 1);
}

uint64_t workspace_bytes(uint32_t needs, const frit_signature *sig)
{
    if (needs & ROW_WIDE_SUMS)
        return wide_bytes(sig);
    if (needs & ROW_SORT_LINE)
        return line_bytes(frit_arg_sig_at(sig, 0));
    if (needs & ROW_CTC_PATHS)
        return path_bytes(frit_arg_sig_at(sig, 0), frit_arg_sig_at(sig, 1));
    return 0;
}
