/* SPDX-License-Identifier: Apache-2.0 */
/* The queue by hand: order, the timeline, and what is refused. */
#include <inttypes.h>
#include <string.h>

#include "conform/bare.h"
#include "conform/launch.h"

enum { BYTES = 1 << 16, HALF = BYTES / 2, WORDS = BYTES / 4 };

static frit_status submit(struct bare *bare, const frit_cmd *cmds, uint32_t n, uint64_t *value)
{
    frit_status status = bare->backend->submit(bare->device, NULL, cmds, n, sizeof(*cmds), NULL, 0,
                                               value, &bare->err);

    if (status)
        return bare_fail(bare, "submit", status);
    bare_set_last(bare, *value);
    return FRIT_OK;
}

/* Begins to read all of `memory` into `into`, which must live until the caller has waited. */
static frit_status read_all(struct bare *bare, frit_memory *memory, uint32_t into[WORDS],
                            uint64_t *value)
{
    const frit_transfer from = {.struct_size = sizeof(from), .memory = memory, .bytes = BYTES};
    frit_status status = bare->backend->read(bare->device, &from, into, value, &bare->err);

    if (status)
        return bare_fail(bare, "read", status);
    bare_set_last(bare, *value);
    return FRIT_OK;
}

static frit_cmd fill_of(frit_memory *memory, uint64_t offset, uint64_t bytes, uint32_t word)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_FILL,
                      .dst = memory,
                      .dst_offset = offset,
                      .bytes = bytes,
                      .pattern = word,
                      .pattern_bytes = 4};
}

static frit_status expect_words(struct bare *bare, const uint32_t *got, uint32_t first,
                                uint32_t end, uint32_t want, const char *what)
{
    for (uint32_t i = first; i < end; i++)
        if (got[i] != want)
            return bare_fail_text(bare, "%s: word %u is %u, not %u", what, i, got[i], want);
    return FRIT_OK;
}

/* ---- order ---- */

/* A: written, copied to B, filled, half of it copied to B again, written again; all before any
 * wait. */
static frit_status round_of(struct bare *bare, frit_memory *a, frit_memory *b, uint32_t number)
{
    static uint32_t words[WORDS], from_a[WORDS], from_b[WORDS];
    const frit_cmd barrier = {.struct_size = sizeof(barrier), .kind = FRIT_CMD_BARRIER};
    const frit_cmd copy = {
        .struct_size = sizeof(copy), .kind = FRIT_CMD_COPY, .dst = b, .src = a, .bytes = BYTES};
    frit_cmd cmds[5] = {copy, barrier, fill_of(a, 0, BYTES, 10 * number + 2), barrier, copy};
    uint64_t value = 0;
    frit_status status;

    cmds[4].dst_offset = HALF;
    cmds[4].bytes = HALF;
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = 10 * number + 1;
    status = bare_write(bare, a, 0, words, BYTES);
    if (!status)
        status = submit(bare, cmds, 5, &value);
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = 10 * number + 3;
    if (!status)
        status = bare_write(bare, a, 0, words, BYTES);
    if (!status)
        status = read_all(bare, b, from_b, &value);
    if (!status)
        status = read_all(bare, a, from_a, &value);
    if (!status)
        status = bare_wait(bare, value);
    if (!status)
        status = expect_words(bare, from_b, 0, WORDS / 2, 10 * number + 1, "a copy of a write");
    if (!status)
        status = expect_words(bare, from_b, WORDS / 2, WORDS, 10 * number + 2, "a copy of a fill");
    if (!status)
        status = expect_words(bare, from_a, 0, WORDS, 10 * number + 3, "a write after a fill");
    return status;
}

static frit_status order(struct bare *bare)
{
    frit_allocation a, b = {0};
    frit_status status = bare_alloc(bare, BYTES, 0, &a);

    if (!status)
        status = bare_alloc(bare, BYTES, 0, &b);
    for (uint32_t i = 0; i < 32 && !status; i++)
        status = round_of(bare, a.memory, b.memory, i);
    bare_free(bare, a.memory);
    bare_free(bare, b.memory);
    return status;
}

/* ---- the timeline ---- */

