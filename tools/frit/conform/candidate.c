/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for the candidates of a program: they are described in one way, their priority is
 * pure, and each that prepare accepts is within its numeric class of the first one.
 *
 * Beside the programs of fusers these are those of single rows with one or two operands of f32. */
#include <stdlib.h>
#include <string.h>

#include "conform/answer.h"
#include "conform/cases.h"
#include "conform/fuser.h"
#include "conform/launch.h"

enum { CANDIDATES = 32, IDENTITY_BYTES = 96, ROWS = 256 };

/* ---- rows ---- */

static bool takes_f32(const frit_slot_info *slot)
{
    return slot->role == FRIT_ROLE_IN && conform_letter_takes(slot->letter, FRIT_F32);
}

/* Whether it makes one tensor of f32 of one or two, in a way that blocks can say. */
static bool is_row(const frit_op_info *op)
{
    const bool one = op->in[0].name && !op->in[1].name;

    if (!op->in[0].name || !takes_f32(&op->in[0]) || op->out[1].name ||
        op->out[0].letter != op->in[0].letter)
        return false;
    switch (op->cls) {
    case FRIT_CLASS_MAP:
        return one || (!op->in[2].name && takes_f32(&op->in[1]));
    case FRIT_CLASS_REDUCE:
        return one && op->record == FRIT_RECORD_reduce;
    case FRIT_CLASS_SCAN:
    case FRIT_CLASS_NORM:
        return one && op->record == FRIT_RECORD_axis;
    default:
        return op->id == FRIT_OP_matmul;
    }
}

/* Those of --quick, which share their code with the others of their class. */
static bool is_typical(uint32_t op)
{
    static const uint32_t typical[] = {FRIT_OP_add,     FRIT_OP_mul,   FRIT_OP_exp,
                                       FRIT_OP_sum,     FRIT_OP_max,   FRIT_OP_cumsum,
                                       FRIT_OP_softmax, FRIT_OP_matmul};

    for (size_t i = 0; i < sizeof(typical) / sizeof(typical[0]); i++)
        if (typical[i] == op)
            return true;
    return false;
}

struct rows {
    struct block at[ROWS];
    uint32_t n;
};

static void add_row(struct rows *rows, const frit_op_info *op, const char *inputs, int32_t second)
{
    if (rows->n < ROWS)
        rows->at[rows->n++] = (struct block){
            .name = op->name, .inputs = inputs, .ops = {{op->id, {0, second}}}, .n_ops = 1};
}

static void add_rows(struct rows *rows, const frit_op_info *op)
{
    if (op->id == FRIT_OP_matmul) {
        add_row(rows, op, "rkkc", 1);
    } else if (!op->in[1].name) {
        add_row(rows, op, "rc", BLOCK_NONE);
    } else {
        add_row(rows, op, "rcrc", 1);
        add_row(rows, op, "rc1c", 1);
        if (op->traits & FRIT_OP_SCALARS)
            add_row(rows, op, "rc", BLOCK_SCALAR);
    }
}

static void find_rows(struct rows *rows, bool quick)
{
    for (uint32_t id = 0; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *op = frit_op_info_at(id);

        if (op && is_row(op) && (!quick || is_typical(id)))
            add_rows(rows, op);
    }
}

/* NULL beyond the last. */
static const struct block *row_at(struct rows *rows, bool quick, size_t index)
{
    if (rows->n == 0)
        find_rows(rows, quick);
    return index < rows->n ? &rows->at[index] : NULL;
}

static const struct block *any_row(size_t index)
{
    static struct rows rows;

    return row_at(&rows, false, index);
}

static const struct block *typical_row(size_t index)
{
    static struct rows rows;

    return row_at(&rows, true, index);
}

/* ---- descriptions ---- */

/* What describe said, copied. */
struct description {
    uint32_t n;
    struct {
        char identity[IDENTITY_BYTES];
        uint32_t version, numeric_class;
    } at[CANDIDATES];
};

/* Of the programs of an instance, in order. */
struct digests {
    uint64_t at[1024];
    uint32_t n, count; /* made; compared */
    bool again;        /* of a second instance: compare */
    bool several;      /* some program has several candidates */
};

