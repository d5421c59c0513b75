/* SPDX-License-Identifier: Apache-2.0 */
/* frit.capture/1 by hand.  What is recorded adds a scalar twice: y = x + s, then z = y + t. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "conform/block.h"
#include "conform/launch.h"

enum { ROWS = 20, COLS = 50, N = ROWS * COLS, LAUNCHES = 2, PENDING = 40 };

/* The block: of each launch its scalar, the places of its input and its output, its cookie. */
struct of_launch {
    double scalar;
    frit_place in, out;
    uint64_t cookie;
};

struct capturing {
    struct bare *bare;
    frit_program program;
    struct bare_answer answer;
    struct bare_bound bound[LAUNCHES];
    bool has_program, has_answer;
    struct bare_tensor x, y, z;
    frit_recording *recording;
    uint64_t value; /* of the last replay */
};

static float numbers[N];

static frit_status make_tensor(struct bare *bare, const float *values, struct bare_tensor *out)
{
    static const int64_t dims[] = {ROWS, COLS};

    return bare_tensor(bare, dims, 2, values, out);
}

/* ---- a program ---- */

static const struct block sum_block = {
    .name = "sum", .inputs = "rc", .n_ops = 1, .ops = {{FRIT_OP_add, {0, BLOCK_SCALAR}}}};

/* FRIT_UNSUPPORTED where the device does not add. */
static frit_status make_program(struct capturing *c)
{
    struct bare *bare = c->bare;
    struct block_link link;
    uint64_t bits = 0;
    frit_status status;

    block_link(&sum_block, 0, &link);
    link.desc.n_dead = 0;
    status =
        bare->backend->supports(bare->device, &link.desc, 1, sizeof(link.desc), &bits, &bare->err);
    if (status || !(bits & 1)) {
        bare_fail_text(bare, "there is no program for add alone");
        return FRIT_UNSUPPORTED;
    }
    c->program = (frit_program){.struct_size = sizeof(c->program)};
    status = bare->backend->op_program(bare->device, &link.desc, &c->program, &bare->err);
    c->has_program = !status;
    return status ? bare_fail(bare, "op_program", status) : FRIT_OK;
}

static frit_status bind(struct capturing *c)
{
    const struct bare_launch launches[LAUNCHES] = {{.program = &c->program,
                                                    .n_in = 2,
                                                    .n_out = 1,
                                                    .n_scalars = 1,
                                                    .args = {&c->x, NULL, &c->y},
                                                    .scalars = {0.25}},
                                                   {.program = &c->program,
                                                    .n_in = 2,
                                                    .n_out = 1,
                                                    .n_scalars = 1,
                                                    .args = {&c->y, NULL, &c->z},
                                                    .scalars = {1.25}}};
    frit_status status;

    bare_prepare(c->bare, &launches[0], &c->answer);
    c->has_answer = c->answer.status >= 0;
    status = bare_compile(c->bare, &launches[0], &c->answer);
    if (!status && c->answer.spec.workspace_zeroed)
        return FRIT_UNSUPPORTED;
    for (uint32_t i = 0; i < LAUNCHES && !status; i++)
        status = bare_bind(c->bare, &launches[i], &c->answer, &c->bound[i]);
    return status;
}

/* ---- recordings ---- */

static frit_status record(struct capturing *c)
{
    struct bare *bare = c->bare;
    const frit_cmd cmds[] = {
        {.struct_size = sizeof(cmds[0]), .kind = FRIT_CMD_LAUNCH, .launch = &c->bound[0].launch},
        {.struct_size = sizeof(cmds[0]), .kind = FRIT_CMD_BARRIER},
        {.struct_size = sizeof(cmds[0]), .kind = FRIT_CMD_LAUNCH, .launch = &c->bound[1].launch}};
    frit_param params[4 * LAUNCHES];
    frit_status status;

    for (uint32_t i = 0; i < LAUNCHES; i++) {
        const uint64_t at = i * sizeof(struct of_launch);
        const uint32_t command = 2 * i;

        params[4 * i] =
            (frit_param){command, FRIT_PARAM_SCALAR, 0, 0, at + offsetof(struct of_launch, scalar)};
        params[4 * i + 1] =
            (frit_param){command, FRIT_PARAM_ARG, 0, 0, at + offsetof(struct of_launch, in)};
        params[4 * i + 2] =
            (frit_param){command, FRIT_PARAM_ARG, 2, 0, at + offsetof(struct of_launch, out)};
        params[4 * i + 3] =
            (frit_param){command, FRIT_PARAM_COOKIE, 0, 0, at + offsetof(struct of_launch, cookie)};
    }
    status = bare->capture->record(bare->device, NULL, cmds, 3, sizeof(cmds[0]), params,
                                   4 * LAUNCHES, sizeof(params[0]), &c->recording, &bare->err);
    if (!status)
        return FRIT_OK;
    bare_fail(bare, "record", status);
    return status;
}

static frit_place place_of(const struct bare_tensor *tensor)
{
    return (frit_place){tensor->memory, tensor->guard};
}

