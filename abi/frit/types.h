/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The words everything else is made of: versions, sized structs, strings, element types, scalars.
 *
 * Layout rules of every struct in abi/ (the checks are in tests/abi):
 *  - 64-bit little-endian hosts only; fixed-width integers, floats, pointers, function pointers;
 *  - the first field of whatever may grow is `struct_size`, the end offset of the last field that
 *    the filler knows; a reader tests a field with FRIT_HAS and nothing else;
 *  - no holes (padding is a named `reserved` field, written 0, ignored on read), append only;
 *  - the upper half of `flags` is must-understand: an unknown bit there means FRIT_UNSUPPORTED;
 *  - arrays carry a count and a stride in bytes; strings are pointer + length, UTF-8, borrowed. */
#ifndef FRIT_TYPES_H
#define FRIT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define FRIT_EXTERN_C                  extern "C"
#define FRIT_STATIC_ASSERT(test, text) static_assert(test, text)
#define FRIT_NODISCARD                 [[nodiscard]]
#else
#define FRIT_EXTERN_C                  extern
#define FRIT_STATIC_ASSERT(test, text) _Static_assert(test, text)
#if defined(__GNUC__)
#define FRIT_NODISCARD __attribute__((warn_unused_result))
#else
#define FRIT_NODISCARD
#endif
#endif

#if defined(__GNUC__)
#define FRIT_PRINTF(text, args) __attribute__((format(printf, text, args)))
#else
#define FRIT_PRINTF(text, args)
#endif

FRIT_STATIC_ASSERT(sizeof(void *) == 8, "the Frit ABI is 64-bit only");
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the Frit ABI is little-endian only"
#endif

/* Versions are ordered numbers; a break bumps the minor until 1.0 and the major after it. */
#define FRIT_ABI(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))
#define FRIT_ABI_MIN           FRIT_ABI(0, 2) /* oldest contract these headers can speak */
#define FRIT_ABI_MAX           FRIT_ABI(0, 2) /* newest */

#define FRIT_END_OF(type, field)   ((uint32_t)(offsetof(type, field) + sizeof(((type *)0)->field)))
#define FRIT_HAS(ptr, type, field) ((ptr)->struct_size >= FRIT_END_OF(type, field))

#define FRIT_MAX_RANK 8

/* Bits of every `flags` field at or above this one must be understood. */
#define FRIT_MUST_UNDERSTAND 0xffffffff00000000ull

typedef struct frit_str {
    const char *ptr; /* not necessarily terminated; may be NULL when len is 0 */
    uint64_t len;    /* bytes */
} frit_str;

/* For literals and arrays of char only; the second one initializes static storage too. */
#ifdef __cplusplus
#define FRIT_STR(literal) (frit_str{(literal), sizeof(literal) - 1})
#else
#define FRIT_STR(literal) ((frit_str){(literal), sizeof(literal) - 1})
#endif
#define FRIT_STR_INIT(literal)         \
    {                                  \
        (literal), sizeof(literal) - 1 \
    }

/* What a driver hands out and only the driver looks into: each driver may complete these structs as
 * it likes. */
typedef struct frit_memory frit_memory;       /* an allocation of a device */
typedef struct frit_kernel frit_kernel;       /* a kernel for DISPATCH */
typedef struct frit_queue frit_queue;         /* a queue of a device */
typedef struct frit_group frit_group;         /* a rank's end of a group of a collective engine */
typedef struct frit_recording frit_recording; /* commands to be replayed */

#define FRIT_GROUP_ID_BYTES 128

/* Names a group before it exists: made on one rank, carried to the others by the program. */
typedef struct frit_group_id {
    uint8_t bytes[FRIT_GROUP_ID_BYTES];
} frit_group_id;

/* Element types: FRIT_F32 and so on, see dtypes.def.  0 is no type. */
enum {
    FRIT_NO_DTYPE = 0,
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    FRIT_##NAME = (id),
#include <frit/dtypes.def>
    FRIT_DTYPE_LIMIT = 64 /* every id is below */
};

