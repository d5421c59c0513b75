/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3 of 128 bits over the module as words, each instruction with the values that it has in links,
 * so that neither padding nor the places of links matter. */
#include "ir/digest.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void add(XXH3_state_t *state, const void *words, size_t bytes)
{
    /* Fails only without a state. */
    (void)XXH3_128bits_update(state, words, bytes);
}

static void add_inst(XXH3_state_t *state, const struct kir_module *module,
                     const struct kir_inst *inst)
{
    bool linked = inst->op == KIR_for || inst->op == KIR_next;
    uint32_t head[4] = {(uint32_t)inst->op << 8 | inst->type, linked ? inst->a[1] : inst->a[0],
                        linked ? 0 : inst->a[1], inst->a[2]};

    add(state, head, sizeof(head));
    add(state, &inst->imm, sizeof(inst->imm));
    if (linked && inst->a[1])
        add(state, module->links + inst->a[0], inst->a[1] * sizeof(*module->links));
}

static void add_phase(XXH3_state_t *state, const struct kir_module *module,
                      const struct kir_phase *phase)
{
    uint32_t head[3] = {phase->lanes, phase->n_tiles | phase->n_fragments << 16, phase->n};

    add(state, head, sizeof(head));
    for (uint32_t i = 0; i < phase->n_tiles; i++) {
        const struct kir_tile *tile = &phase->tiles[i];

        add(state, (const uint32_t[]){tile->space, tile->dtype, tile->count}, 12);
    }
    if (phase->per_thread)
        add(state, &phase->per_thread, sizeof(phase->per_thread));
    if (phase->n_fragments) {
        add(state, &phase->team, sizeof(phase->team));
        add(state, phase->fragments, phase->n_fragments * sizeof(*phase->fragments));
    }
    for (uint32_t i = 0; i < phase->n; i++)
        add_inst(state, module, &phase->inst[i]);
}

void kir_digest(const struct kir_module *module, uint8_t out[KIR_DIGEST])
{
    uint32_t head[4] = {module->n_args, module->n_params, module->n_phases,
                        module->wide | (uint32_t)module->spaces << 1};
    XXH3_state_t state;
    XXH128_canonical_t digest;

    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    add(&state, head, sizeof(head));
    for (uint32_t i = 0; i < module->n_args; i++)
        add(&state, (const uint32_t[]){module->args[i].dtype, module->args[i].access}, 8);
    for (uint32_t i = 0; i < module->n_phases; i++)
        add_phase(&state, module, &module->phases[i]);
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state));
    memcpy(out, digest.digest, KIR_DIGEST);
}
