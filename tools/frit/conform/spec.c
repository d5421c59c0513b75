/* SPDX-License-Identifier: Apache-2.0 */
/* What launch specs require: memory derived from operands, which is filled when the host says so
 * and only then, and groups and grids within the device's limits. */
#include <stdlib.h>
#include <string.h>

#include "conform/fuser.h"
#include "conform/launch.h"

/* ---- derived memory ---- */

/* A program with operands of two sizes, which differ in their elements too, and what was derived
 * from either. */
struct pack {
    const struct fuser_pair *pair;
    struct block_run run[2];
    struct bare_derived kept[2];
};

static frit_status launch(struct pack *pack, uint32_t which, uint32_t memory, const char *when)
{
    struct block_run run = pack->run[which];
    frit_status status;
    char why[CONFORM_REASON];

    run.derived = &pack->kept[memory];
    status = block_check(pack->pair->bare, &run);
    if (!status || status == FRIT_UNSUPPORTED)
        return status;
    snprintf(why, sizeof(why), "%s", pack->pair->bare->reason);
    return bare_fail_text(pack->pair->bare, "%s: %.400s", when, why);
}

/* The bytes of all derived memory; NULL after words. */
static unsigned char *bytes_of(struct bare *bare, const struct bare_derived *kept, uint64_t *n)
{
    unsigned char *bytes;
    uint64_t at = 0;

    *n = 0;
    for (uint32_t i = 0; i < kept->n; i++)
        *n += kept->bytes[i];
    bytes = malloc(*n ? *n : 1);
    if (!bytes) {
        bare_fail_text(bare, "no memory");
        return NULL;
    }
    for (uint32_t i = 0; i < kept->n; at += kept->bytes[i++])
        if (bare_read(bare, kept->at[i].memory, 0, bytes + at, kept->bytes[i])) {
            free(bytes);
            return NULL;
        }
    return bytes;
}

/* A launch that finds its derived memory valid; another launch may read it at the same time. */
static frit_status use(struct pack *pack, const char *when)
{
    struct bare *bare = pack->pair->bare;
    uint64_t n = 0;
    unsigned char *before = bytes_of(bare, &pack->kept[0], &n), *after = NULL;
    frit_status status = before ? launch(pack, 0, 0, when) : FRIT_INTERNAL;

    if (!status)
        after = bytes_of(bare, &pack->kept[0], &n);
    if (!status && !after)
        status = FRIT_INTERNAL;
    if (!status && memcmp(before, after, n) != 0)
        status = bare_fail_text(bare, "%s it is written", when);
    if (bare->late)    /* a read may still write there */
        return status; /* NOLINT(clang-analyzer-unix.Malloc) */
    free(before);
    free(after);
    return status;
}

static frit_status fill_and_use(struct pack *pack)
{
    frit_status status = launch(pack, 0, 0, "where derived memory is to be filled");

    if (!status)
        status = use(pack, "where derived memory is valid");
    if (!status)
        status = launch(pack, 1, 1, "where memory is derived from another operand");
    if (!status)
        status = use(pack, "where derived memory is valid, after that of another operand");
    pack->kept[0].valid = pack->kept[1].valid = false;
    if (!status)
        status = launch(pack, 1, 1, "where derived memory is to be filled again");
    if (!status)
        status = launch(pack, 0, 0, "where derived memory is to be filled again");
    return status;
}

/* *derives: the program derives memory, with both sizes. */
static frit_status sizes_of(struct pack *pack, const frit_program *program, bool *derives)
{
    static struct bare_answer answer;

    *derives = true;
    for (uint32_t i = 0; i < 2; i++) {
        struct block_run *run = &pack->run[i];
        frit_status status;

        *run = (struct block_run){.program = program, .n_ops = pack->pair->whole.accepted};
        status = block_values(pack->pair->bare, pack->pair->block, &fuser_sizes[i], &run->values);
        if (!status)
            status = block_prepare(pack->pair->bare, run, &answer);
        if (status)
            return status;
        *derives &= answer.status >= 0 && answer.spec.n_derived > 0;
        bare_release(program, &answer);
    }
    return FRIT_OK;
}

static frit_status pair_derived(const struct fuser_pair *pair)
{
    struct pack pack = {.pair = pair};
    frit_program program;
    bool derives = false;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    status = sizes_of(&pack, &program, &derives);
    if (!status && derives)
        status = fill_and_use(&pack);
    for (uint32_t i = 0; i < 2; i++)
        bare_derived_free(pair->bare, &pack.kept[i]);
    program.table->destroy(program.self);
    return status;
}

/* ---- limits ---- */

static uint64_t product(const uint32_t extent[3])
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < 3; d++)
        n *= extent[d] ? extent[d] : 1;
    return n;
}

static frit_status within(struct bare *bare, const frit_phase *phase)
{
    const frit_device_info *info = &bare->info;
    uint32_t lanes = info->max_group ? info->max_group : 1;

    for (uint32_t d = 0; d < 3; d++)
        if (phase->grid[d] > (info->max_grid[d] ? info->max_grid[d] : INT32_MAX))
            return bare_fail_text(bare,
                                  "a launch of %u groups along axis %u, more than the device "
                                  "takes",
                                  phase->grid[d], d);
    if (product(phase->group) > lanes)
        return bare_fail_text(bare, "a group of %llu lanes, the device takes %u",
                              (unsigned long long)product(phase->group), lanes);
    return FRIT_OK;
}

static frit_status pair_limits(const struct fuser_pair *pair)
{
    static struct bare_answer answer;
    struct block_run run = {.n_ops = pair->whole.accepted};
    frit_program program;
    frit_status status = fuser_program(pair, &program);

    if (status)
        return status;
    run.program = &program;
    for (uint32_t i = 0; i < 3 && !status; i++) {
        status = block_values(pair->bare, pair->block, &fuser_sizes[i], &run.values);
        if (!status)
            status = block_prepare(pair->bare, &run, &answer);
        if (status)
            break;
        for (uint32_t k = 0; answer.status >= 0 && k < answer.spec.n_phases && !status; k++)
            status = within(pair->bare, &answer.spec.phases[k]);
        bare_release(&program, &answer);
    }
    program.table->destroy(program.self);
    return status;
}

FUSER_CHECK(derived, true)
FUSER_CHECK(limits, true)

const struct conform_check spec_checks[] = {
    {"spec", "derived", "memory derived from an operand is filled when it is to be, and only then",
     check_derived},
    {"spec", "limits", "groups and grids are within what the device takes", check_limits},
    {0},
};
