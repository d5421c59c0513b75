/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions: devices, plugins, custom ops, configuration, support, counters. */
#include <stdlib.h>
#include <string.h>

#include "api/copy_sized.h"
#include "api/host.h"
#include "api/report.h"
#include "base/fail.h"
#include "base/str.h"
#include "conf/conf.h"
#include "device/device.h"
#include "device/drain_cause.h"
#include "device/profile.h"
#include "device/queue.h"
#include "device/staging.h"
#include "device/support.h"
#include "graph/custom.h"
#include "graph/dtype.h"
#include "load/device.h"
#include "load/pick.h"
#include "load/reason.h"
#include "load/registry.h"
#include "load/why.h"
#include "memory/memory.h"
#include "plan/automaton.h"
#include "record/stream.h"
#include "run/idle.h"

const char *frit_version(void)
{
    return FRIT_VERSION;
}

void frit_free(char *text)
{
    free(text);
}

const char *frit_status_name(frit_status status)
{
    return status_name(status);
}

const char *frit_dtype_name(uint32_t dtype)
{
    return dtype_name(dtype);
}

uint32_t frit_dtype_of_name(const char *name)
{
    return name ? dtype_find(str_of(name)) : FRIT_NO_DTYPE;
}

static const char *text_of(frit_str text)
{
    return text.ptr ? text.ptr : "";
}

static const char *type_name(uint32_t type)
{
    static const char *const names[] = {"unknown",    "discrete",  "accelerator",
                                        "integrated", "processor", "software"};

    return names[type < sizeof(names) / sizeof(names[0]) ? type : FRIT_DEVICE_UNKNOWN];
}

static bool is_default(frit_host *host, const struct device_entry *entry)
{
    const struct device_entry *picked;

    return !registry_pick(host->registry, conf_options(host->conf)->device, &picked, NULL) &&
           picked == entry;
}

frit_status frit_device_info_at(frit_host *host, uint64_t index, frit_device_desc *out)
{
    HOLD_CANCEL;
    const struct device_entry *entry;
    const frit_device_info *info;

    if (process_is_barred())
        return FRIT_UNSUPPORTED;
    if (!host || !out || !host->registry || index >= registry_n_devices(host->registry))
        return FRIT_INVALID;
    entry = registry_device_at(host->registry, (uint32_t)index);
    info = entry->info;
    frit_device_desc desc = {.name = entry->name,
                             .label = text_of(info->name),
                             .plugin = entry->plugin->id,
                             .type = type_name(info->type),
                             .stable_id = text_of(info->stable_id),
                             .driver_version = text_of(info->driver_version),
                             .runtime_path = text_of(info->runtime_path),
                             .pci = text_of(info->pci),
                             .memory_bytes = info->heaps->bytes,
                             .caps = info->caps,
                             .reason = info->reason,
                             .is_default = is_default(host, entry),
                             .cache_bytes = info->cache_bytes,
                             .link_bytes_per_s = info->link_bytes_per_s,
                             .link_latency_ns = info->link_latency_ns};

    return copy_sized(out, &desc, sizeof(desc));
}

frit_status frit_device_compute(frit_host *host, uint64_t index, frit_compute_desc *out,
                                frit_err *err)
{
    HOLD_CANCEL;
    frit_compute_info info = {.struct_size = sizeof(info)};
    const struct device_entry *entry;
    const frit_backend *backend;

    if (process_is_barred())
        return report_barred(err, "device_compute");
    if (!host || !out || !host->registry || index >= registry_n_devices(host->registry))
        return fail(err, FRIT_INVALID, "no device has number %llu", (unsigned long long)index);
    entry = registry_device_at(host->registry, (uint32_t)index);
    backend = &entry->plugin->backend;
    if (err)
        *err = (frit_err)ERR_INIT;
    if (backend->compute_info)
        TRY(fail_from(
            err, backend->compute_info(entry->plugin->instance, entry->info->index, &info, err),
            "compute_info"));
    frit_compute_desc desc = {.text =
                                  registry_keep_compute(host->registry, (uint32_t)index, info.text),
                              .is_slow = info.is_slow != 0};

    if (!desc.text)
        return fail(err, FRIT_NO_HOST_MEMORY, "no host memory for a text");
    return copy_sized(out, &desc, sizeof(desc)) ? fail(err, FRIT_INVALID, "no struct_size")
                                                : FRIT_OK;
}

