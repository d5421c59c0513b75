/* SPDX-License-Identifier: Apache-2.0 */
/* What is saved of a program.  There is nothing to decide about a block, and whoever restores it
 * has its ops: all that bytes have to say is that they are of these. */
#include "blocks.h"

enum { STATE_MAGIC = 0x324b4c42 }; /* "BLK2" */

/* FNV-1a. */
static void add(uint64_t *digest, const void *bytes, uint64_t n)
{
    const unsigned char *from = bytes;

    for (uint64_t i = 0; i < n; i++)
        *digest = (*digest ^ from[i]) * 0x100000001b3u;
}

static void add_word(uint64_t *digest, uint32_t word)
{
    add(digest, &word, sizeof(word));
}

/* Values and extents by the block's own numbers, since the host's may be others the next time. */
static void add_value(uint64_t *digest, const struct block *block, uint16_t index)
{
    const struct block_value *value = &block->values[index];

    add_word(digest, index);
    add_word(digest, value->dtype);
    add_word(digest, value->rank);
    add_word(digest, value->dies);
    add(digest, value->extent, value->rank);
}

struct state state_of(const struct block *block, enum fuser_kind kind)
{
    struct state state = {
        .magic = STATE_MAGIC, .kind = kind, .n_ops = block->n_ops, .digest = 0xcbf29ce484222325u};

    for (uint32_t k = 0; k < block->n_ops; k++) {
        const struct block_op *op = &block->ops[k];

        add_word(&state.digest, op->row->op);
        add_word(&state.digest, op->rev);
        for (uint32_t i = 0; i < op->n_in; i++) {
            add_word(&state.digest, op->in_dtype[i]);
            if (op->in[i] != BLOCK_NONE)
                add_value(&state.digest, block, op->in[i]);
        }
        add_value(&state.digest, block, op->out);
        add(&state.digest, &op->attrs, op->row->attrs_size);
    }
    return state;
}
