/* SPDX-License-Identifier: Apache-2.0 */
/* One broken rule per shared object: -DSIN=SIN_<row of sins.def> says which.  All else is right, so
 * that nothing but the sin can be what the host complains about. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <frit/custom.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/profile.h>

#include "driver.h"

enum {
    SIN_NONE,
#define FAKE_SIN(NAME, file, REASON, DRIVER_REASON, words) SIN_##NAME,
#include "sins.def"
};

static const char *const ids[] = {
#define FAKE_SIN(NAME, file, REASON, DRIVER_REASON, words) [SIN_##NAME] = "fake-" file,
#include "sins.def"
};

/* ---- devices ---- */

/* What a plugin of a later version has: the same fields and more after them. */
struct future_device {
    frit_device_info known;
    uint64_t more[8];
};

struct future_heap {
    frit_heap known;
    uint64_t more[2];
};

/* Fills its own larger structs and hands over as much of each as the host has room for. */
static void enumerate_future(const struct fake *fake, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count)
{
    static const frit_str formats[] = {{"new\nformat", 10}};
    static const struct future_heap heaps[2] = {
        {.known = {.struct_size = sizeof(heaps[0])}, .more = {0xa5a5a5a5a5a5a5a5u, 1}},
        {.known = {.struct_size = sizeof(heaps[0]), .kind = 77}, .more = {0xa5a5a5a5a5a5a5a5u, 1}},
    };

    *count = 2;
    for (uint32_t i = 0; i < 2 && i < capacity; i++) {
        frit_device_info *info =
            (frit_device_info *)(void *)((char *)out + (size_t)i * (size_t)stride);
        uint32_t room = info->struct_size;
        struct future_device device = {.known = {.index = i}};

        memset(device.more, 0xa5, sizeof(device.more));
        device.known.struct_size = sizeof(device);
        device.known.type = 77;
        device.known.reason = i == 0 ? 0 : 999;
        device.known.stable_id = i == 0 ? FRIT_STR("one") : FRIT_STR("two");
        device.known.name = FRIT_STR("from the\nfuture");
        device.known.n_formats = 1;
        device.known.formats = formats;
        device.known.n_heaps = 2;
        device.known.heap_stride = sizeof(heaps[0]);
        device.known.heaps = &heaps[0].known;
        memcpy(info, &device, room < sizeof(device) ? room : sizeof(device));
    }
    (void)fake;
}

static frit_status enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err)
{
    static const frit_str formats[] = {{"host-fn/1", 9}, {"ptx/1", 5}};
    static const frit_heap pinned = {.struct_size = sizeof(pinned), .kind = FRIT_HEAP_PINNED};
    struct fake *fake = instance;
    frit_status status;

    if (SIN == SIN_ENUMERATE_FAILS)
        return fake_fail(fake, err, FRIT_IO, "the bus is on strike");
    if (SIN == SIN_FUTURE) {
        enumerate_future(fake, out, stride, capacity, count);
        return FRIT_OK;
    }
    if (SIN == SIN_NO_DEVICES) {
        fake->n_devices = 0;
        driver->reason = FRIT_REASON_NO_RUNTIME;
        driver->detail = FRIT_STR("libmoon.so.1 is missing");
    }
    if (SIN == SIN_INDEX_GAP)
        fake->n_devices = 2;
    status = fake_enumerate(instance, out, stride, capacity, count, driver, err);
    if (SIN == SIN_ENDLESS_DEVICES)
        *count = capacity + 1;
    if (SIN == SIN_INDEX_GAP)
        out[1].index = 3;
    if (SIN == SIN_ODD_ALIGN)
        out[0].align_bytes = 96;
    if (SIN == SIN_SHORT_DEVICE)
        out[0].struct_size = 16;
    if (SIN == SIN_NO_HEAPS)
        out[0].n_heaps = 0;
    if (SIN == SIN_SHORT_HEAPS)
        out[0].heap_stride = FRIT_END_OF(frit_heap, bytes);
    if (SIN == SIN_PINNED_FIRST)
        out[0].heaps = &pinned;
    if (SIN == SIN_NULL_FORMATS || SIN == SIN_DEAF_FORMATS)
        out[0].n_formats = 2;
    if (SIN == SIN_ENDLESS_FORMATS)
        out[0].n_formats = UINT32_MAX;
    if (SIN == SIN_DEAF_FORMATS)
        out[0].formats = formats;
    return status;
}

/* ---- the backend's table ---- */

/* The table at the very end of a page after which nothing may be read. */
static const void *at_cliff(const void *table, uint32_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *place = pages + page - bytes;

    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE))
        return NULL;
    memcpy(place, table, bytes);
    return place;
}

