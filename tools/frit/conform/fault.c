/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver reports of launches that fail and of a device that is lost.  Only its author can
 * provoke that: by an option of the driver (--fault), by a command (--lose). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conform/bare.h"
#include "conform/block.h"
#include "conform/launch.h"
#include "term.h"

static const unsigned char bytes[64];

enum { COUNT = sizeof(bytes), COOKIE = 0x5eed, LAUNCHES = 3, UNTOUCHED = 0x5a };

/* Seconds in which a loss is noticed, and in which a call on a lost device returns. */
static const double noticed = 10, at_once = 1;

/* ---- a device that is lost ---- */

static frit_status check_wait(struct bare *bare, uint64_t value)
{
    frit_failure failure = {
        .struct_size = sizeof(failure), .value = value, .command = FRIT_ALL_COMMANDS};
    double begin = term_clock();
    frit_status status;

    bare->err = (frit_err){.struct_size = sizeof(bare->err)};
    status =
        bare->backend->wait(bare->device, NULL, value, (uint64_t)5000000000, &failure, &bare->err);
    if (status != FRIT_DEVICE_LOST)
        return bare_fail_text(bare, "after the loss wait for what was not reached: %s",
                              frit_status_name(status));
    if (term_clock() - begin > at_once)
        return bare_fail_text(bare, "after the loss wait takes %.1f s", term_clock() - begin);
    return bare->err.text[0] ? FRIT_OK : bare_fail_text(bare, "wait reports a loss without a word");
}

/* A call that was taken all the same never ends well. */
static frit_status check_call(struct bare *bare, const char *slot, frit_status called,
                              uint64_t value)
{
    if (called > 0)
        return bare_fail_text(bare, "after the loss %s returns %d", slot, called);
    if (called < 0)
        return bare->err.text[0]
                   ? FRIT_OK
                   : bare_fail_text(bare, "after the loss %s fails without a word", slot);
    return check_wait(bare, value);
}

/* Value `value` is not reached; `into` was to be filled by a read before the loss. */
static frit_status check_lost(struct bare *bare, frit_memory *memory, uint64_t value)
{
    static unsigned char into[COUNT];
    const frit_transfer transfer = {
        .struct_size = sizeof(transfer), .memory = memory, .bytes = COUNT};
    const frit_cmd fill = {.struct_size = sizeof(fill),
                           .kind = FRIT_CMD_FILL,
                           .dst = memory,
                           .bytes = COUNT,
                           .pattern_bytes = 4};
    uint64_t next = 0;
    frit_status status = check_wait(bare, value), called;

    for (int again = 0; again < 2 && !status; again++) {
        bare->err = (frit_err){.struct_size = sizeof(bare->err)};
        called = bare->backend->submit(bare->device, NULL, &fill, 1, sizeof(fill), NULL, 0, &next,
                                       &bare->err);
        status = check_call(bare, "submit", called, next);
        bare->err = (frit_err){.struct_size = sizeof(bare->err)};
        if (!status) {
            called = bare->backend->write(bare->device, &transfer, bytes, &next, &bare->err);
            status = check_call(bare, "write", called, next);
        }
        memset(into, UNTOUCHED, sizeof(into));
        bare->err = (frit_err){.struct_size = sizeof(bare->err)};
        if (!status) {
            called = bare->backend->read(bare->device, &transfer, into, &next, &bare->err);
            status = check_call(bare, "read", called, next);
        }
        for (uint32_t i = 0; i < COUNT && !status; i++)
            if (into[i] != UNTOUCHED)
                status = bare_fail_text(bare, "after the loss read writes where it was to fill");
    }
    return status;
}

/* ---- launches that fail ---- */

static const struct block one_ops[] = {
    {.name = "copy", .inputs = "rc", .n_ops = 1, .ops = {{FRIT_OP_copy, {0, BLOCK_NONE}}}},
    {.name = "neg", .inputs = "rc", .n_ops = 1, .ops = {{FRIT_OP_neg, {0, BLOCK_NONE}}}},
    {.name = "exp", .inputs = "rc", .n_ops = 1, .ops = {{FRIT_OP_exp, {0, BLOCK_NONE}}}},
};

static frit_status make_program(struct bare *bare, frit_program *out)
{
    for (size_t i = 0; i < sizeof(one_ops) / sizeof(one_ops[0]); i++) {
        struct block_link link;
        uint64_t bits = 0;
        frit_status status;

        block_link(&one_ops[i], 0, &link);
        link.desc.n_dead = 0;
        status = bare->backend->supports(bare->device, &link.desc, 1, sizeof(link.desc), &bits,
                                         &bare->err);
        if (status || !(bits & 1))
            continue;
        *out = (frit_program){.struct_size = sizeof(*out)};
        status = bare->backend->op_program(bare->device, &link.desc, out, &bare->err);
        return status ? bare_fail(bare, "op_program", status) : FRIT_OK;
    }
    bare_fail_text(bare, "there is no program for copy, neg or exp alone");
    return FRIT_UNSUPPORTED;
}

