/* SPDX-License-Identifier: Apache-2.0 */
/* Code for a module: each phase made ready for the tile interpreter. */
#include "cpu.h"

static bool is_cancelled(const frit_cancel *cancel)
{
    return cancel && __atomic_load_n(&cancel->requested, __ATOMIC_RELAXED);
}

static frit_status compile_phase(struct module_code *code, const struct kir_module *module,
                                 uint32_t i, frit_err *err)
{
    const struct kir_phase *phase = &module->phases[i];
    frit_status status = tile_compile(module, i, code->instance->level, &code->phases[i].tile, err);
    size_t scratch;

    if (status)
        return status;
    code->n_phases++;
    code->phases[i].work = (uint64_t)phase->n * phase->lanes;
    scratch = tile_scratch(code->phases[i].tile);
    code->scratch = scratch > code->scratch ? scratch : code->scratch;
    return FRIT_OK;
}

frit_status module_compile(void *self, const struct kir_module *module, const uint8_t *digest,
                           const frit_cancel *cancel, void **out, frit_err *err)
{
    const struct instance *instance = self;
    uint64_t bytes = sizeof(struct module_code) + module->n_phases * sizeof(struct phase_code);
    struct module_code *code = plug_alloc(&instance->plug, bytes, _Alignof(struct module_code));
    frit_status status = FRIT_OK;

    (void)digest;
    *out = NULL;
    if (!code)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for code of %s",
                         module->name);
    *code = (struct module_code){.instance = instance};
    for (uint32_t i = 0; i < module->n_phases && !status; i++)
        status = is_cancelled(cancel) ? plug_fail(&instance->plug, err, FRIT_CANCELLED,
                                                  "no code for %s: cancelled", module->name)
                                      : compile_phase(code, module, i, err);
    if (status) {
        module_release(self, code);
        return status;
    }
    *out = code;
    return FRIT_OK;
}

void module_release(void *self, void *compiled)
{
    const struct instance *instance = self;
    struct module_code *code = compiled;

    for (uint32_t i = 0; code && i < code->n_phases; i++)
        tile_destroy(code->phases[i].tile);
    plug_free(&instance->plug, code);
}
