/* SPDX-License-Identifier: Apache-2.0 */
/* The words of dialects.
 *
 *   GLOBAL                   in front of a type: in the device's memory
 *   PARAMS(n)                declares the parameter of kernels, n words
 *   KERNEL(name, threads)    the head of a function
 *   WORD(i), BLOCK_0 .. 2    a word of the parameter; the block's number
 *   SHARED                   declares `shared`
 *   THREAD, FOR_THREADS      the thread's number; a region of what each does
 *   HELD(type, name), HELD_TILE(type, name, count), MINE(name)
 *                            a variable or array of each thread that outlives its region
 *   UNIFORM(name)            one that is the same in all threads, between regions
 *   BARRIER, WARP_BARRIER    of a block, and of one that is at most a warp; THREADS is defined
 *   SHUFFLE_XOR(to, from, by), SHUFFLE_UP(to, from, own, by), FIRST(from)
 *                            between regions, in one warp; up: `own` where there is no such
 * thread READ_ONLY(pointer)       what it points to, which nothing writes during the launch
 *   COPY_n(to, from, condition), COPY_BATCH, COPY_WAIT(n)
 *                            n bytes to shared memory, zeros where the condition is false
 *   FOR_TEAMS, TEAM          what follows is done by each team, of that many threads
 *   SUMS(f, n), FACTOR(f, n) declare a fragment of n elements
 *   MFILL, MSCALE, MLOAD, SLOAD, MSTORE, MMA, MFOLD, MNARROW
 *                            see fragments.c; two neighbours are one access in _PAIRS, 8 in _MATRIX
 *   WIDE_BATCH, WIDE_WAIT(n), WIDE_MMA_n_m
 *                            of wide ones, whose products go on while threads do
 *   FOR_ELEMENTS(n), ELEMENT(f), ELEMENT_ROW(columns), ELEMENT_COLUMN(columns)
 *                            each element of sums that the thread has, of n
 *   atomic_add_KIND(pointer, value)
 *   m_TYPE                   in memory: may alias others
 *   u32x2, u32x4, u64x2      in memory, aligned to their size, with members x y z w
 *
 * A function of rows.def has a form per dialect, or is taken as it is. */
#include "emit/c/words.h"

#include <stdio.h>
#include <string.h>

#include "emit/c/rows.h"
#include "emit/c/writer.h"

static const char types[] = "typedef signed char i8;\n"
                            "typedef unsigned char u8;\n"
                            "typedef short i16;\n"
                            "typedef unsigned short u16;\n"
                            "typedef int i32;\n"
                            "typedef unsigned int u32;\n"
                            "typedef long long i64;\n"
                            "typedef unsigned long long u64;\n"
                            "typedef float f32;\n"
                            "typedef double f64;\n";

/* At once. */
static const char copy_words[] =
    "#define COPY(type, to, from, condition) do { \\\n"
    "    type copied = {0}; \\\n"
    "    if (condition) copied = *(GLOBAL const type *)(from); \\\n"
    "    *(type *)(to) = copied; \\\n"
    "} while (0)\n"
    "#define COPY_2(to, from, condition) COPY(m_u16, to, from, condition)\n";
static const char copy_more_words[] =
    "#define COPY_4(to, from, condition) COPY(m_u32, to, from, condition)\n"
    "#define COPY_8(to, from, condition) COPY(u32x2, to, from, condition)\n"
    "#define COPY_16(to, from, condition) COPY(u32x4, to, from, condition)\n"
    "#define COPY_BATCH\n"
    "#define COPY_WAIT(n)\n";

/* ---- C, for a thread that does a whole group ---- */

