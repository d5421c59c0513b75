/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "kit/state.h"

#include <stddef.h>
#include <string.h>

/* As it lies in the bytes; the ops follow, as they lie in a block.  `seal` is of the ops: with a
 * fault in them they may be others that run too. */
struct head {
    uint32_t magic, version, op_bytes, n_ops;
    uint64_t seal;
};

enum { STATE_MAGIC = 0x3254494b }; /* "KIT2" */

/* FNV-1a of Fowler, Noll and Vo, 64 bits. */
static uint64_t seal_of(const void *bytes, uint64_t n_bytes)
{
    const unsigned char *at = bytes;
    uint64_t hash = 0xcbf29ce484222325;

    for (uint64_t i = 0; i < n_bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3;
    return hash;
}

void state_push(const struct kit_driver *driver, const struct kit_fuser *fuser,
                struct kit_block *block, const frit_op_desc *op)
{
    if (!kit_row_of(driver, op) || (fuser->accepts && !fuser->accepts(block, op)))
        block->closed = 1;
    else
        (void)block_push(block, op);
}

uint64_t state_write(const struct kit_block *block, uint32_t version, void *bytes, uint64_t room)
{
    const uint64_t n_ops = block->n_ops * sizeof(struct kit_op),
                   n_bytes = sizeof(struct head) + n_ops;
    const struct head head = {STATE_MAGIC, version, sizeof(struct kit_op), block->n_ops,
                              seal_of(block->ops, n_ops)};

    if (room < n_bytes)
        return n_bytes;
    memcpy(bytes, &head, sizeof head);
    memcpy((char *)bytes + sizeof head, block->ops, n_ops);
    return n_bytes;
}

/* What a host never says, and rows rely on. */
static bool is_sound(const struct kit_op *op)
{
    if (op->n_in > KIT_IN || op->n_out > KIT_OUT)
        return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind > FRIT_OPERAND_SCALAR || op->in[i].rank > FRIT_MAX_RANK)
            return false;
    for (uint32_t k = 0; k < op->n_out; k++)
        if (op->out[k].kind > FRIT_OPERAND_SCALAR || op->out[k].rank > FRIT_MAX_RANK)
            return false;
    return true;
}

bool state_read(const struct kit_driver *driver, const struct kit_fuser *fuser, const void *bytes,
                uint64_t n_bytes, struct kit_block *block)
{
    const char *at = bytes;
    struct head head;

    memset(block, 0, offsetof(struct kit_block, values));
    if (n_bytes < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.magic != STATE_MAGIC || head.version != fuser->version ||
        head.op_bytes != sizeof(struct kit_op) || head.n_ops < 1 ||
        n_bytes != sizeof head + head.n_ops * sizeof(struct kit_op) ||
        head.seal != seal_of(at + sizeof head, n_bytes - sizeof head))
        return false;
    for (uint32_t k = 0; k < head.n_ops; k++) {
        struct kit_op told;
        frit_op_desc op;

        memcpy(&told, at + sizeof head + k * sizeof told, sizeof told);
        if (!is_sound(&told))
            return false;
        op = block_op(&told);
        state_push(driver, fuser, block, &op);
    }
    if (block->closed || block->accepted != head.n_ops)
        return false;
    block_bind(block);
    return true;
}
