/* SPDX-License-Identifier: Apache-2.0 */
/* Commands by hand: FILL with every pattern, COPY at odd places, BARRIER wherever it may be, and
 * arrays of commands that are larger than this contract's. */
#include <inttypes.h>
#include <string.h>

#include "conform/bare.h"
#include "conform/launch.h"

enum { BYTES = 1 << 14, MANY = 16 };

/* Memory, and a picture of it in host memory. */
struct canvas {
    frit_allocation at;
    unsigned char picture[BYTES];
};

static unsigned char start[BYTES], got[BYTES];

static frit_status open_canvas(struct bare *bare, uint32_t seed, struct canvas *out)
{
    frit_status status = bare_alloc(bare, BYTES, 0, &out->at);

    for (uint32_t i = 0; i < BYTES; i++)
        out->picture[i] = start[i] = (unsigned char)(seed + 31 * i + i / 251);
    return status ? status : bare_write(bare, out->at.memory, 0, start, BYTES);
}

static frit_status submit(struct bare *bare, const frit_cmd *cmds, uint32_t n, uint32_t stride)
{
    uint64_t value = 0;
    frit_status status =
        bare->backend->submit(bare->device, NULL, cmds, n, stride, NULL, 0, &value, &bare->err);

    if (status)
        return bare_fail(bare, "submit", status);
    bare_set_last(bare, value);
    return FRIT_OK;
}

static frit_status expect(struct bare *bare, const struct canvas *canvas, const char *what)
{
    frit_status status = bare_read(bare, canvas->at.memory, 0, got, BYTES);

    for (uint32_t i = 0; i < BYTES && !status; i++)
        if (got[i] != canvas->picture[i])
            status = bare_fail_text(bare, "%s: byte %u is %u, not %u", what, i, got[i],
                                    canvas->picture[i]);
    return status;
}

/* ---- FILL ---- */

static frit_cmd fill(struct canvas *canvas, uint64_t offset, uint64_t bytes, uint64_t pattern,
                     uint32_t pattern_bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        canvas->picture[offset + i] = (unsigned char)(pattern >> 8 * (i % pattern_bytes));
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_FILL,
                      .dst = canvas->at.memory,
                      .dst_offset = offset,
                      .bytes = bytes,
                      .pattern = pattern,
                      .pattern_bytes = pattern_bytes};
}

/* Patterns have bits above their bytes, which count for nothing. */
static frit_status fills(struct bare *bare)
{
    static const uint64_t pattern = 0x8192a3b4c5d6e7f8u;
    static const uint32_t counts[] = {1, 3, 257};
    static struct canvas canvas;
    frit_status status = open_canvas(bare, 1, &canvas);

    for (uint32_t width = 1; width <= 8 && !status; width *= 2) {
        frit_cmd cmds[3];
        uint64_t offset = 3 * (uint64_t)width;
        char what[64];

        for (uint32_t i = 0; i < 3; i++) {
            uint64_t bytes = (uint64_t)counts[i] * width;

            cmds[i] = fill(&canvas, offset, bytes, pattern + i, width);
            offset += bytes + 5 * (uint64_t)width;
        }
        snprintf(what, sizeof(what), "fills with patterns of %u bytes", width);
        status = submit(bare, cmds, 3, sizeof(cmds[0]));
        if (!status)
            status = expect(bare, &canvas, what);
    }
    bare_free(bare, canvas.at.memory);
    return status;
}

/* ---- COPY ---- */

static frit_cmd copy(struct canvas *to, uint64_t to_offset, const struct canvas *from,
                     uint64_t from_offset, uint64_t bytes)
{
    memcpy(to->picture + to_offset, from->picture + from_offset, bytes);
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_COPY,
                      .dst = to->at.memory,
                      .dst_offset = to_offset,
                      .src = from->at.memory,
                      .src_offset = from_offset,
                      .bytes = bytes};
}

