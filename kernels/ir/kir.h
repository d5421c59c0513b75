/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel IR: what lowering makes and emitters read.
 *
 * A module is a list of phases, run one after the other over the whole device.  A phase is a grid
 * of groups of `lanes` lanes; its body is what one lane does, as a flat list of instructions with
 * one value each, numbered by their place (a value is used after it is made, in the same loop or if
 * or one inside; the number KIR_NONE is none).  `lanes` is a power of two and says nothing of
 * threads: an emitter gives each thread one or several neighbouring lanes, or makes vectors of
 * them.  A phase whose lanes share what is the same in each so many of them says so (`per_thread`).
 *
 * Loops: `for`, then its phis, the body, `next`.  The operands of `for` (begin, end: I32 or I64,
 * uniform; the counter has their type; the step is the immediate, > 0) and of `next` (one per phi,
 * in their order) stand in the module's list of links.  The counter plus the step never goes beyond
 * its type.  A phi used after the loop has its last value: the one it would have had in another
 * round.
 *
 * What the launch gives: `params`, 64-bit words that prepare and the launch computed, and
 * arguments: tensors by address, of element 0.  Workspace is one more argument.  A launch over
 * several spaces gives each space parameters and arguments of its own, and some of the groups: the
 * grid is a line of groups, those of the first space, then those of the next, and `group 0` is a
 * group's number in its space.  Spaces write nothing that another one touches.
 *
 * Fragments are matrices: a team, `team` neighbouring lanes of a group, holds one together.  They
 * are not values but variables, which instructions name; a loop changes them as it changes memory.
 * Which lane has which element is not said.  A target lists the shapes that it multiplies, and how
 * many threads a team has: each of them gets as many of its lanes.
 *
 * Types: B one bit; I32, I64, F32, F64.  Smaller ones exist in memory only.  The text form is in
 * text.h, the rules that every module keeps in verify.h.  Not thread-safe; a finished module is
 * read by any thread. */
#ifndef KIR_H
#define KIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>
#include <frit/types.h>

#include "base/arena.h"

#define KIR_NONE UINT32_MAX

enum { KIR_PHASES = 8 }; /* most of a module */

enum kir_type { KIR_VOID, KIR_B, KIR_I32, KIR_I64, KIR_F32, KIR_F64, KIR_TYPES };

enum kir_op {
#define KIR_OP(name, TYPE, operands, imm, meaning) KIR_##name,
#include "ir/kir.def"
#undef KIR_OP
    KIR_OPS
};

enum kir_result { KIR_RESULT_NONE, KIR_RESULT_SAME, KIR_RESULT_FREE, KIR_RESULT_TYPE };
enum kir_imm {
    KIR_IMM_NONE,
    KIR_IMM_BITS,
    KIR_IMM_NUMBER,
    KIR_IMM_DIM,
    KIR_IMM_NARROW,
    KIR_IMM_ARG,
    KIR_IMM_TILE,
    KIR_IMM_LANES,
    KIR_IMM_LOOP,
    KIR_IMM_FRAGMENT, /* a number */
    KIR_IMM_PLACE,    /* struct kir_fragment_place */
    KIR_IMM_PAIR,     /* two: kir_pair */
    KIR_IMM_PRODUCT,  /* three fragments: kir_product */
    KIR_IMM_COPY      /* struct kir_copy */
};

struct kir_op_info {
    const char *name;
    const char *operands;
    const char *meaning;
    enum kir_result result;
    enum kir_type type; /* RESULT_TYPE */
    enum kir_imm imm;
    uint32_t n; /* operands */
};

struct kir_inst {
    uint16_t op;   /* enum kir_op */
    uint8_t type;  /* enum kir_type of the value */
    uint8_t level; /* of loops and ifs around it; set by the builder */
    uint32_t a[3]; /* operands; for, next: a[0] the first link, a[1] their count */
    uint32_t pair; /* for, if: its next, end; next, end: its for, if */
    uint64_t imm;
};

enum kir_space { KIR_LANE, KIR_GROUP }; /* whose tile it is */

