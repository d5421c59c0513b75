/* SPDX-License-Identifier: Apache-2.0 */
/* The guarantees of fuser.h, by its numbers. */
#include <string.h>

#include "conform/fuser.h"

/* ---- 1: push ---- */

static frit_status expect(const struct fuser_pair *pair, const void *fuser,
                          const frit_fuser_state *want, const char *when)
{
    frit_fuser_state got;

    fuser_state(pair, fuser, &got);
    if (memcmp(&got, want, sizeof(got)) == 0)
        return FRIT_OK;
    return bare_fail_text(pair->bare,
                          "%s: open %u, ready %u, accepted %u, quality %u; not %u, %u, %u, %u",
                          when, got.open, got.ready, got.accepted, got.quality, want->open,
                          want->ready, want->accepted, want->quality);
}

static frit_status pair_push(const struct fuser_pair *pair)
{
    struct block_link links[BLOCK_OPS];
    uint32_t n = pair->block->n_ops;
    frit_fuser_state closed = pair->whole;
    void *one = fuser_clone(pair, pair->fuser->prototype);
    frit_status status = one ? FRIT_OK : FRIT_INTERNAL;

    closed.open = 0;
    for (uint32_t i = 0; i < n; i++)
        block_link(pair->block, i, &links[i]);
    if (one) {
        pair->table->push(one, &links[0].desc, n, sizeof(links[0]));
        status = expect(pair, one, &pair->whole, "all ops in one push");
    }
    if (!status) {
        fuser_push(pair, one, n, n + 1);
        status = expect(pair, one, &closed, "an op that nobody knows");
    }
    if (!status) {
        fuser_push(pair, one, 0, n);
        status = expect(pair, one, &closed, "pushed after it closed");
    }
    pair->table->destroy(one);
    return status;
}

/* ---- 2: state ---- */

static frit_status sensible(const struct fuser_pair *pair, const frit_fuser_state *state,
                            uint32_t pushed)
{
    if (state->open <= 1 && state->ready <= 1 && state->quality <= 1000 &&
        state->accepted <= pushed && (!state->ready || state->accepted))
        return FRIT_OK;
    return bare_fail_text(pair->bare,
                          "state after %u ops: open %u, ready %u, accepted %u, quality %u", pushed,
                          state->open, state->ready, state->accepted, state->quality);
}

static frit_status pair_state(const struct fuser_pair *pair)
{
    void *fuser = fuser_clone(pair, pair->fuser->prototype);
    frit_status status = fuser ? FRIT_OK : FRIT_INTERNAL;

    for (uint32_t i = 0; i <= pair->block->n_ops && !status; i++) {
        frit_fuser_state state;

        fuser_state(pair, fuser, &state);
        status = sensible(pair, &state, i);
        for (int again = 0; again < 3 && !status; again++)
            status = expect(pair, fuser, &state, "called again");
        if (i < pair->block->n_ops)
            fuser_push(pair, fuser, i, i + 1);
    }
    if (!status)
        status = expect(pair, fuser, &pair->whole, "called after each op");
    pair->table->destroy(fuser);
    return status;
}

/* ---- 3: accepted ---- */

static frit_status pair_accepted(const struct fuser_pair *pair)
{
    frit_program program;
    frit_program_info info;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    status = fuser_describe(pair, &program, &info);
    if (!status && info.n_ops != pair->whole.accepted)
        status = bare_fail_text(pair->bare, "its program covers %u ops, accepted says %u",
                                info.n_ops, pair->whole.accepted);
    program.table->destroy(program.self);
    return status;
}

/* ---- 4: clone, reset ---- */

/* Finishes and checks the result. */
static frit_status use(const struct fuser_pair *pair, void *fuser)
{
    frit_program program;
    frit_status status = fuser_finish(pair, fuser, &program);

    if (status)
        return status;
    status = fuser_check(pair, &program, &fuser_sizes[0]);
    program.table->destroy(program.self);
    return status;
}

/* A clone in the middle of a block goes another way than what it was cloned from. */
static frit_status pair_clone(const struct fuser_pair *pair)
{
    uint32_t n = pair->block->n_ops, half = n / 2;
    void *first = fuser_clone(pair, pair->fuser->prototype), *second = NULL;
    frit_fuser_state middle;
    frit_status status = FRIT_INTERNAL;

    if (first) {
        fuser_push(pair, first, 0, half);
        fuser_state(pair, first, &middle);
        second = fuser_clone(pair, first);
    }
    if (second) {
        status = expect(pair, second, &middle, "a clone");
        fuser_push(pair, second, half, n);
    }
    if (!status)
        status = expect(pair, first, &middle, "after pushes into its clone");
    if (!status) {
        fuser_push(pair, first, n, n + 1);
        status = expect(pair, second, &pair->whole, "after pushes into what it was cloned from");
    }
    pair->table->destroy(first);
    if (!status)
        return use(pair, second);
    pair->table->destroy(second);
    return status;
}