/* A larger table, all of whose unknown slots are poison. */
static const void *with_more_slots(const frit_backend *table)
{
    static struct {
        frit_backend known;
        uint64_t more[16];
    } larger;

    larger.known = *table;
    larger.known.struct_size = sizeof(larger);
    memset(larger.more, 0xa5, sizeof(larger.more));
    return &larger;
}

static frit_status load_kernel(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err)
{
    (void)self;
    (void)format;
    (void)bytes;
    (void)n_bytes;
    (void)err;
    *kernel = NULL;
    return FRIT_UNSUPPORTED;
}

static void unload_kernel(void *self, frit_kernel *kernel)
{
    (void)self;
    (void)kernel;
}

static const void *backend_table(struct fake *fake)
{
    fake->backend.enumerate = enumerate;
    if (SIN == SIN_SHORT_BACKEND)
        fake->backend.struct_size = FRIT_END_OF(frit_backend, supports);
    if (SIN == SIN_NULL_SUBMIT)
        fake->backend.submit = NULL;
    if (SIN == SIN_HALF_SLOT) {
        fake->backend.struct_size = FRIT_END_OF(frit_backend, op_program) + 4;
        memset(&fake->backend.memory_cleanup, 0xa5, sizeof(fake->backend.memory_cleanup));
    }
    if (SIN == SIN_HALF_KERNELS || SIN == SIN_NULL_FORMATS || SIN == SIN_FUTURE) {
        fake->backend.struct_size = sizeof(fake->backend);
        fake->backend.kernel_load = load_kernel;
        fake->backend.kernel_unload = SIN == SIN_HALF_KERNELS ? NULL : unload_kernel;
    }
    if (SIN == SIN_POISONED_TAIL)
        return at_cliff(&fake->backend, fake->backend.struct_size);
    return SIN == SIN_FUTURE ? with_more_slots(&fake->backend) : &fake->backend;
}

/* ---- the fusers' table: fusers for no device ---- */

static frit_status prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                              uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    (void)instance;
    (void)device;
    (void)out;
    (void)stride;
    (void)capacity;
    (void)err;
    *count = 0;
    return FRIT_OK;
}

static frit_status clone(const void *fuser, void **out, frit_err *err)
{
    (void)fuser;
    (void)err;
    *out = NULL;
    return FRIT_UNSUPPORTED;
}

static void destroy(void *fuser)
{
    (void)fuser;
}

static void push(void *fuser, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    (void)fuser;
    (void)ops;
    (void)count;
    (void)stride;
}

static void get_state(const void *fuser, frit_fuser_state *out)
{
    (void)fuser;
    out->open = out->ready = 0;
}

static frit_status finish(void *fuser, frit_program *out, frit_err *err)
{
    (void)fuser;
    (void)out;
    (void)err;
    return FRIT_UNSUPPORTED;
}

static const void *fuser_table(void)
{
    frit_fuser_table table = {
        .struct_size = FRIT_END_OF(frit_fuser_table, finish),
        .prototypes = prototypes,
        .clone = clone,
        .destroy = destroy,
        .reset = destroy,
        .push = push,
        .state = get_state,
        .finish = finish,
    };

    if (SIN == SIN_SHORT_FUSERS)
        table.struct_size = FRIT_END_OF(frit_fuser_table, state);
    if (SIN == SIN_NULL_PUSH)
        table.push = NULL;
    return at_cliff(&table, table.struct_size);
}

/* ---- the ops' table ---- */

static const void *ops_table(void)
{
    static const frit_custom_op nothing[2];
    frit_ops_table table = {.struct_size = sizeof(table),
                            .n_ops = SIN == SIN_ENDLESS_OPS ? UINT32_MAX : 2,
                            .op_stride = SIN == SIN_ODD_OPS ? 124 : sizeof(nothing[0]),
                            .ops = SIN == SIN_NULL_OPS ? NULL : nothing};

    if (SIN == SIN_SHORT_OPS)
        table.struct_size = FRIT_END_OF(frit_ops_table, reserved);
    return at_cliff(&table, table.struct_size);
}