static const char host_words[] =
    "#define ALIAS __attribute__((may_alias))\n"
    "typedef i8 m_i8 ALIAS;\n"
    "typedef u8 m_u8 ALIAS;\n"
    "typedef i16 m_i16 ALIAS;\n"
    "typedef u16 m_u16 ALIAS;\n"
    "typedef u32 m_u32 ALIAS;\n"
    "typedef u64 m_u64 ALIAS;\n"
    "typedef f32 m_f32 ALIAS;\n"
    "typedef f64 m_f64 ALIAS;\n"
    "typedef struct { u32 x, y; } __attribute__((may_alias, aligned(8))) u32x2;\n"
    "typedef struct { u32 x, y, z, w; } __attribute__((may_alias, aligned(16))) u32x4;\n"
    "typedef struct { u64 x, y; } __attribute__((may_alias, aligned(16))) u64x2;\n"
    "#define GLOBAL\n"
    "#define PARAMS(n)\n"
    "#define KERNEL(name, threads) \\\n"
    "    void name(const u64 *params, const u32 *group, void *shared); \\\n"
    "    void name(const u64 *params, const u32 *group, void *shared)\n"
    "#define WORD(i) params[i]\n"
    "#define BLOCK_0 group[0]\n"
    "#define BLOCK_1 group[1]\n"
    "#define BLOCK_2 group[2]\n"
    "#define SHARED (void)params, (void)group, (void)shared\n"
    "#define THREAD thread\n"
    "#define FOR_THREADS for (u32 thread = 0; thread < THREADS; thread++)\n"
    "#define HELD(type, name) type name[THREADS]\n"
    "#define HELD_TILE(type, name, count) type name[THREADS][count]\n"
    "#define MINE(name) name[thread]\n"
    "#define UNIFORM(name) name[0]\n"
    "#define BARRIER\n"
    "#define WARP_BARRIER\n"
    "#define SHUFFLE_XOR(to, from, by) FOR_THREADS MINE(to) = from[thread ^ (by)]\n"
    "#define SHUFFLE_UP(to, from, own, by) \\\n"
    "    FOR_THREADS MINE(to) = thread < (by) ? MINE(own) : from[thread - (by)]\n"
    "#define FIRST(from) from[0]\n"
    "#define READ_ONLY(pointer) (*(pointer))\n"
    "#define atomic_add_I32(at, r) __atomic_fetch_add(at, r, __ATOMIC_RELAXED)\n"
    "#define atomic_add_I64(at, r) __atomic_fetch_add(at, r, __ATOMIC_RELAXED)\n"
    "static inline void atomic_add_F32(m_f32 *at, f32 r)\n"
    "{\n"
    "    f32 old, sum;\n"
    "    __atomic_load(at, &old, __ATOMIC_RELAXED);\n"
    "    do\n"
    "        sum = old + r;\n"
    "    while (!__atomic_compare_exchange(at, &old, &sum, 1, __ATOMIC_RELAXED, "
    "__ATOMIC_RELAXED));\n"
    "}\n";

static const char host_fragment_words[] =
    "#define FOR_TEAMS for (u32 thread = 0; thread < THREADS; thread += TEAM)\n"
    "#define SUMS(f, n) f32 f[THREADS / TEAM][n]\n"
    "#define FACTOR SUMS\n"
    "#define WIDE_FACTOR SUMS\n"
    "#define MFILL(f, n, a) for (u32 i = 0; i < n; i++) f[thread / TEAM][i] = a\n"
    "#define MSCALE(f, n, by) \\\n"
    "    for (u32 i = 0; i < n; i++) f[thread / TEAM][i] *= by[thread / TEAM][i]\n"
    "#define IN_LINE(i, columns, by_columns) ((by_columns) ? i / columns : i % columns)\n"
    "#define SWIZZLED(at) ((at) ^ ((at) / 64 % 8 * 8))\n"
    "#define LINES_AT(far, near, stride) ((far) * (stride) + (near))\n"
    "#define BLOCKS_AT(far, near, stride) ((near) / 64 * (stride) + (far) * 64 + (near) % 64)\n"
    "#define FRAGMENT_AT(by_columns, columns, AT, stride) \\\n"
    "    AT(IN_LINE(i, columns, !(by_columns)), IN_LINE(i, columns, by_columns), stride)\n"
    "#define MLOAD_SINGLE(f, TYPE, from, stride, is_right, by_columns, in_blocks, rows, columns) "
    "\\\n"
    "    for (i32 i = 0; i < rows * columns; i++) f[thread / TEAM][i] = \\\n"
    "        load_##TYPE((from)[FRAGMENT_AT(by_columns, columns, LINES_AT, stride)])\n"
    "#define MLOAD_BLOCKS(f, TYPE, tile, at, stride, is_right, by_columns, in_blocks, rows, "
    "columns) \\\n"
    "    for (i32 i = 0; i < rows * columns; i++) f[thread / TEAM][i] = \\\n"
    "        load_##TYPE((tile)[SWIZZLED((at) + FRAGMENT_AT(by_columns, columns, BLOCKS_AT, "
    "stride))])\n"
    "#define MLOAD_PAIRS MLOAD_SINGLE\n"
    "#define MLOAD_MATRIX MLOAD_SINGLE\n"
    "#define MLOAD_WIDE MLOAD_BLOCKS\n"
    "#define SLOAD_SINGLE MLOAD_SINGLE\n"
    "#define SLOAD_PAIRS MLOAD_SINGLE\n"
    "#define MSTORE_SINGLE(f, TYPE, to, stride, is_right, by_columns, in_blocks, rows, columns) "
    "\\\n"
    "    for (i32 i = 0; i < rows * columns; i++) \\\n"
    "        (to)[FRAGMENT_AT(by_columns, columns, LINES_AT, stride)] = store_##TYPE(f[thread / "
    "TEAM][i])\n"
    "#define MSTORE_PAIRS MSTORE_SINGLE\n"
    "#define MULTIPLY(f, a, b, rows, columns) \\\n"
    "    for (u32 i = 0; i < (rows) * (columns); i++) \\\n"
    "        for (u32 k = 0; k < 16; k++) \\\n"
    "            f[thread / TEAM][i] = __builtin_fmaf(a[thread / TEAM][i / (columns) * 16 + k], "
    "\\\n"
    "                b[thread / TEAM][k * (columns) + i % (columns)], f[thread / TEAM][i])\n"
    "#define MMA_F16(f, a, b) MULTIPLY(f, a, b, 16, 16)\n"
    "#define MMA_BF16(f, a, b) MULTIPLY(f, a, b, 16, 16)\n"
    "#define WIDE_BATCH\n"
    "#define WIDE_WAIT(n)\n"
    "#define LARGER(a, b) ((a) < (b) ? (b) : (a))\n"
    "#define TOTAL(a, b) ((a) + (b))\n"
    "#define MFOLD(to, from, FOLD) \\\n"
    "    for (u32 r = 0; r < 256; r += 16) { \\\n"
    "        f32 folded = from[thread / TEAM][r]; \\\n"
    "        for (u32 i = 1; i < 16; i++) \\\n"
    "            folded = FOLD(folded, from[thread / TEAM][r + i]); \\\n"
    "        for (u32 i = 0; i < 16; i++) \\\n"
    "            to[thread / TEAM][r + i] = folded; \\\n"
    "    }\n"
    "#define MNARROW_F16(to, from) \\\n"
    "    for (u32 i = 0; i < 256; i++) \\\n"
    "        to[thread / TEAM][i] = load_F16(store_F16(from[thread / TEAM][i]))\n"
    "#define MNARROW_BF16(to, from) \\\n"
    "    for (u32 i = 0; i < 256; i++) \\\n"
    "        to[thread / TEAM][i] = load_BF16(store_BF16(from[thread / TEAM][i]))\n"
    "#define FOR_ELEMENTS(n) for (u32 element = thread % TEAM; element < n; element += TEAM)\n"
    "#define ELEMENT(f) f[thread / TEAM][element]\n"
    "#define ELEMENT_ROW(columns) (element / columns)\n"
    "#define ELEMENT_COLUMN(columns) (element % columns)\n";

