/* SPDX-License-Identifier: Apache-2.0 */
/* From a phase to steps: what is known of its values, their forms, then instruction by instruction.
 */
#include <stdlib.h>

#include "base/fail.h"

#include "emit/tile/forms.h"
#include "emit/tile/make.h"
#include "emit/tile/places.h"
#include "emit/tile/steps.h"

static const struct tile_loops *const loops[TILE_LEVELS] = {
    [TILE_BASE] = &tile_loops_base,
#ifdef TILE_X86
    [TILE_AVX2] = &tile_loops_avx2,
    [TILE_AVX512] = &tile_loops_avx512,
#endif
};

enum tile_level tile_level_best(void)
{
#ifdef TILE_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return TILE_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return TILE_AVX2;
#endif
    return TILE_BASE;
}

bool tile_has_dot2(void)
{
#ifdef TILE_X86
    return __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

/* ---- scratch ---- */

static void place_tiles(struct make *m)
{
    for (uint32_t i = 0; i < m->phase->n_tiles; i++) {
        const struct kir_tile *tile = &m->phase->tiles[i];
        uint64_t each = kir_tile_bytes(tile);

        if (tile->space == KIR_LANE)
            each *= m->code->lanes;
        m->tiles[i] = make_space(m, each * tile->count, TILE_ALIGN);
    }
}

/* An instruction needs two constants at most. */
static void place_fixed(struct make *m)
{
    struct tile_code *code = m->code;

    make_space(m, 16, 8); /* the group's coordinates */
    code->n_words = m->module->n_params;
    code->words = make_space(m, 8 * (uint64_t)code->n_words, 8);
    code->consts = make_space(m, 16 * (uint64_t)m->phase->n, 8);
}

/* ---- the whole ---- */

static frit_status make_init(struct make *m, const struct kir_module *module, uint32_t phase,
                             struct tile_code *code, frit_err *err)
{
    size_t n = (size_t)module->phases[phase].n + 1, n_tiles = module->phases[phase].n_tiles;

    *m = (struct make){.module = module, .phase = &module->phases[phase], .code = code};
    m->values = calloc(n, sizeof(*m->values));
    m->dying = malloc(n * sizeof(*m->dying));
    m->tiles = calloc(n_tiles + 1, sizeof(*m->tiles));
    if (!m->values || !m->dying || !m->tiles)
        return fail_memory(err, n * sizeof(*m->values));
    TRY(facts_init(&m->facts, module, phase, err));
    TRY(live_init(&m->live, module, phase, err));
    for (uint32_t i = 0; i < m->phase->n; i++)
        m->dying[i] = KIR_NONE;
    for (uint32_t i = 0; i < m->phase->n; i++) {
        m->values[i].dead = m->dying[m->live.last[i]];
        m->dying[m->live.last[i]] = i;
    }
    return FRIT_OK;
}

static void make_fini(struct make *m)
{
    facts_fini(&m->facts);
    live_fini(&m->live);
    free(m->values);
    free(m->dying);
    free(m->tiles);
    free(m->pools[0].regs);
    free(m->pools[1].regs);
}

static frit_status make_all(struct make *m, frit_err *err)
{
    place_fixed(m);
    make_forms(m);
    place_tiles(m);
    for (uint32_t i = 0; i < m->phase->n && !m->failed; i++)
        make_inst(m, i);
    m->code->scratch = (size_t)make_space(m, 0, TILE_ALIGN);
    if (m->failed)
        return fail_memory(err, m->code->n_steps * sizeof(*m->code->steps));
    if (!m->code->scratch)
        return fail(err, FRIT_UNSUPPORTED,
                    "kernel %s: a group of %u lanes needs too much memory in the tile interpreter",
                    m->module->name, m->phase->lanes);
    return FRIT_OK;
}

frit_status tile_compile(const struct kir_module *module, uint32_t phase, enum tile_level level,
                         struct tile_code **out, frit_err *err)
{
    struct tile_code *code;
    frit_status status;
    struct make m;

    *out = NULL;
    TRY(kir_refuse_fragments(module, err));
    code = calloc(1, sizeof(*code));
    if (!code)
        return fail_memory(err, sizeof(*code));
    code->lanes = module->phases[phase].lanes;
    status = make_init(&m, module, phase, code, err);
    if (!status) {
        m.loops = loops[level];
        status = make_all(&m, err);
    }
    make_fini(&m);
    if (status)
        tile_destroy(code);
    else
        *out = code;
    return status;
}

void tile_destroy(struct tile_code *code)
{
    if (!code)
        return;
    free(code->steps);
    free(code->const_bits);
    free(code->products);
    free(code);
}

bool tile_multiplies(const struct tile_code *code)
{
    return code->n_products > 0;
}

size_t tile_scratch(const struct tile_code *code)
{
    return code->scratch;
}
