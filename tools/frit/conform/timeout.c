/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for what takes its time: the queue is given work that outlasts submit. */
#include <inttypes.h>
#include <string.h>

#include "conform/bare.h"
#include "conform/launch.h"
#include "term.h"

enum {
    BYTES = 1 << 24,
    EACH = 1 << 9,      /* FILL commands of one submit at most */
    MOST = 1 << 16,     /* and of all */
    TRIES = 3,          /* of a wait that should be too short, on a machine that does other work */
    SHORT_NS = 20000000 /* a timeout within the work */
};

/* Seconds that the work takes after submit; by which clocks may differ. */
static const double busy = 0.06, clock_slack = 2e-3;

struct load {
    struct bare *bare;
    frit_allocation at;
    uint32_t n;     /* FILL commands that take so long */
    uint64_t value; /* of the last */
};

static frit_status submit_fills(struct load *load, uint32_t n, uint32_t word)
{
    static frit_cmd cmds[2 * EACH];
    struct bare *bare = load->bare;
    frit_status status;

    for (uint32_t i = 0; i < n; i++) {
        cmds[2 * i] = (frit_cmd){.struct_size = sizeof(frit_cmd),
                                 .kind = FRIT_CMD_FILL,
                                 .dst = load->at.memory,
                                 .bytes = BYTES,
                                 .pattern = word,
                                 .pattern_bytes = 4};
        cmds[2 * i + 1] = (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};
    }
    status = bare->backend->submit(bare->device, NULL, cmds, 2 * n, sizeof(cmds[0]), NULL, 0,
                                   &load->value, &bare->err);
    if (status)
        return bare_fail(bare, "submit", status);
    bare_set_last(bare, load->value);
    return FRIT_OK;
}

/* Fills the buffer many times, at last with `mark`. */
static frit_status submit_load(struct load *load, uint32_t mark)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < load->n && !status; i += EACH)
        status = submit_fills(load, load->n - i < EACH ? load->n - i : EACH, ~mark);
    return status ? status : submit_fills(load, 1, mark);
}

/* FRIT_UNSUPPORTED where the work is done inside of submit. */
static frit_status find_load(struct load *load)
{
    frit_status status = FRIT_OK;
    double begin, submitted = 0, end = 0;

    for (load->n = 1; load->n <= MOST && !status; load->n *= 2) {
        begin = term_clock();
        status = submit_load(load, load->n);
        submitted = term_clock();
        if (!status)
            status = bare_wait(load->bare, load->value);
        end = term_clock();
        if (status || end - submitted >= busy)
            return status;
        if (submitted - begin >= busy)
            break;
    }
    bare_fail_text(load->bare, "its queue is done with %u fills of %d MiB when submit returns",
                   load->n, BYTES >> 20);
    return status ? status : FRIT_UNSUPPORTED;
}

/* What a wait that is too short returned, and how long it and the rest of the work took. */
struct brief {
    frit_status status;
    double seconds, rest;
};

static frit_status try_wait(struct load *load, uint64_t timeout_ns, uint32_t mark,
                            struct brief *out)
{
    static uint32_t result; /* a read may come late */
    struct bare *bare = load->bare;
    frit_failure failure = {.struct_size = sizeof(failure), .command = FRIT_ALL_COMMANDS};
    frit_status status = submit_load(load, mark);
    double begin = term_clock();

    if (status)
        return status;
    failure.value = load->value;
    out->status =
        bare->backend->wait(bare->device, NULL, load->value, timeout_ns, &failure, &bare->err);
    out->seconds = term_clock() - begin;
    if (out->status && out->status != FRIT_TIMEOUT)
        return bare_fail(bare, "wait", out->status);
    result = 0;
    begin = term_clock();
    status = bare_read(bare, load->at.memory, BYTES - sizeof(result), &result, sizeof(result));
    out->rest = term_clock() - begin;
    if (!status && result != mark)
        return bare_fail_text(bare, "wait is ok, and what was read has not arrived");
    return status;
}

/* A wait that is too short must time out, no earlier than its time.  It may return ok where this
 * thread was held up; not always. */
static frit_status wait_briefly(struct load *load, uint64_t timeout_ns)
{
    const double wanted = (double)timeout_ns * 1e-9;
    uint32_t early = 0;

    for (uint32_t i = 1; i <= TRIES; i++) {
        struct brief brief = {0};
        frit_status status = try_wait(load, timeout_ns, i, &brief);

        if (status)
            return status;
        if (brief.status == FRIT_TIMEOUT)
            return brief.seconds >= wanted - clock_slack
                       ? FRIT_OK
                       : bare_fail_text(load->bare, "wait with %.0f ms times out after %.3f ms",
                                        wanted * 1e3, brief.seconds * 1e3);
        early += brief.rest >= busy / 2;
    }
    return bare_fail_text(load->bare, "wait with %.0f ms %s", wanted * 1e3,
                          early == TRIES ? "is ok before the value is reached"
                                         : "never times out, and waits on");
}

static frit_status timeouts(struct bare *bare)
{
    struct load load = {.bare = bare};
    frit_status status;

    if (bare->info.caps & FRIT_CAP_INLINE_QUEUE) {
        bare_fail_text(bare, "its queue works inside of submit");
        return FRIT_UNSUPPORTED;
    }
    status = bare_alloc(bare, BYTES, 0, &load.at);
    if (!status)
        status = find_load(&load);
    if (!status)
        status = wait_briefly(&load, 0);
    if (!status)
        status = wait_briefly(&load, SHORT_NS);
    bare_free(bare, load.at.memory);
    return status;
}

BARE_CHECK(timeouts, NULL)

const struct conform_check timeout_checks[] = {
    {"queue", "timeouts", "wait returns when its time is over, and ok only for what was reached",
     check_timeouts},
    {0},
};
