/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The driver as tables: its ops, its fuser, its option, and the one device behind it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"
#include "device.h"
#include "queue.h"
#include "remote.h"

#define VERSION "0.1.0"

/* ---- ops ---- */

#define F32 KIT_TYPE(FRIT_F32)
static const struct kit_row rows[] = {
    {FRIT_OP_copy, F32, KIT_INPLACE, NULL, NULL},
    {FRIT_OP_add, F32, KIT_INPLACE, NULL, NULL},
    {FRIT_OP_sub, F32, KIT_INPLACE, NULL, NULL},
    {FRIT_OP_mul, F32, KIT_INPLACE, NULL, NULL},
    {FRIT_OP_div, F32, KIT_INPLACE, NULL, NULL},
    {FRIT_OP_maximum, F32, KIT_INPLACE, NULL, NULL},
    {FRIT_OP_exp, F32, KIT_INPLACE, NULL, NULL},
    {FRIT_OP_erf, F32, KIT_INPLACE, NULL, NULL},
    {FRIT_OP_sum, F32, 0, NULL, NULL},
    {FRIT_OP_matmul, F32, 0, NULL, NULL},
};

/* Chains of elementwise ops whose results all have the same dims: one message for all. */
static bool maps_accept(const struct kit_block *block, const frit_op_desc *op)
{
    const frit_operand *first = &block->ops[0].out[0];

    if (frit_op_info_at(op->id)->cls != FRIT_CLASS_MAP)
        return false;
    return block->n_ops == 0 ||
           (first->rank == op->out->rank &&
            memcmp(first->extent, op->out->extent, first->rank * sizeof *first->extent) == 0);
}

static const struct kit_fuser fusers[] = {{
    .name = FRIT_STR_INIT("maps"),
    .version = 1,
    .quality = 500,
    .flags = KIT_INPLACE,
    .accepts = maps_accept,
}};

/* ---- the instance ---- */

static frit_status init(struct kit_instance *instance, frit_err *err)
{
    frit_backend *backend = &instance->backend;

    instance->own = plug_new(&instance->plug, sizeof(struct remote_plugin), "the plugin", err);
    if (!instance->own)
        return FRIT_NO_HOST_MEMORY;
    backend->alloc = remote_alloc;
    backend->free = remote_free;
    backend->write = remote_write;
    backend->read = remote_read;
    backend->submit = remote_submit;
    backend->wait = remote_wait;
    backend->kernel_load = NULL; /* host functions cannot reach the server's memory */
    backend->kernel_unload = NULL;
    return FRIT_OK;
}

static void fini(struct kit_instance *instance)
{
    plug_free(&instance->plug, instance->own);
}

static frit_status configure(struct kit_instance *instance, const frit_host_options *options,
                             frit_err *err)
{
    struct remote_plugin *own = remote_plugin_of(instance);
    void *host = instance->plug.host->self;
    frit_status status = options->get_str(host, FRIT_STR("address"), &own->address, err);

    return status ? status : options->get_bool(host, FRIT_STR("fault"), &own->fault, err);
}

static frit_status no_device(struct kit_instance *instance, const char *reason,
                             frit_driver_info *out)
{
    struct remote_plugin *own = remote_plugin_of(instance);

    instance->n_devices = 0;
    out->reason = FRIT_REASON_NO_DEVICE;
    snprintf(own->reason, sizeof own->reason, "%s", reason);
    out->detail = (frit_str){own->reason, strlen(own->reason)};
    return FRIT_OK;
}

/* A server that does not answer means no device, not a failure. */
static frit_status enumerate(struct kit_instance *instance, frit_driver_info *out, frit_err *err)
{
    struct remote_plugin *own = remote_plugin_of(instance);
    frit_err why = {.struct_size = sizeof why};
    struct wire_hello hello;
    int fd;

    (void)err;
    if (!own->address.len)
        return no_device(instance, "option.address names no server", out);
    if (remote_connect(&instance->plug, own->address, &fd, &hello, &why))
        return no_device(instance, why.text, out);
    close(fd);
    own->device = (frit_device_info){
        .type = FRIT_DEVICE_ACCELERATOR,
        .stable_id = own->address,
        .name = FRIT_STR("a process behind a socket"),
        .link_bytes_per_s = 1000000000, /* about what sockets of one machine do */
        .link_latency_ns = 20000,
    };
    instance->heap = (frit_heap){.kind = FRIT_HEAP_DEVICE, .bytes = hello.memory_bytes};
    instance->devices = &own->device;
    instance->n_devices = 1;
    return FRIT_OK;
}

static const struct kit_driver driver = {
    .name = FRIT_STR_INIT("remote"),
    .version = FRIT_STR_INIT(VERSION),
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .fusers = fusers,
    .n_fusers = sizeof fusers / sizeof *fusers,
    .init = init,
    .configure = configure,
    .enumerate = enumerate,
    .open = remote_open,
    .close = remote_close,
    .fini = fini,
};

/* ---- the plugin ---- */

static const frit_option options[] = {
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("address"),
        .meaning = FRIT_STR_INIT("path of the socket at which the server listens"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_BOOL,
        .name = FRIT_STR_INIT("fault"),
        .default_value = FRIT_STR_INIT("no"),
        .meaning = FRIT_STR_INIT("for tests: every launch fails, in the server"),
    },
};

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    return kit_open(&driver, host, instance, err);
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof *options,
    .option_stride = sizeof *options,
    .id = FRIT_STR_INIT("org.example.remote"),
    .version = FRIT_STR_INIT(VERSION),
    .license = FRIT_STR_INIT("Apache-2.0 OR MIT"),
    .options = options,
    .open = plugin_open,
    .close = kit_close,
    .get_interface = kit_interface,
};

FRIT_DEFINE_PLUGIN("org.example.remote", VERSION, "", &plugin)
