/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products in register tiles: compiled once per level, TILE_LEVEL.
 *
 * A tile is some rows times some vectors of lanes, whose sums stay in registers from the first
 * round to the last; each round loads the vectors once and one element for each row.  Every sum
 * gets its products in the order of rounds, so that tiles change no bits. */
#include "emit/tile/loops.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "emit/tile/lanes.h"

/* REGISTERS: of vectors. */
#ifdef __AVX512F__
enum { VECTOR = 64, REGISTERS = 32 };
#elif defined(__AVX2__)
enum { VECTOR = 32, REGISTERS = 16 };
#else
enum { VECTOR = 16, REGISTERS = 16 };
#endif

enum { MAX_VECTORS = 8, MAX_ROWS = 8 }; /* of a tile */
/* Likewise of dots, which go some rounds at a time, to read in order what lanes of several vectors
 * have next to each other. */
enum { DOT_ROWS = REGISTERS / 8, DOT_COLUMNS = 4, DOT_ROUNDS = 8 };

typedef f32 v_f32 __attribute__((vector_size(VECTOR), aligned(4), may_alias));
typedef f64 v_f64 __attribute__((vector_size(VECTOR), aligned(8), may_alias));
typedef u32 v_u32 __attribute__((vector_size(VECTOR), aligned(4), may_alias));

/* ---- the choice of tiles ---- */

/* Rows of a tile of `vectors`, at most: its sums and the vectors leave two registers, but for a
 * single row, whose vectors need none. */
#define FIT(vectors) ((REGISTERS - 2) / (vectors)-1)
#define MOST_ROWS(vectors) \
    (FIT(vectors) < 1 ? 1 : FIT(vectors) < MAX_ROWS ? FIT(vectors) : MAX_ROWS)

/* Rows of each tile of `vectors`, of which there are as few as possible, about equal. */
#define TILES(rows, vectors)     (((rows) + MOST_ROWS(vectors) - 1) / MOST_ROWS(vectors))
#define TILE_ROWS(rows, vectors) (((rows) + TILES(rows, vectors) - 1) / TILES(rows, vectors))

/* Of up to 2, 4, 8 vectors, how many make tiles with the fewest loads per product. */
#define LOADS(rows, vectors) \
    ((TILE_ROWS(rows, vectors) + (vectors)) * 5040 / (TILE_ROWS(rows, vectors) * (vectors)))
#define FEWER(rows, a, b) (LOADS(rows, a) < LOADS(rows, b) ? (a) : (b))
#define BEST(rows)                                     \
    enum {                                             \
        BEST_2_##rows = FEWER(rows, 2, 1),             \
        BEST_4_##rows = FEWER(rows, 4, BEST_2_##rows), \
        BEST_8_##rows = FEWER(rows, 8, BEST_4_##rows)  \
    }
BEST(1);
BEST(2);
BEST(3);
BEST(4);
BEST(5);
BEST(6);
BEST(7);
BEST(8);
BEST(9);
BEST(10);
BEST(11);
BEST(12);
BEST(13);
BEST(14);
BEST(15);
BEST(16);

struct register_tile {
    uint8_t vectors, rows;
};