/* A value that is waited for twice: with no time at all, then with all of it. */
static frit_status poll_value(struct bare *bare, uint64_t value)
{
    static const uint64_t timeouts[] = {0, UINT64_MAX, 0};

    for (int i = 0; i < 3; i++) {
        frit_failure failure = {
            .struct_size = sizeof(failure), .value = value - 1, .command = FRIT_ALL_COMMANDS};
        frit_status status =
            bare->backend->wait(bare->device, NULL, value, timeouts[i], &failure, &bare->err);

        if (status == FRIT_TIMEOUT && i == 0)
            continue;
        if (status)
            return bare_fail_text(bare, "wait for %" PRIu64 " %s: %s", value,
                                  i ? "that was reached" : "without time",
                                  frit_status_name(status));
        if (failure.status || failure.value != value - 1)
            return bare_fail_text(bare, "wait for %" PRIu64 " reports a failure: %s at %" PRIu64,
                                  value, frit_status_name(failure.status), failure.value);
    }
    return FRIT_OK;
}

/* Value `number` of a series: a write, a submit or a read in turn. */
static frit_status step(struct bare *bare, frit_memory *memory, uint32_t number,
                        const frit_point *wait, uint64_t *value)
{
    static uint32_t words[16];
    const frit_transfer transfer = {.struct_size = sizeof(transfer),
                                    .n_waits = wait != NULL,
                                    .memory = memory,
                                    .bytes = sizeof(words),
                                    .waits = wait};
    const frit_cmd fill = fill_of(memory, 0, BYTES, number);
    frit_status status;

    if (number % 3 == 0)
        status = bare->backend->write(bare->device, &transfer, words, value, &bare->err);
    else if (number % 3 == 1)
        status = bare->backend->submit(bare->device, NULL, &fill, 1, sizeof(fill), wait,
                                       wait != NULL, value, &bare->err);
    else
        status = bare->backend->read(bare->device, &transfer, words, value, &bare->err);
    if (status)
        return bare_fail(bare, "a write, submit or read", status);
    bare_set_last(bare, *value);
    return FRIT_OK;
}

static frit_status timeline(struct bare *bare)
{
    enum { STEPS = 30 };
    frit_point last = {NULL, 0};
    uint64_t values[STEPS];
    frit_allocation at;
    frit_status status = bare_alloc(bare, BYTES, 0, &at);

    for (uint32_t i = 0; i < STEPS && !status; i++) {
        status = step(bare, at.memory, i, i ? &last : NULL, &values[i]);
        if (!status && values[i] <= last.value)
            status = bare_fail_text(bare, "the timeline goes from %" PRIu64 " to %" PRIu64,
                                    last.value, values[i]);
        last.value = values[i];
    }
    for (uint32_t i = STEPS; i-- > 0 && !status;) /* the last first: then all are reached */
        status = poll_value(bare, values[i]);
    bare_free(bare, at.memory);
    return status;
}

/* ---- what is refused ---- */

/* A submit whose second command cannot be: the first is not done either. */
static frit_status refuse(struct bare *bare, frit_memory *memory, const frit_cmd *bad,
                          const char *what)
{
    static uint32_t got[WORDS];
    const frit_cmd cmds[2] = {fill_of(memory, 0, BYTES, 666), *bad};
    uint64_t value = 0;
    frit_status status;

    for (int slot = 0; slot < 2; slot++) {
        bare->err = (frit_err){.struct_size = sizeof(bare->err)};
        status = bare->backend->submit(bare->device, NULL, cmds, 2, sizeof(cmds[0]), NULL, 0,
                                       &value, slot ? &bare->err : NULL);
        if (status >= 0)
            return bare_fail_text(bare, "submit takes %s", what);
    }
    if (!bare->err.text[0])
        return bare_fail_text(bare, "submit refuses %s without a word", what);
    status = bare_read(bare, memory, 0, got, BYTES);
    return status ? status
                  : expect_words(bare, got, 0, WORDS, 5, "after a submit that was refused");
}

static frit_status refusals(struct bare *bare)
{
    const frit_cmd kind = {.struct_size = sizeof(kind), .kind = 4095};
    uint64_t value = 0;
    frit_allocation at;
    frit_status status = bare_alloc(bare, BYTES, 0, &at);

    if (!status)
        status = submit(bare, (frit_cmd[1]){fill_of(at.memory, 0, BYTES, 5)}, 1, &value);
    if (!status)
        status = refuse(bare, at.memory, &kind, "a command of a kind that nobody knows");
    if (!status)
        status = poll_value(bare, value);
    bare_free(bare, at.memory);
    return status;
}

