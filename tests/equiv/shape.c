/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of dims, and chance.
 *
 * The extents of an assignment grow from symbol to symbol and have no common factors: a slice to a
 * smaller symbol fits in every assignment, and products of different symbols differ. */
#include <string.h>

#include "script.h"

static const uint8_t extents[SCRIPT_VARIANTS + SCRIPT_LARGE][SCRIPT_SYMBOLS] = {
    {2, 3, 5, 7}, {3, 4, 5, 7}, {2, 5, 7, 9}, {3, 5, 7, 8}, {5, 11, 31, 64}, {7, 13, 32, 61}};

int64_t dim_extent(uint8_t code, uint32_t variant)
{
    int64_t extent = 1;

    if (code == DIM_ZERO)
        return 0;
    if (code == DIM_TWO)
        return 2;
    for (uint32_t k = 0; k < SCRIPT_SYMBOLS; k++)
        if (code & 1u << k)
            extent *= extents[variant][k];
    return code & DIM_MINUS ? extent - 1 : code & DIM_HALF ? extent / 2 + 1 : extent;
}

frit_dims shape_dims(const struct shape *shape, uint32_t variant)
{
    frit_dims dims = {.rank = shape->rank};

    for (uint32_t d = 0; d < shape->rank; d++)
        dims.dim[d] = dim_extent(shape->code[d], variant);
    return dims;
}

int64_t shape_count(const struct shape *shape, uint32_t variant)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < shape->rank; d++)
        count *= dim_extent(shape->code[d], variant);
    return count;
}

int64_t shape_most(const struct shape *shape)
{
    int64_t most = 0;

    for (uint32_t variant = 0; variant < SCRIPT_VARIANTS; variant++) {
        int64_t count = shape_count(shape, variant);

        most = count > most ? count : most;
    }
    return most;
}

bool shape_same(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && memcmp(a->code, b->code, a->rank) == 0;
}

bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out)
{
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;

    *out = (struct shape){.rank = rank};
    for (uint32_t i = 1; i <= rank; i++) {
        uint8_t left = i <= a->rank ? a->code[a->rank - i] : DIM_ONE;
        uint8_t right = i <= b->rank ? b->code[b->rank - i] : DIM_ONE;

        if (left != right && left != DIM_ONE && right != DIM_ONE)
            return false;
        out->code[rank - i] = left == DIM_ONE ? right : left;
    }
    return true;
}

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
uint64_t chance_next(struct chance *chance)
{
    uint64_t z = chance->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t chance_below(struct chance *chance, uint32_t n)
{
    return (uint32_t)((chance_next(chance) >> 32) * n >> 32);
}

bool chance_of(struct chance *chance, uint32_t percent)
{
    return chance_below(chance, 100) < percent;
}
