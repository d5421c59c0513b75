/* SPDX-License-Identifier: Apache-2.0 */
/* Loops between registers and memory: compiled once per level, TILE_LEVEL.
 *
 * Linear places with step 1 are plain vector copies.  Stores to any other places go lane after
 * lane, so that of two lanes with one place the later wins. */
#include "emit/tile/loops.h"

#include "emit/tile/lanes.h"
#include "ir/half.h"

/* MEMORY and LANE: C types; `load` of m, `store` of r. */
#define MOVE(name, MEMORY, LANE, load, store)                                                \
    static void load_##name##_linear(void *reg, void *memory, const struct tile_places *at)  \
    {                                                                                        \
        const MEMORY *from = (const MEMORY *)memory + at->first;                             \
        const u32 *mask = at->mask;                                                          \
        LANE *to = reg;                                                                      \
        i64 step = at->step;                                                                 \
        size_t n = at->n;                                                                    \
        if (step == 1 && !mask) {                                                            \
            TILE_LANES                                                                       \
            for (size_t i = 0; i < n; i++) {                                                 \
                const MEMORY m = from[i];                                                    \
                to[i] = (load);                                                              \
            }                                                                                \
        } else if (!mask) {                                                                  \
            TILE_LANES                                                                       \
            for (size_t i = 0; i < n; i++) {                                                 \
                const MEMORY m = from[(i64)i * step];                                        \
                to[i] = (load);                                                              \
            }                                                                                \
        } else {                                                                             \
            TILE_LANES                                                                       \
            for (size_t i = 0; i < n; i++)                                                   \
                if (mask[i]) {                                                               \
                    const MEMORY m = from[(i64)i * step];                                    \
                    to[i] = (load);                                                          \
                }                                                                            \
        }                                                                                    \
    }                                                                                        \
    static void store_##name##_linear(void *reg, void *memory, const struct tile_places *at) \
    {                                                                                        \
        MEMORY *to = (MEMORY *)memory + at->first;                                           \
        const u32 *mask = at->mask;                                                          \
        const LANE *from = reg;                                                              \
        i64 step = at->step;                                                                 \
        size_t n = at->n;                                                                    \
        if (step == 1 && !mask) {                                                            \
            TILE_LANES                                                                       \
            for (size_t i = 0; i < n; i++) {                                                 \
                const LANE r = from[i];                                                      \
                to[i] = (store);                                                             \
            }                                                                                \
        } else {                                                                             \
            for (size_t i = 0; i < n; i++)                                                   \
                if (!mask || mask[i]) {                                                      \
                    const LANE r = from[i];                                                  \
                    to[(i64)i * step] = (store);                                             \
                }                                                                            \
        }                                                                                    \
    }                                                                                        \
    MOVE_BY(name, 32, MEMORY, LANE, load, store)                                             \
    MOVE_BY(name, 64, MEMORY, LANE, load, store)

#define MOVE_BY(name, bits, MEMORY, LANE, load, store)                                       \
    static void load_##name##_##bits(void *reg, void *memory, const struct tile_places *at)  \
    {                                                                                        \
        const MEMORY *from = memory;                                                         \
        const i##bits *offset = at->offsets;                                                 \
        const u32 *mask = at->mask;                                                          \
        LANE *to = reg;                                                                      \
        size_t n = at->n;                                                                    \
        if (!mask) {                                                                         \
            TILE_LANES                                                                       \
            for (size_t i = 0; i < n; i++) {                                                 \
                const MEMORY m = from[offset[i]];                                            \
                to[i] = (load);                                                              \
            }                                                                                \
        } else {                                                                             \
            TILE_LANES                                                                       \
            for (size_t i = 0; i < n; i++)                                                   \
                if (mask[i]) {                                                               \
                    const MEMORY m = from[offset[i]];                                        \
                    to[i] = (load);                                                          \
                }                                                                            \
        }                                                                                    \
    }                                                                                        \
    static void store_##name##_##bits(void *reg, void *memory, const struct tile_places *at) \
    {                                                                                        \
        MEMORY *to = memory;                                                                 \
        const i##bits *offset = at->offsets;                                                 \
        const u32 *mask = at->mask;                                                          \
        const LANE *from = reg;                                                              \
        for (size_t i = 0; i < at->n; i++)                                                   \
            if (!mask || mask[i]) {                                                          \
                const LANE r = from[i];                                                      \
                to[offset[i]] = (store);                                                     \
            }                                                                                \
    }

MOVE(truth, u8, u32, m != 0, (u8)r)
MOVE(s8, i8, u32, (u32)m, (i8)r)
MOVE(u8, u8, u32, m, (u8)r)
MOVE(s16, i16, u32, (u32)m, (i16)r)
MOVE(u16, u16, u32, m, (u16)r)
MOVE(32, u32, u32, m, r)
MOVE(64, u64, u64, m, r)
MOVE(f16, u16, f32, f16_load(m), f16_store(r))
MOVE(bf16, u16, f32, bf16_load(m), bf16_store(r))

#define ROW(KIND, way, name) \
    [TILE_##KIND] = {way##_##name##_linear, way##_##name##_32, way##_##name##_64}
#define TABLE(way)                                                        \
    extern tile_move *const TILE_NAME(tile_##way)[TILE_KINDS][TILE_WAYS]; \
    tile_move *const TILE_NAME(tile_##way)[TILE_KINDS][TILE_WAYS] = {     \
        ROW(BOOL, way, truth), ROW(S8, way, s8),   ROW(U8, way, u8),      \
        ROW(S16, way, s16),    ROW(U16, way, u16), ROW(32, way, 32),      \
        ROW(64, way, 64),      ROW(F16, way, f16), ROW(BF16, way, bf16)}

TABLE(load);
TABLE(store);
