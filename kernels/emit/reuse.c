/* SPDX-License-Identifier: Apache-2.0 */
/* A tile is in use from the first to the last instruction that names it, or the whole of the
 * outermost loop or branch around one of them; one that is copied to, to the last wait.  Two share
 * memory where all lanes meet between the uses of the one and those of the other. */
#include "emit/reuse.h"

enum { ALIGN = 16, BLOCKS_ALIGN = 1024 /* of tiles with blocks */ };

struct use {
    uint32_t first, last; /* instructions; first > last: none */
};

static bool names(const struct kir_inst *inst, uint32_t tile)
{
    const struct kir_fragment_place place = kir_fragment_place_of(inst->imm);

    switch (kir_op_info(inst->op)->imm) {
    case KIR_IMM_TILE:
        return inst->imm == tile;
    case KIR_IMM_PLACE:
        return place.is_tile && place.place == tile;
    case KIR_IMM_COPY:
        return kir_copy_of(inst->imm).tile == tile;
    default:
        return false;
    }
}

static struct use use_of(const struct kir_phase *phase, uint32_t tile)
{
    struct use use = {phase->n, 0};
    uint32_t begin = 0; /* of what is outermost around the instruction */
    bool is_named = false, is_copied = false;

    for (uint32_t i = 0; i < phase->n; i++) {
        const struct kir_inst *inst = &phase->inst[i];
        const bool ends = inst->level == (kir_closes(inst->op) ? 1 : 0);

        if (inst->level == 0) {
            begin = i;
            is_named = false;
        }
        is_named |= names(inst, tile);
        is_copied |= inst->op == KIR_tcopy && names(inst, tile);
        if ((is_named && ends) || (is_copied && inst->op == KIR_twait)) {
            use.first = begin < use.first ? begin : use.first;
            use.last = i;
        }
    }
    return use;
}

static bool meets_between(const struct kir_phase *phase, uint32_t from, uint32_t to)
{
    for (uint32_t i = from + 1; i < to; i++)
        if (phase->inst[i].op == KIR_barrier && phase->inst[i].level == 0)
            return true;
    return false;
}

static bool may_share(const struct kir_phase *phase, uint32_t a, uint32_t b)
{
    const struct use x = use_of(phase, a), y = use_of(phase, b);

    return x.first > x.last || y.first > y.last || meets_between(phase, x.last, y.first) ||
           meets_between(phase, y.last, x.first);
}

static bool has_blocks(const struct kir_phase *phase)
{
    for (uint32_t i = 0; i < phase->n; i++)
        if (phase->inst[i].op == KIR_mload && kir_fragment_place_of(phase->inst[i].imm).in_blocks)
            return true;
    return false;
}

static uint32_t bytes_of(const struct kir_phase *phase, uint32_t tile)
{
    const struct kir_tile *t = &phase->tiles[tile];
    const uint32_t align = has_blocks(phase) ? BLOCKS_ALIGN : ALIGN;

    return (kir_tile_bytes(t) * t->count + align - 1) / align * align;
}

/* The first place from `at` on where the tile is in nobody's way. */
static uint32_t place_from(const struct kir_phase *phase, uint32_t tile, const uint32_t *place)
{
    uint32_t at = 0, bytes = bytes_of(phase, tile);

    for (uint32_t i = 0; i < tile; i++) {
        uint32_t end = place[i] + bytes_of(phase, i);

        if (phase->tiles[i].space == KIR_GROUP && at < end && at + bytes > place[i] &&
            !may_share(phase, i, tile)) {
            at = end;
            i = UINT32_MAX; /* once more */
        }
    }
    return at;
}

uint32_t reuse_tiles(const struct kir_phase *phase, uint32_t *place)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < phase->n_tiles; i++) {
        place[i] = 0;
        if (phase->tiles[i].space != KIR_GROUP)
            continue;
        place[i] = place_from(phase, i, place);
        if (place[i] + bytes_of(phase, i) > end)
            end = place[i] + bytes_of(phase, i);
    }
    return end;
}