static frit_status check_failure(struct bare *bare, const frit_failure *failure, uint64_t value,
                                 uint64_t cookie)
{
    if (!failure->status)
        return bare_fail_text(bare, "with %s=%s the launch does not fail", bare->extra->key,
                              bare->extra->value);
    if (failure->cookie != cookie)
        return bare_fail_text(
            bare, "the failure of the launch with cookie %#" PRIx64 " is reported with %#" PRIx64,
            cookie, failure->cookie);
    if (failure->value != value)
        return bare_fail_text(bare, "the failure at %" PRIu64 " is reported at %" PRIu64, value,
                              failure->value);
    if (failure->command != 1 && failure->command != FRIT_ALL_COMMANDS)
        return bare_fail_text(bare, "the failure of command 1 is reported of command %u",
                              failure->command);
    return bare->err.text[0] ? FRIT_OK
                             : bare_fail_text(bare, "a failure is reported without a word");
}

/* A submit that fails enqueued nothing; else wait reports the launch, or the loss of the device. */
static frit_status fail_launch(struct bare *bare, const frit_launch *launch, frit_memory *memory,
                               bool *lost)
{
    const frit_cmd cmd = {.struct_size = sizeof(cmd), .kind = FRIT_CMD_LAUNCH, .launch = launch};
    frit_failure failure = {.struct_size = sizeof(failure), .command = FRIT_ALL_COMMANDS};
    uint64_t value = 0;
    frit_status status;

    bare->err = (frit_err){.struct_size = sizeof(bare->err)};
    status = bare->backend->submit(bare->device, NULL, &cmd, 1, sizeof(cmd), NULL, 0, &value,
                                   &bare->err);
    if (status)
        return status < 0 && bare->err.text[0]
                   ? FRIT_OK
                   : bare_fail_text(bare, "submit returns %d without a word", status);
    bare_set_last(bare, value);
    failure.value = value - 1;
    status =
        bare->backend->wait(bare->device, NULL, value, (uint64_t)(bare->options->timeout / 2 * 1e9),
                            &failure, &bare->err);
    bare->late = status == FRIT_TIMEOUT;
    *lost = status == FRIT_DEVICE_LOST;
    if (bare->late)
        return bare_late(bare);
    if (*lost)
        return check_lost(bare, memory, value);
    return status ? bare_fail(bare, "wait for a launch that fails", status)
                  : check_failure(bare, &failure, value, launch->cookie);
}

static frit_status fail_launches(struct bare *bare, const frit_program *program)
{
    static const int64_t dims[] = {4, COUNT / 4};
    static const float numbers[COUNT];
    static struct bare_answer answer;
    static struct bare_bound bound;
    struct bare_tensor x, y = {0};
    struct bare_launch launch = {.program = program, .n_in = 1, .n_out = 1, .args = {&x, &y}};
    frit_status status = bare_tensor(bare, dims, 2, numbers, &x);
    bool lost = false;

    if (!status)
        status = bare_tensor(bare, dims, 2, NULL, &y);
    if (!status) {
        bare_prepare(bare, &launch, &answer);
        status = bare_compile(bare, &launch, &answer);
        if (!status)
            status = bare_bind(bare, &launch, &answer, &bound);
        for (uint32_t i = 0; i < LAUNCHES && !status && !lost; i++) {
            bound.launch.cookie = COOKIE + i;
            status = fail_launch(bare, &bound.launch, x.memory, &lost);
        }
        bare_unbind(bare, &bound);
        bare_release(program, &answer);
    }
    bare_tensor_free(bare, &x);
    bare_tensor_free(bare, &y);
    return status;
}

static frit_status launches(struct bare *bare)
{
    frit_program program;
    frit_status status = make_program(bare, &program);

    if (status)
        return status;
    status = fail_launches(bare, &program);
    if (!bare->late)
        program.table->destroy(program.self);
    return status;
}

static frit_status check_launches(const struct conform_options *options, const struct lab *lab,
                                  char reason[CONFORM_REASON])
{
    if (!options->fault.key) {
        snprintf(reason, CONFORM_REASON,
                 "it wants --fault OPTION=VALUE, with which launches of the driver fail");
        return FRIT_UNSUPPORTED;
    }
    return bare_check(options, lab, &options->fault, launches, reason);
}

