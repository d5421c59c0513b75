/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of the tuner, as copies of a device's records. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frit/tune.h>

#include "api/copy_sized.h"
#include "api/host.h"
#include "api/report.h"
#include "base/array.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/str.h"
#include "conf/conf.h"
#include "device/device.h"
#include "device/space.h"
#include "load/artefact.h"
#include "load/device.h"
#include "load/registry.h"
#include "load/service.h"
#include "plan/automaton.h"
#include "tune/bundle.h"
#include "tune/count.h"
#include "tune/store.h"

struct decision {
    struct tune_record *record;
    uint64_t *medians_ns; /* of its candidates */
};

struct frit_decisions {
    struct decision *list;
    uint32_t count, capacity;
    bool failed; /* no memory for a record */
};

/* ---- reading ---- */

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The lower one of an even number of samples; 0: none, or no memory. */
static uint64_t median_of(const struct tune_candidate *candidate)
{
    const size_t bytes = candidate->n_samples * sizeof(*candidate->samples);
    uint64_t *sorted, median;

    if (!bytes || !(sorted = malloc(bytes)))
        return 0;
    memcpy(sorted, candidate->samples, bytes);
    qsort(sorted, candidate->n_samples, sizeof(*sorted), by_size);
    median = sorted[(candidate->n_samples - 1) / 2];
    free(sorted);
    return median;
}

static bool copy_decision(const struct tune_record *from, struct decision *out)
{
    *out = (struct decision){.medians_ns = calloc(from->n_candidates + 1, sizeof(uint64_t))};
    if (!out->medians_ns || tune_record_copy(from, &out->record, NULL)) {
        free(out->medians_ns);
        return false;
    }
    for (uint32_t i = 0; i < from->n_candidates; i++)
        out->medians_ns[i] = median_of(&from->candidates[i]);
    return true;
}

static void add_decision(void *ctx, const struct tune_record *record)
{
    frit_decisions *decisions = ctx;

    if (!decisions->failed &&
        array_grow(&decisions->list, &decisions->capacity, decisions->count, 1,
                   sizeof(*decisions->list)) &&
        copy_decision(record, &decisions->list[decisions->count]))
        decisions->count++;
    else
        decisions->failed = true;
}

frit_status frit_decisions_read(frit_device *device, frit_decisions **out, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_decisions *decisions;
    frit_status status;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "decisions_read");
    if (!device || !out)
        return report_null(err, "decisions_read", device ? "`out`" : "the device");
    decisions = calloc(1, sizeof(*decisions));
    if (!decisions)
        return fail_memory(err, sizeof(*decisions));
    status = tune_store_each(device_tune_store(device), add_decision, decisions, &own);
    if (!status && decisions->failed)
        status = fail_memory(&own, sizeof(*decisions->list));
    if (status)
        frit_decisions_free(decisions);
    else
        *out = decisions;
    return report(err, status, &own);
}

void frit_decisions_free(frit_decisions *decisions)
{
    if (!decisions)
        return;
    for (uint32_t i = 0; i < decisions->count; i++) {
        tune_record_destroy(decisions->list[i].record);
        free(decisions->list[i].medians_ns);
    }
    free(decisions->list);
    free(decisions);
}

frit_status frit_decision_at(const frit_decisions *decisions, uint64_t index,
                             frit_decision_desc *out)
{
    const struct tune_record *record;

    if (!decisions || !out || index >= decisions->count)
        return FRIT_INVALID;
    record = decisions->list[index].record;
    const frit_decision_desc desc = {.what = record->what,
                                     .clock = tune_clock_name(record->clock),
                                     .reason = tune_reason_name(record->reason),
                                     .n_candidates = record->n_candidates};
    return copy_sized(out, &desc, sizeof(desc));
}

static uint64_t best_of(const struct tune_candidate *candidate)
{
    uint64_t best = candidate->n_samples ? UINT64_MAX : 0;

    for (uint32_t i = 0; i < candidate->n_samples; i++)
        best = candidate->samples[i] < best ? candidate->samples[i] : best;
    return best;
}

frit_status frit_decision_candidate_at(const frit_decisions *decisions, uint64_t index,
                                       uint64_t candidate, frit_tried_desc *out)
{
    const struct tune_candidate *from;

    if (!decisions || !out || index >= decisions->count ||
        candidate >= decisions->list[index].record->n_candidates)
        return FRIT_INVALID;
    from = &decisions->list[index].record->candidates[candidate];
    const frit_tried_desc desc = {.identity = from->identity,
                                  .version = from->version,
                                  .is_quarantined = tune_state_is_quarantined(from->state),
                                  .numeric_class = tune_class_name(from->numeric_class),
                                  .state = tune_state_name(from->state),
                                  .evidence = from->evidence,
                                  .best_ns = best_of(from),
                                  .median_ns = decisions->list[index].medians_ns[candidate],
                                  .n_samples = from->n_samples,
                                  .samples_ns = from->samples};
    return copy_sized(out, &desc, sizeof(desc));
}

