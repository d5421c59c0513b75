/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "device/label.h"
#include "device/plan_saver.h"
#include "device/program.h"
#include "exec/job_queue.h"
#include "plan/automaton.h"

/* Tells a device from a closed one at the same address. */
static atomic_uint_least64_t last_id;

/* Held for less than it takes to sleep, as a rule. */
static void mutex_init_spinning(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t adaptive;

    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(mutex, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
}

/* Waits for everything submitted; what trims of the pools ask for. */
static void wait_idle(void *ctx)
{
    frit_device *device = ctx;
    frit_err err = ERR_INIT;

    if (device_wait(device, atomic_load(&device->last_value), &err))
        log_write(FRIT_LOG_WARN, "memory", "%s: %s", device->entry->name, err.text);
}

static frit_status memory_open(frit_device *device, frit_err *err)
{
    uint64_t align = device->info->align_bytes ? device->info->align_bytes : 64;
    struct memory_limits limits = {
        .block_bytes =
            memory_block_bytes(device->info, (uint64_t)device->config.block_bytes) / align * align,
        .keep_bytes = (uint64_t)device->config.keep_bytes,
    };

    TRY(memory_create(device->backend, device->info, device->self, &limits, &device->memory, err));
    memory_set_idle(device->memory, wait_idle, device);
    return FRIT_OK;
}

static bool computes_on_processors(const frit_device_info *info)
{
    return info->type == FRIT_DEVICE_PROCESSOR || info->type == FRIT_DEVICE_SOFTWARE;
}

frit_status device_create(const struct device_entry *entry, const struct device_config *config,
                          frit_device **out, frit_err *err)
{
    frit_device *device = aligned_alloc(_Alignof(frit_device), sizeof(*device));
    frit_status st;

    *out = NULL;
    if (!device)
        return fail_memory(err, sizeof(*device));
    memset(device, 0, sizeof(*device));
    device->id = atomic_fetch_add(&last_id, 1) + 1;
    device->config = *config;
    device->entry = entry;
    device->backend = &entry->plugin->backend;
    device->info = entry->info;
    device->opens = 1;
    if (config->compile_ahead)
        device->compiler =
            registry_jobs(config->registry, computes_on_processors(device->info) ? REGISTRY_YIELDING
                                                                                 : REGISTRY_USUAL);
    mutex_init_spinning(&device->submit);
    pthread_mutex_init(&device->lock, NULL);
    cache_init(&device->cache, config->store_bytes / 2);
    if (!array_grow(&device->poisons, &device->poison_capacity, 0, 1, sizeof(struct poison))) {
        st = fail_memory(err, sizeof(struct poison));
        goto out;
    }
    st = device->backend->device_open(entry->plugin->instance, entry->info->index, &device->self,
                                      err);
    fail_from(err, st, "device_open");
    if (st) {
        fail_context(err, "%s", entry->name);
        goto out;
    }
    st = memory_open(device, err);
    if (!st)
        st = programs_create(&device->programs, err);
    if (!st)
        st = labels_create(&device->labels, err);
    if (!st)
        st = automaton_create(device->config.store_bytes / 2, &device->automaton, err);
    if (!st)
        st = fusers_init(&device->fusers, device->config.registry, entry, device->self, err);
    if (!st)
        st = plan_saver_open(device, &device->saver, err);
    if (!st)
        *out = device;
out:
    if (st)
        device_destroy(device);
    return st;
}

void device_destroy(frit_device *device)
{
    if (!device)
        return;
    if (device->self)
        wait_idle(device);
    if (device->compiler)
        job_queue_cancel_all(device->compiler, device);
    plan_saver_close(device->saver);
    automaton_destroy(device->automaton);
    fusers_fini(&device->fusers);
    programs_destroy(device->programs);
    cache_fini(&device->cache);
    labels_destroy(device->labels);
    memory_destroy(device->memory);
    if (device->self)
        device->backend->device_close(device->self);
    for (uint32_t i = 0; i < atomic_load(&device->n_poisons); i++)
        failure_unref(device->poisons[i].failure);
    free(device->poisons);
    pthread_mutex_destroy(&device->submit);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* ---- the timeline ---- */

/* Everything written from the failed command to the newest submitted one is spoiled, so that the
 * driver need not tell of failures up to there: `told`, set when the poison can be seen.  False if
 * another thread that was told the same was here first.
 *
 * The entry can be seen before the newest is asked for: whoever submits looks for poison
 * afterwards, so that no command escapes between the two.  Without memory for one more entry the
 * last one is widened, which spoils too much rather than too little. */
static bool add_poison(frit_device *device, uint64_t from, struct failure *failure)
{
    uint64_t newest;
    bool is_new;
    uint32_t n;

    pthread_mutex_lock(&device->lock);
    is_new = from > atomic_load(&device->told);
    if (is_new) {
        n = atomic_load(&device->n_poisons);
        if (array_grow(&device->poisons, &device->poison_capacity, n, 1, sizeof(struct poison))) {
            device->poisons[n] = (struct poison){.from = from, .failure = failure_ref(failure)};
            atomic_store(&device->n_poisons, ++n);
        }
        newest = atomic_load(&device->last_value);
        device->poisons[n - 1].to = newest > from ? newest : from;
        atomic_store(&device->told, device->poisons[n - 1].to);
    }
    pthread_mutex_unlock(&device->lock);
    return is_new;
}

/* Which thread's call it was is not known, so every queue has the error, but where work runs inside
 * submit: there the op that submitted fails. */
static void remember_failure(frit_device *device, const frit_failure *failure,
                             const frit_err *detail)
{
    const char *label = label_failed(device->labels, (uint32_t)failure->cookie);
    struct failure *known;
    frit_err err = ERR_INIT;

    fail(&err, failure->status, "%s failed on %s: %s", label ? label : "a command",
         device->entry->name, detail->text[0] ? detail->text : status_name(failure->status));
    known = failure_create(&err);
    if (add_poison(device, failure->value, known) && device->note_failure &&
        !(device->info->caps & FRIT_CAP_INLINE_QUEUE))
        device->note_failure(device, known);
    failure_unref(known);
}

/* One call of the driver's wait; what it tells of failed commands is remembered. */
static frit_status ask_wait(frit_device *device, uint64_t value, frit_err *detail)
{
    uint64_t told = atomic_load(&device->told);
    frit_failure failure = {.struct_size = sizeof(failure), .value = told};
    frit_status st = device->backend->wait(device->self, value, UINT64_MAX, &failure, detail);

    if (failure.status < 0) {
        /* A driver that names no command it may have meant may mean any that is not known. */
        if (failure.value == told || failure.value > value)
            failure.value = told < value ? told + 1 : value;
        remember_failure(device, &failure, detail);
    }
    return st;
}

static void raise_to(atomic_uint_least64_t *highest, uint64_t value)
{
    uint64_t now = atomic_load(highest);

    while (now < value && !atomic_compare_exchange_weak(highest, &now, value))
        ;
}

/* A wait that fails leaves the queue at work, on memory of callers too, so it is tried again. */
frit_status device_wait(frit_device *device, uint64_t value, frit_err *err)
{
    frit_err detail = ERR_INIT;
    uint64_t begun;
    frit_status st;

    if (value <= atomic_load(&device->reached))
        return FRIT_OK;
    begun = timeline_begin();
    st = ask_wait(device, value, &detail);
    if (st < 0 && st != FRIT_DEVICE_LOST) {
        detail = (frit_err)ERR_INIT;
        st = ask_wait(device, value, &detail);
    }
    timeline_end(begun, "device", str_of("wait"));
    if (st >= 0) {
        raise_to(&device->reached, value);
        return FRIT_OK;
    }
    if (!err)
        return st;
    *err = detail;
    fail_from(err, st, "wait");
    return fail_context(err, "waiting for %s", device->entry->name);
}

void device_reached(frit_device *device, uint64_t value)
{
    raise_to(&device->last_value, value);
}

frit_status device_submit(frit_device *device, const frit_cmd *cmds, uint32_t count,
                          uint64_t *value, frit_err *err)
{
    uint64_t begun = timeline_begin();
    frit_err detail = ERR_INIT;
    frit_status st;

    pthread_mutex_lock(&device->submit);
    st = device->backend->submit(device->self, cmds, count, sizeof(*cmds), NULL, 0, value, err);
    if (st >= 0) {
        device_reached(device, *value);
        atomic_store_explicit(&device->submits, atomic_load(&device->submits) + 1,
                              memory_order_relaxed);
    }
    /* Work that ran inside submit has failed by now or never.  It has run in any case, so that a
     * wait that fails is a failure of the commands and not a refusal.  Asked while the driver's
     * queue is still this core's. */
    if (st >= 0 && device->info->caps & FRIT_CAP_INLINE_QUEUE &&
        device_wait(device, *value, &detail))
        remember_failure(device, &(frit_failure){.status = detail.status, .value = *value},
                         &detail);
    pthread_mutex_unlock(&device->submit);
    timeline_end(begun, "device", str_of("submit"));
    return st < 0 ? fail_from(err, st, "submit") : FRIT_OK;
}

struct failure *device_poison_of(frit_device *device, uint64_t written_at)
{
    struct failure *found = NULL;

    if (!atomic_load(&device->n_poisons))
        return NULL;
    pthread_mutex_lock(&device->lock);
    for (uint32_t i = 0; i < atomic_load(&device->n_poisons) && !found; i++) {
        if (written_at >= device->poisons[i].from && written_at <= device->poisons[i].to)
            found = failure_ref(device->poisons[i].failure);
    }
    pthread_mutex_unlock(&device->lock);
    return found;
}
