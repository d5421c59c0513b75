/* SPDX-License-Identifier: Apache-2.0 */
/* Argument blocks: what a kernel of the kernel compiler reads at a launch.  For each space of the
 * kernel a block has 64-bit words: the device addresses of the arguments, then the parameters.  If
 * a grid covers several spaces two tables of 32-bit entries follow, by which a workgroup finds its
 * space (kernels/emit/spirv/spirv.h).  Threads: any. */
#ifndef GPU_ARG_BLOCK_H
#define GPU_ARG_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/program.h>

enum {
    ARG_ALIGN = 16,         /* bytes, of an address that wide accesses need */
    ARG_BLOCK_REFERENCE = 4 /* words, see arg_block_refer */
};

struct kernels_launch;
struct kernels_product_launch;

/* Words of a product: addresses of its operands and of the library's workspace; 0: there is none.
 */
enum product_word {
    PRODUCT_A,
    PRODUCT_B,
    PRODUCT_C,
    PRODUCT_BIAS,
    PRODUCT_WORKSPACE,
    PRODUCT_WORDS
};

struct arg_block {
    uint32_t n_words; /* of all spaces */
    uint32_t shift;   /* one entry of the second table is for 2^shift workgroups */
    uint32_t n_first; /* entries of the first table: first workgroup of each space, and the end */
    uint32_t n_table; /* entries of the second table: space of each 2^shift workgroups */
    uint64_t bytes;
};

struct arg_block arg_block_layout(const struct kernels_launch *kernel);
/* Writes the whole block to `to`, which is aligned to 8 bytes.  Returns whether the address of
 * every argument is a multiple of ARG_ALIGN. */
bool arg_block_write(const struct arg_block *block, const struct kernels_launch *kernel,
                     const frit_launch *launch, void *to);
/* Writes the parameters of each space, and leaves the addresses as they are. */
void arg_block_write_params(const struct kernels_launch *kernel, uint64_t *words);
/* Writes the words by which a kernel finds its block at `address`: the address, and for a kernel
 * over several spaces also the addresses of the tables and the shift.  Returns their number, at
 * most ARG_BLOCK_REFERENCE. */
uint32_t arg_block_refer(const struct arg_block *block, const struct kernels_launch *kernel,
                         uint64_t address, uint64_t *words);

/* The place of an operand; NULL: the product has none. */
const struct kernels_place *arg_block_product_place(const struct kernels_product_launch *product,
                                                    enum product_word word);
void arg_block_write_product(const struct kernels_product_launch *product,
                             const frit_launch *launch, uint64_t words[PRODUCT_WORDS]);

#endif