static frit_status copy_candidate(struct bare *bare, const frit_candidate *from, uint32_t i,
                                  struct description *out)
{
    if (from->struct_size < FRIT_END_OF(frit_candidate, identity))
        return bare_fail_text(bare, "candidate %u has a struct_size of %u", i, from->struct_size);
    if (from->identity.len == 0 || !from->identity.ptr)
        return bare_fail_text(bare, "candidate %u has an empty identity", i);
    if (from->numeric_class > FRIT_NUMERIC_RELAXED)
        return bare_fail_text(bare, "candidate %.*s has a numeric class %u",
                              (int)from->identity.len, from->identity.ptr, from->numeric_class);
    snprintf(out->at[i].identity, IDENTITY_BYTES, "%.*s", (int)from->identity.len,
             from->identity.ptr);
    out->at[i].version = from->version;
    out->at[i].numeric_class = from->numeric_class;
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(out->at[k].identity, out->at[i].identity) == 0)
            return bare_fail_text(bare, "candidates %u and %u have the same identity, %s", k, i,
                                  out->at[i].identity);
    return FRIT_OK;
}

static frit_status describe(const struct fuser_pair *pair, const frit_program *program,
                            struct description *out)
{
    frit_program_info info;
    frit_status status = fuser_describe(pair, program, &info);

    memset(out, 0, sizeof(*out));
    if (!status && info.n_candidates == 0)
        status = bare_fail_text(pair->bare, "its program has no candidates");
    for (uint32_t i = 0; !status && i < info.n_candidates && i < CANDIDATES; i++, out->n++)
        status = copy_candidate(pair->bare, fuser_candidate(&info, i), i, out);
    return status;
}

static frit_status same(struct bare *bare, const struct description *a, const struct description *b,
                        const char *when)
{
    if (a->n != b->n)
        return bare_fail_text(bare, "%s the program has %u candidates, not %u", when, b->n, a->n);
    for (uint32_t i = 0; i < a->n; i++)
        if (memcmp(&a->at[i], &b->at[i], sizeof(a->at[i])) != 0)
            return bare_fail_text(
                bare, "%s candidate %u is %s, version %u, class %u; not %s, version %u, class %u",
                when, i, b->at[i].identity, b->at[i].version, b->at[i].numeric_class,
                a->at[i].identity, a->at[i].version, a->at[i].numeric_class);
    return FRIT_OK;
}

/* FNV-1a. */
static uint64_t digest_of(const struct description *description)
{
    const unsigned char *bytes = (const unsigned char *)description;
    uint64_t digest = 0xcbf29ce484222325u;

    for (size_t i = 0; i < sizeof(*description); i++)
        digest = (digest ^ bytes[i]) * 0x100000001b3u;
    return digest;
}

/* Whether the program is described as in the instance before; the first instance is remembered. */
static frit_status same_as_before(const struct fuser_pair *pair, const struct description *mine)
{
    struct digests *digests = pair->ctx;
    const uint64_t digest = digest_of(mine);
    const uint32_t index = digests->count++;

    digests->several |= mine->n > 1;
    if (!digests->again && index < sizeof(digests->at) / sizeof(digests->at[0]))
        digests->at[digests->n++] = digest;
    if (!digests->again || index >= digests->n || digests->at[index] == digest)
        return FRIT_OK;
    return bare_fail_text(pair->bare, "another instance has other candidates: %s, ..., %s",
                          mine->at[0].identity, mine->at[mine->n - 1].identity);
}

/* ---- priority ---- */

static const struct block_size sizes[] = {
    {5, 7, 3, 0.75, false},    {16, 32, 8, 0.75, false},    {9, 21, 5, 0.75, true},
    {33, 70, 12, 0.75, false}, {67, 1029, 33, 0.75, false},
};

enum { QUICK_SIZES = 3, SIZES = sizeof(sizes) / sizeof(sizes[0]), PRIORITY_SIZES = 2 };

/* What priority returns for each candidate and size. */
struct priorities {
    int32_t at[CANDIDATES][PRIORITY_SIZES];
};

static frit_status read_priorities(const struct fuser_pair *pair, const frit_program *program,
                                   const struct block_values *values, uint32_t n,
                                   struct priorities *out)
{
    struct block_run run = {.program = program, .n_ops = pair->whole.accepted};
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < n * PRIORITY_SIZES && !status; i++) {
        run.candidate = i % n;
        run.values = &values[i / n];
        status = block_priority(pair->bare, &run, &out->at[i % n][i / n]);
    }
    return status;
}