enum { WIDE_STEP = 8, WIDE_MAX = 256 };

/* WIDE_MMA_n_m(type, is_left_turned, is_right_turned, sums, left, right, left ...) of n columns, m
 * products. */
static void print_host_wide(struct str *out)
{
    for (uint32_t n = WIDE_STEP; n <= WIDE_MAX; n += WIDE_STEP)
        for (uint32_t m = 1; m <= WRITER_PRODUCTS; m++) {
            str_addf(out, "#define WIDE_MMA_%u_%u(type, turn_a, turn_b, f", n, m);
            for (uint32_t i = 0; i < m; i++)
                str_addf(out, ", a%u, b%u", i, i);
            str_addf(out, ") {");
            for (uint32_t i = 0; i < m; i++)
                str_addf(out, " MULTIPLY(f, a%u, b%u, 64, %u);", i, i, n);
            str_addf(out, " }\n");
        }
}

void ctext_host_words(struct str *out)
{
    str_add(out, types, sizeof(types) - 1);
    str_add(out, host_words, sizeof(host_words) - 1);
    str_add(out, copy_words, sizeof(copy_words) - 1);
    str_add(out, copy_more_words, sizeof(copy_more_words) - 1);
    str_add(out, host_fragment_words, sizeof(host_fragment_words) - 1);
    print_host_wide(out);
    for (uint32_t i = 0; rows_function(i); i++)
        str_addf(out, "%s\n", rows_function(i));
    str_addf(out, "%s", CTEXT_END_OF_WORDS);
}

/* ---- what devices have in common ---- */

static const char device_words[] = "#define FOR_THREADS\n"
                                   "#define HELD(type, name) type name\n"
                                   "#define HELD_TILE(type, name, count) type name[count]\n"
                                   "#define MINE(name) name\n"
                                   "#define UNIFORM(name) name\n"
                                   "#define WORD(i) params.word[i]\n"
                                   "#define PARAMS(n) struct params { u64 word[n]; };\n";

/* ---- CUDA C++ ---- */