/* ---- the loss ---- */

/* Runs the command of --lose in a shell, which knows this process as FRIT_CONFORM_PID. */
static frit_status lose(struct bare *bare)
{
    char pid[32];
    int status;

    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    (void)setenv("FRIT_CONFORM_PID", pid, 1);
    fflush(NULL);
    status = system(bare->options->lose); /* NOLINT: it is the user's */
    return status ? bare_fail_text(bare, "--lose: the command ends with status %d", status)
                  : FRIT_OK;
}

/* Writes and reads until the device is lost; `*value` was not reached then. */
static frit_status notice(struct bare *bare, frit_memory *memory, uint64_t *value)
{
    static unsigned char into[COUNT];
    const frit_transfer transfer = {
        .struct_size = sizeof(transfer), .memory = memory, .bytes = COUNT};
    const double end = term_clock() + noticed;
    frit_status status = FRIT_OK;

    while (!status && term_clock() < end) {
        frit_failure failure = {.struct_size = sizeof(failure), .command = FRIT_ALL_COMMANDS};
        uint64_t next = 0;

        bare->err = (frit_err){.struct_size = sizeof(bare->err)};
        status = bare->backend->write(bare->device, &transfer, bytes, &next, &bare->err);
        if (!status)
            status = bare->backend->read(bare->device, &transfer, into, &next, &bare->err);
        if (status)
            break;
        *value = failure.value = next;
        bare_set_last(bare, next);
        status = bare->backend->wait(bare->device, NULL, next, (uint64_t)(noticed * 1e9), &failure,
                                     &bare->err);
    }
    if (status == FRIT_DEVICE_LOST)
        return FRIT_OK;
    return bare_fail_text(bare, "%.0f s after --lose the device is not lost, but %s", noticed,
                          frit_status_name(status));
}

/* The device is idle when it is lost. */
static frit_status reported(struct bare *bare)
{
    uint64_t value = 0;
    frit_allocation at;
    frit_status status = bare_alloc(bare, COUNT, 0, &at);

    if (!status)
        status = bare_write(bare, at.memory, 0, bytes, COUNT);
    if (!status)
        status = bare_wait(bare, bare->last);
    if (!status)
        status = lose(bare);
    if (!status)
        status = notice(bare, at.memory, &value);
    if (!status && value && value > bare->reached)
        status = check_lost(bare, at.memory, value);
    bare_free(bare, at.memory);
    return status;
}

/* A loss that nobody notices before the device is closed; then it is opened again, or refused. */
static frit_status closed(struct bare *bare)
{
    const frit_open_params params = {.struct_size = sizeof(params)};
    void *again = NULL;
    frit_allocation at;
    frit_status status = bare_alloc(bare, COUNT, 0, &at);

    if (!status)
        status = bare_write(bare, at.memory, 0, bytes, COUNT);
    if (!status)
        status = lose(bare);
    bare_free(bare, at.memory);
    if (status)
        return status;
    bare->backend->device_close(bare->device);
    bare->device = NULL;
    bare->err = (frit_err){.struct_size = sizeof(bare->err)};
    status =
        bare->backend->device_open(bare->instance, bare->info.index, &params, &again, &bare->err);
    if (status)
        return bare->err.text[0] ? FRIT_OK
                                 : bare_fail_text(bare, "device_open fails without a word");
    bare->backend->device_close(again);
    return FRIT_OK;
}

static frit_status check_lose(const struct conform_options *options, const struct lab *lab,
                              frit_status (*check)(struct bare *bare), char reason[CONFORM_REASON])
{
    frit_status status;

    if (!options->lose) {
        snprintf(reason, CONFORM_REASON, "it wants --lose COMMAND, by which the device is lost");
        return FRIT_UNSUPPORTED;
    }
    status = bare_check(options, lab, NULL, check, reason);
    return status == FRIT_DEVICE_LOST ? FRIT_INTERNAL : status;
}

static frit_status check_reported(const struct conform_options *options, const struct lab *lab,
                                  char reason[CONFORM_REASON])
{
    return check_lose(options, lab, reported, reason);
}

static frit_status check_closed(const struct conform_options *options, const struct lab *lab,
                                char reason[CONFORM_REASON])
{
    return check_lose(options, lab, closed, reason);
}

const struct conform_check fault_checks[] = {
    {"fault", "launches", "a launch that fails is reported by its cookie, and all goes on",
     check_launches},
    {"fault", "lost", "a device that is lost says so in every call, at once and in words",
     check_reported},
    {"fault", "closed", "a device that was lost can be closed, and opened again or refused",
     check_closed},
    {0},
};
