/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and devices: opening, closing, running what is recorded. */
#include "api/host.h"

#include <stdlib.h>
#include <string.h>

#include <frit/inspect.h>
#include <frit/program.h>

#include "api/open.h"
#include "api/report.h"
#include "api/trace.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/timeline.h"
#include "base/versioned.h"
#include "conf/conf.h"
#include "device/device.h"
#include "device/wait.h"
#include "device/watch.h"
#include "job/job.h"
#include "load/device.h"
#include "load/pick.h"
#include "load/registry.h"
#include "record/binding.h"
#include "record/stream.h"
#include "run/drain.h"
#include "run/mirror.h"
#include "run/rank.h"
#include "search/fuser.h"
#include "tensor/failure.h"
#include "tensor/slot.h"

enum { MAX_EVENTS = 1 << 18 }; /* of a timeline; what comes later is counted and lost */

static frit_status check_params(const frit_host_params *params, frit_err *err)
{
    if (!params)
        return FRIT_OK;
    if (params->struct_size < FRIT_END_OF(frit_host_params, log_ctx))
        return fail(err, FRIT_INVALID,
                    "frit_host_open: struct_size of the parameters is %llu; set it to their sizeof",
                    (unsigned long long)params->struct_size);
    if (params->n_settings && !params->settings)
        return fail(err, FRIT_INVALID, "frit_host_open: %llu settings at NULL",
                    (unsigned long long)params->n_settings);
    return FRIT_OK;
}

/* Adds the option and its origin to the text of an error; returns its status. */
static frit_status blame_option(const struct conf *conf, const char *section, const char *key,
                                frit_err *err)
{
    frit_config_desc desc;

    for (uint64_t i = 0; conf_at(conf, i, &desc); i++) {
        if (strcmp(desc.section, section) == 0 && strcmp(desc.key, key) == 0)
            fail_context(err, "%s: [%s] %s", desc.origin, section, key);
    }
    return err->status;
}

/* The words of an option, numbered. */
static const char *const compile_words[] = {"background", "wait", NULL};
static const char *const numeric_words[] = {[FRIT_NUMERIC_EXACT] = "exact",
                                            [FRIT_NUMERIC_REORDERED] = "reordered",
                                            [FRIT_NUMERIC_REDUCED] = "reduced",
                                            [FRIT_NUMERIC_RELAXED] = "relaxed",
                                            NULL};
static const char *const level_words[] = {[TUNE_OFF] = "off",
                                          [TUNE_MINIMAL] = "minimal",
                                          [TUNE_BALANCED] = "balanced",
                                          [TUNE_FULL] = "full",
                                          NULL};
static const char *const when_words[] = {"ahead", "first", "any", NULL};

