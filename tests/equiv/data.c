/* SPDX-License-Identifier: Apache-2.0 */
/* Elements are drawn in the type that the script gives them.  A play in a wider type widens them,
 * so that all plays start from the same values. */
#include "data.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t data_variant_seed(uint32_t seed, const struct play_params *params)
{
    struct chance chance = {(uint64_t)params->variant << 32 ^ seed};

    return chance_next(&chance);
}

uint64_t data_value_seed(uint32_t seed, const struct play_params *params)
{
    struct chance chance = {(uint64_t)params->variant << 32 ^ (uint64_t)params->round << 40 ^ seed};

    return chance_next(&chance);
}

bool data_is_wide(uint32_t dtype, const struct play_params *params)
{
    return params->precision != PLAY_OWN && (dtype == FRIT_F32 || dtype == FRIT_F64);
}

uint32_t data_dtype(const struct script *script, const struct play_params *params, uint16_t v)
{
    uint32_t dtype = script->vars[v].dtype;

    return data_is_wide(dtype, params) ? FRIT_F64 : dtype;
}

/* Well-conditioned scripts get no infinities: where one driver has 0 and another a rounding error,
 * infinity times it would be NaN on one and infinity on the other. */
static double random_real(struct chance *chance, bool well_conditioned)
{
    static const double special[] = {0, -0.0, NAN, 1, -1, INFINITY};

    if (chance_below(chance, 60) == 0)
        return special[chance_below(chance, well_conditioned ? 5 : 6)];
    return (double)(int32_t)(chance_next(chance) >> 32) / 1073741824.0 * 1.5;
}

char *data_create(uint32_t dtype, int64_t count, uint32_t seed, const struct script *script,
                  const struct play_params *params)
{
    struct chance chance = {data_value_seed(seed, params)};
    bool wide = data_is_wide(dtype, params);
    uint64_t size = wide ? sizeof(double) : frit_dtype_bits(dtype) / 8;
    char *data = malloc((size_t)count * size + 1);

    for (int64_t i = 0; data && i < count; i++) {
        double drawn = random_real(&chance, script->well_conditioned);
        float narrow = (float)drawn;
        double real = dtype == FRIT_F64 ? drawn : (double)narrow;
        int32_t whole = (int32_t)chance_below(&chance, 19) - 9;
        uint8_t truth = (uint8_t)chance_below(&chance, 2);
        const void *from = dtype == FRIT_F64 || wide ? (const void *)&real
                           : dtype == FRIT_F32       ? (const void *)&narrow
                           : dtype == FRIT_I32       ? (const void *)&whole
                                                     : (const void *)&truth;

        memcpy(data + (uint64_t)i * size, from, size);
    }
    return data;
}

frit_scalar data_scalar(uint32_t dtype, uint64_t chosen, bool not_zero)
{
    static const double reals[] = {0, 1, -1, 2, 0.5, 3, -0.75, 1.3};
    static const int64_t wholes[] = {0, 1, -1, 2, 3, -7, 5, 11};
    uint64_t at = not_zero ? 1 + chosen % 7 : chosen % 8;

    if (dtype == FRIT_BOOL)
        return frit_scalar_i(chosen & 1);
    if (dtype == FRIT_I32)
        return frit_scalar_i(wholes[at]);
    return frit_scalar_f(dtype == FRIT_F64 ? reals[at] : (double)(float)reals[at]);
}

/* ---- layouts ---- */