enum { FRIT_DTYPE_FLOAT = 1, FRIT_DTYPE_INT, FRIT_DTYPE_UINT, FRIT_DTYPE_BOOL, FRIT_DTYPE_PACKED };

/* Which patterns of a float are no finite numbers; legend in dtypes.def. */
enum {
    FRIT_SPECIALS_NONE = 0,
    FRIT_SPECIALS_NAN = 1,
    FRIT_SPECIALS_IEEE = 2,
    FRIT_SPECIALS_FNUZ = 3,
    FRIT_SPECIALS_SCALE = 4
};

/* The numbers of a row of dtypes.def, where each is explained. */
typedef struct frit_dtype_info {
    uint8_t bits;
    uint8_t cls; /* FRIT_DTYPE_* */
    uint8_t exponent, fraction;
    uint8_t specials; /* FRIT_SPECIALS_* */
    uint8_t compute;  /* FRIT_F32 and so on */
} frit_dtype_info;

/* All 0 for a number that is no element type. */
static inline frit_dtype_info frit_dtype_info_of(uint32_t dtype)
{
    frit_dtype_info info = {0, 0, 0, 0, 0, 0};

    switch (dtype) {
#define FRIT_DTYPE(id, NAME, name, bits_, cls_, exponent_, fraction_, specials_, compute_, npy, \
                   meaning)                                                                     \
    case id:                                                                                    \
        info.bits = bits_;                                                                      \
        info.cls = FRIT_DTYPE_##cls_;                                                           \
        info.exponent = exponent_;                                                              \
        info.fraction = fraction_;                                                              \
        info.specials = FRIT_SPECIALS_##specials_;                                              \
        info.compute = FRIT_##compute_;                                                         \
        break;
#include <frit/dtypes.def>
    default:
        break;
    }
    return info;
}

/* By how much the bits of a float's exponent exceed it; 0 for what is no float. */
static inline int32_t frit_dtype_bias(frit_dtype_info info)
{
    if (!info.exponent)
        return 0;
    return (1 << (info.exponent - 1)) - (info.specials == FRIT_SPECIALS_FNUZ ? 0 : 1);
}

/* Storage bits of one element; 0 for a number that is no element type. */
static inline uint32_t frit_dtype_bits(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).bits;
}

/* Bytes of `count` densely stored elements.  The one place where storage is computed; `count` >= 0
 * and small enough that the result fits (the host refuses larger tensors before they reach a
 * driver). */
static inline uint64_t frit_storage_bytes(uint32_t dtype, int64_t count)
{
    return ((uint64_t)count * frit_dtype_bits(dtype) + 7) / 8;
}

/* A number with its kind, for operands and launch arguments. */
enum { FRIT_SCALAR_NONE = 0, FRIT_SCALAR_F64 = 1, FRIT_SCALAR_I64 = 2, FRIT_SCALAR_U64 = 3 };

typedef struct frit_scalar {
    uint32_t kind; /* FRIT_SCALAR_* */
    uint32_t reserved;
    uint64_t bits; /* the double, int64_t or uint64_t, bit for bit */
} frit_scalar;

/* How the numbers of a program's candidate may differ from those of its first one. */
enum {
    FRIT_NUMERIC_EXACT = 0,     /* the same bits */
    FRIT_NUMERIC_REORDERED = 1, /* sums in another order, the same one in each run */
    FRIT_NUMERIC_REDUCED = 2,   /* products of fewer bits (tf32, f16, bf16), sums in f32 */
    FRIT_NUMERIC_RELAXED = 3    /* anything that the op's name allows, and other bits in each run */
};

FRIT_STATIC_ASSERT(sizeof(frit_str) == 16 && sizeof(frit_scalar) == 16, "frozen");

#endif
