/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/thread.h"

#include "compile.h"
#include "device.h"
#include "plugin.h"

enum { LONG_PHASE = 1000 /* instructions, of about half a second with NVRTC 13 */ };

/* ---- the division ---- */

void parts_divide(const struct kir_module *module, struct parts *out)
{
    uint32_t begun = 0; /* instructions of the last part */

    *out = (struct parts){.n = 1};
    for (uint32_t i = 0; i < module->n_phases; i++) {
        const uint32_t n = module->phases[i].n;

        if (begun >= LONG_PHASE && n >= LONG_PHASE && out->n < MOST_PARTS) {
            out->list[out->n++].first = i;
            begun = 0;
        }
        out->list[out->n - 1].n++;
        begun += n;
    }
}

void parts_fini(struct device *device, struct parts *parts)
{
    for (uint32_t i = 0; i < parts->n; i++)
        hip_free(device->instance, parts->list[i].object);
    parts->n = 0;
}

/* ---- a part ---- */

struct part_job {
    struct device *device;
    struct ctext_source source;
    struct part *part;
    struct ctext_phase *phases;
    struct ctext_kernels kernels;
    pthread_t thread;
    bool has_thread;
    frit_status status;
    frit_err err;
};

/* Writes a text to NAME-HASH.txt in the folder of the option `dump`, unless that file exists.
 * Errors are ignored. */
static void dump(const struct device *device, const char *name, const struct str *text)
{
    const frit_str folder = device->instance->options.dump;
    char path[512];
    FILE *file;

    if (folder.len == 0)
        return;
    snprintf(path, sizeof path, "%.*s/%s-%016" PRIx64 ".txt", (int)folder.len, folder.ptr, name,
             hip_checksum(text->text, text->length));
    file = fopen(path, "wbxe");
    if (file) {
        (void)!fwrite(text->text, 1, text->length, file);
        (void)fclose(file);
    }
}

/* Whether a kernel is attention on fragments. */
static bool folds_fragments(const struct kir_module *module)
{
    for (uint32_t i = 0; i < module->n_phases; i++)
        for (uint32_t at = 0; at < module->phases[i].n; at++)
            if (module->phases[i].inst[at].op == KIR_mlargest)
                return true;
    return false;
}

static void compile_part(struct part_job *job)
{
    const char *name = job->source.module->name;
    struct str text = {0};

    job->status = ctext_emit_phases(&job->source, &text, job->phases, &job->kernels, &job->err);
    if (!job->status) {
        dump(job->device, name, &text);
        job->status =
            compile_text(job->device, name, text.text, folds_fragments(job->source.module),
                         &job->part->object, &job->part->bytes, &job->err);
    }
    str_fini(&text);
}

static void *run_job(void *job)
{
    compile_part(job);
    return NULL;
}

/* ---- all of them ---- */

/* The first part is this thread's, as are those for which there is no thread. */
static void run_jobs(struct part_job *jobs, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        jobs[i].has_thread = !thread_start(&jobs[i].thread, run_job, &jobs[i]);
    for (uint32_t i = 0; i < n; i++)
        if (!jobs[i].has_thread)
            compile_part(&jobs[i]);
    for (uint32_t i = 0; i < n; i++)
        if (jobs[i].has_thread)
            pthread_join(jobs[i].thread, NULL);
}

frit_status parts_compile(struct device *device, const struct kir_module *module, uint32_t form,
                          struct parts *out, struct ctext_phase *phases,
                          struct ctext_kernels *kernels, frit_err *err)
{
    struct part_job jobs[MOST_PARTS] = {0};
    struct ctext_target target = device->text;
    frit_status status = FRIT_OK;

    if (form & FORM_BY_ADDRESS)
        target.value_bytes = 0;
    parts_divide(module, out);
    for (uint32_t i = 0; i < out->n; i++)
        jobs[i] = (struct part_job){
            .device = device,
            .source = {module, &target, form & FORM_ALIGNED, out->list[i].first, out->list[i].n},
            .part = &out->list[i],
            .phases = phases,
            .err = {.struct_size = sizeof jobs[i].err}};
    run_jobs(jobs, out->n);
    *kernels = jobs[0].kernels;
    for (uint32_t i = 0; i < out->n && !status; i++) {
        kernels->same_unaligned &= jobs[i].kernels.same_unaligned;
        status = jobs[i].status;
        if (status)
            plug_copy_err(&device->instance->plug, err, &jobs[i].err);
    }
    if (status)
        parts_fini(device, out);
    return status;
}