/* -1: it is none of them. */
static int word_number(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

static frit_status check_word(const struct conf *conf, const char *section, const char *key,
                              const char *word, const char *const *words, frit_err *err)
{
    if (word_number(word, words) >= 0)
        return FRIT_OK;
    fail(err, FRIT_INVALID, "'%s' is not allowed; set %s", word, words[0]);
    for (int i = 1; words[i]; i++)
        fail_append(err, "%s%s", words[i + 1] ? ", " : " or ", words[i]);
    return blame_option(conf, section, key, err);
}

/* Checks options whose form the configuration does not check. */
static frit_status check_options(const struct conf *conf, frit_err *err)
{
    const struct conf_options *options = conf_options(conf);

    if (registry_check_list(options->device, err))
        return blame_option(conf, "frit", "device", err);
    if (fusers_check_list(options->fusion_exclude, err))
        return blame_option(conf, "fusion", "exclude", err);
    TRY(check_word(conf, "fusion", "compile", options->fusion_compile, compile_words, err));
    TRY(check_word(conf, "fusion", "numeric", options->fusion_numeric, numeric_words, err));
    TRY(check_word(conf, "tune", "level", options->tune_level, level_words, err));
    return check_word(conf, "tune", "when", options->tune_when, when_words, err);
}

/* A process has one timeline: that of the first host also has the work of later ones. */
static frit_status timeline_open(frit_host *host, frit_err *err)
{
    frit_status st;

    if (strcmp(conf_options(host->conf)->timeline, "none") == 0)
        return FRIT_OK;
    st = timeline_start(MAX_EVENTS, err);
    host->has_timeline = !st;
    return st == FRIT_BUSY ? FRIT_OK : st;
}

static void timeline_close(frit_host *host)
{
    const char *path = conf_options(host->conf)->timeline;
    struct str text = {0};
    const char *why;

    timeline_stop(&text);
    why = text.failed ? "no memory" : file_output(path, text.text, text.length);
    if (why)
        log_write(FRIT_LOG_ERROR, "timeline", "%s: cannot be written: %s", path, why);
    str_fini(&text);
}

static frit_status host_init(frit_host *host, const frit_host_params *params, frit_err *err)
{
    TRY(check_params(params, err));
    if (params && params->log)
        log_set_sink(params->log, params->log_ctx);
    TRY(conf_load(params ? params->settings : NULL, params ? params->n_settings : 0, &host->conf,
                  err));
    TRY(log_configure(conf_options(host->conf)->log, err));
    TRY(check_options(host->conf, err));
    conf_warn(host->conf);
    TRY(timeline_open(host, err));
    host->seed = (uint64_t)conf_options(host->conf)->seed;
    return registry_open(host->conf, &host->registry, err);
}

/* Stops a running trace and inspection first. */
static void end_device(frit_device *device)
{
    frit_err err = ERR_INIT;

    if (watch_at(&device->watch, WATCH_TRACE) && trace_end(device, &err))
        log_write(FRIT_LOG_ERROR, "trace", "%s: %s", device->entry->name, err.text);
    frit_inspection_free((frit_inspection *)watch_take(&device->watch, WATCH_INSPECT));
    (void)open_remove(device);
    device_close(device);
}

static void host_destroy(frit_host *host)
{
    while (host->devices) {
        frit_device *next = host->devices->next;

        end_device(host->devices);
        host->devices = next;
    }
    host_job_fini(&host->job);
    if (host->has_timeline)
        timeline_close(host);
    registry_close(host->registry);
    conf_destroy(host->conf);
    pthread_mutex_destroy(&host->lock);
    free(host);
    process_host_closed();
}

/* A void function can only log that it was called with what is not open. */
static void report_closed(const char *call, const void *object)
{
    log_write(FRIT_LOG_ERROR, "frit",
              "%s: %p is not open: it was closed before, or never opened; nothing is done", call,
              object);
}

/* In the child of a fork, which must not wait for anything. */
static void bar(void)
{
    slots_bar();
    bindings_bar();
    job_bar();
}

frit_status frit_host_open(const frit_host_params *params, frit_host **out, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_host *host;
    frit_status st;

    if (!out)
        return report_null(err, "host_open", "`out`");
    *out = NULL;
    if (process_is_barred())
        return report_barred(err, "host_open");
    host = calloc(1, sizeof(*host));
    if (!host)
        return fail_memory(err, sizeof(*host));
    process_host_opens(bar);
    pthread_mutex_init(&host->lock, NULL);
    host_job_init(&host->job);
    /* A child has error tensors without a lock if there are some before. */
    st = handle_immortal(FRIT_INTERNAL) ? host_init(host, params, &own)
                                        : fail_memory(&own, sizeof(struct slot));
    if (!st && !open_add(host, NULL))
        st = fail_memory(&own, sizeof(host));
    if (st)
        host_destroy(host);
    else
        *out = host;
    return report(err, st, &own);
}

void frit_host_close(frit_host *host)
{
    HOLD_CANCEL;
    void *owner = NULL;

    if (!host || process_is_barred())
        return;
    if (open_find(host, &owner) && !owner && open_remove(host))
        host_destroy(host);
    else
        report_closed("host_close", host);
}

void frit_seed(frit_host *host, uint64_t seed)
{
    if (!host || process_is_barred())
        return;
    pthread_mutex_lock(&host->lock);
    host->seed = seed;
    for (frit_device *device = host->devices; device; device = device->next)
        versioned_set(&device->seed, seed);
    pthread_mutex_unlock(&host->lock);
}

void frit_device_seed(frit_device *device, uint64_t seed)
{
    if (device && !process_is_barred())
        versioned_set(&device->seed, seed);
}

/* ---- devices ---- */

static frit_device *find_open(frit_host *host, const struct device_entry *entry)
{
    for (frit_device *device = host->devices; device; device = device->next) {
        if (device->entry == entry && !device->config.n_natives)
            return device;
    }
    return NULL;
}

/* Native objects of the program; none for a shared device. */
struct natives {
    frit_native_object *list;
    uint32_t n;
};

static uint32_t candidate_limit(const struct conf_options *options)
{
    return options->fusion_max_candidates > UINT32_MAX ? 0
                                                       : (uint32_t)options->fusion_max_candidates;
}

static struct tune_config tune_config(const struct conf *conf)
{
    const struct conf_options *options = conf_options(conf);

    return (struct tune_config){
        .level = (enum tune_level)word_number(options->tune_level, level_words),
        .measures = strcmp(options->tune_when, "ahead") != 0 && !options->tune_deterministic,
        .tries = strcmp(options->tune_when, "any") == 0,
        .artefacts = conf_artefacts(conf),
        .artefact_bytes = (uint64_t)options->artefact_bytes,
        .budget_ms = (uint64_t)options->tune_budget,
        .idle_ms = (uint64_t)options->tune_idle,
        .deterministic = options->tune_deterministic,
        .force = strcmp(options->tune_force, "none") == 0 ? NULL : options->tune_force};
}

static bool compiles_ahead(const struct conf_options *options)
{
    return strcmp(options->fusion_compile, "wait") != 0 && !options->tune_deterministic;
}

/* The most that candidates may differ. */
static uint32_t numeric_class(const struct conf_options *options)
{
    return options->tune_deterministic
               ? FRIT_NUMERIC_EXACT
               : (uint32_t)word_number(options->fusion_numeric, numeric_words);
}

/* Creates a device that is not open yet. */
static frit_status create_device(frit_host *host, const struct device_entry *entry,
                                 const struct natives *natives, frit_device **out, frit_err *err)
{
    const struct conf_options *options = conf_options(host->conf);
    struct device_config config = {.max_ops = options->stream_max_ops,
                                   .chunk_bytes = options->memory_chunk_bytes,
                                   .keep_bytes = options->memory_keep_bytes,
                                   .single_stream = options->stream_single,
                                   .queues = (uint32_t)options->stream_queues,
                                   .fusion = options->fusion_enabled,
                                   .exclude = options->fusion_exclude,
                                   .max_candidates = candidate_limit(options),
                                   .capture = options->stream_capture,
                                   .max_blocks = (uint32_t)options->fusion_max_blocks,
                                   .max_explorations = (uint64_t)options->fusion_max_explorations,
                                   .store_bytes = (uint64_t)options->fusion_store_bytes,
                                   .store = conf_plan_store(host->conf),
                                   .store_wait_ms = (uint32_t)options->fusion_store_wait,
                                   .store_named = strcmp(options->fusion_store, "auto") != 0,
                                   .tune_store = conf_tune_store(host->conf),
                                   .tune_store_named = strcmp(options->tune_store, "auto") != 0,
                                   .threads = (uint32_t)options->threads,
                                   .compile_ahead = compiles_ahead(options),
                                   .numeric_class = numeric_class(options),
                                   .tune = tune_config(host->conf),
                                   .registry = host->registry,
                                   .decompose = options->decompose,
                                   .poison = options->poison,
                                   .host = host,
                                   .natives = natives->list,
                                   .n_natives = natives->n,
                                   .seed = host->seed,
                                   .run_orphan = stream_run_orphan,
                                   .note_failure = stream_note_failure};
    frit_status st;

    TRY(device_create(entry, &config, out, err));
    st = open_add(*out, host) ? FRIT_OK : fail_memory(err, sizeof(*out));
    if (!st && strcmp(options->trace, "none") != 0)
        st = trace_begin_in(*out, options->trace, err);
    if (st) {
        end_device(*out);
        *out = NULL;
    }
    return st;
}

static frit_status open_locked(frit_host *host, const struct device_entry *entry,
                               const struct natives *natives, frit_device **out, frit_err *err);
static void close_locked(frit_host *host, frit_device *device);

/* Opens the device of [frit] fallback; NULL if that is the device of `entry` itself. */
static frit_status open_fallback(frit_host *host, const struct device_entry *entry,
                                 frit_device **out, frit_err *err)
{
    const char *name = conf_options(host->conf)->fallback;
    const struct device_entry *other;

    *out = NULL;
    if (strcmp(name, "none") == 0)
        return FRIT_OK;
    if (strcmp(name, "auto") == 0)
        other = registry_fallback(host->registry);
    else if (registry_pick(host->registry, name, &other, err))
        return blame_option(host->conf, "frit", "fallback", err);
    return !other || other == entry ? FRIT_OK
                                    : open_locked(host, other, &(struct natives){0}, out, err);
}

/* Under the host's lock.  A lost device can be opened anew once every open was closed. */
static frit_status open_again(frit_device **device, frit_err *err)
{
    frit_status st = device_check_loss(*device, err);

    if (st) {
        *device = NULL;
        return fail_context(err, "close it everywhere before it is opened again");
    }
    (*device)->opens++;
    return FRIT_OK;
}

/* Under the host's lock.  A fallback comes after its users in the list, so that frit_host_close
 * closes it after them. */
static frit_status open_locked(frit_host *host, const struct device_entry *entry,
                               const struct natives *natives, frit_device **out, frit_err *err)
{
    frit_device *fallback;
    frit_status st;

    *out = natives->n ? NULL : find_open(host, entry);
    if (*out)
        return open_again(out, err);
    TRY(open_fallback(host, entry, &fallback, err));
    st = create_device(host, entry, natives, out, err);
    if (st) {
        if (fallback)
            close_locked(host, fallback);
        return st;
    }
    (*out)->fallback = fallback;
    (*out)->next = host->devices;
    host->devices = *out;
    return FRIT_OK;
}

/* Under the host's lock. */
static void close_locked(frit_host *host, frit_device *device)
{
    frit_device **at = &host->devices, *fallback = device->fallback;

    if (--device->opens > 0)
        return;
    while (*at != device)
        at = &(*at)->next;
    *at = device->next;
    end_device(device);
    if (fallback)
        close_locked(host, fallback);
}

static frit_status open_entry(frit_host *host, const struct device_entry *entry,
                              const struct natives *natives, frit_device **out, frit_err *err)
{
    frit_status st;

    /* The lock is held throughout, so that two threads cannot open a device twice. */
    pthread_mutex_lock(&host->lock);
    st = open_locked(host, entry, natives, out, err);
    pthread_mutex_unlock(&host->lock);
    return st;
}

static frit_status copy_natives(const frit_device_options *options, struct natives *out,
                                frit_err *err)
{
    const uint64_t n =
        options && FRIT_HAS(options, frit_device_options, n_natives) ? options->n_natives : 0;

    if (n == 0)
        return FRIT_OK;
    if (!options->natives || n > UINT32_MAX)
        return fail(err, FRIT_INVALID, "there are no natives");
    out->list = calloc(n, sizeof(*out->list));
    if (!out->list)
        return fail_memory(err, n * sizeof(*out->list));
    out->n = (uint32_t)n;
    for (uint64_t i = 0; i < n; i++) {
        if (!options->natives[i].name || !options->natives[i].object)
            return fail(err, FRIT_INVALID, "native %llu has no %s", (unsigned long long)i,
                        options->natives[i].name ? "object" : "name");
        out->list[i] =
            (frit_native_object){str_of(options->natives[i].name), options->natives[i].object};
    }
    return FRIT_OK;
}

frit_status frit_device_open(frit_host *host, const char *name, frit_device **out, frit_err *err)
{
    return frit_device_open_with(host, name, NULL, out, err);
}

frit_status frit_device_open_with(frit_host *host, const char *name,
                                  const frit_device_options *options, frit_device **out,
                                  frit_err *err)
{
    HOLD_CANCEL;
    const struct device_entry *entry;
    struct natives natives = {0};
    frit_err own = ERR_INIT;
    frit_status st;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "device_open_with");
    if (!host || !out)
        return report_null(err, "device_open", host ? "`out`" : "the host");
    st = copy_natives(options, &natives, &own);
    if (!st)
        st = registry_pick(host->registry, name ? name : conf_options(host->conf)->device, &entry,
                           &own);
    if (!st)
        st = open_entry(host, entry, &natives, out, &own);
    free(natives.list);
    return report(err, st, &own);
}