static frit_status copies(struct bare *bare)
{
    static const uint64_t pieces[][3] = {{0, 0, 1},     {1, 2, 1},     {3, 7, 5},
                                         {64, 63, 65},  {255, 513, 7}, {1021, 1024, 1027},
                                         {4096, 1, 255}};
    static struct canvas a, b;
    frit_cmd cmds[sizeof(pieces) / sizeof(pieces[0])], inside;
    frit_status status = open_canvas(bare, 2, &a);

    b.at.memory = NULL;
    if (!status)
        status = open_canvas(bare, 3, &b);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        cmds[i] = copy(&b, pieces[i][0], &a, pieces[i][1], pieces[i][2]);
    if (!status)
        status = submit(bare, cmds, sizeof(cmds) / sizeof(cmds[0]), sizeof(cmds[0]));
    if (!status)
        status = expect(bare, &b, "copies at odd places");
    inside = copy(&b, 8191, &b, 1, 4093);
    if (!status)
        status = submit(bare, &inside, 1, sizeof(inside));
    if (!status)
        status = expect(bare, &b, "a copy inside of a buffer");
    if (!status)
        status = expect(bare, &a, "the source of copies");
    bare_free(bare, a.at.memory);
    bare_free(bare, b.at.memory);
    return status;
}

/* ---- BARRIER ---- */

static const frit_cmd barrier = {.struct_size = sizeof(barrier), .kind = FRIT_CMD_BARRIER};

static frit_status barriers(struct bare *bare)
{
    static struct canvas canvas;
    frit_cmd cmds[7] = {barrier, barrier};
    frit_status status = open_canvas(bare, 4, &canvas);

    if (!status)
        status = submit(bare, cmds, 1, sizeof(cmds[0]));
    if (!status)
        status = submit(bare, cmds, 2, sizeof(cmds[0]));
    cmds[1] = fill(&canvas, 0, BYTES, 6, 4);
    cmds[2] = cmds[3] = barrier;
    cmds[4] = fill(&canvas, 0, BYTES / 2, 7, 4);
    cmds[5] = barrier;
    cmds[6] = copy(&canvas, BYTES / 2, &canvas, 0, BYTES / 2);
    if (!status)
        status = submit(bare, cmds, 7, sizeof(cmds[0]));
    if (!status)
        status = submit(bare, (const frit_cmd[2]){fill(&canvas, 4, 8, 8, 4), barrier}, 2,
                        sizeof(cmds[0]));
    if (!status)
        status = expect(bare, &canvas, "fills and copies between barriers");
    bare_free(bare, canvas.at.memory);
    return status;
}

/* ---- arrays of a later contract ---- */

/* What a host of a later minor submits: commands with fields after those that are known here. */
struct wide_cmd {
    frit_cmd cmd;
    uint64_t more[3];
};

static frit_status strides(struct bare *bare)
{
    static struct canvas canvas;
    static struct wide_cmd wide[MANY];
    frit_status status = open_canvas(bare, 5, &canvas);

    for (uint32_t i = 0; i < MANY; i++) {
        const uint64_t piece = BYTES / MANY;

        wide[i].cmd = fill(&canvas, i * piece, piece - 64, 0x100 + i, 4);
        wide[i].cmd.struct_size = sizeof(wide[i]);
        memset(wide[i].more, 0xff, sizeof(wide[i].more));
    }
    if (!status)
        status = submit(bare, &wide[0].cmd, MANY, sizeof(wide[0]));
    if (!status)
        status = expect(bare, &canvas, "commands with further fields");
    bare_free(bare, canvas.at.memory);
    return status;
}

/* ---- the checks ---- */

BARE_CHECK(fills, NULL)
BARE_CHECK(copies, NULL)
BARE_CHECK(barriers, NULL)
BARE_CHECK(strides, NULL)

const struct conform_check command_checks[] = {
    {"queue", "fills", "FILL repeats patterns of 1, 2, 4 and 8 bytes, and writes nothing else",
     check_fills},
    {"queue", "copies", "COPY moves bytes at any places, between buffers and inside of one",
     check_copies},
    {"queue", "barriers", "a submission may have BARRIER alone, first, last and several times",
     check_barriers},
    {"queue", "strides", "commands may have fields after those that the driver knows",
     check_strides},
    {0},
};