static frit_status same_priorities(const struct fuser_pair *pair, const frit_program *program,
                                   const struct block_values *values,
                                   const struct description *described,
                                   const struct priorities *before, const char *when)
{
    struct priorities again;
    frit_status status = read_priorities(pair, program, values, described->n, &again);

    for (uint32_t i = 0; i < described->n && !status; i++)
        for (uint32_t k = 0; k < PRIORITY_SIZES && !status; k++)
            if (again.at[i][k] != before->at[i][k])
                status = bare_fail_text(pair->bare, "candidate %s: %s priority returns %d, not %d",
                                        described->at[i].identity, when, again.at[i][k],
                                        before->at[i][k]);
    return status;
}

/* Whether priority changes no answer of prepare, and is the same each time. */
static frit_status check_priorities(const struct fuser_pair *pair, const frit_program *program,
                                    const frit_program *twin, const struct block_values *values,
                                    const struct description *described)
{
    static struct bare_answer answers[CANDIDATES], again;
    struct block_run run = {
        .program = program, .n_ops = pair->whole.accepted, .values = &values[0]};
    char when[IDENTITY_BYTES + 64];
    struct priorities before;
    frit_status status = FRIT_OK;
    uint32_t n = 0;

    for (; n < described->n && !status; n++) {
        run.candidate = n;
        status = block_prepare(pair->bare, &run, &answers[n]);
    }
    if (!status)
        status = read_priorities(pair, program, values, n, &before);
    if (!status)
        status = same_priorities(pair, program, values, described, &before, "called again");
    if (!status)
        status = same_priorities(pair, twin, values, described, &before, "of an equal program");
    for (run.candidate = 0; run.candidate < n && !status; run.candidate++) {
        snprintf(when, sizeof(when), "candidate %s: called again",
                 described->at[run.candidate].identity);
        status = block_prepare(pair->bare, &run, &again);
        if (!status)
            status = answer_same(pair->bare, &answers[run.candidate], &again, when);
        bare_release(program, &again);
    }
    while (n > 0)
        bare_release(program, &answers[--n]);
    return status;
}

/* ---- rules ---- */

static frit_status check_described(const struct fuser_pair *pair, const frit_program *program,
                                   const frit_program *twin)
{
    struct block_values values[PRIORITY_SIZES] = {{0}};
    struct description first, again;
    frit_status status = describe(pair, program, &first);

    if (!status)
        status = describe(pair, program, &again);
    if (!status)
        status = same(pair->bare, &first, &again, "described again");
    if (!status)
        status = describe(pair, twin, &again);
    if (!status)
        status = same(pair->bare, &first, &again, "of an equal block");
    if (!status)
        status = same_as_before(pair, &first);
    if (status || first.n == 1)
        return status;
    for (uint32_t k = 0; k < PRIORITY_SIZES && !status; k++)
        status = block_values_draw(pair->bare, pair->block, &sizes[k], &values[k]);
    if (!status)
        status = check_priorities(pair, program, twin, values, &first);
    for (uint32_t k = 0; k < PRIORITY_SIZES; k++)
        block_values_fini(&values[k]);
    return status;
}

static frit_status pair_rules(const struct fuser_pair *pair)
{
    frit_program program, twin;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    status = fuser_program(pair, &twin);
    if (!status) {
        status = check_described(pair, &program, &twin);
        twin.table->destroy(twin.self);
    }
    program.table->destroy(program.self);
    return status;
}

/* A second instance is made only where there is something to choose from. */
static frit_status check_rules(const struct conform_options *options, const struct lab *lab,
                               char reason[CONFORM_REASON])
{
    struct digests *digests = calloc(1, sizeof(*digests));
    const struct fuser_task task = {
        .test = pair_rules, .singles = options->quick ? typical_row : any_row, .ctx = digests};
    frit_status status = FRIT_NO_HOST_MEMORY;

    if (digests)
        status = fuser_each(options, lab, &task, reason);
    if (!status && digests->several) {
        digests->again = true;
        digests->count = 0;
        status = fuser_each(options, lab, &task, reason);
    }
    free(digests);
    return status;
}