static frit_status replay(struct capturing *c, const struct bare_tensor *x,
                          const struct bare_tensor *y, const struct bare_tensor *z, double s,
                          double t)
{
    struct bare *bare = c->bare;
    struct of_launch block[LAUNCHES] = {{s, place_of(x), place_of(y), 7},
                                        {t, place_of(y), place_of(z), 8}};
    uint64_t value = 0;
    frit_status status =
        bare->capture->replay(bare->device, c->recording, block, NULL, 0, &value, &bare->err);

    memset(block, 0xee, sizeof(block)); /* it was borrowed */
    if (status)
        return bare_fail(bare, "replay", status);
    bare_set_last(bare, value);
    if (value <= c->value)
        return bare_fail_text(bare, "a replay goes from %" PRIu64 " to %" PRIu64, c->value, value);
    c->value = value;
    return FRIT_OK;
}

/* NaN: they were never written. */
static frit_status expect(struct capturing *c, const struct bare_tensor *tensor, double more,
                          const char *what)
{
    static float got[N];
    frit_status status = bare_numbers(c->bare, tensor, got);

    for (uint32_t i = 0; i < N && !status; i++) {
        const float want = numbers[i] + (float)more;

        if (isnan(more) ? !isnan(got[i]) : got[i] != want)
            return bare_fail_text(c->bare, "%s: number %u is %g, not %g", what, i, (double)got[i],
                                  (double)want);
    }
    return status;
}

/* ---- the checks ---- */

static frit_status begin(struct bare *bare, struct capturing *c)
{
    frit_status status;

    *c = (struct capturing){.bare = bare};
    if (!bare->capture) {
        bare_fail_text(bare, "the plugin records no commands");
        return FRIT_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < N; i++)
        numbers[i] = (float)i;
    status = make_program(c);
    if (!status)
        status = make_tensor(bare, numbers, &c->x);
    if (!status)
        status = make_tensor(bare, NULL, &c->y);
    if (!status)
        status = make_tensor(bare, NULL, &c->z);
    if (!status)
        status = bind(c);
    if (!status)
        status = record(c);
    return status;
}

/* Tensors wait for what is pending. */
static frit_status end(struct capturing *c, frit_status status)
{
    struct bare *bare = c->bare;

    bare_tensor_free(bare, &c->x);
    bare_tensor_free(bare, &c->y);
    bare_tensor_free(bare, &c->z);
    for (uint32_t i = 0; i < LAUNCHES; i++)
        bare_unbind(bare, &c->bound[i]);
    if (bare->late)
        return status;
    if (c->recording)
        bare->capture->release(bare->device, c->recording);
    if (c->has_answer)
        bare_release(&c->program, &c->answer);
    if (c->has_program)
        c->program.table->destroy(c->program.self);
    return status;
}

static frit_status recorded(struct bare *bare)
{
    struct capturing c;
    frit_status status = begin(bare, &c);

    if (!status)
        status = expect(&c, &c.z, (double)NAN, "record runs what it is to record");
    for (uint32_t i = 0; i < 4 && !status; i++) {
        status = replay(&c, &c.x, &c.y, &c.z, 0.25 + i, 2.25 * i + 1.25);
        if (!status)
            status = expect(&c, &c.z, 3.25 * i + 1.5, "a replay with other scalars");
    }
    return end(&c, status);
}

static frit_status recorded_places(struct bare *bare)
{
    struct bare_tensor x = {0}, y = {0}, z = {0};
    struct capturing c;
    frit_status status = begin(bare, &c);

    if (!status)
        status = make_tensor(bare, numbers, &x);
    if (!status)
        status = make_tensor(bare, NULL, &y);
    if (!status)
        status = make_tensor(bare, NULL, &z);
    for (uint32_t i = 0; i < N; i++) /* what lies at the recorded place is wrong */
        numbers[i] += 100;
    if (!status)
        status = bare_write(bare, x.memory, x.guard, numbers, sizeof(numbers));
    if (!status)
        status = replay(&c, &x, &y, &z, 0.25, 0.5);
    if (!status)
        status =
            expect(&c, &c.z, (double)NAN, "what was recorded is written by a replay elsewhere");
    if (!status)
        status = expect(&c, &z, 0.75, "a replay at other places");
    bare_tensor_free(bare, &x);
    bare_tensor_free(bare, &y);
    bare_tensor_free(bare, &z);
    return end(&c, status);
}

/* Each reads what the one before it has written, and nobody waits. */
static frit_status recorded_pending(struct bare *bare)
{
    static struct bare_tensor made[PENDING];
    const struct bare_tensor *from;
    struct capturing c;
    frit_status status = begin(bare, &c);

    memset(made, 0, sizeof(made));
    from = &c.x;
    for (uint32_t i = 0; i < PENDING && !status; i++)
        status = make_tensor(bare, NULL, &made[i]);
    for (uint32_t i = 0; i < PENDING && !status; i++) {
        status = replay(&c, from, &c.y, &made[i], 0.25, i);
        from = &made[i];
    }
    for (uint32_t i = 0; i < PENDING && !status; i++)
        status = expect(&c, &made[i], 0.25 * (i + 1) + 0.5 * i * (i + 1), "one of many replays");
    for (uint32_t i = 0; i < PENDING; i++)
        bare_tensor_free(bare, &made[i]);
    return end(&c, status);
}

BARE_CHECK(recorded, NULL)
BARE_CHECK(recorded_places, NULL)
BARE_CHECK(recorded_pending, NULL)

const struct conform_check capture_checks[] = {
    {"queue", "recorded", "a recording runs when it is replayed, with the scalars of the replay",
     check_recorded},
    {"queue", "recorded-places", "a replay reads and writes where it says, and nothing else",
     check_recorded_places},
    {"queue", "recorded-pending", "many replays are pending, one after the other in order",
     check_recorded_pending},
    {0},
};
