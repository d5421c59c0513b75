/* SPDX-License-Identifier: Apache-2.0 */
/* The whole text.  The second part is written first: the words in front of it are those that it
 * needs. */
#include "emit/c/ctext.h"

#include "base/fail.h"

#include "emit/c/phase.h"
#include "emit/c/rows.h"
#include "emit/c/words.h"

/* Words of a kernel's parameter. */
static uint32_t count_words(const struct kir_module *module, bool by_value)
{
    if (module->spaces)
        return CTEXT_SPACE_WORDS;
    return by_value ? 1 + module->n_args + module->n_params : 2;
}

static frit_status write_phases(struct phase_text *text, const struct ctext_source *source,
                                struct str *out, struct ctext_phase *phases, frit_err *err)
{
    str_addf(out, "PARAMS(%u)\n", count_words(text->module, text->by_value));
    rows_print(text->module, out);
    for (uint32_t i = source->first; i < source->first + source->n; i++)
        TRY(phase_write(text, i, out, &phases[i], err));
    return FRIT_OK;
}

frit_status ctext_emit_phases(const struct ctext_source *source, struct str *out,
                              struct ctext_phase *phases, struct ctext_kernels *kernels,
                              frit_err *err)
{
    const struct kir_module *module = source->module;
    const struct ctext_target *target = source->target;
    struct phase_text text = {.module = module, .target = target, .aligned = source->aligned};
    struct str body = {0};
    frit_status status;

    text.by_value = !module->spaces && count_words(module, true) * 8 <= target->value_bytes;
    status = write_phases(&text, source, &body, phases, err);
    if (!status) {
        words_print(target, body.text, out);
        str_add(out, body.text, body.length);
        if (body.failed || out->failed)
            status = fail_memory(err, body.length);
    }
    str_fini(&body);
    *kernels = (struct ctext_kernels){text.by_value, !text.has_chunks};
    return status;
}

frit_status ctext_emit_gpu(const struct kir_module *module, const struct ctext_target *target,
                           bool aligned, struct str *out, struct ctext_phase *phases,
                           struct ctext_kernels *kernels, frit_err *err)
{
    const struct ctext_source source = {module, target, aligned, 0, module->n_phases};

    return ctext_emit_phases(&source, out, phases, kernels, err);
}
