/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this plugin share: a block of relative ops, and the program made of it.
 *
 * A block is what a fuser has been shown so far.  Its ops name values by their place in the block's
 * own list, and extents by their bit in `extents`, so that a check over a prefix is a few words of
 * arithmetic.  Threads: a block belongs to one fuser or is part of a program, where it is constant.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdbool.h>

#include <frit/fuser.h>

#include "rows.h"

#define BLOCKS_VERSION "1.0.0"

enum { BLOCK_OPS = 64, BLOCK_OUTPUTS = 16, BLOCK_EXTENTS = 64, BLOCK_NONE = 0xffff };

/* One per host. */
struct instance {
    const frit_host_root *host;
    const frit_host_core *core;
};

/* The first two run as host functions, the others as shaders and as PTX. */
enum fuser_kind { FUSER_MAP, FUSER_ROW, FUSER_CHAIN, FUSER_CHAIN_PTX, FUSER_KINDS };

static inline bool is_chain(enum fuser_kind kind)
{
    return kind == FUSER_CHAIN || kind == FUSER_CHAIN_PTX;
}

struct block_value {
    uint32_t number; /* the host's */
    uint32_t dtype;
    uint32_t rank;
    uint8_t extent[FRIT_MAX_RANK]; /* 0, 1, or 2 + place in block.extents */
    uint64_t extents;              /* those above 1, as bits of block.extents */
    uint16_t maker;                /* op, BLOCK_NONE: comes from outside */
    uint16_t first;                /* op that uses or makes it first */
    uint16_t dies;                 /* op it dies with, BLOCK_NONE: it is seen later */
};

struct block_op {
    const struct row *row;
    uint32_t rev;
    uint32_t n_in;
    uint16_t in[ROW_OPERANDS]; /* values; BLOCK_NONE: a scalar */
    uint16_t out;
    uint32_t in_dtype[ROW_OPERANDS]; /* that operands are used as */
    union row_attrs attrs;
};

struct block {
    uint32_t n_ops, n_values, n_extents;
    uint32_t accepted; /* the longest prefix that a program can cover */
    bool closed;
    uint32_t extents[BLOCK_EXTENTS];                                 /* the host's numbers */
    struct block_value values[BLOCK_OPS * ROW_OPERANDS + BLOCK_OPS]; /* n_values are meant */
    struct block_op ops[BLOCK_OPS];
};

/* Takes an op, or closes the block. */
void block_push(struct block *block, enum fuser_kind kind, const frit_op_desc *op);
/* Cuts the block down to what it accepts. */
void block_trim(struct block *block);
void block_copy(struct block *to, const struct block *from);

/* The arguments of a program over the whole block, as fuser.h orders them: values from outside by
 * first use, then those made and seen later.  Returns how many; `n_in` of them are inputs. */
uint32_t block_args(const struct block *block, uint16_t *args, uint32_t *n_in);
enum { BLOCK_ARGS = BLOCK_OPS * ROW_OPERANDS + BLOCK_OPS };

/* Whether every operand of the op is a tensor of f32 with the result's dims, and the row one that
 * chain_words knows. */
bool chain_takes(const frit_op_desc *op);

/* What is saved of a program: enough to recognise its block. */
struct state {
    uint32_t magic;
    uint32_t kind;
    uint64_t n_ops;
    uint64_t digest; /* of the ops */
};
struct state state_of(const struct block *block, enum fuser_kind kind);

struct program {
    const struct instance *instance;
    enum fuser_kind kind;
    /* Of the device; see frit_fuser_device. */
    void *device;
    void (*kernel_unload)(void *self, frit_kernel *kernel);
    void *(*native_get)(void *self, void *object, frit_str name);
    frit_kernel *kernel;
    uint32_t n_args, n_in;
    uint16_t args[BLOCK_ARGS]; /* values */
    frit_candidate candidate;
    struct block block;
};

frit_str fuser_name(enum fuser_kind kind);

extern const frit_program_table program_table;
/* The block is copied. */
frit_status program_create(const struct instance *instance, const frit_fuser_device *device,
                           enum fuser_kind kind, const struct block *block, frit_program *out,
                           frit_err *err);

/* Extents above 1 by their bit, from the dims of the arguments. */
void machine_extents(const struct program *program, const void *dims_of_first, uint32_t stride,
                     int64_t *extents);
/* Bytes that the values which die inside need together. */
uint64_t machine_workspace(const struct program *program, const int64_t *extents);
/* The host function. */
frit_status machine_run(void *program, const frit_launch *launch, frit_err *err);

/* chain.c: a block that a chain took, as a module of FRIT_FORMAT_SPIRV: CHAIN_LANES lanes of a
 * group, an element each; spec.driver[0] is the number of elements.  Returns how many of the words
 * are used. */
enum { CHAIN_LANES = 64, CHAIN_ARGS = 32, CHAIN_WORDS = 4096 };
uint32_t chain_words(const struct program *program, uint32_t words[CHAIN_WORDS]);
/* chain_ptx.c: the same as text of FRIT_FORMAT_PTX; returns its length. */
enum { CHAIN_PTX_BYTES = 16384 };
uint32_t chain_ptx(const struct program *program, char bytes[CHAIN_PTX_BYTES]);

extern const frit_fuser_table fuser_table;

/* Writes the caller's slot and returns `status`. */
frit_status blocks_fail(const struct instance *instance, frit_err *err, frit_status status,
                        const char *text);

#endif