frit_status frit_plugin_at(frit_host *host, uint64_t index, frit_plugin_desc *out)
{
    HOLD_CANCEL;
    static const char *const probe_names[] = {[PLUGIN_UNPROBED] = "no",
                                              [PLUGIN_TRUSTED] = "trusted",
                                              [PLUGIN_PROBED] = "now",
                                              [PLUGIN_RECALLED] = "earlier"};
    const struct plugin *plugin;
    uint32_t reason;

    if (process_is_barred())
        return FRIT_UNSUPPORTED;
    if (!host || !out || !host->registry || index >= registry_n_plugins(host->registry))
        return FRIT_INVALID;
    if (registry_enumerate(host->registry, (uint32_t)index))
        return FRIT_NO_HOST_MEMORY;
    plugin = registry_plugin_at(host->registry, (uint32_t)index);
    reason = plugin->reason ? plugin->reason : plugin->driver_reason;
    frit_plugin_desc desc = {.id = plugin->id,
                             .path = plugin->path,
                             .version = plugin->version,
                             .origin = plugin->origin,
                             .reason = reason,
                             .n_devices = plugin->n_devices,
                             .reason_name = reason_name(reason),
                             .detail = plugin->reason ? plugin->detail : plugin->driver_detail,
                             .probe = probe_names[plugin->probe]};

    return copy_sized(out, &desc, sizeof(desc));
}

static void describe_op(const struct plugin *plugin, const frit_op_info *row, frit_custom_desc *out)
{
    *out = (frit_custom_desc){.name = row->name,
                              .plugin = plugin->id,
                              .meaning = row->meaning,
                              .op = row->id,
                              .rev = row->rev,
                              .traits = row->traits,
                              .n_in = op_n_slots(row),
                              .n_out = op_n_out(row),
                              .n_attrs = op_record(row)->n_fields,
                              .decomposes = row->level == FRIT_LEVEL_COMPOSITE};
}

frit_status frit_custom_at(frit_host *host, uint64_t index, frit_custom_desc *out)
{
    HOLD_CANCEL;
    const struct plugin *plugin;

    if (process_is_barred())
        return FRIT_UNSUPPORTED;
    if (!host || !out || !host->registry)
        return FRIT_INVALID;
    for (uint32_t i = 0; (plugin = registry_plugin_at(host->registry, i)); i++) {
        for (uint32_t k = 0; k < plugin->n_ops; k++) {
            frit_custom_desc desc;

            if (!plugin->ops[k].id || index--)
                continue;
            describe_op(plugin, op_row(plugin->ops[k].id), &desc);
            return copy_sized(out, &desc, sizeof(desc));
        }
    }
    return FRIT_INVALID;
}

frit_status frit_custom_slot_at(uint32_t op, uint64_t index, frit_custom_slot_desc *out)
{
    const frit_op_info *row = custom_row(op);
    uint32_t n_in = row ? op_n_slots(row) : 0, n_out = row ? op_n_out(row) : 0;
    const frit_slot_info *slot;
    frit_custom_slot_desc desc;

    if (!out || index >= n_in + n_out)
        return FRIT_INVALID;
    slot = index < n_in ? &row->in[index] : &row->out[index - n_in];
    desc = (frit_custom_slot_desc){.name = slot->name, .role = slot->role, .letter = slot->letter};
    return copy_sized(out, &desc, sizeof(desc));
}

