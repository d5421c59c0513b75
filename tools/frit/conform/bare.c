/* SPDX-License-Identifier: Apache-2.0 */
/* The small host: host memory that is counted, options, and nothing else. */
#include "conform/bare.h"
#include "conform/launch.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- frit.host.core/1 ---- */

static void core_log(void *self, uint32_t level, frit_str topic, frit_str text)
{
    (void)self;
    (void)level;
    (void)topic;
    (void)text;
}

static uint32_t core_log_enabled(void *self, uint32_t level, frit_str topic)
{
    (void)self;
    (void)level;
    (void)topic;
    return 0;
}

static frit_status core_err_set(void *self, frit_err *err, frit_status status, int64_t native_code,
                                frit_str text)
{
    (void)self;
    if (!err)
        return status;
    err->struct_size = sizeof(*err);
    err->status = status;
    err->native_code = native_code;
    snprintf(err->text, sizeof(err->text), "%.*s", (int)text.len, text.ptr ? text.ptr : "");
    return status;
}

static void *core_mem_alloc(void *self, uint64_t bytes, uint64_t align)
{
    const uint64_t most = (uint64_t)1 << 40; /* no machine has as much */
    struct bare *bare = self;
    void *memory = NULL;

    if (bytes > most || align > most ||
        posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes ? bytes : 1))
        return NULL;
    bare->live++;
    return memory;
}

static void core_mem_free(void *self, void *memory)
{
    ((struct bare *)self)->live -= memory != NULL;
    free(memory);
}