/* ---- results ---- */

/* A second run has the bits of the first one. */
static frit_status check_again(const struct fuser_pair *pair, const struct block_run *run)
{
    struct block_values values;
    struct block_run again = *run;
    frit_status status = block_values_draw(pair->bare, pair->block, &run->values->size, &values);

    again.values = &values;
    again.exact = true;
    if (!status)
        status = block_values_run(pair->bare, &again, &values);
    values.by = "an earlier run";
    if (!status)
        status = block_check(pair->bare, &again);
    block_values_fini(&values);
    return status;
}

/* Neither a refusal nor a lack of memory is wrong. */
static frit_status check_candidate(const struct fuser_pair *pair, const struct block_run *run,
                                   bool again, const char *name)
{
    const struct block_size *size = &run->values->size;
    char text[CONFORM_REASON], whose[CONFORM_NAME];
    frit_status status = FRIT_OK;

    bare_note(pair->bare, "%s, candidate %s", fuser_name(pair, whose), name);
    if (run->candidate)
        status = block_check(pair->bare, run);
    if (!status && run->candidate)
        status = fuser_check_aliases(pair, *run);
    if (!status && again && run->numeric_class != FRIT_NUMERIC_RELAXED)
        status = check_again(pair, run);
    if (!status || status == FRIT_UNSUPPORTED || status == FRIT_NO_DEVICE_MEMORY)
        return FRIT_OK;
    snprintf(text, sizeof(text), "%s", pair->bare->reason);
    bare_fail_text(pair->bare, "candidate %s, extents %lld, %lld, %lld: %.200s", name,
                   (long long)size->r, (long long)size->c, (long long)size->k, text);
    return status;
}

/* Candidates may refuse a size; where the first does nothing is compared. */
static frit_status check_size(const struct fuser_pair *pair, const frit_program *program,
                              const frit_program_info *info, const struct block_size *size,
                              bool again)
{
    struct block_values values;
    struct block_run run = {.program = program, .n_ops = pair->whole.accepted, .values = &values};
    frit_status status = block_values_draw(pair->bare, pair->block, size, &values);
    char name[IDENTITY_BYTES];

    if (!status)
        status = block_values_run(pair->bare, &run, &values);
    for (run.candidate = 0; run.candidate < info->n_candidates && !status; run.candidate++) {
        const frit_candidate *candidate = fuser_candidate(info, run.candidate);

        run.numeric_class = candidate->numeric_class;
        run.exact = run.numeric_class == FRIT_NUMERIC_EXACT;
        snprintf(name, sizeof(name), "%.*s", (int)candidate->identity.len, candidate->identity.ptr);
        status = check_candidate(pair, &run, again, name);
    }
    block_values_fini(&values);
    return status;
}

static frit_status pair_results(const struct fuser_pair *pair)
{
    const uint32_t n = pair->bare->options->quick ? QUICK_SIZES : SIZES;
    frit_program program;
    frit_program_info info;
    frit_status status = fuser_program(pair, &program);
    bool several = false;

    if (status)
        return status;
    status = fuser_describe(pair, &program, &info);
    several = !status && info.n_candidates > 1;
    for (uint32_t i = 0; i < n && several && !status; i++) {
        status = check_size(pair, &program, &info, &sizes[i], i == 0 || i + 1 == SIZES);
        status = status == FRIT_UNSUPPORTED ? FRIT_OK : status;
    }
    program.table->destroy(program.self);
    return status || several ? status : FRIT_UNSUPPORTED;
}

static frit_status check_results(const struct conform_options *options, const struct lab *lab,
                                 char reason[CONFORM_REASON])
{
    const struct fuser_task task = {.test = pair_results,
                                    .singles = options->quick ? typical_row : any_row};
    const frit_status status = fuser_each(options, lab, &task, reason);

    if (status == FRIT_UNSUPPORTED)
        snprintf(reason, CONFORM_REASON, "no program has a second candidate");
    return status;
}

const struct conform_check candidate_checks[] = {
    {"candidate", "rules",
     "candidates have one name, version and class, and a priority that depends on its arguments",
     check_rules},
    {"candidate", "results",
     "what further candidates compute is within their class of the first one's, whatever the "
     "memory, and has the same bits in each run",
     check_results},
    {0},
};