/* ---- several queues ---- */

/* A second queue beside the first one, and memory that both use. */
struct pair {
    frit_queue *queue;
    uint64_t last; /* value of the second queue's last call */
    frit_allocation a, b;
};

static frit_status open_pair(struct bare *bare, struct pair *pair)
{
    const frit_queue_desc desc = {.struct_size = sizeof(desc), .kind = FRIT_QUEUE_COMPUTE};
    frit_status status;

    *pair = (struct pair){0};
    status = bare->backend->queue_create(bare->device, &desc, &pair->queue, &bare->err);
    if (status)
        return status == FRIT_UNSUPPORTED ? status : bare_fail(bare, "queue_create", status);
    if (!pair->queue)
        return bare_fail_text(bare, "queue_create gives no handle");
    status = bare_alloc(bare, BYTES, 0, &pair->a);
    return status ? status : bare_alloc(bare, BYTES, 0, &pair->b);
}

static frit_status wait_second(struct bare *bare, const struct pair *pair)
{
    frit_failure failure = {.struct_size = sizeof(failure), .value = pair->last};
    frit_status status;

    if (!pair->last)
        return FRIT_OK;
    status = bare->backend->wait(bare->device, pair->queue, pair->last, (uint64_t)5000000000,
                                 &failure, &bare->err);
    return status ? bare_fail(bare, "wait for the second queue", status) : FRIT_OK;
}

/* Where the second queue never ends all stays. */
static void close_pair(struct bare *bare, const struct pair *pair)
{
    if (bare->late || wait_second(bare, pair))
        return;
    bare_free(bare, pair->a.memory);
    bare_free(bare, pair->b.memory);
    bare->backend->queue_destroy(bare->device, pair->queue);
}

/* Commands on a queue, ordered after `after` (NULL: nothing); gives their point. */
static frit_status submit_to(struct bare *bare, struct pair *pair, frit_queue *queue,
                             const frit_cmd *cmds, uint32_t n, const frit_point *after,
                             frit_point *point)
{
    uint64_t value = 0;
    frit_status status = bare->backend->submit(bare->device, queue, cmds, n, sizeof(*cmds), after,
                                               after != NULL, &value, &bare->err);

    if (status)
        return bare_fail(bare, "submit with a point to wait for", status);
    if (queue)
        pair->last = value;
    else
        bare_set_last(bare, value);
    *point = (frit_point){queue, value};
    return FRIT_OK;
}

/* The first queue fills A for long, the second copies it to B, the first fills it again, and B is
 * read. */
static frit_status hand_over(struct bare *bare, struct pair *pair, uint32_t number)
{
    enum { FILLS = 200 };
    static uint32_t got[WORDS];
    static frit_cmd cmds[2 * FILLS];
    const frit_cmd copy = {.struct_size = sizeof(copy),
                           .kind = FRIT_CMD_COPY,
                           .dst = pair->b.memory,
                           .src = pair->a.memory,
                           .bytes = BYTES};
    const frit_cmd again = fill_of(pair->a.memory, 0, BYTES, 7);
    const frit_transfer from = {.struct_size = sizeof(from),
                                .queue = pair->queue,
                                .memory = pair->b.memory,
                                .bytes = BYTES};
    frit_point filled, copied, refilled;
    frit_status status;

    for (uint32_t i = 0; i < FILLS; i++) {
        cmds[2 * i] = fill_of(pair->a.memory, 0, BYTES, i + 1 < FILLS ? i : number);
        cmds[2 * i + 1] = (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};
    }
    status = submit_to(bare, pair, NULL, cmds, 2 * FILLS - 1, NULL, &filled);
    if (!status)
        status = submit_to(bare, pair, pair->queue, &copy, 1, &filled, &copied);
    if (!status)
        status = submit_to(bare, pair, NULL, &again, 1, &copied, &refilled);
    if (!status)
        status = bare->backend->read(bare->device, &from, got, &pair->last, &bare->err);
    if (!status)
        status = wait_second(bare, pair);
    return status ? status
                  : expect_words(bare, got, 0, WORDS, number, "a copy after another queue's fill");
}

static frit_status waits(struct bare *bare)
{
    struct pair pair;
    frit_status status;

    if (!FRIT_HAS(bare->backend, frit_backend, queue_destroy) || !bare->backend->queue_create)
        return FRIT_OK;
    status = open_pair(bare, &pair);
    if (status == FRIT_UNSUPPORTED)
        return FRIT_OK;
    for (uint32_t i = 0; i < 16 && !status; i++)
        status = hand_over(bare, &pair, 1000 + i);
    if (pair.queue)
        close_pair(bare, &pair);
    return status;
}