static frit_status pair_reset(const struct fuser_pair *pair)
{
    void *fuser = fuser_clone(pair, pair->fuser->prototype);
    frit_fuser_state fresh;
    frit_status status;

    if (!fuser)
        return FRIT_INTERNAL;
    fuser_state(pair, pair->fuser->prototype, &fresh);
    fuser_push(pair, fuser, 0, pair->block->n_ops + 1);
    pair->table->reset(fuser);
    status = expect(pair, fuser, &fresh, "after reset");
    if (!status) {
        fuser_push(pair, fuser, 0, pair->block->n_ops);
        status = expect(pair, fuser, &pair->whole, "pushed after reset");
    }
    if (!status)
        return use(pair, fuser);
    pair->table->destroy(fuser);
    return status;
}

/* Prototypes of its own, which are gone before their clones are used. */
static frit_status pair_outlive(const struct fuser_pair *pair)
{
    struct bare *bare = pair->bare;
    frit_fuser list[FUSERS] = {{0}};
    uint32_t count = 0;
    void *fuser = NULL;
    frit_status status = pair->table->prototypes(bare->instance, &bare->seen, list, sizeof(list[0]),
                                                 FUSERS, &count, &bare->err);

    if (status)
        return bare_fail(bare, "prototypes", status);
    for (uint32_t i = 0; i < count && i < FUSERS; i++) {
        if (list[i].name.len == pair->fuser->name.len &&
            memcmp(list[i].name.ptr, pair->fuser->name.ptr, list[i].name.len) == 0)
            fuser = fuser_clone(pair, list[i].prototype);
        pair->table->destroy(list[i].prototype);
    }
    if (!fuser)
        return bare_fail_text(bare, "a second call of prototypes gives no fuser of this name");
    fuser_push(pair, fuser, 0, pair->block->n_ops);
    return use(pair, fuser);
}

/* ---- 5: what its programs do ---- */

static frit_status pair_results(const struct fuser_pair *pair)
{
    frit_program program;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    status = fuser_check(pair, &program, &fuser_sizes[0]);
    program.table->destroy(program.self);
    return status;
}

static frit_status pair_sizes(const struct fuser_pair *pair)
{
    static const int turns[] = {1, 0, 2, 1};
    frit_program program;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]) && !status; i++)
        status = fuser_check(pair, &program, &fuser_sizes[turns[i]]);
    program.table->destroy(program.self);
    return status;
}

/* Of one class, and of others. */
static frit_status pair_scalars(const struct fuser_pair *pair)
{
    static const double scalars[] = {0.75, -0.375, 1.125, 3, 0, 1, 0.75};
    frit_program program;
    struct block_args args;
    frit_status status;

    block_args(pair->block, pair->whole.accepted, &args);
    if (!args.n_scalars)
        return FRIT_UNSUPPORTED;
    status = fuser_program(pair, &program);
    if (status)
        return status;
    for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]) && !status; i++) {
        struct block_size size = fuser_sizes[0];

        size.scalar = scalars[i];
        status = fuser_check(pair, &program, &size);
    }
    program.table->destroy(program.self);
    return status;
}

/* ---- the checks ---- */

FUSER_CHECK(push, false)
FUSER_CHECK(state, false)
FUSER_CHECK(accepted, false)
FUSER_CHECK(clone, false)
FUSER_CHECK(reset, false)
FUSER_CHECK(outlive, false)
FUSER_CHECK(results, false)
FUSER_CHECK(sizes, false)
FUSER_CHECK(scalars, false)

const struct conform_check fuser_checks[] = {
    {"fuser", "push",
     "one push of all ops or many; what is unknown closes, what comes after it changes nothing",
     check_push},
    {"fuser", "state", "reading the state changes nothing, and states are valid", check_state},
    {"fuser", "accepted", "finish covers as many ops as accepted says", check_accepted},
    {"fuser", "clone", "a clone and its original go on apart from each other", check_clone},
    {"fuser", "reset", "after reset a fuser is as at first", check_reset},
    {"fuser", "outlive", "clones live on without their prototypes", check_outlive},
    {"fuser", "results", "the results of a block are those of its ops one by one", check_results},
    {"fuser", "sizes", "one program is right at several sizes, in turn", check_sizes},
    {"fuser", "scalars", "one program is right with other scalars", check_scalars},
    {0},
};