frit_status frit_custom_attr_at(uint32_t op, uint64_t index, frit_custom_attr_desc *out)
{
    const frit_record_info *record = custom_record(op);
    const frit_field_info *field;
    frit_custom_attr_desc desc;

    if (!out || !record || index >= record->n_fields)
        return FRIT_INVALID;
    field = &record->field[index];
    desc = (frit_custom_attr_desc){
        .name = field->name, .meaning = field->meaning, .type = field->type, .place = field->place};
    return copy_sized(out, &desc, sizeof(desc));
}

frit_status frit_why(frit_host *host, const char *name, char **text, frit_err *err)
{
    HOLD_CANCEL;
    struct str out = {0};

    if (text)
        *text = NULL;
    if (process_is_barred())
        return report_barred(err, "why");
    if (!host || !name || !text)
        return report_null(err, "why", !host ? "the host" : !name ? "the name" : "`text`");
    registry_why(host->registry, name, &out);
    if (out.failed) {
        str_fini(&out);
        return fail_memory(err, out.length);
    }
    *text = out.text ? out.text : calloc(1, 1);
    return *text ? FRIT_OK : fail_memory(err, 1);
}

frit_status frit_forgive(frit_host *host, const char *name, frit_err *err)
{
    if (!host || !name)
        return report_null(err, "forgive", !host ? "the host" : "the name");
    return registry_forgive(host->registry, name, err);
}

frit_status frit_config_at(frit_host *host, uint64_t index, frit_config_desc *out)
{
    frit_config_desc desc = {0};

    if (!host || !out || !host->conf || !conf_at(host->conf, index, &desc))
        return FRIT_INVALID;
    return copy_sized(out, &desc, sizeof(desc));
}

/* ---- support ---- */

uint32_t frit_op_support(frit_device *device, uint32_t op)
{
    HOLD_CANCEL;
    const frit_op_info *row = op_row(op);

    if (!device || !row || process_is_barred())
        return FRIT_SUPPORT_NONE;
    return support_of_row(device, row);
}

/* ---- counters ---- */

void frit_stats_get(frit_device *device, frit_stats *out)
{
    HOLD_CANCEL;
    struct stream_counters streams;
    const struct device_counters *count;
    struct automaton_stats known;
    struct memory_stats memory;

    if (!device || !out || process_is_barred())
        return;
    count = &device->count;
    memory_stats(device->memory, &memory);
    automaton_stats(device->automaton, &known);
    streams_sum_counters(device, &streams);
    frit_stats stats = {.ops = streams.ops,
                        .views = atomic_load(&count->views),
                        .decomposed = atomic_load(&count->decomposed),
                        .programs = atomic_load(&count->programs),
                        .launches = atomic_load(&count->launches) + streams.launches,
                        .submits = device_submits(device),
                        .compiles = atomic_load(&count->compiles),
                        .drains_read = atomic_load(&count->drains[DRAIN_READ]),
                        .drains_sync = atomic_load(&count->drains[DRAIN_SYNC]),
                        .drains_share = atomic_load(&count->drains[DRAIN_SHARE]),
                        .drains_full = atomic_load(&count->drains[DRAIN_FULL]),
                        .drains_scope = atomic_load(&count->drains[DRAIN_SCOPE]),
                        .driver_allocs = memory.driver_allocs,
                        .driver_frees = memory.driver_frees,
                        .trims = memory.trims,
                        .alloc_retries = memory.alloc_retries,
                        .bytes_in = atomic_load(&count->bytes_in),
                        .bytes_out = atomic_load(&count->bytes_out),
                        .bytes_now = memory.bytes_now,
                        .bytes_peak = memory.bytes_peak,
                        .reserved_now = memory.reserved_now,
                        .reserved_peak = memory.reserved_peak,
                        .buffers_now = memory.buffers_now,
                        .tensors_now = streams_tensors(device),
                        .queued_now = streams_queued(device),
                        .streams_now = streams_count(device),
                        .plans_now = known.plans,
                        .store_loaded = atomic_load(&count->store_loaded),
                        .explorations = atomic_load(&count->explorations),
                        .plan_hits = streams.plan_hits,
                        .plan_misses = atomic_load(&count->plan_misses),
                        .plan_runs = atomic_load(&count->plan_runs) + streams.replays,
                        .fused = atomic_load(&count->fused) + streams.fused,
                        .barriers = atomic_load(&count->barriers),
                        .in_place = atomic_load(&count->in_place),
                        .skipped = atomic_load(&count->skipped),
                        .disabled = atomic_load(&count->disabled),
                        .fallbacks_candidate = atomic_load(&count->fallbacks[FALLBACK_CANDIDATE]),
                        .fallbacks_ops = atomic_load(&count->fallbacks[FALLBACK_OPS]),
                        .fallbacks_decomposed = atomic_load(&count->fallbacks[FALLBACK_DECOMPOSED]),
                        .fallbacks_device = atomic_load(&count->fallbacks[FALLBACK_DEVICE]),
                        .waiting = atomic_load(&count->waiting),
                        .bound_launches = streams.launches,
                        .compiles_joined = atomic_load(&count->compiles_joined),
                        .compiles_cancelled = atomic_load(&count->compiles_cancelled),
                        .cache_bytes_now = atomic_load(&device->cache.bytes),
                        .cache_evicted = atomic_load(&device->cache.evicted),
                        .faults = atomic_load(&count->faults),
                        .derived_fills = atomic_load(&count->derived_fills),
                        .derived_hits = atomic_load(&count->derived_hits),
                        .captured_launches = streams.captured,
                        .bytes_adopted = memory.adopted,
                        .adopted_now = memory.adopted_now,
                        .bytes_direct = atomic_load(&count->bytes_direct),
                        .collectives = atomic_load(&count->collectives),
                        .bytes_coalesced = atomic_load(&count->bytes_coalesced),
                        .tuned = atomic_load(&count->tuned),
                        .quarantined = atomic_load(&count->quarantined),
                        .in_parts = atomic_load(&count->in_parts) + streams.in_parts};

    copy_sized(out, &stats, sizeof(stats));
}