/* ---- what was never made ---- */

static const char *const slots[] = {"submit", "write", "read", "wait"};

/* A call of a slot, on a queue and after a point, NULL: none. */
static frit_status call(struct bare *bare, uint32_t slot, frit_memory *memory, frit_queue *queue,
                        const frit_point *wait, uint64_t *value)
{
    static uint32_t words[16];
    const frit_backend *backend = bare->backend;
    const frit_cmd fill = fill_of(memory, 0, BYTES, 666);
    const frit_transfer transfer = {.struct_size = sizeof(transfer),
                                    .n_waits = wait != NULL,
                                    .queue = queue,
                                    .memory = memory,
                                    .bytes = sizeof(words),
                                    .waits = wait};
    frit_failure failure = {.struct_size = sizeof(failure)};

    if (slot == 0)
        return backend->submit(bare->device, queue, &fill, 1, sizeof(fill), wait, wait != NULL,
                               value, &bare->err);
    if (slot == 1)
        return backend->write(bare->device, &transfer, words, value, &bare->err);
    if (slot == 2)
        return backend->read(bare->device, &transfer, words, value, &bare->err);
    return backend->wait(bare->device, wait ? wait->queue : queue, wait ? wait->value : 0, 0,
                         &failure, &bare->err);
}

static frit_status refuse_call(struct bare *bare, uint32_t slot, frit_memory *memory,
                               frit_queue *queue, const frit_point *wait, const char *what)
{
    uint64_t value = 0;
    frit_status status;

    bare->err = (frit_err){.struct_size = sizeof(bare->err)};
    status = call(bare, slot, memory, queue, wait, &value);
    if (!status)
        bare_set_last(bare, value);
    if (status != FRIT_INVALID)
        return bare_fail_text(bare, "%s with %s: %s, not %s", slots[slot], what,
                              frit_status_name(status), frit_status_name(FRIT_INVALID));
    return bare->err.text[0]
               ? FRIT_OK
               : bare_fail_text(bare, "%s refuses %s without a word", slots[slot], what);
}

/* Zeroed memory that is not a queue. */
static frit_queue *stranger(void)
{
    static _Alignas(64) char bytes[4096];

    return (frit_queue *)(void *)bytes;
}

static frit_status never_made(struct bare *bare)
{
    static uint32_t got[WORDS];
    frit_point of_stranger = {stranger(), 1}, to_come = {NULL, 0};
    uint64_t value = 0;
    frit_allocation at;
    frit_status status = bare_alloc(bare, BYTES, 0, &at);

    if (!status)
        status = submit(bare, (frit_cmd[1]){fill_of(at.memory, 0, BYTES, 5)}, 1, &value);
    to_come.value = value + 1000;
    for (uint32_t slot = 0; slot < 4 && !status; slot++) {
        status = refuse_call(bare, slot, at.memory, NULL, &to_come, "a value that was never given");
        if (!status)
            status = refuse_call(bare, slot, at.memory, NULL, &of_stranger,
                                 "a point of a queue that was never made");
        if (!status)
            status =
                refuse_call(bare, slot, at.memory, stranger(), NULL, "a queue that was never made");
    }
    if (!status)
        status = bare_read(bare, at.memory, 0, got, BYTES);
    if (!status)
        status = expect_words(bare, got, 0, WORDS, 5, "after calls that were refused");
    bare_free(bare, at.memory);
    return status;
}

BARE_CHECK(order, NULL)
BARE_CHECK(timeline, NULL)
BARE_CHECK(refusals, NULL)
BARE_CHECK(waits, NULL)
BARE_CHECK(never_made, NULL)

const struct conform_check queue_checks[] = {
    {"queue", "order", "writes, copies, fills and reads happen in the order of their submission",
     check_order},
    {"queue", "timeline", "each submission is a later point, and waiting for it waits",
     check_timeline},
    {"queue", "refusals", "a submission with a wrong command is refused whole", check_refusals},
    {"queue", "waits", "what a queue does runs after the points of another that it is given",
     check_waits},
    {"queue", "never-made", "a queue or a value that was never made is refused", check_never_made},
    {0},
};
