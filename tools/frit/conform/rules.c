/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every program: prepare is pure, aliases are true, and bytes are read back or
 * refused. */
#include <stdlib.h>
#include <string.h>

#include "conform/answer.h"
#include "conform/fuser.h"
#include "conform/launch.h"

/* ---- prepare ---- */

/* What prepare returns for a size; values have dims alone, no memory. */
static frit_status answer_for(const struct fuser_pair *pair, const frit_program *program,
                              const struct block_size *size, struct bare_answer *out)
{
    struct block_run run = {.program = program, .n_ops = pair->whole.accepted};
    frit_status status = block_values(pair->bare, pair->block, size, &run.values);

    if (!status)
        status = block_prepare(pair->bare, &run, out);
    return status;
}

/* Whether a program answers for a size as before; the answer is ended. */
static frit_status answers_again(const struct fuser_pair *pair, const frit_program *program,
                                 const struct bare_answer *before, const char *when)
{
    static struct bare_answer again;
    frit_status status = answer_for(pair, program, &fuser_sizes[0], &again);

    if (!status)
        status = answer_same(pair->bare, before, &again, when);
    bare_release(program, &again);
    return status;
}

static frit_status check_twin(const struct fuser_pair *pair, const struct bare_answer *first)
{
    frit_program twin;
    frit_status status = fuser_program(pair, &twin);

    if (status)
        return status;
    status = answers_again(pair, &twin, first, "of an equal program");
    twin.table->destroy(twin.self);
    return status;
}

static frit_status pair_prepare(const struct fuser_pair *pair)
{
    static struct bare_answer first, other;
    frit_program program;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    status = answer_for(pair, &program, &fuser_sizes[0], &first);
    if (!status)
        status = answers_again(pair, &program, &first, "called again");
    if (!status)
        status = answer_for(pair, &program, &fuser_sizes[1], &other);
    if (!status) {
        bare_release(&program, &other);
        status = answers_again(pair, &program, &first, "after another question");
    }
    if (!status)
        status = check_twin(pair, &first);
    bare_release(&program, &first);
    program.table->destroy(program.self);
    return status;
}

/* A program must refuse a signature with a flag that it does not know. */
static frit_status pair_flags(const struct fuser_pair *pair)
{
    static struct bare_answer answer;
    frit_signature signature = {.struct_size = sizeof(signature), .flags = (uint64_t)1 << 63};
    frit_arg_sig args[BLOCK_VALUES] = {{0}};
    uint8_t classes[BARE_SCALARS] = {0};
    struct block_args wanted;
    frit_program program;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    block_args(pair->block, pair->whole.accepted, &wanted);
    signature.n_in = wanted.n_in;
    signature.n_out = wanted.n_out;
    signature.n_scalars = wanted.n_scalars;
    signature.arg_stride = sizeof(args[0]);
    signature.index_width = 32;
    signature.args = args;
    signature.scalar_classes = signature.bound_classes = classes;
    answer.spec.struct_size = FRIT_END_OF(frit_launch_spec, wanted_strides);
    answer.variant.struct_size = sizeof(answer.variant);
    status = program.table->prepare(program.self, 0, &signature, &answer.spec, &answer.variant,
                                    &pair->bare->err);
    program.table->destroy(program.self);
    if (status == FRIT_UNSUPPORTED)
        return FRIT_OK;
    return bare_fail_text(pair->bare, "prepare returns %d for a signature with an unknown flag",
                          status);
}

/* ---- aliases ---- */

static frit_status pair_aliases(const struct fuser_pair *pair)
{
    struct block_run run = {.n_ops = pair->whole.accepted};
    frit_program program;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    run.program = &program;
    status = block_values(pair->bare, pair->block, &fuser_sizes[0], &run.values);
    if (!status)
        status = fuser_check_aliases(pair, run);
    program.table->destroy(program.self);
    return status;
}

/* ---- saved programs ---- */

/* Whether to_state writes no more than there is room for, which is a byte too little. */
static bool stays_inside(const struct fuser_pair *pair, const frit_program *program, uint8_t *bytes,
                         uint64_t n)
{
    uint64_t less = n - 1;

    bytes[less] = GUARD_BYTE;
    if (!program->table->to_state(program->self, bytes, &less, &pair->bare->err) && less == n &&
        bytes[n - 1] == GUARD_BYTE)
        return true;
    bare_fail_text(pair->bare,
                   "with room for %llu bytes to_state fails, writes more, or counts "
                   "others than %llu",
                   (unsigned long long)n - 1, (unsigned long long)n);
    return false;
}