/* ---- counting ---- */

static size_t fit(void *ctx, const char *space)
{
    return space_fit_decisions(ctx, space);
}

frit_status frit_decisions_count(frit_host *host, uint64_t index, uint64_t *out, frit_err *err)
{
    HOLD_CANCEL;
    const struct conf_options *options;
    struct space_subject subject;
    struct tune_count_params params = {.fit = fit, .ctx = &subject};

    if (out)
        *out = 0;
    if (process_is_barred())
        return report_barred(err, "decisions_count");
    if (!host || !out)
        return report_null(err, "decisions_count", host ? "`out`" : "the host");
    if (!host->registry || index >= registry_n_devices(host->registry))
        return fail(err, FRIT_INVALID, "no device has number %llu", (unsigned long long)index);
    options = conf_options(host->conf);
    subject = (struct space_subject){.registry = host->registry,
                                     .entry = registry_device_at(host->registry, (uint32_t)index),
                                     .threads = (uint32_t)options->threads};
    params.path = conf_tune_store(host->conf);
    params.wait_ms = (uint32_t)options->fusion_store_wait;
    if (params.path)
        *out = tune_count(&params);
    return FRIT_OK;
}

/* ---- forgetting ---- */

struct forgetting {
    struct tune_store *store;
    const char *what;
    uint64_t n;
    bool kept; /* the file still has one */
};

static void forget_one(void *ctx, const struct tune_record *record)
{
    struct forgetting *forgetting = ctx;

    if (forgetting->what && !strstr(record->what, forgetting->what))
        return;
    forgetting->n++;
    if (forgetting->what)
        forgetting->kept |= !tune_store_forget(forgetting->store, record->key, record->key_bytes);
}

frit_status frit_decisions_forget(frit_device *device, const char *what, uint64_t *n_forgotten,
                                  frit_err *err)
{
    HOLD_CANCEL;
    struct forgetting forgetting = {.what = what};
    frit_err own = ERR_INIT;
    frit_status status;

    if (process_is_barred())
        return report_barred(err, "decisions_forget");
    if (!device)
        return report_null(err, "decisions_forget", "the device");
    forgetting.store = device_tune_store(device);
    status = tune_store_each(forgetting.store, forget_one, &forgetting, &own);
    if (!status && !what && forgetting.n)
        forgetting.kept = !tune_store_forget(forgetting.store, NULL, 0);
    device_note_decision(device);
    automaton_renew(device->automaton);
    if (!status && forgetting.kept)
        status = fail(&own, FRIT_IO, "the file of decisions cannot be written, and still has them");
    if (n_forgotten)
        *n_forgotten = forgetting.n;
    return report(err, status, &own);
}

/* ---- bundles ---- */

/* Of a bundle that is written or read. */
struct bundling {
    frit_device *device;
    const char *artefacts, *space; /* folder, and of what there; either NULL: none are kept */
    uint64_t limit;                /* of the folder */
    struct str kind;
    struct str text;
    frit_bundle_desc desc;
};

static frit_status bundling_begin(struct bundling *bundling, frit_device *device,
                                  const frit_bundle_desc *out, const char *call, frit_err *err)
{
    const struct plugin *plugin = device->entry->plugin;
    const struct conf *conf = device->config.host->conf;

    *bundling = (struct bundling){.device = device,
                                  .artefacts = conf_artefacts(conf),
                                  .limit = (uint64_t)conf_options(conf)->artefact_bytes};
    if (out && out->struct_size < sizeof(out->struct_size))
        return fail(err, FRIT_INVALID, "%s: `out` has no struct_size", call);
    if (plugin->service)
        bundling->space = service_space(plugin->service);
    if (!space_of_kind(device, &bundling->kind) && !bundling->kind.failed)
        return fail(err, FRIT_UNSUPPORTED, "%s: a library of %s has no file", call, device->name);
    return bundling->kind.failed ? fail_memory(err, PATH_MAX) : FRIT_OK;
}

static frit_status bundling_end(struct bundling *bundling, frit_status status,
                                frit_bundle_desc *out)
{
    str_fini(&bundling->kind);
    str_fini(&bundling->text);
    if (out && !status)
        status = copy_sized(out, &bundling->desc, sizeof(bundling->desc));
    return status;
}

