/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of fusers and blocks, and programs that come of them. */
#include "conform/fuser.h"

#include <string.h>

#include "conform/guest.h"
#include "conform/launch.h"

const struct block_size fuser_sizes[3] = {
    {5, 7, 3, 0.75, false}, {16, 32, 8, 0.75, false}, {33, 70, 12, 0.75, false}};

/* ---- pairs ---- */

void fuser_state(const struct fuser_pair *pair, const void *fuser, frit_fuser_state *out)
{
    *out = (frit_fuser_state){.struct_size = sizeof(*out)};
    pair->table->state(fuser, out);
}

void fuser_push(const struct fuser_pair *pair, void *fuser, uint32_t first, uint32_t end)
{
    struct block_link link;

    for (uint32_t i = first; i < end; i++) {
        block_link(pair->block, i, &link);
        pair->table->push(fuser, &link.desc, 1, sizeof(link.desc));
        memset(&link, 0xa5, sizeof(link)); /* ops are borrowed for the call */
    }
}

void *fuser_clone(const struct fuser_pair *pair, const void *from)
{
    void *clone = NULL;
    frit_status status = pair->table->clone(from, &clone, &pair->bare->err);

    if (status)
        bare_fail(pair->bare, "clone", status);
    return status ? NULL : clone;
}

/* Whether the driver has the first op alone, or what the fuser takes of the block. */
static frit_status look(struct fuser_pair *pair, bool *taken)
{
    const struct bare *bare = pair->bare;
    struct block_link link;
    uint64_t bits = 0;
    void *fuser;

    if (!pair->fuser) {
        block_link(pair->block, 0, &link);
        *taken =
            !bare->backend->supports(bare->device, &link.desc, 1, sizeof(link.desc), &bits, NULL) &&
            bits & 1;
        return FRIT_OK;
    }
    fuser = fuser_clone(pair, pair->fuser->prototype);
    if (!fuser)
        return FRIT_INTERNAL;
    fuser_push(pair, fuser, 0, pair->block->n_ops);
    fuser_state(pair, fuser, &pair->whole);
    pair->table->destroy(fuser);
    *taken = pair->whole.ready && pair->whole.quality;
    return FRIT_OK;
}

const char *fuser_name(const struct fuser_pair *pair, char text[CONFORM_NAME])
{
    if (pair->fuser)
        snprintf(text, CONFORM_NAME, "fuser %.*s, block %s", (int)pair->fuser->name.len,
                 pair->fuser->name.ptr, pair->block->name);
    else
        snprintf(text, CONFORM_NAME, "op %s", frit_op_info_at(pair->block->ops[0].op)->name);
    return text;
}

/* Puts before the words of whom they are. */
static void name_pair(const struct fuser_pair *pair)
{
    char text[CONFORM_REASON], name[CONFORM_NAME];

    snprintf(text, sizeof(text), "%s", pair->bare->reason);
    bare_fail_text(pair->bare, "%s: %.270s", fuser_name(pair, name), text);
}

static frit_status check_blocks(struct fuser_pair *pair, const struct block *(*block_of)(size_t),
                                fuser_test *test, uint32_t *tried)
{
    frit_status status = FRIT_OK;

    for (size_t k = 0; (pair->block = block_of(k)) && !status; k++) {
        bool taken = false;

        pair->whole = (frit_fuser_state){0};
        status = look(pair, &taken);
        if (status || !taken)
            continue;
        status = test(pair);
        *tried += status != FRIT_UNSUPPORTED;
        if (status)
            name_pair(pair);
        status = status == FRIT_UNSUPPORTED ? FRIT_OK : status;
    }
    return status;
}

static frit_status check_fusers(struct bare *bare, const struct fuser_task *task, uint32_t *tried)
{
    struct fuser_pair pair = {.bare = bare, .table = bare->fusers, .ctx = task->ctx};
    frit_fuser list[FUSERS] = {{0}};
    uint32_t count = 0;
    frit_status status = bare->fusers->prototypes(bare->instance, &bare->seen, list,
                                                  sizeof(list[0]), FUSERS, &count, &bare->err);

    if (status)
        return bare_fail(bare, "prototypes", status);
    count = count > FUSERS ? FUSERS : count;
    for (uint32_t i = 0; i < count && !status; i++) {
        pair.fuser = &list[i];
        status = check_blocks(&pair, block_at, task->test, tried);
    }
    for (uint32_t i = 0; i < count; i++)
        bare->fusers->destroy(list[i].prototype);
    return status;
}

/* The same of each plugin that the lab's host has beside its devices' drivers. */
static frit_status check_guests(struct bare *bare, const struct lab *lab,
                                const struct fuser_task *task, uint32_t *tried)
{
    frit_plugin_desc plugin = {.struct_size = sizeof(plugin)};
    frit_status status = FRIT_OK;

    for (uint64_t k = 0; !status && frit_plugin_at(lab->host, k, &plugin) == FRIT_OK; k++) {
        struct guest driver;

        if (plugin.reason || plugin.n_devices)
            continue;
        status = guest_open(bare, plugin.path, &driver);
        if (status)
            return status;
        if (bare->fusers)
            status = check_fusers(bare, task, tried);
        guest_close(bare, &driver);
    }
    return status;
}

