/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its options, its instance and its interface tables.  The build defines DRIVER_NAME
 * and DRIVER_RUNTIMES, the vendor's libraries. */
#include "plugin.h"

#include <stdarg.h>
#include <stdio.h>

#include <frit/plugin.h>

#include "gpu/program.h"

#include "buffer.h"
#include "device.h"
#include "extmem.h"
#include "foreign.h"
#include "native.h"
#include "peer.h"
#include "queue.h"
#include "recording.h"
#include "submit.h"
#include "timestamp.h"
#include "transfer.h"
#include "vendor.h"

#define HIP_VERSION "0.1.0"

/* ---- errors ---- */

struct result_row {
    gpu_result result;
    frit_status status;
    const char *text;
};

/* The numbers mean the same in HIP and CUDA. */
static const struct result_row *find_result(gpu_result result)
{
    static const struct result_row rows[] = {
        {GPU_OUT_OF_MEMORY, FRIT_NO_DEVICE_MEMORY, "out of memory"},
        {1, FRIT_INTERNAL, "invalid value"},
        {3, FRIT_IO, "the runtime is not initialized"},
        {34, FRIT_UNSUPPORTED, "the library is a stub without a driver"},
        {35, FRIT_UNSUPPORTED, "the driver is older than the runtime"},
        {46, FRIT_BUSY, "the device is in use by another process"},
        {GPU_NO_DEVICE, FRIT_UNSUPPORTED, "no device"},
        {GPU_NO_SUCH_DEVICE, FRIT_INVALID, "no such device"},
        {200, FRIT_INVALID, "invalid kernel image"},
        {209, FRIT_UNSUPPORTED, "the code is not for this device"},
        {214, FRIT_DEVICE_LOST, "uncorrectable memory error"},
        {218, FRIT_INVALID, "invalid PTX"},
        {220, FRIT_DEVICE_LOST, "uncorrectable error of the link"},
        {222, FRIT_UNSUPPORTED, "PTX of a newer version than the driver's"},
        {500, FRIT_INVALID, "no such kernel"},
        {700, FRIT_DEVICE_LOST, "a kernel accessed an illegal address"},
        {701, FRIT_NO_DEVICE_MEMORY,
         "a kernel needs more registers or shared memory than there are"},
        {702, FRIT_DEVICE_LOST, "a kernel ran too long"},
        {709, FRIT_DEVICE_LOST, "the context was destroyed"},
        {710, FRIT_DEVICE_LOST, "a kernel failed an assertion"},
        {714, FRIT_DEVICE_LOST, "stack error of a kernel"},
        {715, FRIT_DEVICE_LOST, "a kernel ran an illegal instruction"},
        {716, FRIT_DEVICE_LOST, "a kernel accessed a misaligned address"},
        {717, FRIT_DEVICE_LOST, "a kernel used an address of a wrong space"},
        {718, FRIT_DEVICE_LOST, "a kernel jumped to an illegal address"},
        {719, FRIT_DEVICE_LOST, "a kernel failed"},
        {800, FRIT_UNSUPPORTED, "not permitted"},
        {801, FRIT_UNSUPPORTED, "not supported"},
        {802, FRIT_IO, "the system is not ready"},
        {803, FRIT_UNSUPPORTED, "the library does not match the kernel driver's version"},
        {804, FRIT_UNSUPPORTED, "the device does not support this library's version"},
        {999, FRIT_DEVICE_LOST, "unknown error"},
    };
    static const struct result_row other = {0, FRIT_INTERNAL, "unexpected error"};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].result == result)
            return &rows[i];
    return &other;
}

const char *hip_error_text(gpu_result result)
{
    return find_result(result)->text;
}

bool hip_is_fatal(gpu_result result)
{
    return find_result(result)->status == FRIT_DEVICE_LOST;
}

frit_status hip_fail(const struct instance *instance, frit_err *err, gpu_result result,
                     const char *format, ...)
{
    const struct result_row *row = find_result(result);
    char text[sizeof err->text];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return plug_fail(&instance->plug, err, row->status, "%s: %s (error %d)", text, row->text,
                     result);
}

/* FNV-1a. */
uint64_t hip_checksum(const void *bytes, uint64_t n)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (uint64_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
    return hash;
}

/* ---- the instance ---- */