/* The bytes of a program; NULL after words. */
static uint8_t *save(const struct fuser_pair *pair, const frit_program *program, uint64_t *n)
{
    struct bare *bare = pair->bare;
    uint64_t again = 0;
    uint8_t *bytes;

    *n = 0;
    if (program->table->to_state(program->self, NULL, n, &bare->err) || *n == 0) {
        bare_fail_text(bare, "to_state fails, or has no bytes: %.300s", bare->err.text);
        return NULL;
    }
    again = *n;
    bytes = calloc(1, *n);
    if (!bytes) {
        bare_fail_text(bare, "no memory");
        return NULL;
    }
    if (!stays_inside(pair, program, bytes, *n)) {
        free(bytes);
        return NULL;
    }
    if (program->table->to_state(program->self, bytes, &again, &bare->err) || again != *n) {
        bare_fail_text(bare, "to_state fails, or wants another number of bytes");
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Makes another op of it that takes the same operands; false: there is none. */
static bool exchange(frit_op_desc *op)
{
    const uint32_t other = op->id == FRIT_OP_add   ? FRIT_OP_mul
                           : op->id == FRIT_OP_mul ? FRIT_OP_add
                           : op->id == FRIT_OP_neg ? FRIT_OP_exp
                           : op->id == FRIT_OP_exp ? FRIT_OP_neg
                                                   : op->id;
    const bool differs = other != op->id;

    op->id = other;
    op->rev = frit_op_info_at(other)->rev;
    return differs;
}

/* From bytes that lie at the very end of their memory, so that none after them is read.  `others`:
 * an op is exchanged for another, where that can be. */
static frit_status load(const struct fuser_pair *pair, uint32_t n_ops, bool others,
                        const uint8_t *bytes, uint64_t n, frit_program *out)
{
    uint8_t *exact = malloc(n ? n : 1);
    struct block_link links[BLOCK_OPS];
    frit_op_desc ops[BLOCK_OPS];
    frit_status status;

    *out = (frit_program){.struct_size = sizeof(*out)};
    if (!exact)
        return bare_fail_text(pair->bare, "no memory");
    memcpy(exact, bytes, n);
    for (uint32_t i = 0; i < n_ops; i++) {
        block_link(pair->block, i, &links[i]);
        ops[i] = links[i].desc;
        others = others && !exchange(&ops[i]);
    }
    status = pair->table->from_state(pair->bare->instance, &pair->bare->seen, pair->fuser->name,
                                     ops, n_ops, sizeof(ops[0]), exact, n, out, &pair->bare->err);
    free(exact);
    if (status)
        bare_fail(pair->bare, "from_state", status);
    else if (!out->table)
        bare_fail_text(pair->bare, "from_state gives no program");
    return status || out->table ? status : FRIT_INTERNAL;
}

/* Bytes with something wrong, or of other ops, must be refused. */
static frit_status refuses_for(const struct fuser_pair *pair, uint32_t n_ops, bool others,
                               const uint8_t *bytes, uint64_t n, const char *what, uint64_t where)
{
    frit_program program;
    frit_status status = load(pair, n_ops, others, bytes, n, &program);

    if (status == FRIT_INCOMPATIBLE)
        return FRIT_OK;
    if (program.table)
        program.table->destroy(program.self);
    return bare_fail_text(pair->bare, "from_state does not refuse a state %s %llu", what,
                          (unsigned long long)where);
}

static frit_status refuses(const struct fuser_pair *pair, const uint8_t *bytes, uint64_t n,
                           const char *what, uint64_t where)
{
    return refuses_for(pair, pair->whole.accepted, false, bytes, n, what, where);
}

static frit_status refuses_all(const struct fuser_pair *pair, uint8_t *bytes, uint64_t n)
{
    static const uint8_t foreign[64] = "some other program of some other fuser";
    uint64_t step = n / 512 + 1; /* of long ones not every byte */
    frit_status status = refuses(pair, foreign, sizeof(foreign), "of others, of bytes", 64);

    for (uint64_t i = 0; i < n && !status; i += step)
        status = refuses(pair, bytes, i, "that was cut off at byte", i);
    for (uint64_t i = 0; i < n && !status; i += step) {
        bytes[i] ^= (uint8_t)(1u << i % 8);
        status = refuses(pair, bytes, n, "with a wrong bit in byte", i);
        bytes[i] ^= (uint8_t)(1u << i % 8);
    }
    if (!status && pair->whole.accepted > 1)
        status = refuses_for(pair, pair->whole.accepted - 1, false, bytes, n, "with fewer ops than",
                             pair->whole.accepted);
    for (uint32_t i = 0; i < pair->whole.accepted && !status; i++) {
        struct block_link link;

        block_link(pair->block, i, &link);
        if (!exchange(&link.desc))
            continue;
        return refuses_for(pair, pair->whole.accepted, true, bytes, n, "of other ops, as many as",
                           pair->whole.accepted);
    }
    return status;
}

static frit_status pair_saved(const struct fuser_pair *pair)
{
    frit_program program, second;
    uint8_t *bytes;
    uint64_t n;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    if (!FRIT_HAS(program.table, frit_program_table, to_state) || !program.table->to_state ||
        !FRIT_HAS(pair->table, frit_fuser_table, from_state) || !pair->table->from_state) {
        program.table->destroy(program.self);
        bare_fail_text(pair->bare, "its programs are not saved");
        return FRIT_UNSUPPORTED;
    }
    bytes = save(pair, &program, &n);
    program.table->destroy(program.self);
    if (!bytes)
        return FRIT_INTERNAL;
    status = load(pair, pair->whole.accepted, false, bytes, n, &second);
    if (!status)
        status = fuser_check(pair, &second, &fuser_sizes[0]);
    if (second.table)
        second.table->destroy(second.self);
    if (!status)
        status = refuses_all(pair, bytes, n);
    free(bytes);
    return status;
}

FUSER_CHECK(prepare, true)
FUSER_CHECK(flags, true)
FUSER_CHECK(aliases, true)
FUSER_CHECK(saved, false)

const struct conform_check program_checks[] = {
    {"program", "prepare", "equal signatures give equal specs, and prepare changes nothing",
     check_prepare},
    {"program", "flags", "flags that are not known are refused", check_flags},
    {"program", "aliases",
     "results in the memory of operands, where a program says that they may be", check_aliases},
    {"program", "saved", "a saved program runs as before; a damaged one is refused", check_saved},
    {0},
};