frit_status fuser_each(const struct conform_options *options, const struct lab *lab,
                       const struct fuser_task *task, char reason[CONFORM_REASON])
{
    struct bare bare = {0};
    struct fuser_pair single = {.bare = &bare, .ctx = task->ctx};
    uint32_t tried = 0;
    frit_status status = bare_open(&bare, options, lab, reason);

    if (status)
        return status;
    if (bare.fusers)
        status = check_fusers(&bare, task, &tried);
    if (!status)
        status = check_guests(&bare, lab, task, &tried);
    if (!status && task->singles)
        status = check_blocks(&single, task->singles, task->test, &tried);
    if (!status && !tried) {
        status = FRIT_UNSUPPORTED;
        if (!*reason)
            bare_fail_text(&bare, bare.fusers
                                      ? "its fusers take nothing of the blocks that are tried"
                                      : "the plugin has no fusers");
    }
    return bare_close(&bare, status);
}

/* ---- programs ---- */

static bool is_launched(const struct fuser_pair *pair, const frit_program_table *table)
{
    return pair->bare->seen.same_plugin ||
           (FRIT_HAS(table, frit_program_table, record) && table->record);
}

frit_status fuser_finish(const struct fuser_pair *pair, void *fuser, frit_program *out)
{
    frit_fuser_state before, after;
    frit_status status;

    *out = (frit_program){.struct_size = sizeof(*out)};
    fuser_state(pair, fuser, &before);
    status = pair->table->finish(fuser, out, &pair->bare->err);
    fuser_state(pair, fuser, &after);
    pair->table->destroy(fuser);
    if (status || !out->table)
        return status ? bare_fail(pair->bare, "finish", status)
                      : bare_fail_text(pair->bare, "finish gives no program");
    if (before.accepted == after.accepted && is_launched(pair, out->table))
        return FRIT_OK;
    out->table->destroy(out->self);
    if (before.accepted == after.accepted)
        return bare_fail_text(pair->bare, "a program for another plugin's device has no record");
    return bare_fail_text(pair->bare, "finish changes accepted from %u to %u", before.accepted,
                          after.accepted);
}

static frit_status single_program(const struct fuser_pair *pair, frit_program *out)
{
    struct bare *bare = pair->bare;
    struct block_link link;
    frit_status status;

    block_link(pair->block, 0, &link);
    *out = (frit_program){.struct_size = sizeof(*out)};
    status = bare->backend->op_program(bare->device, &link.desc, out, &bare->err);
    if (status)
        return bare_fail(bare, "op_program", status);
    return out->table ? FRIT_OK : bare_fail_text(bare, "op_program gives no program");
}

frit_status fuser_program(const struct fuser_pair *pair, frit_program *out)
{
    void *fuser;

    if (!pair->fuser)
        return single_program(pair, out);
    fuser = fuser_clone(pair, pair->fuser->prototype);
    if (!fuser)
        return FRIT_INTERNAL;
    fuser_push(pair, fuser, 0, pair->block->n_ops);
    return fuser_finish(pair, fuser, out);
}

frit_status fuser_describe(const struct fuser_pair *pair, const frit_program *program,
                           frit_program_info *out)
{
    frit_status status;

    *out = (frit_program_info){.struct_size = sizeof(*out)};
    status = program->table->describe(program->self, out, &pair->bare->err);
    return status ? bare_fail(pair->bare, "describe", status) : FRIT_OK;
}

const frit_candidate *fuser_candidate(const frit_program_info *info, uint32_t i)
{
    return (const frit_candidate *)(const void *)((const char *)info->candidates +
                                                  (size_t)i * info->candidate_stride);
}

frit_status fuser_check(const struct fuser_pair *pair, const frit_program *program,
                        const struct block_size *size)
{
    struct block_run run = {.program = program, .n_ops = pair->whole.accepted};
    frit_program_info info;
    frit_status status = fuser_describe(pair, program, &info);

    if (status)
        return status;
    status = block_values(pair->bare, pair->block, size, &run.values);
    for (; run.candidate < info.n_candidates && !status; run.candidate++) {
        run.numeric_class = fuser_candidate(&info, run.candidate)->numeric_class;
        status = block_check(pair->bare, &run);
        if (status == FRIT_UNSUPPORTED && run.candidate)
            status = FRIT_OK;
    }
    return status;
}

static bool same_dims(const struct block_values *values, uint32_t a, uint32_t b)
{
    return memcmp(values->dims[a], values->dims[b], sizeof(values->dims[a])) == 0;
}

frit_status fuser_check_aliases(const struct fuser_pair *pair, struct block_run run)
{
    static struct bare_answer answer;
    struct block_args args;
    frit_status status = block_prepare(pair->bare, &run, &answer);

    block_args(pair->block, run.n_ops, &args);
    run.aliased = true;
    for (; run.out < args.n_out && !status && answer.status >= 0; run.out++) {
        const frit_output_spec *output = bare_output(&answer, run.out);

        for (uint32_t i = 0; i < output->n_alias && !status; i++) {
            run.in = output->alias[i];
            if (run.in >= args.n_in)
                status = bare_fail_text(pair->bare, "output %u may lie in input %u of %u", run.out,
                                        run.in, args.n_in);
            else if (same_dims(run.values, args.value[run.in], args.value[args.n_in + run.out]))
                status = block_check(pair->bare, &run);
        }
    }
    bare_release(run.program, &answer);
    return status;
}
