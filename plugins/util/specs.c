/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/specs.h"

#include <stddef.h>
#include <string.h>

struct spec_piece {
    struct spec_piece *next;
    uint64_t spec; /* number */
    max_align_t bytes[];
};

void specs_init(struct specs *specs, const struct plug *plug)
{
    *specs = (struct specs){.plug = plug};
    pthread_mutex_init(&specs->lock, NULL);
}

void specs_fini(struct specs *specs)
{
    for (struct spec_piece *piece = specs->first, *next; piece; piece = next) {
        next = piece->next;
        plug_free(specs->plug, piece);
    }
    pthread_mutex_destroy(&specs->lock);
}

void *specs_alloc(struct specs *specs, frit_launch_spec *spec, uint64_t bytes)
{
    const uint64_t all = sizeof(struct spec_piece) + bytes;
    struct spec_piece *piece = plug_alloc(specs->plug, all, _Alignof(struct spec_piece));

    if (!piece)
        return NULL;
    memset(piece, 0, all);
    pthread_mutex_lock(&specs->lock);
    if (!spec->driver[3])
        spec->driver[3] = ++specs->n_specs;
    piece->spec = spec->driver[3];
    piece->next = specs->first;
    specs->first = piece;
    pthread_mutex_unlock(&specs->lock);
    return piece->bytes;
}

void specs_release(struct specs *specs, const frit_launch_spec *spec)
{
    struct spec_piece **at = &specs->first;

    if (!spec->driver[3])
        return;
    pthread_mutex_lock(&specs->lock);
    while (*at) {
        struct spec_piece *piece = *at;

        if (piece->spec == spec->driver[3]) {
            *at = piece->next;
            plug_free(specs->plug, piece);
        } else {
            at = &piece->next;
        }
    }
    pthread_mutex_unlock(&specs->lock);
}

/* ---- aliases ---- */

/* Whether the input's elements lie one for one where those of a dense result of these dims do. */
static bool lies_like(const frit_arg_sig *in, const frit_arg_sig *out)
{
    int64_t dense = 1;

    if (in->dtype == FRIT_NO_DTYPE || in->rank != out->rank ||
        frit_storage_bytes(in->dtype, 8) != frit_storage_bytes(out->dtype, 8))
        return false;
    for (uint32_t d = in->rank; d-- > 0;) {
        if (in->dims[d] != out->dims[d] || (in->dims[d] != 1 && in->strides[d] != dense))
            return false;
        dense *= in->dims[d];
    }
    return true;
}

/* The inputs whose memory output `k` may take, written to `alias` unless it is NULL; how many. */
static uint32_t list_aliases(const frit_signature *sig, uint32_t k, uint32_t *alias)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < sig->n_in; i++) {
        if (!lies_like(frit_arg_sig_at(sig, i), frit_arg_sig_at(sig, sig->n_in + k)))
            continue;
        if (alias)
            alias[n] = i;
        n++;
    }
    return n;
}

/* What the spec says so far. */
static frit_output_spec output_of(const frit_launch_spec *spec, uint32_t k)
{
    if (k >= spec->n_outputs)
        return (frit_output_spec){0};
    return *(const frit_output_spec *)(const void *)((const char *)spec->outputs +
                                                     (size_t)k * spec->output_stride);
}

frit_status specs_alias(struct specs *specs, const frit_signature *sig, frit_launch_spec *spec,
                        frit_err *err)
{
    frit_output_spec *outputs;
    uint32_t *alias;
    uint64_t n = 0;

    for (uint32_t k = 0; k < sig->n_out; k++)
        n += list_aliases(sig, k, NULL);
    if (n == 0)
        return FRIT_OK;
    outputs = specs_alloc(specs, spec, sig->n_out * sizeof *outputs + n * sizeof *alias);
    if (!outputs)
        return plug_fail(specs->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a launch spec");
    alias = (uint32_t *)(void *)(outputs + sig->n_out);
    for (uint32_t k = 0; k < sig->n_out; k++) {
        outputs[k] = output_of(spec, k);
        if (outputs[k].strided)
            continue;
        outputs[k].alias = alias;
        outputs[k].n_alias = list_aliases(sig, k, alias);
        alias += outputs[k].n_alias;
    }
    spec->outputs = outputs;
    spec->n_outputs = sig->n_out;
    spec->output_stride = sizeof *outputs;
    return FRIT_OK;
}