#define SHAPES_OF(rows)                                        \
    [rows] = {{1, TILE_ROWS(rows, 1)},                         \
              {BEST_2_##rows, TILE_ROWS(rows, BEST_2_##rows)}, \
              {BEST_4_##rows, TILE_ROWS(rows, BEST_4_##rows)}, \
              {BEST_8_##rows, TILE_ROWS(rows, BEST_8_##rows)}}

/* By rows, and the logarithm of the vectors that there are, up to MAX_VECTORS. */
static const struct register_tile shapes[TILE_SUMS + 1][4] = {
    SHAPES_OF(1),  SHAPES_OF(2),  SHAPES_OF(3),  SHAPES_OF(4),  SHAPES_OF(5),  SHAPES_OF(6),
    SHAPES_OF(7),  SHAPES_OF(8),  SHAPES_OF(9),  SHAPES_OF(10), SHAPES_OF(11), SHAPES_OF(12),
    SHAPES_OF(13), SHAPES_OF(14), SHAPES_OF(15), SHAPES_OF(16)};

/* ---- tiles ---- */

typedef void tile_function(const struct tile_products *p, size_t row, size_t lane);

/* All tiles; `lanes`: of a vector. */
static void multiply(const struct tile_products *p,
                     tile_function *const tiles[MAX_ROWS + 1][MAX_VECTORS + 1], size_t lanes)
{
    size_t all = p->lanes / lanes;
    const struct register_tile *shape =
        &shapes[p->rows][all < MAX_VECTORS ? __builtin_ctzl(all) : __builtin_ctzl(MAX_VECTORS)];
    size_t vectors = shape->vectors, rows = shape->rows;

    for (size_t lane = 0; lane < p->lanes; lane += vectors * lanes)
        for (size_t row = 0; row < p->rows; row += rows)
            tiles[row + rows < p->rows ? rows : p->rows - row][vectors](p, row, lane);
}

typedef void dot_function(const struct tile_products *p, size_t row, size_t column, size_t lane);

static void multiply_some_dots(const struct tile_products *p,
                               dot_function *const tiles[5][DOT_COLUMNS + 1], size_t lane)
{
    for (size_t row = 0; row < p->rows; row += DOT_ROWS) {
        size_t rows = p->rows - row < DOT_ROWS ? p->rows - row : DOT_ROWS;

        for (size_t column = 0; column < p->columns; column += DOT_COLUMNS)
            tiles[rows][p->columns - column < DOT_COLUMNS ? p->columns - column : DOT_COLUMNS](
                p, row, column, lane);
    }
}

static void multiply_dots(const struct tile_products *p,
                          dot_function *const tiles[5][DOT_COLUMNS + 1], size_t lanes)
{
    const void *down[TILE_SUMS], *across[TILE_SUMS];
    struct tile_products some = *p;

    some.down = down;
    some.across = across;
    for (size_t round = 0; round < p->rounds; round += DOT_ROUNDS) {
        some.rounds = p->rounds - round < DOT_ROUNDS ? p->rounds - round : DOT_ROUNDS;
        for (size_t i = 0; i < p->rows; i++)
            down[i] = (const char *)p->down[i] + (i64)round * p->down_step;
        for (size_t i = 0; i < p->columns; i++)
            across[i] = (const char *)p->across[i] + (i64)round * p->across_step;
        for (size_t lane = 0; lane < p->lanes; lane += lanes)
            multiply_some_dots(&some, tiles, lane);
    }
}

/* Loops that have to become straight code. */
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* Types take no parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */

/* One tile: the sums of `rows` rows from `row` on, of the lanes from `lane` on. */
#define TILE(name, T, V, ADD_PRODUCT)                                                         \
    static inline __attribute__((always_inline)) void name##_tile(                            \
        const struct tile_products *p, size_t row, size_t lane, const size_t rows,            \
        const size_t vectors)                                                                 \
    {                                                                                         \
        enum { LANES = VECTOR / sizeof(T) };                                                  \
        const char *across = (const char *)((const T *)p->across[0] + lane), *down[MAX_ROWS]; \
        V sums[MAX_ROWS][MAX_VECTORS], b[MAX_VECTORS];                                        \
        i64 at = 0;                                                                           \
        UNROLL                                                                                \
        for (size_t i = 0; i < rows; i++) {                                                   \
            down[i] = p->down[row + i];                                                       \
            UNROLL                                                                            \
            for (size_t j = 0; j < vectors; j++)                                              \
                sums[i][j] = *(const V *)((const T *)p->sums[row + i] + lane + j * LANES);    \
        }                                                                                     \
        size_t rounds = p->rounds;                                                            \
        do {                                                                                  \
            UNROLL                                                                            \
            for (size_t j = 0; j < vectors; j++)                                              \
                b[j] = *(const V *)(across + j * VECTOR);                                     \
            UNROLL                                                                            \
            for (size_t i = 0; i < rows; i++) {                                               \
                const V a = *(const T *)(down[i] + at) - (V){0};                              \
                UNROLL                                                                        \
                for (size_t j = 0; j < vectors; j++)                                          \
                    sums[i][j] = ADD_PRODUCT(a, b[j], sums[i][j]);                            \
            }                                                                                 \
            at += p->down_step, across += p->across_step;                                     \
        } while (--rounds);                                                                   \
        UNROLL                                                                                \
        for (size_t i = 0; i < rows; i++) {                                                   \
            UNROLL                                                                            \
            for (size_t j = 0; j < vectors; j++)                                              \
                *(V *)((T *)p->sums[row + i] + lane + j * LANES) = sums[i][j];                \
        }                                                                                     \
    }

/* Each tile is a function of its own, for the sake of its registers. */
#define SHAPE(name, rows, vectors)                                                                 \
    static __attribute__((noinline)) void name##_##rows##_##vectors(const struct tile_products *p, \
                                                                    size_t row, size_t lane)       \
    {                                                                                              \
        if ((rows) <= MOST_ROWS(vectors))                                                          \
            name##_tile(p, row, lane, rows, vectors);                                              \
    }
#define SHAPES(name, rows) \
    SHAPE(name, rows, 1) SHAPE(name, rows, 2) SHAPE(name, rows, 4) SHAPE(name, rows, 8)
#define ENTRY(name, rows)              \
    [rows] = {[1] = name##_##rows##_1, \
              [2] = name##_##rows##_2, \
              [4] = name##_##rows##_4, \
              [8] = name##_##rows##_8}

/* One tile of dots: the sums from row and column on, of the vector of lanes from `lane` on. */
#define DOT_TILE(name, T, V, ADD_PRODUCT)                                                         \
    static inline __attribute__((always_inline)) void name##_dot(                                 \
        const struct tile_products *p, size_t row, size_t column, size_t lane, const size_t rows, \
        const size_t columns)                                                                     \
    {                                                                                             \
        const char *down[DOT_ROWS], *across[DOT_COLUMNS];                                         \
        V sums[DOT_ROWS][DOT_COLUMNS], b[DOT_COLUMNS];                                            \
        void *const *to = p->sums + row * p->columns + column;                                    \
        size_t rounds = p->rounds;                                                                \
        i64 at = 0, to_at = 0;                                                                    \
        UNROLL                                                                                    \
        for (size_t j = 0; j < columns; j++)                                                      \
            across[j] = (const char *)((const T *)p->across[column + j] + lane);                  \
        UNROLL                                                                                    \
        for (size_t i = 0; i < rows; i++) {                                                       \
            down[i] = (const char *)((const T *)p->down[row + i] + lane);                         \
            UNROLL                                                                                \
            for (size_t j = 0; j < columns; j++)                                                  \
                sums[i][j] = *(const V *)((const T *)to[i * p->columns + j] + lane);              \
        }                                                                                         \
        do {                                                                                      \
            UNROLL                                                                                \
            for (size_t j = 0; j < columns; j++)                                                  \
                b[j] = *(const V *)(across[j] + at);                                              \
            UNROLL                                                                                \
            for (size_t i = 0; i < rows; i++) {                                                   \
                const V a = *(const V *)(down[i] + to_at);                                        \
                UNROLL                                                                            \
                for (size_t j = 0; j < columns; j++)                                              \
                    sums[i][j] = ADD_PRODUCT(a, b[j], sums[i][j]);                                \
            }                                                                                     \
            at += p->across_step, to_at += p->down_step;                                          \
        } while (--rounds);                                                                       \
        UNROLL                                                                                    \
        for (size_t i = 0; i < rows; i++) {                                                       \
            UNROLL                                                                                \
            for (size_t j = 0; j < columns; j++)                                                  \
                *(V *)((T *)to[i * p->columns + j] + lane) = sums[i][j];                          \
        }                                                                                         \
    }

#define DOT_SHAPE(name, rows, columns)                                         \
    static __attribute__((noinline)) void name##_dot_##rows##_##columns(       \
        const struct tile_products *p, size_t row, size_t column, size_t lane) \
    {                                                                          \
        if ((rows) <= DOT_ROWS)                                                \
            name##_dot(p, row, column, lane, rows, columns);                   \
    }
#define DOT_SHAPES(name, rows) \
    DOT_SHAPE(name, rows, 1)   \
    DOT_SHAPE(name, rows, 2) DOT_SHAPE(name, rows, 3) DOT_SHAPE(name, rows, 4)
#define DOT_ENTRY(name, rows)                                                      \
    {                                                                              \
        NULL, name##_dot_##rows##_1, name##_dot_##rows##_2, name##_dot_##rows##_3, \
            name##_dot_##rows##_4                                                  \
    }

#define PRODUCTS(name, T, V, ADD_PRODUCT)                                                        \
    TILE(name, T, V, ADD_PRODUCT)                                                                \
    SHAPES(name, 1)                                                                              \
    SHAPES(name, 2)                                                                              \
    SHAPES(name, 3)                                                                              \
    SHAPES(name, 4)                                                                              \
    SHAPES(name, 5)                                                                              \
    SHAPES(name, 6)                                                                              \
    SHAPES(name, 7)                                                                              \
    SHAPES(name, 8)                                                                              \
    DOT_TILE(name, T, V, ADD_PRODUCT)                                                            \
    DOT_SHAPES(name, 1)                                                                          \
    DOT_SHAPES(name, 2)                                                                          \
    DOT_SHAPES(name, 3)                                                                          \
    DOT_SHAPES(name, 4)                                                                          \
    static tile_function *const name##_tiles[MAX_ROWS + 1][MAX_VECTORS + 1] = {                  \
        ENTRY(name, 1), ENTRY(name, 2), ENTRY(name, 3), ENTRY(name, 4),                          \
        ENTRY(name, 5), ENTRY(name, 6), ENTRY(name, 7), ENTRY(name, 8)};                         \
    static dot_function *const name##_dot_tiles[5][DOT_COLUMNS + 1] = {                          \
        {NULL}, DOT_ENTRY(name, 1), DOT_ENTRY(name, 2), DOT_ENTRY(name, 3), DOT_ENTRY(name, 4)}; \
    static void name(const struct tile_products *p)                                              \
    {                                                                                            \
        multiply(p, name##_tiles, VECTOR / sizeof(T));                                           \
    }                                                                                            \
    static void name##_dots(const struct tile_products *p)                                       \
    {                                                                                            \
        multiply_dots(p, name##_dot_tiles, VECTOR / sizeof(T));                                  \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

#define MUL_ADD(a, b, c) ((c) + (a) * (b))

PRODUCTS(mul_add_u32, u32, v_u32, MUL_ADD)

#ifdef __AVX512F__
#define FMA_F32(a, b, c) ((v_f32)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_F64(a, b, c) ((v_f64)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(__AVX2__)
#define FMA_F32(a, b, c) ((v_f32)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define FMA_F64(a, b, c) ((v_f64)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#endif

#ifdef __AVX512BF16__
#define DOT2(a, b, c) ((v_f32)_mm512_dpbf16_ps((__m512)(c), (__m512bh)(a), (__m512bh)(b)))
PRODUCTS(dot2, f32, v_f32, DOT2)
#endif

/* Floats are by fma where the machine has it, which is what schedules choose then. */
#ifdef FMA_F32
PRODUCTS(fma_f32, f32, v_f32, FMA_F32)
PRODUCTS(fma_f64, f64, v_f64, FMA_F64)
#else
PRODUCTS(mul_add_f32, f32, v_f32, MUL_ADD)
PRODUCTS(mul_add_f64, f64, v_f64, MUL_ADD)
#endif

extern tile_multiply *const TILE_NAME(tile_products)[TILE_PRODUCTS][KIR_TYPES];
tile_multiply *const TILE_NAME(tile_products)[TILE_PRODUCTS][KIR_TYPES] = {
#ifdef FMA_F32
    [0] = {[KIR_I32] = mul_add_u32},
    [TILE_DOTS] = {[KIR_I32] = mul_add_u32_dots},
    [TILE_FUSED] = {[KIR_F32] = fma_f32, [KIR_F64] = fma_f64},
#ifdef DOT2
    [TILE_PAIRS] = {[KIR_F32] = dot2},
    [TILE_PAIRS + TILE_DOTS] = {[KIR_F32] = dot2_dots},
#endif
    [TILE_FUSED + TILE_DOTS] = {[KIR_F32] = fma_f32_dots, [KIR_F64] = fma_f64_dots},
#else
    [0] = {[KIR_I32] = mul_add_u32, [KIR_F32] = mul_add_f32, [KIR_F64] = mul_add_f64},
    [TILE_DOTS] =
        {[KIR_I32] = mul_add_u32_dots, [KIR_F32] = mul_add_f32_dots, [KIR_F64] = mul_add_f64_dots},
#endif
};