frit_status frit_counter_at(frit_device *device, uint64_t index, frit_counter *out)
{
    HOLD_CANCEL;
    static const struct {
        const char *name, *meaning;
        size_t offset;
    } rows[] = {
#define FRIT_COUNTER(name, meaning) {#name, meaning, offsetof(frit_stats, name)},
#include <frit/counters.def>
#include <frit/inspect.h>
    };
    frit_stats stats = {.struct_size = sizeof(stats)};
    frit_counter counter = {0};

    if (process_is_barred())
        return FRIT_UNSUPPORTED;
    if (!device || !out || index >= sizeof(rows) / sizeof(rows[0]))
        return FRIT_INVALID;
    frit_stats_get(device, &stats);
    counter.name = rows[index].name;
    counter.meaning = rows[index].meaning;
    memcpy(&counter.value, (const char *)&stats + rows[index].offset, sizeof(counter.value));
    return copy_sized(out, &counter, sizeof(counter));
}

frit_status frit_device_time_start(frit_device *device, frit_err *err)
{
    HOLD_CANCEL;
    struct idle_tuner *idle;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "device_time_start");
    if (!device)
        return report_null(err, "device_time_start", "the device");
    idle = idle_stop(device);
    st = profile_start(device->profile, &own);
    idle_go_on(idle);
    if (st)
        fail_context(&own, "device_time_start");
    return report(err, st, &own);
}

frit_status frit_device_time_stop(frit_device *device, frit_device_time *out, frit_err *err)
{
    HOLD_CANCEL;
    frit_device_time time;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "device_time_stop");
    if (!device || !out)
        return report_null(err, "device_time_stop", device ? "`out`" : "the device");
    st = profile_stop(device->profile, &time, &own);
    if (!st)
        copy_sized(out, &time, sizeof(time));
    else
        fail_context(&own, "device_time_stop");
    return report(err, st, &own);
}

void frit_trim(frit_device *device)
{
    HOLD_CANCEL;

    if (!device || process_is_barred())
        return;
    memory_trim(device->memory, false);
    staging_trim(device->staging);
}
