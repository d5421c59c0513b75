/* SPDX-License-Identifier: Apache-2.0 */
/* Loops between registers and memory: compiled once per level, TILE_LEVEL.
 *
 * Linear places with step 1 are plain vector copies.  Stores to any other places go lane after
 * lane, so that of two lanes with one place the later wins. */
#include "emit/tile/loops.h"

#include "emit/tile/lanes.h"

/* MEMORY and LANE: C types, which take no parentheses; `load` of m, `store` of r. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
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

/* NOLINTEND(bugprone-macro-parentheses) */
#define FUNCTION(...) __VA_ARGS__
#define MEMORY        MOVE
#include "emit/rows.def"

extern tile_move *const TILE_NAME(tile_load)[TILE_KINDS][TILE_WAYS];
tile_move *const TILE_NAME(tile_load)[TILE_KINDS][TILE_WAYS] = {
#define MEMORY(KIND, memory, lane, load, store) \
    [TILE_##KIND] = {load_##KIND##_linear, load_##KIND##_32, load_##KIND##_64},
#include "emit/rows.def"
};

extern tile_move *const TILE_NAME(tile_store)[TILE_KINDS][TILE_WAYS];
tile_move *const TILE_NAME(tile_store)[TILE_KINDS][TILE_WAYS] = {
#define MEMORY(KIND, memory, lane, load, store) \
    [TILE_##KIND] = {store_##KIND##_linear, store_##KIND##_32, store_##KIND##_64},
#include "emit/rows.def"
};