static const char cuda_words[] =
    "typedef i8 m_i8;\n"
    "typedef u8 m_u8;\n"
    "typedef i16 m_i16;\n"
    "typedef u16 m_u16;\n"
    "typedef u32 m_u32;\n"
    "typedef u64 m_u64;\n"
    "typedef f32 m_f32;\n"
    "typedef f64 m_f64;\n"
    "typedef uint2 u32x2;\n"
    "typedef uint4 u32x4;\n"
    "typedef ulonglong2 u64x2;\n"
    "#define DEVICE __device__ static inline\n"
    "#define GLOBAL\n"
    "#define KERNEL(name, threads) extern \"C\" __global__ void __launch_bounds__(threads) \\\n"
    "    name(const __grid_constant__ struct params params)\n"
    "#define BLOCK_0 blockIdx.x\n"
    "#define BLOCK_1 blockIdx.y\n"
    "#define BLOCK_2 blockIdx.z\n"
    "#define SHARED extern __shared__ __align__(1024) u64 shared[]\n"
    "#define THREAD threadIdx.x\n"
    "#define BARRIER __syncthreads()\n"
    "#define MASK (0xffffffffu >> (THREADS < 32 ? 32 - THREADS : 0))\n"
    "#define WARP_BARRIER __syncwarp(MASK)\n"
    "#define SHUFFLE_XOR(to, from, by) to = __shfl_xor_sync(MASK, from, by)\n"
    "#define SHUFFLE_UP(to, from, own, by) \\\n"
    "    to = __shfl_up_sync(MASK, from, by); \\\n"
    "    if (THREAD < (by)) to = own\n"
    "#define FIRST(from) __shfl_sync(MASK, from, 0)\n"
    "#define READ_ONLY(pointer) __ldg(pointer)\n"
    "#define atomic_add_I32(at, r) atomicAdd(at, r)\n"
    "#define atomic_add_I64(at, r) atomicAdd(at, r)\n"
    "#define atomic_add_F32(at, r) atomicAdd(at, r)\n";

/* cp.async; where the condition is false no byte is read. */
static const char cuda_copy_words[] =
    "#if __CUDA_ARCH__ >= 800\n"
    "#define ASYNC(way, n) \\\n"
    "DEVICE void copy_##n(void *to, const void *from, bool condition) \\\n"
    "{ \\\n"
    "    asm volatile(\"cp.async.\" way \".shared.global [%0], [%1], \" #n \", %2;\" :: \\\n"
    "        \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(from), \\\n"
    "        \"r\"(condition ? n##u : 0u) : \"memory\"); \\\n"
    "}\n"
    "ASYNC(\"ca\", 4)\n"
    "ASYNC(\"ca\", 8)\n"
    "ASYNC(\"cg\", 16)\n"
    "#define COPY_4(to, from, condition) copy_4(to, from, condition)\n"
    "#define COPY_8(to, from, condition) copy_8(to, from, condition)\n"
    "#define COPY_16(to, from, condition) copy_16(to, from, condition)\n"
    "#define COPY_BATCH asm volatile(\"cp.async.commit_group;\" ::: \"memory\")\n"
    "#define COPY_WAIT(n) asm volatile(\"cp.async.wait_group \" #n \";\" ::: \"memory\")\n"
    "#else\n";

/* Fragments of 16 by 16 in 32 threads.  Of sums a thread has two neighbours in two rows, 8 apart,
 * of each 8 columns; of factors, likewise with neighbours along k.  A matrix of 8 by 8 that
 * ldmatrix reads has neighbours along k in rows of memory; with .trans in columns.  Wide sums lie
 * likewise, 16 rows in each warp. */
static const char cuda_fragment_words[] =
    "#define FOR_TEAMS\n"
    "#define SUMS(f, n) f32 f[n / TEAM]\n"
    "#define FACTOR(f, n) u32 f[4]\n"
    "#define UNROLL _Pragma(\"unroll\")\n"
    "#define MFILL(f, n, a) UNROLL for (u32 i = 0; i < n / TEAM; i++) f[i] = a\n"
    "#define MSCALE(f, n, by) UNROLL for (u32 i = 0; i < n / TEAM; i++) f[i] *= by[i]\n"
    "#define IN_WARP (THREAD & 31u)\n"
    "#define PAIR_ROW (IN_WARP >> 2)\n"
    "#define PAIR_COLUMN ((IN_WARP & 3u) << 1)\n"
    "#define WARP_ROW (PAIR_ROW + THREAD % TEAM / 32u * 16u)\n"
    "#define ELEMENT_ROW(columns) (WARP_ROW + ((element & 2u) << 2))\n"
    "#define ELEMENT_COLUMN(columns) (PAIR_COLUMN + (element & 1u) + ((element & ~3u) << 1))\n"
    "#define FOR_ELEMENTS(n) UNROLL for (u32 element = 0; element < n / TEAM; element++)\n"
    "#define ELEMENT(f) f[element]\n"
    "#define SUM_AT(stride, by_columns) \\\n"
    "    ((by_columns) ? (i32)ELEMENT_COLUMN(0) * (stride) + (i32)ELEMENT_ROW(0) \\\n"
    "                  : (i32)ELEMENT_ROW(0) * (stride) + (i32)ELEMENT_COLUMN(0))\n"
    "#define SLOAD_SINGLE(f, TYPE, from, stride, is_right, by_columns, in_blocks, rows, columns) "
    "\\\n"
    "    FOR_ELEMENTS(rows * columns) f[element] = load_##TYPE((from)[SUM_AT(stride, "
    "by_columns)])\n"
    "#define SLOAD_PAIRS SLOAD_SINGLE\n"
    "#define MSTORE_SINGLE(f, TYPE, to, stride, is_right, by_columns, in_blocks, rows, columns) "
    "\\\n"
    "    FOR_ELEMENTS(rows * columns) (to)[SUM_AT(stride, by_columns)] = store_##TYPE(f[element])\n"
    "#define MSTORE_PAIRS(f, TYPE, to, stride, is_right, by_columns, in_blocks, rows, columns) \\\n"
    "    do { \\\n"
    "        auto *const put = (to) + (i32)WARP_ROW * (stride) + PAIR_COLUMN; \\\n"
    "        auto *const below = put + 8 * (stride); \\\n"
    "        UNROLL for (u32 i = 0; i < rows * columns / TEAM; i += 4) { \\\n"
    "            PUT_PAIR_##TYPE(put + 2 * i, f[i], f[i + 1]); \\\n"
    "            PUT_PAIR_##TYPE(below + 2 * i, f[i + 2], f[i + 3]); \\\n"
    "        } \\\n"
    "    } while (0)\n"
    "#define PUT_PAIR_F32(to, a, b) *(float2 *)(to) = make_float2(a, b)\n"
    "#define PUT_PAIR_F16(to, a, b) *(m_u32 *)(to) = pair_F16(a, b)\n"
    "#define PUT_PAIR_BF16(to, a, b) *(m_u32 *)(to) = pair_BF16(a, b)\n";