void frit_device_close(frit_device *device)
{
    HOLD_CANCEL;
    void *owner = NULL;
    frit_host *host;

    if (!device || process_is_barred())
        return;
    if (!open_find(device, &owner) || !owner) {
        report_closed("device_close", device);
        return;
    }
    host = owner;
    /* Under the lock, so that the driver sees the next open only after this close. */
    pthread_mutex_lock(&host->lock);
    close_locked(host, device);
    pthread_mutex_unlock(&host->lock);
}

const char *frit_device_name(const frit_device *device)
{
    return device ? device->entry->name : "";
}

uint32_t frit_device_dtype_use(const frit_device *device, uint32_t dtype)
{
    return device && dtype < FRIT_DTYPE_LIMIT ? device->info->dtype_use[dtype] : 0;
}

/* ---- running streams ---- */

frit_status frit_flush(frit_device *device, frit_err *err)
{
    HOLD_CANCEL;
    struct binding *binding = device ? binding_peek(device) : NULL;

    if (process_is_barred())
        return report_barred(err, "flush");
    if (!device)
        return report_null(err, "flush", "the device");
    if (binding && !stream_drain(binding->stream, DRAIN_SYNC))
        return stream_refuse_driver(err);
    return FRIT_OK;
}

/* Called after the wait, which may find failures. */
static void take_error(struct stream *stream, void *ctx)
{
    struct failure **first = ctx, *failure;

    mirror_fail_tensors(stream);
    failure = stream_take_error(stream);
    if (*first)
        failure_unref(failure);
    else
        *first = failure;
}