/* Sets what the instance has of its host. */
static frit_status configure(void *opened, const frit_host_options *table, frit_err *err)
{
    struct instance *instance = opened;
    struct options *out = &instance->options;
    const frit_host_root *host = instance->plug.host;
    frit_status status = table->get_str(host->self, FRIT_STR("library"), &out->library, err);

    instance->cache =
        plug_table(host, FRIT_STR(FRIT_HOST_CACHE), FRIT_END_OF(frit_host_cache, put));
    instance->exec =
        plug_table(host, FRIT_STR(FRIT_HOST_EXEC), FRIT_END_OF(frit_host_exec, task_cancel));
    if (!status)
        status = table->get_str(host->self, FRIT_STR("compiler"), &out->compiler, err);
    if (!status)
        status = table->get_str(host->self, FRIT_STR("products"), &out->products, err);
    if (!status)
        status = table->get_i64(host->self, FRIT_STR("min_product"), &out->min_product, err);
    return status ? status : table->get_str(host->self, FRIT_STR("dump"), &out->dump, err);
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    return plug_open(host, vendor.name, sizeof(struct instance), configure, out, err);
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    hip_free(instance, instance->adapters);
    hip_free(instance, instance);
}

/* ---- tables ---- */

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_backend backend = {
        .struct_size = sizeof(frit_backend),
        .driver_name = FRIT_STR_INIT(DRIVER_NAME),
        .enumerate = device_enumerate,
        .device_open = device_open,
        .device_close = device_close,
        .alloc = buffer_alloc,
        .free = buffer_free,
        .write = transfer_write,
        .read = transfer_read,
        .submit = submit_commands,
        .wait = queue_wait,
        .supports = program_supports,
        .op_program = program_for_op,
        .kernel_load = foreign_load,
        .kernel_unload = foreign_unload,
        .queue_create = queue_create,
        .queue_destroy = queue_destroy,
        .heap_budget = buffer_budget,
        .compute_info = device_compute_info,
        .copy_from = peer_copy,
    };
    static const frit_capture_table capture = {
        .struct_size = sizeof(frit_capture_table),
        .record = recording_create,
        .replay = recording_replay,
        .release = recording_release,
    };
    static const frit_profile_table profile = {.struct_size = sizeof(frit_profile_table),
                                               .clock = timestamp_clock};
    static const frit_native_table native = {.struct_size = sizeof(frit_native_table),
                                             .get = native_get,
                                             .space = FRIT_STR_INIT(DRIVER_NAME ".ptr")};
    static const frit_extmem_table extmem = {.struct_size = sizeof(frit_extmem_table),
                                             .where = extmem_where,
                                             .address = extmem_address,
                                             .import = extmem_import};

    static const struct plug_interface offered[] = {
        {FRIT_STR_INIT(FRIT_BACKEND), &backend},
        {FRIT_STR_INIT(FRIT_FUSER_TABLE), &program_fuser_table},
        {FRIT_STR_INIT(FRIT_CAPTURE_TABLE), &capture},
        {FRIT_STR_INIT(FRIT_PROFILE_TABLE), &profile},
        {FRIT_STR_INIT(FRIT_NATIVE_TABLE), &native},
        {FRIT_STR_INIT(FRIT_EXTMEM_TABLE), &extmem},
    };

    (void)instance;
    return plug_find_interface(offered, sizeof offered / sizeof *offered, id);
}

static const frit_option options[] = {
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("library"),
        .default_value = FRIT_STR_INIT(""),
        .meaning =
            FRIT_STR_INIT("file name of the vendor's runtime; empty: the versions that are known"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("compiler"),
        .default_value = FRIT_STR_INIT(""),
        .meaning =
            FRIT_STR_INIT("file name of the run-time compiler; empty: the versions that are known"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("products"),
        .default_value = FRIT_STR_INIT(""),
        .meaning = FRIT_STR_INIT("library for matrix products: cublaslt, hipblaslt or rocblas, or "
                                 "a file name; empty: the first that is installed; none: kernels "
                                 "only"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_I64,
        .name = FRIT_STR_INIT("min_product"),
        .default_value = FRIT_STR_INIT("262144"),
        .meaning = FRIT_STR_INIT("number of multiplications from which on the library computes a "
                                 "matrix product; kernels compute those with fewer"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("dump"),
        .default_value = FRIT_STR_INIT(""),
        .meaning =
            FRIT_STR_INIT("folder to write the text of each compiled kernel to; empty: none"),
    },
};

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .id = FRIT_STR_INIT(DRIVER_NAME),
    .version = FRIT_STR_INIT(HIP_VERSION),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN(DRIVER_NAME, HIP_VERSION, DRIVER_RUNTIMES, &plugin)
