/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks as bytes: 32-bit words that say what was pushed, in order, with attributes in between.
 * Reading pushes it again, so that bytes of others can be wrong but do no harm. */
#include <string.h>

#include <frit/op_table.h>

#include "base/fail.h"
#include "lower/block.h"

enum { MAGIC = 0x4b4c4246, VERSION = 1, MAX_OPERANDS = 1 << 12 };

/* ---- writing ---- */

struct writer {
    char *bytes;
    uint64_t room, n;
};

static void put(struct writer *w, const void *bytes, uint64_t n)
{
    if (w->n < w->room)
        memcpy(w->bytes + w->n, bytes, n < w->room - w->n ? n : w->room - w->n);
    w->n += n;
}

static void put_word(struct writer *w, uint32_t word)
{
    put(w, &word, sizeof(word));
}

static void put_value(struct writer *w, const struct block *block, uint32_t value)
{
    put_word(w, value);
    put_word(w, block->values[value].rank);
    for (uint32_t d = 0; d < block->values[value].rank; d++)
        put_word(w, block->values[value].extent[d]);
}

static void put_op(struct writer *w, const struct block *block, uint32_t number)
{
    const struct block_op *op = &block->ops[number];
    const frit_op_info *info = frit_op_info_at(op->id);

    put_word(w, op->id);
    put_word(w, info->rev);
    put_word(w, op->n_extra);
    put_word(w, op->n_in);
    put_word(w, op->n_out);
    for (uint32_t i = 0; i < op->n_in; i++) {
        put_word(w, op->in[i].kind);
        put_word(w, op->in[i].dtype);
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            put_value(w, block, op->in[i].value);
    }
    for (uint32_t i = 0; i < op->n_out; i++) {
        bool there = op->out[i] != BLOCK_NONE;

        put_word(w, there ? FRIT_OPERAND_TENSOR : FRIT_OPERAND_ABSENT);
        put_word(w, there ? block->values[op->out[i]].dtype : 0);
        if (there)
            put_value(w, block, op->out[i]);
    }
    put(w, op->attrs, frit_record_info_at(info->record)->size);
    put_word(w, op->n_dead);
    for (uint32_t i = 0; i < op->n_dead; i++)
        put_word(w, op->dead[i]);
}

frit_status block_save(const struct block *block, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    struct writer w = {bytes, *n_bytes, 0};

    (void)err;
    put_word(&w, MAGIC);
    put_word(&w, VERSION);
    put_word(&w, block->n_ops);
    for (uint32_t i = 0; i < block->n_ops; i++)
        put_op(&w, block, i);
    *n_bytes = w.n;
    return FRIT_OK;
}

/* ---- reading ---- */

struct reader {
    const char *bytes;
    uint64_t left;
    struct arena arena; /* of one op's arrays */
    bool wrong;
    bool no_memory;
};

static const void *get(struct reader *r, uint64_t n)
{
    const void *at = r->bytes;

    if (r->wrong || n > r->left) {
        r->wrong = true;
        return NULL;
    }
    r->bytes += n;
    r->left -= n;
    return at;
}

static uint32_t get_word(struct reader *r)
{
    const void *at = get(r, sizeof(uint32_t));
    uint32_t word = 0;

    if (at)
        memcpy(&word, at, sizeof(word));
    return word;
}

/* A count of things of at least four bytes each. */
static uint32_t get_count(struct reader *r, uint32_t most)
{
    uint32_t count = get_word(r);

    if (count > most || (uint64_t)count * sizeof(uint32_t) > r->left)
        r->wrong = true;
    return r->wrong ? 0 : count;
}

static void *get_room(struct reader *r, uint32_t n, size_t item)
{
    void *room = arena_array(&r->arena, n + 1u, item);

    r->no_memory = r->no_memory || !room;
    r->wrong = r->wrong || !room;
    return room;
}

static frit_operand *get_operands(struct reader *r, uint32_t n)
{
    frit_operand *operands = get_room(r, n, sizeof(*operands));

    for (uint32_t i = 0; i < n && !r->wrong; i++) {
        operands[i].kind = get_word(r);
        operands[i].dtype = get_word(r);
        if (operands[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        operands[i].value = get_word(r);
        operands[i].rank = get_count(r, FRIT_MAX_RANK);
        for (uint32_t d = 0; d < operands[i].rank; d++)
            operands[i].extent[d] = get_word(r);
    }
    return operands;
}

/* The record is read into memory aligned as such, its size field checked by what is known. */
static void *get_attrs(struct reader *r, uint32_t record)
{
    uint32_t size = frit_record_info_at(record)->size;
    const void *at = get(r, size);
    uint64_t *attrs = get_room(r, size, 1);

    if (r->wrong)
        return NULL;
    memcpy(attrs, at, size);
    if (*attrs != size)
        r->wrong = true;
    return attrs;
}

static void get_op(struct reader *r, frit_op_desc *op)
{
    uint32_t *dead;

    *op = (frit_op_desc){.struct_size = sizeof(*op), .operand_stride = sizeof(frit_operand)};
    op->id = get_word(r);
    op->rev = get_word(r);
    op->n_extra = get_word(r);
    op->n_in = get_count(r, MAX_OPERANDS);
    op->n_out = get_count(r, MAX_OPERANDS);
    op->in = get_operands(r, op->n_in);
    op->out = get_operands(r, op->n_out);
    if (!frit_op_info_at(op->id) || op->n_extra > 2)
        r->wrong = true;
    if (r->wrong)
        return;
    op->attrs = get_attrs(r, frit_op_info_at(op->id)->record);
    op->n_dead = get_count(r, UINT32_MAX);
    dead = get_room(r, op->n_dead, sizeof(*dead));
    for (uint32_t i = 0; i < op->n_dead && !r->wrong; i++)
        dead[i] = get_word(r);
    op->dead = dead;
}

static frit_status load_ops(struct block *block, struct reader *r, uint32_t n, frit_err *err)
{
    for (uint32_t i = 0; i < n && !r->wrong; i++) {
        frit_op_desc op;
        frit_status status = FRIT_OK;

        get_op(r, &op);
        if (!r->wrong)
            status = block_push(block, &op, err);
        if (status == FRIT_UNSUPPORTED)
            return fail(err, FRIT_INCOMPATIBLE, "kernels: a saved block with op %u, rev %u", op.id,
                        op.rev);
        TRY(status);
        arena_reset(&r->arena);
    }
    if (r->no_memory)
        return fail_memory(err, r->left);
    if (r->wrong || r->left)
        return fail(err, FRIT_INCOMPATIBLE, "kernels: bytes that are no saved block");
    return block_close(block, n, err);
}

frit_status block_load(struct block *block, const void *bytes, uint64_t n_bytes, frit_err *err)
{
    struct reader r = {bytes, n_bytes, {0}, false, false};
    frit_status status;

    block_reset(block);
    if (get_word(&r) != MAGIC || get_word(&r) != VERSION)
        r.wrong = true;
    status = load_ops(block, &r, get_word(&r), err);
    arena_fini(&r.arena);
    if (status)
        block_reset(block);
    return status;
}