static const char cuda_small_words[] =
    "DEVICE void load_matrix(u32 *f, const u16 *from, bool turned)\n"
    "{\n"
    "    const u32 at = (u32)__cvta_generic_to_shared(from);\n"
    "    if (turned)\n"
    "        asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, "
    "[%4];\"\n"
    "            : \"=r\"(f[0]), \"=r\"(f[1]), \"=r\"(f[2]), \"=r\"(f[3]) : \"r\"(at) : "
    "\"memory\");\n"
    "    else\n"
    "        asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"\n"
    "            : \"=r\"(f[0]), \"=r\"(f[1]), \"=r\"(f[2]), \"=r\"(f[3]) : \"r\"(at) : "
    "\"memory\");\n"
    "}\n"
    "#define MATRIX_ROW(by_columns) \\\n"
    "    (i32)((by_columns) ? (IN_WARP & 7u) + ((IN_WARP & 16u) >> 1) : IN_WARP & 15u)\n"
    "#define MATRIX_COLUMN(by_columns) (i32)((by_columns) ? IN_WARP & 8u : (IN_WARP & 16u) >> 1)\n"
    "#define MLOAD_MATRIX(f, TYPE, from, stride, is_right, by_columns, in_blocks, rows, columns) "
    "\\\n"
    "    load_matrix(f, (from) + MATRIX_ROW(by_columns) * (i32)(stride) + \\\n"
    "        MATRIX_COLUMN(by_columns), (is_right) != (by_columns))\n"
    "#define FACTOR_ROW(is_right) (i32)(PAIR_ROW + ((is_right) ? i >> 1 : i & 1u) * 8)\n"
    "#define FACTOR_K(is_right) (i32)(PAIR_COLUMN + ((is_right) ? i & 1u : i >> 1) * 8)\n"
    "#define MLOAD_PAIRS(f, TYPE, from, stride, is_right, by_columns, in_blocks, rows, columns) "
    "\\\n"
    "    UNROLL for (u32 i = 0; i < 4; i++) \\\n"
    "        f[i] = *(const m_u32 *)((from) + FACTOR_ROW(is_right) * (stride) + "
    "FACTOR_K(is_right))\n"
    "#define FACTOR_AT(k, stride, is_right, by_columns) \\\n"
    "    ((is_right) == (by_columns) ? FACTOR_ROW(is_right) * (stride) + (k) \\\n"
    "                                : (k) * (stride) + FACTOR_ROW(is_right))\n"
    "#define MLOAD_SINGLE(f, TYPE, from, stride, is_right, by_columns, in_blocks, rows, columns) "
    "\\\n"
    "    UNROLL for (u32 i = 0; i < 4; i++) \\\n"
    "        f[i] = (from)[FACTOR_AT(FACTOR_K(is_right), stride, is_right, by_columns)] | \\\n"
    "            (u32)(from)[FACTOR_AT(FACTOR_K(is_right) + 1, stride, is_right, by_columns)] << "
    "16\n"
    "#define SWIZZLED(at) ((at) ^ ((at) / 64 % 8 * 8))\n"
    "#define BLOCK_AT(at, k, stride, is_right, by_columns) \\\n"
    "    SWIZZLED((at) + ((is_right) == (by_columns) \\\n"
    "        ? (k) / 64 * (stride) + FACTOR_ROW(is_right) * 64 + (k) % 64 \\\n"
    "        : FACTOR_ROW(is_right) / 64 * (stride) + (k) * 64 + FACTOR_ROW(is_right) % 64))\n"
    "#define MLOAD_BLOCKS(f, TYPE, tile, at, stride, is_right, by_columns, in_blocks, rows, "
    "columns) \\\n"
    "    UNROLL for (u32 i = 0; i < 4; i++) \\\n"
    "        f[i] = (tile)[BLOCK_AT(at, FACTOR_K(is_right), stride, is_right, by_columns)] | \\\n"
    "            (u32)(tile)[BLOCK_AT(at, FACTOR_K(is_right) + 1, stride, is_right, by_columns)] "
    "<< 16\n"
    "#define MULTIPLY_HALF(type, i) \\\n"
    "    asm(\"mma.sync.aligned.m16n8k16.row.col.f32.\" type \".\" type \".f32 \" \\\n"
    "        \"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" \\\n"
    "        : \"+f\"(f[4 * i]), \"+f\"(f[4 * i + 1]), \"+f\"(f[4 * i + 2]), \"+f\"(f[4 * i + 3]) "
    "\\\n"
    "        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[2 * i]), \"r\"(b[2 * i "
    "+ 1]))\n"
    "#define MULTIPLY(name, type) \\\n"
    "DEVICE void name(f32 *f, const u32 *a, const u32 *b) \\\n"
    "{ \\\n"
    "    MULTIPLY_HALF(type, 0); \\\n"
    "    MULTIPLY_HALF(type, 1); \\\n"
    "}\n"
    "MULTIPLY(MMA_F16, \"f16\")\n"
    "MULTIPLY(MMA_BF16, \"bf16\")\n";

