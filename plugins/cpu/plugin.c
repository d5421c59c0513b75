/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its options, its instance, and the tables it offers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <frit/plugin.h>

#include "buffer.h"
#include "cpu.h"
#include "device.h"
#include "program.h"

/* The second cache of a processor where the system does not say; how many of it all fill before
 * what is stored is better not kept in caches. */
enum { USUAL_CACHE = 1 << 20, CACHE_TIMES = 4 };

static const char *const level_names[TILE_LEVELS] = {
    [TILE_BASE] = "baseline", [TILE_AVX2] = "avx2", [TILE_AVX512] = "avx512"};

/* ---- the instance ---- */

/* The word after the colon of the first line that begins with "model name"; else a general one. */
static void read_name(char *name, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(name, size, "processor");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');

        if (!colon || strncmp(line, "model name", strlen("model name")) != 0)
            continue;
        snprintf(name, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

static frit_status read_level(struct instance *instance, const frit_host_options *options,
                              frit_err *err)
{
    const enum tile_level best = tile_level_best();
    frit_str wanted;
    frit_status status = options->get_str(instance->plug.host->self, FRIT_STR("isa"), &wanted, err);

    instance->level = best;
    for (uint32_t level = 0; !status && level < TILE_LEVELS; level++)
        if (plug_is(wanted, (frit_str){level_names[level], strlen(level_names[level])}))
            instance->level = (enum tile_level)level;
    if (!status && instance->level > best)
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED,
                         "option.isa is %s, this machine has %s", level_names[instance->level],
                         level_names[best]);
    return status;
}

static frit_status read_options(struct instance *instance, frit_err *err)
{
    const frit_host_root *host = instance->plug.host;
    const frit_host_options *options =
        plug_options(&instance->plug, FRIT_END_OF(frit_host_options, get_bool), err);
    int64_t memory_bytes, stream_bytes;
    uint32_t check, winograd;
    frit_status status;

    if (!options)
        return FRIT_INCOMPATIBLE;
    status = options->get_i64(host->self, FRIT_STR("memory_bytes"), &memory_bytes, err);
    if (status)
        return status;
    instance->memory_bytes = (uint64_t)memory_bytes;
    status = options->get_i64(host->self, FRIT_STR("stream_bytes"), &stream_bytes, err);
    if (status)
        return status;
    instance->stream_bytes = (uint64_t)stream_bytes;
    status = options->get_bool(host->self, FRIT_STR("check"), &check, err);
    if (status)
        return status;
    instance->check = check;
    status = options->get_bool(host->self, FRIT_STR("winograd"), &winograd, err);
    if (status)
        return status;
    instance->winograd = winograd;
    return read_level(instance, options, err);
}

/* What is found without the host. */
static void describe(struct instance *instance)
{
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);

    if (!instance->stream_bytes)
        instance->stream_bytes =
            (cache > 0 ? (uint64_t)cache : USUAL_CACHE) * CACHE_TIMES * instance->threads;
    read_name(instance->name, sizeof instance->name);
    snprintf(instance->fingerprint, sizeof instance->fingerprint, "cpu %s %s%s", CPU_VERSION,
             level_names[instance->level], device_has_dot2(instance) ? " bf16" : "");
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    struct instance read = {0}, *instance;
    frit_status status = plug_init(&read.plug, "cpu", host);

    *out = NULL;
    if (!status)
        status = read_options(&read, err);
    if (status)
        return status;
    read.exec =
        plug_table(host, FRIT_STR(FRIT_HOST_EXEC), FRIT_END_OF(frit_host_exec, parallel_for));
    read.threads = read.exec ? read.exec->threads(host->self) : 1;
    describe(&read);
    instance = plug_new(&read.plug, sizeof *instance, "the plugin's instance", err);
    if (!instance)
        return FRIT_NO_HOST_MEMORY;
    *instance = read;
    status = jit_init(&instance->jit, &instance->plug, instance->level, err);
    if (instance->check)
        instance->jit.mode = JIT_NEVER;
    if (status)
        plug_free(&read.plug, instance);
    else
        *out = instance;
    return status;
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    jit_fini(&instance->jit);
    plug_free(&instance->plug, instance);
}

/* ---- the tables ---- */

static const frit_backend backend = {.driver_name = FRIT_STR_INIT("cpu"),
                                     .enumerate = device_enumerate,
                                     .device_open = device_open,
                                     .device_close = device_close,
                                     .alloc = buffer_alloc,
                                     .supports = op_supports,
                                     .op_program = op_create,
                                     .queue_create = device_queue_create,
                                     .queue_destroy = device_queue_destroy,
                                     .compute_info = device_compute_info,
                                     HOSTED_BACKEND_SLOTS};

static const void *plugin_interface(void *instance, frit_str id)
{
    (void)instance;
    if (plug_is(id, FRIT_STR(FRIT_BACKEND)))
        return &backend;
    if (plug_is(id, FRIT_STR(FRIT_FUSER_TABLE)))
        return &fuser_table;
    if (plug_is(id, FRIT_STR(FRIT_PROFILE_TABLE)))
        return &hosted_profile_table;
    return plug_is(id, FRIT_STR(FRIT_NATIVE_TABLE)) ? &hosted_native_table : NULL;
}

static const frit_option options[] = {
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_I64,
        .name = FRIT_STR_INIT("memory_bytes"),
        .default_value = FRIT_STR_INIT("0"),
        .meaning = FRIT_STR_INIT("bytes that its device may hold; 0: no cap"),
        .min = 0,
        .max = INT64_MAX,
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("isa"),
        .default_value = FRIT_STR_INIT("auto"),
        .choices = FRIT_STR_INIT("auto avx512 avx2 baseline"),
        .meaning = FRIT_STR_INIT("instruction set of the code; auto: the best of the machine"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("tier"),
        .default_value = FRIT_STR_INIT("auto"),
        .choices = FRIT_STR_INIT("auto 0 1"),
        .meaning =
            FRIT_STR_INIT("0: kernels are interpreted; 1: compiled before they run, by LLVM; auto: "
                          "interpreted until they are compiled in the background"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("llvm"),
        .default_value = FRIT_STR_INIT(""),
        .meaning =
            FRIT_STR_INIT("the library libLLVM, 15 to 19; empty: the newest of the system's"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_I64,
        .name = FRIT_STR_INIT("stream_bytes"),
        .default_value = FRIT_STR_INIT("0"),
        .meaning = FRIT_STR_INIT(
            "launches that write as much go around the caches; 0: four times what the "
            "second caches hold"),
        .min = 0,
        .max = INT64_MAX,
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_BOOL,
        .name = FRIT_STR_INIT("winograd"),
        .default_value = FRIT_STR_INIT("yes"),
        .meaning =
            FRIT_STR_INIT("f32 convolutions with windows of 3 x 3 may be computed by Winograd's "
                          "F(2x2, 3x3), which rounds more often; no: they are sums of products"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_BOOL,
        .name = FRIT_STR_INIT("check"),
        .default_value = FRIT_STR_INIT("no"),
        .meaning =
            FRIT_STR_INIT("kernels are interpreted, load 0 and store nothing outside of their "
                          "arguments, and fail where they tried (for tests)"),
    },
};

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .id = FRIT_STR_INIT("cpu"),
    .version = FRIT_STR_INIT(CPU_VERSION),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("cpu", CPU_VERSION, "", &plugin)
