/* SPDX-License-Identifier: Apache-2.0 */
/* What a host of a later minor passes: arrays whose elements have fields after those that a driver
 * of today knows; and what `supports` says of several ops at once. */
#include <string.h>

#include "conform/fuser.h"
#include "conform/launch.h"

/* ---- supports and op_program ---- */

enum { MOST_OPS = 130 };

struct wide_operand {
    frit_operand operand;
    uint64_t more[2];
};

/* An op whose operands lie apart. */
struct wide_op {
    frit_op_desc desc;
    struct wide_operand in[2], out;
    struct block_link link; /* holds what else the op points to */
};

static void widen(const struct block *block, uint32_t index, struct wide_op *out)
{
    memset(out, 0xff, sizeof(*out));
    block_link(block, index, &out->link);
    out->desc = out->link.desc;
    for (uint32_t k = 0; k < out->desc.n_in; k++)
        out->in[k].operand = out->link.in[k];
    out->out.operand = out->link.out;
    out->desc.n_dead = 0;
    out->desc.operand_stride = sizeof(out->in[0]);
    out->desc.attrs = out->link.attrs;
    out->desc.in = &out->in[0].operand;
    out->desc.out = &out->out.operand;
    out->desc.dead = out->link.dead;
}

/* All ops of all blocks, and one of nobody after those of each, as often as there is room. */
static uint32_t list_ops(struct wide_op ops[MOST_OPS])
{
    uint32_t n = 0;

    while (n < MOST_OPS)
        for (size_t i = 0; block_at(i) && n < MOST_OPS; i++)
            for (uint32_t k = 0; k <= block_at(i)->n_ops && n < MOST_OPS; k++)
                widen(block_at(i), k, &ops[n++]);
    return n;
}

/* The same op as a host of today describes it. */
static frit_status is_supported(struct bare *bare, const struct wide_op *op, bool *out)
{
    frit_operand in[2];
    frit_op_desc desc = op->desc;
    uint64_t bits = 0;
    frit_status status;

    for (uint32_t k = 0; k < desc.n_in; k++)
        in[k] = op->in[k].operand;
    desc.operand_stride = sizeof(in[0]);
    desc.in = in;
    status = bare->backend->supports(bare->device, &desc, 1, sizeof(desc), &bits, &bare->err);
    *out = bits & 1;
    return status ? bare_fail(bare, "supports", status) : FRIT_OK;
}

/* Of an op that the driver supports there is a program, of another there is none. */
static frit_status check_program(struct bare *bare, const struct wide_op *op, bool supported)
{
    frit_program program = {.struct_size = sizeof(program)};
    frit_status status;

    bare->err = (frit_err){.struct_size = sizeof(bare->err)};
    status = bare->backend->op_program(bare->device, &op->desc, &program, &bare->err);
    if (!status && program.table)
        program.table->destroy(program.self);
    if (supported && !status)
        return program.table ? FRIT_OK
                             : bare_fail_text(bare, "op_program gives no program, and no failure");
    if (supported)
        return bare_fail_text(bare, "supports takes op %u, op_program does not: %s: %.200s",
                              op->desc.id, frit_status_name(status), bare->err.text);
    if (status != FRIT_UNSUPPORTED)
        return bare_fail_text(bare, "op_program of op %u, which supports refuses: %s", op->desc.id,
                              frit_status_name(status));
    return bare->err.text[0]
               ? FRIT_OK
               : bare_fail_text(bare, "op_program refuses op %u without a word", op->desc.id);
}

static frit_status supports(struct bare *bare)
{
    static struct wide_op ops[MOST_OPS];
    uint64_t all[(MOST_OPS + 63) / 64] = {0};
    const uint32_t n = list_ops(ops);
    frit_status status =
        bare->backend->supports(bare->device, &ops[0].desc, n, sizeof(ops[0]), all, &bare->err);

    if (status)
        return bare_fail(bare, "supports", status);
    for (uint32_t i = 0; i < n && !status; i++) {
        const bool taken = all[i / 64] >> i % 64 & 1;
        bool alone = false;

        status = is_supported(bare, &ops[i], &alone);
        if (!status && taken != alone)
            status = bare_fail_text(bare, "supports says %s of op %u alone, %s among others",
                                    alone ? "yes" : "no", ops[i].desc.id, taken ? "yes" : "no");
        if (!status)
            status = check_program(bare, &ops[i], taken);
    }
    return status;
}

/* ---- arguments ---- */

static frit_status pair_wide(const struct fuser_pair *pair)
{
    struct bare *bare = pair->bare;
    const struct block_values *values;
    frit_program program;
    frit_status status = block_values(bare, pair->block, &fuser_sizes[0], &values);

    if (!status)
        status = fuser_program(pair, &program);
    if (status)
        return status;
    bare->wide = true;
    status = fuser_check(pair, &program, &fuser_sizes[0]);
    bare->wide = false;
    program.table->destroy(program.self);
    return status;
}

BARE_CHECK(supports, NULL)
FUSER_CHECK(wide, true)

const struct conform_check wide_checks[] = {
    {"program", "supports", "an op has a program if supports says so, of many ops as of one",
     check_supports},
    {"program", "wide", "arguments may have fields after those that the driver knows", check_wide},
    {0},
};