struct kir_tile {
    uint32_t space; /* enum kir_space */
    uint32_t type;  /* enum kir_type of values, not B */
    uint32_t count; /* elements */
    uint32_t dtype; /* of elements in memory: of the type's width, or of the group a float of 16
                       bits, which is converted as by load and store */
};

/* What a fragment is in a product of matrices. */
enum kir_use { KIR_LEFT, KIR_RIGHT, KIR_SUM };

/* A matrix that a team of lanes holds together: a variable of the phase, with any elements at its
 * begin. */
struct kir_fragment {
    uint32_t use;   /* enum kir_use */
    uint32_t dtype; /* of elements in memory; of a KIR_SUM that of sums: F32, F64 or I32 */
    uint32_t rows, columns;
};

enum { KIR_MAX_SIDE = 256 }; /* rows, columns of a fragment */

/* Where mload and mstore find elements, and those of which fragment. */
struct kir_fragment_place {
    uint32_t fragment;
    bool is_tile; /* of the group; else an argument */
    uint32_t place;
    bool by_columns;
    bool in_blocks; /* of mload from a tile */
};

/* Of 128 bytes.  What lies in blocks is swizzled: where it is said to be at p it is at
 * kir_swizzled(p), so that neither a line nor 8 lines of a few elements lie in the same banks. */
enum { KIR_BLOCK = 64 };

static inline int64_t kir_swizzled(int64_t at)
{
    return at ^ (at / KIR_BLOCK % 8 * 8);
}

/* From where to where tcopy copies. */
struct kir_copy {
    uint32_t tile, arg;
};

enum { KIR_READ = 1, KIR_WRITE = 2 };

struct kir_arg {
    uint32_t dtype;  /* FRIT_* */
    uint32_t access; /* KIR_READ, KIR_WRITE */
};

struct kir_phase {
    uint32_t lanes;
    uint32_t n, capacity;
    struct kir_inst *inst;
    uint32_t n_tiles, tiles_capacity;
    struct kir_tile *tiles;
    uint32_t
        per_thread; /* neighbouring lanes that a thread runs, where lanes are threads; 0: any */
    uint32_t team;  /* lanes that hold a fragment together, a power of two; 0: there are none */
    uint32_t n_fragments, fragments_capacity;
    struct kir_fragment *fragments;
};

struct kir_module {
    struct arena arena;
    const char *name; /* of the kernel, for people */
    uint32_t n_args, n_params, n_phases, n_links;
    uint32_t args_capacity, phases_capacity, links_capacity;
    struct kir_arg *args;
    struct kir_phase *phases;
    uint32_t *links;
    bool wide;   /* element offsets are I64, else I32 */
    bool spaces; /* a launch runs it over several spaces, as below */
    bool failed; /* there was no memory: what was built since is nothing */
};

const struct kir_op_info *kir_op_info(uint32_t op);

/* Whether it begins, or ends, what stands one level deeper. */
static inline bool kir_opens(uint32_t op)
{
    return op == KIR_for || op == KIR_if || op == KIR_each;
}

static inline bool kir_closes(uint32_t op)
{
    return op == KIR_next || op == KIR_end || op == KIR_done;
}

const char *kir_type_name(uint32_t type);
/* Of a value loaded from memory of this dtype; KIR_VOID: there is none. */
enum kir_type kir_type_of(uint32_t dtype);
/* A float of 16 bits: computed as F32 and rounded where it is stored. */
bool kir_is_16_bit_float(uint32_t dtype);

void kir_init(struct kir_module *module, const char *name);
void kir_fini(struct kir_module *module);

/* ---- building; what is appended goes to the last phase.  If out of memory, `failed` is set, every
 * call is harmless and gives KIR_NONE or 0. ---- */

uint32_t kir_arg(struct kir_module *module, uint32_t dtype, uint32_t access);
void kir_phase(struct kir_module *module, uint32_t lanes);
uint32_t kir_tile(struct kir_module *module, enum kir_space space, enum kir_type type,
                  uint32_t count);
/* With elements of a dtype, see struct kir_tile. */
uint32_t kir_tile_of(struct kir_module *module, enum kir_space space, uint32_t dtype,
                     uint32_t count);
/* Of an element of a tile in memory. */
uint32_t kir_tile_bytes(const struct kir_tile *tile);