/* A row has its elements in four neighbouring threads. */
static const char cuda_row_words[] =
    "#define LARGER(a, b) ((a) < (b) ? (b) : (a))\n"
    "#define TOTAL(a, b) ((a) + (b))\n"
    "#define MFOLD(to, from, FOLD) \\\n"
    "    UNROLL for (u32 half = 0; half < 4; half += 2) { \\\n"
    "        f32 folded = FOLD(FOLD(from[half], from[half + 1]), \\\n"
    "            FOLD(from[half + 4], from[half + 5])), other; \\\n"
    "        SHUFFLE_XOR(other, folded, 1); \\\n"
    "        folded = FOLD(folded, other); \\\n"
    "        SHUFFLE_XOR(other, folded, 2); \\\n"
    "        folded = FOLD(folded, other); \\\n"
    "        to[half] = to[half + 1] = to[half + 4] = to[half + 5] = folded; \\\n"
    "    }\n"
    "#define NARROW(type, to, from) \\\n"
    "    UNROLL for (u32 i = 0; i < 4; i++) \\\n"
    "        asm(\"cvt.rn.\" type \"x2.f32 %0, %1, %2;\" : \"=r\"(to[i]) : \\\n"
    "            \"f\"(from[2 * (i & 1u) + 2 * (i & 2u) + 1]), \"f\"(from[2 * (i & 1u) + 2 * (i & "
    "2u)]))\n"
    "#define MNARROW_F16(to, from) NARROW(\"f16\", to, from)\n"
    "#define MNARROW_BF16(to, from) NARROW(\"bf16\", to, from)\n";

/* Descriptors of matrices in shared memory, swizzled in lines of 128 bytes: where it begins, the
 * distance of blocks of 64 across k, that of 8 lines, all in 16 bytes, and the swizzling.  What
 * threads wrote is fenced before a barrier, after which wgmma reads it. */
static const char cuda_wide_words[] =
    "#define WIDE_FACTOR(f, n) u64 f\n"
    "DEVICE u64 descriptor(const u16 *from, i64 stride)\n"
    "{\n"
    "    return ((u64)__cvta_generic_to_shared(from) & 0x3ffff) >> 4 | (u64)stride >> 3 << 16 |\n"
    "        64ull << 32 | 1ull << 62;\n"
    "}\n"
    "#define MLOAD_WIDE(f, TYPE, tile, at, stride, is_right, by_columns, in_blocks, rows, columns) "
    "\\\n"
    "    f = descriptor((tile) + (at), stride)\n"
    "#undef BARRIER\n"
    "#define BARRIER do { \\\n"
    "    asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\"); \\\n"
    "    __syncthreads(); \\\n"
    "} while (0)\n"
    "#define WIDE_BATCH asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\")\n"
    "#define WIDE_WAIT(n) \\\n"
    "    asm volatile(\"wgmma.wait_group.sync.aligned \" #n \";\" ::: \"memory\")\n"
    "#define WIDE_TYPE_F16 \"f16\"\n"
    "#define WIDE_TYPE_BF16 \"bf16\"\n";

/* ---- HIP C++ ---- */

