/* SPDX-License-Identifier: Apache-2.0 */
/* Checks TIMESTAMP commands, and the device clock whose ticks they write. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <frit/profile.h>

#include "conform/bare.h"
#include "conform/launch.h"

enum {
    TICKS = 5,           /* timestamps: four in one submit, one in the next */
    BYTES = 1 << 16,     /* that are filled and copied between them */
    PAUSE_NS = 50000000, /* between two readings of the clock */
    SLACK_NS = 10000000  /* by which device and host may differ */
};

static uint64_t now_ns(struct bare *bare)
{
    const frit_host_core *core =
        bare->root.get_interface(bare->root.self, FRIT_STR(FRIT_HOST_CORE));

    return core->now_ns(bare->root.self);
}

/* Nanoseconds from a count of ticks to a later one, below 0 for an earlier one. */
static double elapsed(const frit_clock *clock, uint64_t from, uint64_t to)
{
    const uint32_t unused = 64 - clock->valid_bits;

    return (double)((int64_t)((to - from) << unused) >> unused) * clock->ns_per_tick;
}

/* ---- the clock ---- */

static frit_status read_clock(struct bare *bare, frit_clock *out)
{
    const uint64_t before = now_ns(bare);
    frit_status status;

    *out = (frit_clock){.struct_size = sizeof(*out)};
    status = bare->profile->clock(bare->device, out, &bare->err);
    if (status == FRIT_UNSUPPORTED)
        return status;
    if (status)
        return bare_fail(bare, "clock", status);
    if (out->valid_bits < 1 || out->valid_bits > 64 || !(out->ns_per_tick > 0))
        return bare_fail_text(bare, "the clock has %u valid bits and %g ns per tick",
                              out->valid_bits, out->ns_per_tick);
    if (out->host_ns < before || out->host_ns > now_ns(bare))
        return bare_fail_text(
            bare, "the clock's host_ns is not between the begin and the end of the call");
    return FRIT_OK;
}

/* Reads the clock twice: device and host must advance equally.  Returns the second reading. */
static frit_status compare_clocks(struct bare *bare, frit_clock *clock)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    frit_clock first;
    frit_status status = read_clock(bare, &first);
    double device, host;

    if (status)
        return status;
    nanosleep(&pause, NULL);
    status = read_clock(bare, clock);
    if (status)
        return status;
    device = elapsed(clock, first.ticks, clock->ticks);
    host = (double)(clock->host_ns - first.host_ns);
    if (device < host - SLACK_NS || device > host + SLACK_NS)
        return bare_fail_text(bare, "the clock gives %.3f ms for %.3f ms of the host",
                              device * 1e-6, host * 1e-6);
    return FRIT_OK;
}

/* ---- timestamps ---- */

static frit_cmd timestamp(frit_memory *memory, uint32_t number)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_TIMESTAMP,
                      .dst = memory,
                      .dst_offset = number * sizeof(uint64_t)};
}

static frit_status submit_all(struct bare *bare, frit_memory *ticks, frit_memory *a, frit_memory *b,
                              uint64_t *value)
{
    const frit_cmd fill = {.struct_size = sizeof(fill),
                           .kind = FRIT_CMD_FILL,
                           .dst = a,
                           .bytes = BYTES,
                           .pattern = 1,
                           .pattern_bytes = 4};
    const frit_cmd copy = {
        .struct_size = sizeof(copy), .kind = FRIT_CMD_COPY, .dst = b, .src = a, .bytes = BYTES};
    const frit_cmd barrier = {.struct_size = sizeof(barrier), .kind = FRIT_CMD_BARRIER};
    const frit_cmd first[] = {
        timestamp(ticks, 0), fill, timestamp(ticks, 1), barrier, copy, timestamp(ticks, 2),
        timestamp(ticks, 3)};
    const frit_cmd second = timestamp(ticks, 4);
    frit_status status =
        bare->backend->submit(bare->device, NULL, first, sizeof(first) / sizeof(first[0]),
                              sizeof(first[0]), NULL, 0, value, &bare->err);

    if (!status) {
        bare_set_last(bare, *value);
        status = bare->backend->submit(bare->device, NULL, &second, 1, sizeof(second), NULL, 0,
                                       value, &bare->err);
    }
    if (status)
        return bare_fail(bare, "submit", status);
    bare_set_last(bare, *value);
    return bare_wait(bare, *value);
}

static frit_status check_ticks(struct bare *bare, const frit_clock *clock,
                               const uint64_t ticks[TICKS], uint64_t before, uint64_t after)
{
    const double since = elapsed(clock, clock->ticks, ticks[0]) + (double)clock->host_ns;
    const double until = elapsed(clock, clock->ticks, ticks[TICKS - 1]) + (double)clock->host_ns;

    for (uint32_t i = 0; i < TICKS; i++) {
        if (clock->valid_bits < 64 && ticks[i] >> clock->valid_bits)
            return bare_fail_text(bare, "ticks of %" PRIx64 " have more than %u bits", ticks[i],
                                  clock->valid_bits);
        if (i && elapsed(clock, ticks[i - 1], ticks[i]) < 0)
            return bare_fail_text(bare, "in one queue the ticks go from %" PRIu64 " to %" PRIu64,
                                  ticks[i - 1], ticks[i]);
    }
    if (since < (double)before - SLACK_NS)
        return bare_fail_text(bare, "a timestamp lies %.3f ms before its submit",
                              ((double)before - since) * 1e-6);
    if (until > (double)after + SLACK_NS)
        return bare_fail_text(bare, "a timestamp lies %.3f ms after the wait for it",
                              (until - (double)after) * 1e-6);
    return FRIT_OK;
}

static frit_status measure(struct bare *bare, const frit_clock *clock, frit_memory *memory,
                           frit_memory *a, frit_memory *b)
{
    const uint64_t before = now_ns(bare);
    uint64_t ticks[TICKS] = {0}, value = 0, after;
    frit_status status = submit_all(bare, memory, a, b, &value);

    after = now_ns(bare);
    if (!status)
        status = bare_read(bare, memory, 0, ticks, sizeof(ticks));
    return status ? status : check_ticks(bare, clock, ticks, before, after);
}

static frit_status timestamps(struct bare *bare)
{
    frit_allocation ticks, a = {0}, b = {0};
    frit_clock clock;
    frit_status status;

    if (!bare->profile) {
        bare_fail_text(bare, "the plugin has no " FRIT_PROFILE_TABLE);
        return FRIT_UNSUPPORTED;
    }
    status = compare_clocks(bare, &clock);
    if (status)
        return status;
    status = bare_alloc(bare, TICKS * sizeof(uint64_t), 0, &ticks);
    if (!status)
        status = bare_alloc(bare, BYTES, 0, &a);
    if (!status)
        status = bare_alloc(bare, BYTES, 0, &b);
    if (!status)
        status = measure(bare, &clock, ticks.memory, a.memory, b.memory);
    bare_free(bare, ticks.memory);
    bare_free(bare, a.memory);
    bare_free(bare, b.memory);
    return status;
}

BARE_CHECK(timestamps, NULL)

const struct conform_check clock_checks[] = {
    {"queue", "timestamps", "device time goes forwards, and lies between submit and wait",
     check_timestamps},
    {0},
};