/* Declares a fragment of the last phase; returns its number. */
uint32_t kir_fragment(struct kir_module *module, const struct kir_fragment *fragment);
/* FRIT_UNSUPPORTED if a phase has fragments or copies: for emitters that know none. */
frit_status kir_refuse_fragments(const struct kir_module *module, frit_err *err);
/* Where the element of a row and a column is, from the operands of mload and mstore. */
int64_t kir_fragment_at(const struct kir_fragment_place *place, int64_t row, int64_t column,
                        int64_t first, int64_t stride);
/* Immediates of mload and mstore, and of mma: sum += left * right. */
uint64_t kir_fragment_imm(const struct kir_fragment_place *place);
struct kir_fragment_place kir_fragment_place_of(uint64_t imm);
/* Of tcopy. */
uint64_t kir_copy_imm(const struct kir_copy *copy);
struct kir_copy kir_copy_of(uint64_t imm);
uint64_t kir_product(uint32_t sum, uint32_t left, uint32_t right);
/* Immediates of what makes the first of the second. */
static inline uint64_t kir_pair(uint32_t to, uint32_t from)
{
    return to | (uint64_t)from << 16;
}

/* Number `i` of those of mma: sum, left, right. */
static inline uint32_t kir_factor(uint64_t imm, uint32_t i)
{
    return imm >> 16 * i & 0xffff;
}

/* An instruction with up to three operands (KIR_NONE where there are fewer).  The type is that of
 * the row; FREE rows have their own calls. */
uint32_t kir_emit(struct kir_module *module, enum kir_op op, uint32_t a, uint32_t b, uint32_t c);
uint32_t kir_emit_imm(struct kir_module *module, enum kir_op op, uint64_t imm, uint32_t a,
                      uint32_t b, uint32_t c);
/* A FREE row. */
uint32_t kir_emit_as(struct kir_module *module, enum kir_op op, enum kir_type type, uint64_t imm,
                     uint32_t a, uint32_t b, uint32_t c);

uint32_t kir_const_i(struct kir_module *module, enum kir_type type, int64_t value);
uint32_t kir_const_f(struct kir_module *module, enum kir_type type, double value); /* rounded */
uint32_t kir_const_b(struct kir_module *module, bool value);

static inline uint32_t kir_unary(struct kir_module *module, enum kir_op op, uint32_t a)
{
    return kir_emit(module, op, a, KIR_NONE, KIR_NONE);
}

static inline uint32_t kir_binary(struct kir_module *module, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(module, op, a, b, KIR_NONE);
}

static inline uint32_t kir_select(struct kir_module *module, uint32_t condition, uint32_t a,
                                  uint32_t b)
{
    return kir_emit(module, KIR_select, a, b, condition);
}

/* The type of element offsets. */
static inline enum kir_type kir_index_type(const struct kir_module *module)
{
    return module->wide ? KIR_I64 : KIR_I32;
}

static inline uint32_t kir_index(struct kir_module *module, int64_t value)
{
    return kir_const_i(module, kir_index_type(module), value);
}

/* A new parameter word; its number is n_params before. */
uint32_t kir_param(struct kir_module *module, enum kir_type type);

/* A loop: kir_for gives the counter, kir_phi right after it each carried value with its first one,
 * kir_next ends it with the next ones, in order. */
uint32_t kir_for(struct kir_module *module, uint32_t begin, uint32_t end, uint32_t step);
uint32_t kir_phi(struct kir_module *module, uint32_t first);
void kir_next(struct kir_module *module, const uint32_t *values, uint32_t n);
void kir_if(struct kir_module *module, uint32_t condition);
void kir_end(struct kir_module *module);
/* Begins what is done for each element of an accumulator, and returns that; kir_done ends it. */
uint32_t kir_each(struct kir_module *module, uint32_t fragment);
void kir_done(struct kir_module *module, uint32_t value);

enum kir_type kir_type_at(const struct kir_module *module, uint32_t value); /* last phase */
/* Whether a value of the last phase is a constant, and its bits. */
bool kir_is_const(const struct kir_module *module, uint32_t value, uint64_t *bits);

#endif