static uint64_t core_now_ns(void *self)
{
    struct timespec now;

    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- frit.host.options/1 ---- */

static bool is(frit_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static const frit_option *find_option(const frit_plugin *plugin, frit_str key)
{
    for (uint32_t i = 0; i < plugin->n_options; i++) {
        const frit_option *option =
            (const frit_option *)(const void *)((const char *)plugin->options +
                                                (size_t)i * plugin->option_stride);

        if (option->name.len == key.len && memcmp(option->name.ptr, key.ptr, key.len) == 0)
            return option;
    }
    return NULL;
}

bool bare_has_option(const struct bare *bare, const char *name)
{
    return find_option(bare->plugin, (frit_str){name, strlen(name)}) != NULL;
}

/* The value that libfrit would pass: that of the command line, the environment or a file, else the
 * default.  FRIT_INVALID if the plugin declares no such option of that type, 0 being any. */
static frit_status get_typed(void *self, frit_str key, uint32_t type, frit_str *out, frit_err *err)
{
    const struct bare *bare = self;
    const frit_option *option = find_option(bare->plugin, key);
    frit_config_desc value = {.struct_size = sizeof(value)};
    char section[CONFORM_NAME], name[CONFORM_NAME];

    if (!option || (type && option->type != type))
        return core_err_set(self, err, FRIT_INVALID, 0, FRIT_STR("an option without declaration"));
    snprintf(section, sizeof(section), "plugin.%.*s", (int)bare->plugin->id.len,
             bare->plugin->id.ptr);
    snprintf(name, sizeof(name), "option.%.*s", (int)key.len, key.ptr);
    *out = option->default_value;
    for (uint64_t i = 0; frit_config_at(bare->host, i, &value) == FRIT_OK; i++)
        if (strcmp(value.section, section) == 0 && strcmp(value.key, name) == 0)
            *out = (frit_str){value.value, strlen(value.value)};
    if (bare->extra && is(key, bare->extra->key))
        *out = (frit_str){bare->extra->value, strlen(bare->extra->value)};
    return FRIT_OK;
}

static frit_status get_str(void *self, frit_str key, frit_str *out, frit_err *err)
{
    return get_typed(self, key, 0, out, err); /* as it is written, whatever its type */
}

static frit_status get_text(void *self, frit_str key, uint32_t type, char text[64], frit_err *err)
{
    frit_str value;
    frit_status status = get_typed(self, key, type, &value, err);

    if (!status)
        snprintf(text, 64, "%.*s", (int)value.len, value.ptr);
    return status;
}

static frit_status get_i64(void *self, frit_str key, int64_t *out, frit_err *err)
{
    char text[64] = "";
    frit_status status = get_text(self, key, FRIT_OPTION_I64, text, err);

    if (!status)
        *out = strtoll(text, NULL, 10);
    return status;
}

static frit_status get_f64(void *self, frit_str key, double *out, frit_err *err)
{
    char text[64] = "";
    frit_status status = get_text(self, key, FRIT_OPTION_F64, text, err);

    if (!status)
        *out = strtod(text, NULL);
    return status;
}

static frit_status get_bool(void *self, frit_str key, uint32_t *out, frit_err *err)
{
    char text[64] = "";
    frit_status status = get_text(self, key, FRIT_OPTION_BOOL, text, err);

    if (!status)
        *out = strcmp(text, "yes") == 0;
    return status;
}

static const void *get_interface(void *self, frit_str id)
{
    static const frit_host_core core = {.struct_size = sizeof(core),
                                        .log = core_log,
                                        .log_enabled = core_log_enabled,
                                        .err_set = core_err_set,
                                        .mem_alloc = core_mem_alloc,
                                        .mem_free = core_mem_free,
                                        .now_ns = core_now_ns};
    static const frit_host_options options = {.struct_size = sizeof(options),
                                              .get_str = get_str,
                                              .get_i64 = get_i64,
                                              .get_f64 = get_f64,
                                              .get_bool = get_bool};

    (void)self;
    if (is(id, FRIT_HOST_CORE))
        return &core;
    return is(id, FRIT_HOST_OPTIONS) ? &options : NULL;
}

/* ---- words ---- */

frit_status bare_fail_text(struct bare *bare, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(bare->reason, CONFORM_REASON, format, args);
    va_end(args);
    return FRIT_INTERNAL;
}

frit_status bare_fail(struct bare *bare, const char *slot, frit_status status)
{
    snprintf(bare->reason, CONFORM_REASON, "%s: %s: %.300s", slot, frit_status_name(status),
             bare->err.text);
    return status == FRIT_UNSUPPORTED ? FRIT_INTERNAL : status;
}

void bare_note(const struct bare *bare, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("in ", bare->out);
    vfprintf(bare->out, format, args);
    fputs("\n", bare->out);
    fflush(bare->out);
    va_end(args);
}

/* ---- opening ---- */

/* The plugin's file, and which of its devices this is. */
static bool find_file(const struct lab *lab, frit_plugin_desc *plugin, uint32_t *index)
{
    const char *name = frit_device_name(lab->device), *colon = strrchr(name, ':');
    frit_device_desc device = {.struct_size = sizeof(device)};

    for (uint64_t i = 0; frit_device_info_at(lab->host, i, &device) == FRIT_OK; i++) {
        if (strcmp(device.name, name) != 0)
            continue;
        *index = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
        for (uint64_t k = 0; frit_plugin_at(lab->host, k, plugin) == FRIT_OK; k++)
            if (!plugin->reason && strcmp(plugin->id, device.plugin) == 0)
                return true;
    }
    return false;
}

frit_status bare_load(struct bare *bare, const char *path)
{
    const frit_hello hello = {sizeof(hello), FRIT_HELLO_MAGIC, FRIT_ABI_MIN,
                              FRIT_ABI_MAX,  FRIT_SANITIZER,   0};
    frit_welcome welcome = {.struct_size = sizeof(welcome)};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    frit_plugin_entry entry = NULL;

    if (library)
        *(void **)&entry = dlsym(library, FRIT_PLUGIN_ENTRY);
    if (!entry || entry(&hello, &welcome) || !welcome.plugin)
        return bare_fail_text(bare, "%s cannot be entered again", path);
    bare->plugin = welcome.plugin;
    return FRIT_OK;
}

static frit_status find_device(struct bare *bare, uint32_t index)
{
    enum { DEVICES = 16 };
    frit_driver_info driver = {.struct_size = sizeof(driver)};
    const frit_open_params params = {.struct_size = sizeof(params)};
    frit_device_info list[DEVICES] = {{0}};
    uint32_t count = 0;
    frit_status status;

    for (uint32_t i = 0; i < DEVICES; i++)
        list[i].struct_size = sizeof(list[i]);
    status = bare->backend->enumerate(bare->instance, list, sizeof(list[0]), DEVICES, &count,
                                      &driver, &bare->err);
    if (status)
        return bare_fail(bare, "enumerate", status);
    if (index >= count || index >= DEVICES || list[index].reason)
        return bare_fail_text(bare, "a second instance has no such device");
    bare->info = list[index];
    status = bare->backend->device_open(bare->instance, index, &params, &bare->device, &bare->err);
    return status ? bare_fail(bare, "device_open", status) : FRIT_OK;
}

frit_status bare_open(struct bare *bare, const struct conform_options *options,
                      const struct lab *lab, char reason[CONFORM_REASON])
{
    frit_plugin_desc plugin = {.struct_size = sizeof(plugin)};
    uint32_t index = 0;
    frit_status status;

    bare->options = options;
    bare->host = lab->host;
    bare->reason = reason;
    bare->memo = lab->memo;
    bare->border = lab->border;
    bare->out = lab->out;
    bare->err = (frit_err){.struct_size = sizeof(bare->err)};
    bare->root = (frit_host_root){sizeof(bare->root), 0, bare, get_interface};
    if (!find_file(lab, &plugin, &index))
        return bare_fail_text(bare, "the plugin's file is not known");
    status = bare_load(bare, plugin.path);
    if (!status && (status = bare->plugin->open(&bare->root, &bare->instance, &bare->err)))
        return bare_fail(bare, "open", status);
    if (status)
        return status;
    bare->backend = bare->plugin->get_interface(bare->instance, FRIT_STR(FRIT_BACKEND));
    bare->fusers = bare->plugin->get_interface(bare->instance, FRIT_STR(FRIT_FUSER_TABLE));
    bare->capture = bare->plugin->get_interface(bare->instance, FRIT_STR(FRIT_CAPTURE_TABLE));
    bare->profile = bare->plugin->get_interface(bare->instance, FRIT_STR(FRIT_PROFILE_TABLE));
    status = bare->backend ? find_device(bare, index) : bare_fail_text(bare, "there is no backend");
    if (status)
        return bare_close(bare, status);
    bare->seen = (frit_fuser_device){.struct_size = sizeof(bare->seen),
                                     .same_plugin = 1,
                                     .info = &bare->info,
                                     .device = bare->device};
    return FRIT_OK;
}

frit_status bare_close(struct bare *bare, frit_status status)
{
    const char *changed;

    if (bare->late)
        return status ? status : bare_late(bare);
    if (bare->device)
        bare->backend->device_close(bare->device);
    bare->plugin->close(bare->instance);
    bare->device = NULL;
    changed = border_differs(bare->border);
    if (!status && changed)
        return bare_fail_text(bare, "%s is another than before the plugin was loaded", changed);
    if (!status && bare->live)
        return bare_fail_text(bare, "%lld pieces of host memory are left after close",
                              (long long)bare->live);
    return status;
}

frit_status bare_check(const struct conform_options *options, const struct lab *lab,
                       const frit_setting *extra, frit_status (*check)(struct bare *bare),
                       char reason[CONFORM_REASON])
{
    struct bare bare = {.extra = extra};
    frit_status status = bare_open(&bare, options, lab, reason);

    if (status)
        return status;
    if (extra && !bare_has_option(&bare, extra->key)) {
        bare_fail_text(&bare, "the plugin has no option %s", extra->key);
        status = FRIT_UNSUPPORTED;
    } else {
        status = check(&bare);
    }
    return bare_close(&bare, status);
}
