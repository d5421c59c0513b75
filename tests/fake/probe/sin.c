/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that commits one sin, which its file's name says: libfrit-sin-<place>-<act>.so.  All
 * files are copies of one.  With any other name it is a good driver. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sin.h"

/* ---- which sin this is ---- */

static char place[16], act[32];
static int *volatile nowhere = (int *)8;

static void read_name(void)
{
    const char *name;
    Dl_info self;

    if (!dladdr(place, &self) || !self.dli_fname)
        return;
    name = strstr(self.dli_fname, "libfrit-sin-");
    if (name)
        (void)sscanf(name, "libfrit-sin-%15[a-z]-%31[a-z0-9_].so", place, act);
}

static bool is_sin(const char *where, const char *name)
{
    return strcmp(where, place) == 0 && strcmp(name, act) == 0;
}

static void commit(const struct act *acts)
{
    for (; acts->name; acts++)
        if (strcmp(acts->name, act) == 0)
            acts->commit();
}

static void misbehave(const char *where)
{
    if (strcmp(where, place) != 0)
        return;
    commit(changes);
    commit(ends);
}

static void apply(const char *where, const struct lie *lies, struct said *said)
{
    for (; strcmp(where, place) == 0 && lies->name; lies++)
        if (strcmp(lies->name, act) == 0)
            lies->apply(said);
}

/* ---- after the end ---- */

static void no_task(void *ctx)
{
    (void)ctx;
}

/* A thread that goes on calling the host. */
static void *call_late(void *instance)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const struct fake copy = *(const struct fake *)instance;
    void *self = copy.host->self;
    const frit_host_exec *exec = copy.host->get_interface(self, FRIT_STR(FRIT_HOST_EXEC));
    const frit_host_cache *cache = copy.host->get_interface(self, FRIT_STR(FRIT_HOST_CACHE));

    for (;;) {
        frit_err err = {.struct_size = sizeof(err)};
        uint64_t n = 0;
        void *bytes = NULL;

        copy.core->log(self, FRIT_LOG_DEBUG, FRIT_STR("late"), FRIT_STR("still here"));
        copy.core->mem_free(self, copy.core->mem_alloc(self, 64, 64));
        (void)copy.core->err_set(self, &err, FRIT_IO, 0, FRIT_STR("late"));
        (void)exec->spawn(self, no_task, NULL, &err);
        exec->task_raise(self, 1, 1);
        exec->task_cancel(self, 1);
        (void)cache->get(self, FRIT_STR("late"), "key", 3, &bytes, &n, &err);
        copy.core->mem_free(self, bytes);
        (void)nanosleep(&moment, NULL);
    }
    return NULL;
}

static void start_late(void *instance)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    pthread_t thread;

    if (pthread_create(&thread, NULL, call_late, instance) == 0)
        (void)pthread_detach(thread);
    (void)nanosleep(&moment, NULL); /* it has read the instance */
}

/* ---- slots ---- */

static frit_status enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err)
{
    struct said said = {.info = out,
                        .stride = stride,
                        .capacity = capacity,
                        .count = count,
                        .driver = driver,
                        .err = err};

    misbehave("enumerate");
    said.status = fake_enumerate(instance, out, stride, capacity, count, driver, err);
    apply("enumerate", device_lies, &said);
    apply("enumerate", failures, &said);
    return said.status;
}

/* For devices that list formats of kernels. */
static frit_status kernel_load(void *device, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err)
{
    (void)format;
    (void)bytes;
    (void)n_bytes;
    (void)kernel;
    return fake_fail(fake_of(device), err, FRIT_UNSUPPORTED, "no kernels");
}

static void kernel_unload(void *device, frit_kernel *kernel)
{
    (void)device;
    (void)kernel;
}

static frit_plugin plugin;

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    static char driver[48];
    struct said said = {.err = err};
    struct fake *fake = NULL;

    snprintf(driver, sizeof(driver), "%s-%s", place, act);
    for (char *at = driver; *at; at++)
        if (*at == '_')
            *at = '-';
    said.status = fake_open(host, driver, &fake, err);
    if (said.status)
        return said.status;
    fake->backend.struct_size = FRIT_END_OF(frit_backend, kernel_unload);
    fake->backend.enumerate = enumerate;
    fake->backend.kernel_load = kernel_load;
    fake->backend.kernel_unload = kernel_unload;
    misbehave("open");
    if (is_sin("open", "late"))
        start_late(fake);
    apply("open", failures, &said);
    if (said.status)
        fake_close(fake);
    else
        *instance = fake;
    return said.status;
}

static void plugin_close(void *instance)
{
    misbehave("close");
    fake_close(instance);
}

static const void *get_interface(void *instance, frit_str id)
{
    struct fake *fake = instance;
    struct said said = {
        .id = id, .backend = &fake->backend, .table = fake_get_interface(instance, id)};

    misbehave("get");
    apply("get", table_lies, &said);
    return said.table;
}

/* ---- the file ---- */

__attribute__((constructor)) static void constructor(void)
{
    read_name();
    misbehave("load");
}

__attribute__((destructor)) static void destructor(void)
{
    misbehave("exit");
}

static const frit_note_section note __attribute__((section(".note.frit"), used, aligned(4))) = {
    sizeof("FRIT"),
    sizeof(frit_note),
    1,
    "FRIT",
    {sizeof(frit_note), FRIT_ABI_MIN, FRIT_ABI_MAX, FRIT_SANITIZER, {0}, "sin", "1.0", ""}};

static void fill_plugin(void)
{
    static char id[64];
    const int n = snprintf(id, sizeof(id), "sin-%s-%s", place, act);

    for (char *at = id; *at; at++)
        if (*at == '_')
            *at = '-';
    plugin = (frit_plugin){.struct_size = sizeof(frit_plugin),
                           .id = {id, (uint64_t)n},
                           .version = {"1.0", 3},
                           .license = {"Apache-2.0", 10},
                           .open = plugin_open,
                           .close = plugin_close,
                           .get_interface = get_interface};
}

__attribute__((visibility("default"))) int32_t frit_plugin_entry_v1(const frit_hello *hello,
                                                                    frit_welcome *welcome);

int32_t frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome)
{
    struct said said = {.plugin = &plugin, .welcome = welcome};

    if (is_sin("entry", "here")) /* a report names this function */
        *nowhere = 1;
    misbehave("entry");
    fill_plugin();
    said.status = frit_negotiate(hello, welcome, &plugin);
    apply("entry", entry_lies, &said);
    apply("entry", failures, &said);
    return said.status;
}