static void drain_for_sync(struct stream *stream, void *unused)
{
    (void)unused;
    stream_drain(stream, DRAIN_SYNC);
}

/* Their failures are errors of the stream. */
static void await_collectives(struct stream *stream, void *unused)
{
    (void)unused;
    if (!atomic_load(&stream->n_ranks))
        return;
    pthread_mutex_lock(&stream->baton);
    (void)ranks_wait(stream->ranks, NULL);
    pthread_mutex_unlock(&stream->baton);
}

/* Runs a stream (`only` NULL: all of them), waits, and reports the first error. */
static frit_status sync_streams(frit_device *device, struct stream *only, frit_err *err)
{
    struct failure *failure = NULL;
    frit_status st;

    if (thread_is_executing())
        return stream_refuse_driver(err);
    if (only)
        drain_for_sync(only, NULL);
    else
        streams_each(device, drain_for_sync, NULL);
    if (only)
        await_collectives(only, NULL);
    else
        streams_each(device, await_collectives, NULL);
    st = device_wait_all(device, err);
    if (!st)
        st = mirror_wait(device, err);
    if (only) {
        take_error(only, &failure);
    } else {
        failure = device_take_error(device);
        streams_each(device, take_error, &failure);
    }
    if (failure) {
        st = fail(err, failure->status, "%s", failure->text);
        failure_unref(failure);
    }
    return st;
}

frit_status frit_sync(frit_device *device, frit_err *err)
{
    HOLD_CANCEL;
    struct binding *binding = NULL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "sync");
    if (!device)
        return report_null(err, "sync", "the device");
    st = binding_current(device, &binding, &own);
    if (!st)
        st = sync_streams(device, binding->stream, &own);
    return report(err, st, &own);
}

frit_status frit_sync_all(frit_device *device, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;

    if (process_is_barred())
        return report_barred(err, "sync_all");
    if (!device)
        return report_null(err, "sync_all", "the device");
    return report(err, sync_streams(device, NULL, &own), &own);
}
