/* SPDX-License-Identifier: Apache-2.0 */
/* What the printer and the parser of text.h have in common. */
#ifndef KIR_TEXT_WORDS_H
#define KIR_TEXT_WORDS_H

#include <stdint.h>

#include "ir/kir.h"

static inline const char *text_dtype(uint32_t dtype)
{
    switch (dtype) {
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    case id:                                                                                       \
        return #name;
#include <frit/dtypes.def>
    default:
        return "?";
    }
}

static inline const char *text_use(uint32_t use)
{
    static const char *const words[] = {"left", "right", "sum"};

    return use <= KIR_SUM ? words[use] : "?";
}

/* The type that `wrap` keeps and `round` rounds to; 0 is none. */
static inline uint32_t text_narrow(int64_t imm)
{
    switch (imm) {
    case 8:
        return FRIT_I8;
    case -8:
        return FRIT_U8;
    case 16:
        return FRIT_I16;
    case -16:
        return FRIT_U16;
    default:
        return imm > 0 && imm < FRIT_DTYPE_LIMIT && kir_is_16_bit_float((uint32_t)imm)
                   ? (uint32_t)imm
                   : 0;
    }
}

/* By by_columns and in_blocks of a place. */
static const char *const text_layouts[] = {"rows", "columns", "row-blocks", "column-blocks"};

#endif
