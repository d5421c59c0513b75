/* SPDX-License-Identifier: Apache-2.0 */
/* A block as bytes: a head, then the ops as 32-bit words with the host's numbers of values and
 * extents, their attribute records between them.  Read back by pushing the ops again, so that bytes
 * can do no more than a host can. */
#include <string.h>

#include "blocks.h"

enum { STATE_MAGIC = 0x314b4c42, STATE_DEAD = 8 }; /* "BLK1" */

/* ---- writing ---- */

struct writer {
    char *to;
    uint64_t room, n; /* n may pass room: what would be there */
};

static void put(struct writer *w, const void *bytes, uint64_t n)
{
    if (w->n <= w->room && n <= w->room - w->n)
        memcpy(w->to + w->n, bytes, n);
    w->n += n;
}

static void put_word(struct writer *w, uint32_t word)
{
    put(w, &word, sizeof(word));
}

static void put_value(struct writer *w, const struct block *block, uint16_t index)
{
    const struct block_value *value = &block->values[index];

    put_word(w, value->number);
    put_word(w, value->rank);
    for (uint32_t d = 0; d < value->rank; d++)
        put_word(w, value->extent[d] < 2 ? value->extent[d] : block->extents[value->extent[d] - 2]);
}

static void put_dead(struct writer *w, const struct block *block, uint32_t op)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < block->n_values; i++)
        n += block->values[i].dies == op;
    put_word(w, n);
    for (uint32_t i = 0; i < block->n_values; i++)
        if (block->values[i].dies == op)
            put_word(w, block->values[i].number);
}

uint64_t state_write(const struct block *block, enum fuser_kind kind, void *bytes, uint64_t room)
{
    struct writer w = {bytes, room, 0};

    put_word(&w, STATE_MAGIC);
    put_word(&w, (uint32_t)kind);
    put_word(&w, block->n_ops);
    for (uint32_t k = 0; k < block->n_ops; k++) {
        const struct block_op *op = &block->ops[k];

        put_word(&w, op->row->op);
        put_word(&w, op->rev);
        put_word(&w, op->n_in);
        for (uint32_t i = 0; i < op->n_in; i++) {
            put_word(&w, op->in[i] == BLOCK_NONE ? FRIT_OPERAND_SCALAR : FRIT_OPERAND_TENSOR);
            put_word(&w, op->in_dtype[i]);
            if (op->in[i] != BLOCK_NONE)
                put_value(&w, block, op->in[i]);
        }
        put_word(&w, block->values[op->out].dtype);
        put_value(&w, block, op->out);
        put(&w, &op->attrs, op->row->attrs_size);
        put_dead(&w, block, k);
    }
    return w.n;
}

/* ---- reading ---- */

struct reader {
    const char *from;
    uint64_t left;
    bool failed;
};

static void get(struct reader *r, void *out, uint64_t n)
{
    memset(out, 0, n);
    if (r->failed || n > r->left) {
        r->failed = true;
        return;
    }
    memcpy(out, r->from, n);
    r->from += n;
    r->left -= n;
}

static uint32_t get_word(struct reader *r)
{
    uint32_t word;

    get(r, &word, sizeof(word));
    return word;
}

static void get_value(struct reader *r, frit_operand *operand)
{
    operand->value = get_word(r);
    operand->rank = get_word(r);
    if (operand->rank > FRIT_MAX_RANK) {
        operand->rank = 0;
        r->failed = true;
    }
    for (uint32_t d = 0; d < operand->rank; d++)
        operand->extent[d] = get_word(r);
}

/* One op; false where the bytes are none, or the block does not take it. */
static bool read_op(struct reader *r, struct block *block, enum fuser_kind kind)
{
    frit_operand in[ROW_OPERANDS] = {{0}}, out = {.kind = FRIT_OPERAND_TENSOR};
    uint32_t dead[STATE_DEAD];
    union row_attrs attrs = {0};
    frit_op_desc op = {.struct_size = sizeof(op),
                       .id = get_word(r),
                       .n_out = 1,
                       .operand_stride = sizeof(frit_operand),
                       .in = in,
                       .out = &out,
                       .attrs = &attrs,
                       .dead = dead};
    const struct row *row = row_of(op.id);

    op.rev = get_word(r);
    op.n_in = get_word(r);
    if (r->failed || !row || op.n_in != row->n_in)
        return false;
    for (uint32_t i = 0; i < op.n_in; i++) {
        in[i].kind = get_word(r);
        in[i].dtype = get_word(r);
        if (in[i].kind == FRIT_OPERAND_TENSOR)
            get_value(r, &in[i]);
    }
    out.dtype = get_word(r);
    get_value(r, &out);
    get(r, &attrs, row->attrs_size);
    op.n_dead = get_word(r);
    if (r->failed || op.n_dead > STATE_DEAD || attrs.struct_size != row->attrs_size)
        return false;
    for (uint32_t i = 0; i < op.n_dead; i++)
        dead[i] = get_word(r);
    if (!r->failed)
        block_push(block, kind, &op);
    return !r->failed && !block->closed;
}

bool state_read(struct block *block, enum fuser_kind kind, const void *bytes, uint64_t n_bytes)
{
    struct reader r = {bytes, n_bytes, false};
    uint32_t n_ops;

    if (get_word(&r) != STATE_MAGIC || get_word(&r) != (uint32_t)kind)
        return false;
    n_ops = get_word(&r);
    if (r.failed || n_ops < 1 || n_ops > BLOCK_OPS)
        return false;
    for (uint32_t k = 0; k < n_ops; k++)
        if (!read_op(&r, block, kind))
            return false;
    return r.left == 0 && block->accepted == n_ops;
}