static const char hip_words[] =
    "#define ALIAS __attribute__((may_alias))\n"
    "typedef i8 m_i8 ALIAS;\n"
    "typedef u8 m_u8 ALIAS;\n"
    "typedef i16 m_i16 ALIAS;\n"
    "typedef u16 m_u16 ALIAS;\n"
    "typedef u32 m_u32 ALIAS;\n"
    "typedef u64 m_u64 ALIAS;\n"
    "typedef f32 m_f32 ALIAS;\n"
    "typedef f64 m_f64 ALIAS;\n"
    "typedef u32 u32x2 __attribute__((ext_vector_type(2), may_alias));\n"
    "typedef u32 u32x4 __attribute__((ext_vector_type(4), may_alias));\n"
    "typedef u64 u64x2 __attribute__((ext_vector_type(2), may_alias));\n"
    "#undef __device__\n"
    "#define __device__ __attribute__((device))\n"
    "#define DEVICE __device__ static inline\n"
    "#define GLOBAL __attribute__((address_space(1)))\n"
    "#define KERNEL(name, threads) extern \"C\" __attribute__((global, \\\n"
    "    amdgpu_flat_work_group_size(threads, threads))) void name(const struct params params)\n"
    "#define BLOCK_0 __builtin_amdgcn_workgroup_id_x()\n"
    "#define BLOCK_1 __builtin_amdgcn_workgroup_id_y()\n"
    "#define BLOCK_2 __builtin_amdgcn_workgroup_id_z()\n"
    "#define SHARED extern __attribute__((shared, aligned(16))) u64 shared[]\n"
    "#define THREAD ((u32)__builtin_amdgcn_workitem_id_x())\n"
    "#define BARRIER do { \\\n"
    "    __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\"); \\\n"
    "    __builtin_amdgcn_s_barrier(); \\\n"
    "    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\"); \\\n"
    "} while (0)\n"
    "#define WARP_BARRIER BARRIER\n"
    "#define SHUFFLE_XOR(to, from, by) to = shuffle(from, THREAD ^ (by))\n"
    "#define SHUFFLE_UP(to, from, own, by) \\\n"
    "    to = shuffle(from, THREAD - (by)); \\\n"
    "    if (THREAD < (by)) to = own\n"
    "#define FIRST(from) shuffle(from, 0u)\n"
    "#define READ_ONLY(pointer) (*(pointer))\n"
    "#define atomic_add_I32(at, r) hip_add(at, r)\n"
    "#define atomic_add_I64(at, r) hip_add(at, r)\n"
    "#define atomic_add_F32(at, r) hip_add(at, r)\n"
    "#define hip_add(at, r) \\\n"
    "    __hip_atomic_fetch_add(at, r, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)\n";

/* By the number of a thread in the block; only the part of it within the warp counts. */
static const char hip_shuffles[] =
    "DEVICE u32 shuffle(u32 a, u32 thread)\n"
    "{\n"
    "    return (u32)__builtin_amdgcn_ds_bpermute((i32)((thread & (WARP - 1)) << 2), (i32)a);\n"
    "}\n"
    "DEVICE u64 shuffle(u64 a, u32 thread)\n"
    "{\n"
    "    return (u64)shuffle((u32)(a >> 32), thread) << 32 | shuffle((u32)a, thread);\n"
    "}\n"
    "DEVICE f32 shuffle(f32 a, u32 thread)\n"
    "{\n"
    "    return __builtin_bit_cast(f32, shuffle(__builtin_bit_cast(u32, a), thread));\n"
    "}\n"
    "DEVICE f64 shuffle(f64 a, u32 thread)\n"
    "{\n"
    "    return __builtin_bit_cast(f64, shuffle(__builtin_bit_cast(u64, a), thread));\n"
    "}\n";

/* ---- functions of rows.def ---- */

struct form {
    const char *name, *cuda, *hip; /* NULL: as it is in rows.def */
};

static const struct form forms[] = {
#define FORM(name, cuda, hip) {#name, cuda, hip},
#include "emit/c/forms.def"
};

#define IS_FLOAT  1
#define IS_INT    0
#define IS_UINT   0
#define IS_BOOL   0
#define IS_PACKED 0
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    _Static_assert(!IS_##cls || (bits) != 16 || (fraction) == 10 || (fraction) == 7,               \
                   "forms.def has no form for " #name);
#include <frit/dtypes.def>

enum { MAX_FUNCTIONS = 64, MAX_NAME = 32 };

/* The name in a definition: what precedes the first bracket. */
static void name_of(const char *definition, char *name)
{
    const char *end = strchr(definition, '('), *from = end;

    while (from > definition && from[-1] != ' ')
        from--;
    memcpy(name, from, (size_t)(end - from));
    name[end - from] = 0;
}

static const char *form_of(const struct ctext_target *target, const char *name)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        if (!strcmp(forms[i].name, name))
            return target->dialect == CTEXT_CUDA ? forms[i].cuda : forms[i].hip;
    }
    return NULL;
}

