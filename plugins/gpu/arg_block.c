/* SPDX-License-Identifier: Apache-2.0 */
/* Layout and contents of argument blocks. */
#include "gpu/arg_block.h"

#include <string.h>

#include "gpu/command.h"
#include "gpu/memory.h"
#include "kernels.h"

enum { MAX_TABLE_ENTRIES = 1 << 14 /* of the second table, which each launch writes anew */ };

struct arg_block arg_block_layout(const struct kernels_launch *kernel)
{
    uint32_t groups = kernel->first ? kernel->first[kernel->n_spaces] : 0;
    struct arg_block b = {.n_first = kernel->first ? kernel->n_spaces + 1 : 0};

    b.n_words = kernel->n_spaces * (kernel->n_args + kernel->n_words);
    while (groups >> b.shift > MAX_TABLE_ENTRIES)
        b.shift++;
    b.n_table = (groups + (1u << b.shift) - 1) >> b.shift;
    b.bytes = b.n_words * sizeof(uint64_t) + (b.n_first + b.n_table) * sizeof(uint32_t);
    return b;
}

/* Device address of element 0 of an argument, or of the workspace; 0 for an argument without
 * memory: it is absent or has no elements. */
static uint64_t address_of(const frit_launch *launch, uint32_t number)
{
    const frit_memory *buffer = launch->workspace;
    const frit_arg *arg;

    if (number == KERNELS_WORKSPACE)
        return buffer->address + launch->workspace_offset;
    arg = frit_arg_at(launch, number);
    buffer = arg->memory;
    return buffer ? buffer->address + arg->offset + arg->origin : 0;
}

/* Returns whether all addresses are multiples of ARG_ALIGN. */
static bool write_addresses(const struct kernels_launch *kernel, const frit_launch *launch,
                            uint64_t *words)
{
    const uint32_t *args = kernel->args;
    uint64_t bits = 0;

    for (uint32_t space = 0; space < kernel->n_spaces; space++) {
        for (uint32_t i = 0; i < kernel->n_args; i++) {
            words[i] = address_of(launch, args[i]);
            bits |= words[i];
        }
        words += kernel->n_args + kernel->n_words;
        args += kernel->n_args;
    }
    return bits % ARG_ALIGN == 0;
}

void arg_block_write_params(const struct kernels_launch *kernel, uint64_t *words)
{
    const uint64_t *params = kernel->words;

    for (uint32_t space = 0; space < kernel->n_spaces; space++) {
        memcpy(words + kernel->n_args, params, kernel->n_words * sizeof *words);
        words += kernel->n_args + kernel->n_words;
        params += kernel->n_words;
    }
}

static void write_tables(const struct kernels_launch *kernel, const struct arg_block *b,
                         uint32_t *to)
{
    uint32_t *table = to + b->n_first;
    uint32_t space = 0;

    memcpy(to, kernel->first, b->n_first * sizeof *to);
    for (uint32_t i = 0; i < b->n_table; i++) {
        while (kernel->first[space + 1] <= i << b->shift)
            space++;
        table[i] = space;
    }
}

bool arg_block_write(const struct arg_block *block, const struct kernels_launch *kernel,
                     const frit_launch *launch, void *to)
{
    uint64_t *words = to;

    if (kernel->first)
        write_tables(kernel, block, (uint32_t *)(void *)(words + block->n_words));
    arg_block_write_params(kernel, words);
    return write_addresses(kernel, launch, words);
}

uint32_t arg_block_refer(const struct arg_block *block, const struct kernels_launch *kernel,
                         uint64_t address, uint64_t *words)
{
    const uint64_t tables = address + block->n_words * sizeof(uint64_t);

    words[0] = address;
    if (!kernel->first)
        return 1;
    words[1] = tables;
    words[2] = tables + block->n_first * sizeof(uint32_t);
    words[3] = block->shift;
    return ARG_BLOCK_REFERENCE;
}

/* ---- products ---- */

const struct kernels_place *arg_block_product_place(const struct kernels_product_launch *product,
                                                    enum product_word word)
{
    const struct kernels_place *const places[PRODUCT_WORDS] = {
        [PRODUCT_A] = &product->a,
        [PRODUCT_B] = &product->b,
        [PRODUCT_C] = &product->c,
        [PRODUCT_BIAS] = product->product.has_bias ? &product->bias : NULL,
        [PRODUCT_WORKSPACE] = product->workspace_bytes ? &product->workspace : NULL,
    };

    return places[word];
}

void arg_block_write_product(const struct kernels_product_launch *product,
                             const frit_launch *launch, uint64_t words[PRODUCT_WORDS])
{
    for (uint32_t i = 0; i < PRODUCT_WORDS; i++) {
        const struct kernels_place *place = arg_block_product_place(product, (enum product_word)i);

        words[i] = place ? address_of(launch, place->arg) + place->first : 0;
    }
}