/* ---- all tables ---- */

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static const void *get_interface(void *instance, frit_str id)
{
    static const frit_native_table no_native = {.struct_size = sizeof(no_native)};
    static const frit_profile_table no_clock = {.struct_size = sizeof(no_clock)};
    bool has_backend = SIN != SIN_NO_INTERFACE && SIN != SIN_FUSERS_ALONE;
    bool has_fusers = SIN == SIN_FUSERS_ALONE || SIN == SIN_SHORT_FUSERS || SIN == SIN_NULL_PUSH;

    bool has_ops =
        SIN == SIN_SHORT_OPS || SIN == SIN_NULL_OPS || SIN == SIN_ENDLESS_OPS || SIN == SIN_ODD_OPS;

    if (is(id, FRIT_OPS_TABLE))
        return has_ops ? ops_table() : NULL;
    if (is(id, FRIT_BACKEND))
        return has_backend ? backend_table(instance) : NULL;
    if (is(id, FRIT_FUSER_TABLE))
        return has_fusers ? fuser_table() : NULL;
    if (is(id, FRIT_PROFILE_TABLE))
        return SIN == SIN_NULL_CLOCK ? &no_clock : NULL;
    return is(id, FRIT_NATIVE_TABLE) && SIN == SIN_NULL_GET ? &no_native : NULL;
}

/* ---- the plugin's table ---- */

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    const char *driver = SIN == SIN_BAD_DRIVER    ? "Fake:0"
                         : SIN == SIN_TWIN_DRIVER ? "fake"
                                                  : ids[SIN];
    struct fake *fake = NULL;
    frit_status status = fake_open(host, driver, &fake, err);

    if (!status && SIN == SIN_OPEN_FAILS) {
        status = fake_fail(fake, err, FRIT_UNSUPPORTED, "the moon is not full");
        fake_close(fake);
        return status;
    }
    *instance = fake;
    return status;
}

/* Options at a stride that leaves room for fields of a later version. */
static struct {
    frit_option known;
    uint64_t more[2];
} options[2] = {
    {.known = {.struct_size = sizeof(options[0]),
               .type = FRIT_OPTION_I64,
               .name = {"count", 5},
               .default_value = {"5", 1},
               .min = 1,
               .max = SIN == SIN_BAD_SCHEMA ? 4 : 8},
     .more = {0xa5a5a5a5a5a5a5a5u, 0xa5a5a5a5a5a5a5a5u}},
    {.known = {.struct_size = sizeof(options[0]),
               .type = FRIT_OPTION_BOOL,
               .name = {"second", 6},
               .default_value = {"no", 2}}},
};

static frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = 2,
    .option_stride = sizeof(options[0]),
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .options = &options[0].known,
    .open = plugin_open,
    .close = fake_close,
    .get_interface = get_interface,
};

static const frit_plugin *sinful_plugin(void)
{
    const char *id = SIN == SIN_TWIN_ID   ? "fake-good"
                     : SIN == SIN_BAD_ID  ? "Fake_Sin"
                     : SIN == SIN_LONG_ID ? "org.example.a-name-of-forty-one-letters-x"
                                          : ids[SIN];

    plugin.id = (frit_str){id, strlen(id)};
    if (SIN == SIN_SHORT_PLUGIN)
        plugin.struct_size = FRIT_END_OF(frit_plugin, close);
    if (SIN == SIN_NULL_CLOSE)
        plugin.close = NULL;
    return SIN == SIN_NULL_PLUGIN ? NULL : &plugin;
}

/* ---- the entry ---- */

static void set_range(frit_welcome *welcome, uint32_t low, uint32_t high)
{
    welcome->abi_min = low;
    welcome->abi_max = high;
    welcome->abi_chosen = 0;
}

FRIT_EXTERN_C __attribute__((visibility("default"))) int32_t
frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome);

int32_t frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome)
{
    int32_t status = frit_negotiate(hello, welcome, sinful_plugin());

    if (SIN == SIN_WRONG_MAGIC)
        welcome->magic = 0x12345678;
    if (SIN == SIN_SHORT_WELCOME)
        welcome->struct_size = FRIT_END_OF(frit_welcome, sanitizer);
    if (SIN == SIN_TOO_NEW)
        set_range(welcome, FRIT_ABI(7, 0), FRIT_ABI(7, 3));
    if (SIN == SIN_TOO_OLD)
        set_range(welcome, FRIT_ABI(0, 0), FRIT_ABI(0, 0));
    if (SIN == SIN_EMPTY_RANGE)
        set_range(welcome, FRIT_ABI(0, 1), FRIT_ABI(0, 0));
    if (SIN == SIN_CHOSEN_OUTSIDE)
        welcome->abi_chosen = FRIT_ABI(0, 9);
    if (SIN == SIN_OTHER_SANITIZER)
        welcome->sanitizer = FRIT_SANITIZER_MEMORY;
    return SIN == SIN_REFUSES                         ? FRIT_INTERNAL
           : SIN == SIN_TOO_NEW || SIN == SIN_TOO_OLD ? FRIT_INCOMPATIBLE
                                                      : status;
}