/* The functions that the text needs: each comes before those that call it. */
static void print_functions(const struct ctext_target *target, const char *text, struct str *out)
{
    const char *needed[MAX_FUNCTIONS] = {NULL};
    char name[MAX_NAME];
    uint32_t n = 0;

    while (rows_function(n))
        n++;
    for (uint32_t i = n; i-- > 0;) {
        const char *form;
        bool is_used;

        name_of(rows_function(i), name);
        is_used = strstr(text, name) != NULL;
        for (uint32_t k = i + 1; k < n && !is_used; k++)
            is_used = needed[k] && strstr(needed[k], name);
        form = form_of(target, name);
        if (is_used)
            needed[i] = form ? form : rows_function(i);
    }
    for (uint32_t i = 0; i < n; i++) {
        bool own = needed[i] == rows_function(i);

        if (needed[i])
            str_addf(out, own ? "__device__ %s\n" : "%s", needed[i]);
    }
}

static void print_copies(const struct ctext_target *target, struct str *out)
{
    str_add(out, copy_words, sizeof(copy_words) - 1);
    if (target->dialect == CTEXT_CUDA)
        str_add(out, cuda_copy_words, sizeof(cuda_copy_words) - 1);
    str_add(out, copy_more_words, sizeof(copy_more_words) - 1);
    if (target->dialect == CTEXT_CUDA)
        str_addf(out, "#endif\n");
}

/* WIDE_MMA_n_m, as print_host_wide says. */
static void print_wide(uint32_t n, uint32_t m, struct str *out)
{
    const uint32_t registers = n / 2;

    str_addf(out, "#define WIDE_MMA_%u_%u(TYPE, turn_a, turn_b, f", n, m);
    for (uint32_t i = 0; i < m; i++)
        str_addf(out, ", a%u, b%u", i, i);
    str_addf(out, ") asm volatile(\"wgmma.fence.sync.aligned;\\n\" \\\n");
    for (uint32_t i = 0; i < m; i++) {
        str_addf(out,
                 "    \"wgmma.mma_async.sync.aligned.m64n%uk16.f32.\" WIDE_TYPE_##TYPE \".\" "
                 "WIDE_TYPE_##TYPE \" {",
                 n);
        for (uint32_t k = 0; k < registers; k++)
            str_addf(out, k ? ", %%%u" : "%%%u", k);
        str_addf(out, "}, %%%u, %%%u, 1, 1, 1, \" #turn_a \", \" #turn_b \";\\n\" \\\n",
                 registers + 2 * i, registers + 2 * i + 1);
    }
    str_addf(out, "    : ");
    for (uint32_t k = 0; k < registers; k++)
        str_addf(out, k ? ", \"+f\"(f[%u])" : "\"+f\"(f[%u])", k);
    str_addf(out, " \\\n    : ");
    for (uint32_t i = 0; i < m; i++)
        str_addf(out, i ? ", \"l\"(a%u), \"l\"(b%u)" : "\"l\"(a%u), \"l\"(b%u)", i, i);
    str_addf(out, " : \"memory\")\n");
}

static void print_fragments(const char *text, struct str *out)
{
    char name[32];

    str_add(out, cuda_fragment_words, sizeof(cuda_fragment_words) - 1);
    if (!strstr(text, "WIDE_")) {
        str_add(out, cuda_small_words, sizeof(cuda_small_words) - 1);
        return;
    }
    str_add(out, cuda_wide_words, sizeof(cuda_wide_words) - 1);
    for (uint32_t n = WIDE_STEP; n <= WIDE_MAX; n += WIDE_STEP)
        for (uint32_t m = 1; m <= WRITER_PRODUCTS; m++) {
            snprintf(name, sizeof(name), "WIDE_MMA_%u_%u(", n, m);
            if (strstr(text, name))
                print_wide(n, m, out);
        }
}

void words_print(const struct ctext_target *target, const char *text, struct str *out)
{
    str_add(out, types, sizeof(types) - 1);
    str_add(out, device_words, sizeof(device_words) - 1);
    if (target->dialect == CTEXT_CUDA) {
        str_add(out, cuda_words, sizeof(cuda_words) - 1);
    } else {
        str_add(out, hip_words, sizeof(hip_words) - 1);
        str_addf(out, "#define WARP %uu\n", target->warp);
        if (strstr(text, "SHUFFLE") || strstr(text, "FIRST"))
            str_add(out, hip_shuffles, sizeof(hip_shuffles) - 1);
    }
    print_functions(target, text, out);
    if (strstr(text, "COPY_"))
        print_copies(target, out);
    if (strstr(text, "FOR_TEAMS"))
        print_fragments(text, out);
    if (strstr(text, "MFOLD") || strstr(text, "MNARROW"))
        str_add(out, cuda_row_words, sizeof(cuda_row_words) - 1);
    str_addf(out, "%s", CTEXT_END_OF_WORDS);
}