/* Copies dense elements of `dims` to positions first + sum over d of index[d] * step[d]. */
static void copy_strided(const frit_dims *dims, const int64_t *step, int64_t first, uint64_t size,
                         const char *from, char *to)
{
    int64_t index[FRIT_MAX_RANK] = {0}, at = first, d;

    for (uint64_t i = 0;; i++) {
        memcpy(to + (uint64_t)at * size, from + i * size, size);
        for (d = dims->rank - 1; d >= 0; d--) {
            at += step[d];
            if (++index[d] < dims->dim[d])
                break;
            at -= index[d] * step[d];
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

static int64_t count_of(const frit_dims *dims)
{
    int64_t count = 1;

    for (int64_t d = 0; d < dims->rank; d++)
        count *= dims->dim[d];
    return count;
}

/* A tensor of these elements whose last dim is outermost in memory. */
static frit_tensor *permuted(frit_device *device, uint32_t dtype, frit_dims dims, const char *data)
{
    uint64_t size = frit_dtype_bits(dtype) / 8, bytes = (uint64_t)count_of(&dims) * size;
    int64_t step[FRIT_MAX_RANK], stride = 1, last = dims.rank - 1;
    frit_dims stored = {.rank = dims.rank};
    frit_axes order = {.count = dims.rank};
    char *placed = malloc(bytes);
    frit_tensor *tensor;

    for (int64_t d = 0; d <= last; d++) {
        stored.dim[d] = dims.dim[(d + last) % dims.rank];
        order.axis[d] = (d + 1) % dims.rank;
    }
    for (int64_t d = last; d >= 0; d--) {
        step[(d + last) % dims.rank] = stride;
        stride *= stored.dim[d];
    }
    if (placed)
        copy_strided(&dims, step, 0, size, data, placed);
    tensor = frit_from_host(device, dtype, stored, placed, bytes);
    free(placed);
    return frit_permute(frit_take(tensor), order);
}

/* A tensor of these elements that is a slice of a larger one, with step 2 along the last dim. */
static frit_tensor *sliced(frit_device *device, uint32_t dtype, frit_dims dims, const char *data)
{
    uint64_t size = frit_dtype_bits(dtype) / 8;
    int64_t step[FRIT_MAX_RANK], stride = 1, last = dims.rank - 1, first = 0;
    frit_dims stored = {.rank = dims.rank};
    frit_slices slices = {.count = dims.rank};
    frit_tensor *tensor;
    char *placed;

    for (int64_t d = last; d >= 0; d--) {
        int64_t by = d == last ? 2 : 1;

        stored.dim[d] = by * dims.dim[d] + 1;
        slices.dim[d] = (frit_range){1, stored.dim[d], by};
        step[d] = by * stride;
        first += stride;
        stride *= stored.dim[d];
    }
    placed = calloc((size_t)stride, size);
    if (placed)
        copy_strided(&dims, step, first, size, data, placed);
    tensor = frit_from_host(device, dtype, stored, placed, (uint64_t)stride * size);
    free(placed);
    return frit_slice(frit_take(tensor), slices);
}

frit_tensor *data_make_tensor(frit_device *device, uint32_t dtype, frit_dims dims, const char *data,
                              uint64_t seed)
{
    int64_t count = count_of(&dims);
    uint64_t form = dims.rank == 0 || count == 0 ? 0 : seed % 3;
    frit_tensor *tensor =
        form == 0   ? frit_from_host(device, dtype, dims, data, frit_storage_bytes(dtype, count))
        : form == 1 ? permuted(device, dtype, dims, data)
                    : sliced(device, dtype, dims, data);

    (void)frit_flush(device, NULL);
    return tensor;
}

/* ---- disturbance ---- */

frit_tensor *data_errors(frit_tensor *like, uint32_t dtype, double around, uint64_t seed)
{
    frit_dims dims = frit_tensor_dims(like);
    int64_t count = count_of(&dims);
    struct chance chance = {seed};
    double unit = dtype == FRIT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    double *numbers = malloc(((size_t)count + 1) * sizeof(*numbers));
    frit_tensor *errors;

    for (int64_t i = 0; numbers && i < count; i++)
        numbers[i] = around + unit * (chance_below(&chance, 4097) / 1024.0 - 2);
    errors = frit_from_host(frit_tensor_device(like), FRIT_F64, dims, numbers,
                            (uint64_t)count * sizeof(*numbers));
    free(numbers);
    return errors;
}

frit_tensor *data_disturb(frit_tensor *tensor, uint32_t dtype, uint64_t seed)
{
    return frit_mul(tensor, frit_take(data_errors(tensor, dtype, 1, seed)));
}
