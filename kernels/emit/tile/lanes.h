/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of loops share: the C types of rows.def, the name of the level that they are
 * compiled for, and loops whose rounds are independent. */
#ifndef EMIT_TILE_LANES_H
#define EMIT_TILE_LANES_H

#include <stdint.h>

#include <frit/types.h>

typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

#define TILE_PASTE(a, b)  a##_##b
#define TILE_PASTED(a, b) TILE_PASTE(a, b)
#define TILE_NAME(name)   TILE_PASTED(name, TILE_LEVEL)

/* In front of a loop whose rounds do not depend on each other, though its arrays may be the same.
 */
#ifdef __clang__
#define TILE_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define TILE_LANES _Pragma("GCC ivdep")
#endif

#endif