static void export_record(void *ctx, const struct tune_record *record)
{
    struct bundling *bundling = ctx;

    tune_record_print(record, &bundling->text);
    bundling->desc.n_decisions++;
}

static frit_status export_artefact(void *ctx, const void *file, size_t n_bytes, frit_err *err)
{
    struct bundling *bundling = ctx;

    (void)err;
    bundle_add_artefact(file, n_bytes, &bundling->text);
    bundling->desc.n_artefacts++;
    return FRIT_OK;
}

static frit_status write_bundle(struct bundling *bundling, const char *path, frit_err *err)
{
    struct str *text = &bundling->text;
    const char *why;

    bundle_begin(bundling->kind.text, text);
    TRY(tune_store_each(device_tune_store(bundling->device), export_record, bundling, err));
    if (bundling->artefacts && bundling->space)
        TRY(artefact_each(bundling->artefacts, bundling->space, export_artefact, bundling, err));
    bundle_end(text);
    if (text->failed)
        return fail_memory(err, text->length);
    why = file_output(path, text->text, text->length);
    return why ? fail(err, FRIT_IO, "cannot write %s: %s", path, why) : FRIT_OK;
}

frit_status frit_decisions_export(frit_device *device, const char *path, frit_bundle_desc *out,
                                  frit_err *err)
{
    HOLD_CANCEL;
    struct bundling bundling;
    frit_err own = ERR_INIT;
    frit_status status;

    if (process_is_barred())
        return report_barred(err, "decisions_export");
    if (!device || !path)
        return report_null(err, "decisions_export", device ? "the path" : "the device");
    status = bundling_begin(&bundling, device, out, "decisions_export", &own);
    if (!status)
        status = write_bundle(&bundling, path, &own);
    return report(err, bundling_end(&bundling, status, out), &own);
}

static frit_status import_record(void *ctx, const struct tune_record *record, frit_err *err)
{
    struct bundling *bundling = ctx;
    struct tune_store *store = device_tune_store(bundling->device);

    bundling->desc.n_decisions++;
    if (tune_store_find(store, record->key, record->key_bytes)) {
        bundling->desc.n_known++;
        return FRIT_OK;
    }
    TRY(tune_store_add(store, record, err));
    device_note_decision(bundling->device);
    return FRIT_OK;
}

static frit_status import_artefact(void *ctx, const void *file, size_t n_bytes, frit_err *err)
{
    struct bundling *bundling = ctx;

    if (!bundling->artefacts || !bundling->space)
        return FRIT_OK;
    bundling->desc.n_artefacts++;
    return artefact_put_file(bundling->artefacts, bundling->limit, bundling->space, file, n_bytes,
                             err);
}

/* malloc'd; NULL after a failure. */
static char *read_whole(const char *path, size_t *n_bytes, frit_err *err)
{
    struct stat info;
    const char *why;
    int fd = file_open(AT_FDCWD, path, FILE_NAMED, &info, &why);
    char *bytes = NULL;

    if (fd < 0) {
        fail(err, FRIT_IO, "cannot read %s: %s", path, why);
        return NULL;
    }
    *n_bytes = (size_t)info.st_size;
    bytes = malloc(*n_bytes + 1);
    if (!bytes) {
        fail_memory(err, *n_bytes);
    } else if (!file_read(fd, bytes, *n_bytes)) {
        fail(err, FRIT_IO, "cannot read %s to its end", path);
        free(bytes);
        bytes = NULL;
    }
    close(fd);
    return bytes;
}

static frit_status read_bundle(struct bundling *bundling, const char *path, frit_err *err)
{
    const struct bundle_visitor visitor = {import_record, import_artefact, bundling};
    size_t n_bytes;
    char *bytes = read_whole(path, &n_bytes, err);
    frit_status status;

    if (!bytes)
        return err->status;
    status = bundle_read(bytes, n_bytes, bundling->kind.text, &visitor, err);
    free(bytes);
    automaton_renew(bundling->device->automaton);
    if (status)
        fail_context(err, "%s", path);
    return status;
}

frit_status frit_decisions_import(frit_device *device, const char *path, frit_bundle_desc *out,
                                  frit_err *err)
{
    HOLD_CANCEL;
    struct bundling bundling;
    frit_err own = ERR_INIT;
    frit_status status;

    if (process_is_barred())
        return report_barred(err, "decisions_import");
    if (!device || !path)
        return report_null(err, "decisions_import", device ? "the path" : "the device");
    status = bundling_begin(&bundling, device, out, "decisions_import", &own);
    if (!status)
        status = read_bundle(&bundling, path, &own);
    return report(err, bundling_end(&bundling, status, out), &own);
}
