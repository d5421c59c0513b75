/* SPDX-License-Identifier: Apache-2.0 */
/* A whole driver in one file: memory in host RAM, a queue that is done when submit returns, and one
 * op, neg of f32.  Its option `sign` says what neg multiplies by. */
#include <stdatomic.h>
#include <string.h>

#include <frit/backend.h>
#include <frit/plugin.h>

struct driver {
    const frit_host_root *host;
    const frit_host_core *core;
    double sign;
};

struct device {
    const struct driver *driver;
    atomic_uint_least64_t value; /* everything up to it is done */
};

static void *take(const struct driver *driver, uint64_t bytes, uint64_t align)
{
    return driver->core->mem_alloc(driver->host->self, bytes, align);
}

static void free_memory(const struct driver *driver, void *ptr)
{
    driver->core->mem_free(driver->host->self, ptr);
}

static frit_status refuse(const struct driver *driver, frit_err *err, frit_status status,
                          const char *text)
{
    return driver->core->err_set(driver->host->self, err, status, 0,
                                 (frit_str){text, strlen(text)});
}

/* ---- devices and memory
 * -------------------------------------------------------------------------- */

static frit_status enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err)
{
    static const frit_heap heap = {.struct_size = sizeof(heap), .bytes = 1u << 30};

    (void)instance, (void)stride, (void)driver, (void)err;
    *count = 1;
    if (capacity == 0)
        return FRIT_OK;
    out->type = FRIT_DEVICE_SOFTWARE;
    out->stable_id = FRIT_STR("outside-0");
    out->name = FRIT_STR("a driver from outside the tree");
    out->fingerprint = FRIT_STR("outside-1");
    out->caps = FRIT_CAP_INLINE_QUEUE | FRIT_CAP_HOST_VISIBLE;
    out->n_heaps = 1;
    out->heap_stride = sizeof(heap);
    out->heaps = &heap;
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
        out->dtype_use[dtype] = frit_dtype_bits(dtype) ? FRIT_DTYPE_STORAGE : 0;
    out->dtype_use[FRIT_F32] |= FRIT_DTYPE_ARITHMETIC;
    return FRIT_OK;
}

static frit_status device_open(void *instance, uint32_t index, const frit_open_params *params,
                               void **out, frit_err *err)
{
    const struct driver *driver = instance;
    struct device *device;

    (void)index;
    if (params->n_natives)
        return refuse(driver, err, FRIT_UNSUPPORTED, "nothing to adopt");
    device = take(driver, sizeof(*device), 64);
    if (!device)
        return refuse(driver, err, FRIT_NO_HOST_MEMORY, "no memory for a device");
    device->driver = driver;
    atomic_init(&device->value, 0);
    *out = device;
    return FRIT_OK;
}

static void device_close(void *self)
{
    free_memory(((struct device *)self)->driver, self);
}

static frit_status memory_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    const struct driver *driver = ((struct device *)self)->driver;

    out->memory = take(driver, desc->bytes, desc->align);
    out->host_pointer = out->memory;
    out->address = (uint64_t)(uintptr_t)out->memory;
    return out->memory ? FRIT_OK : refuse(driver, err, FRIT_NO_DEVICE_MEMORY, "no memory left");
}

static void memory_free(void *self, frit_memory *memory)
{
    free_memory(((struct device *)self)->driver, memory);
}

static frit_status memory_write(void *self, const frit_transfer *to, const void *from,
                                uint64_t *value, frit_err *err)
{
    (void)err;
    memcpy((char *)to->memory + to->offset, from, to->bytes);
    *value = atomic_fetch_add(&((struct device *)self)->value, 1) + 1;
    return FRIT_OK;
}

static frit_status memory_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                               frit_err *err)
{
    (void)err;
    memcpy(into, (const char *)from->memory + from->offset, from->bytes);
    *value = atomic_fetch_add(&((struct device *)self)->value, 1) + 1;
    return FRIT_OK;
}

/* ---- the one op
 * ---------------------------------------------------------------------------------- */

/* One dim after the other; the last one is a loop over elements. */
static void negate(const frit_arg *x, const frit_arg *y, uint32_t dim, const char *from, char *to,
                   double sign)
{
    if (dim == x->rank) {
        float element;

        memcpy(&element, from, sizeof(element));
        element = (float)(sign * (double)element);
        memcpy(to, &element, sizeof(element));
        return;
    }
    for (int64_t i = 0; i < x->dims[dim]; i++)
        negate(x, y, dim + 1, from + i * x->strides[dim] * (int64_t)sizeof(float),
               to + i * y->strides[dim] * (int64_t)sizeof(float), sign);
}

static void run(const struct driver *driver, const frit_launch *launch)
{
    const frit_arg *x = frit_arg_at(launch, 0), *y = frit_arg_at(launch, 1);

    negate(x, y, 0, (const char *)x->memory + x->offset + x->origin,
           (char *)y->memory + y->offset + y->origin, driver->sign);
}

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    static const frit_candidate plain = {.struct_size = sizeof(plain), .identity = {"plain", 5}};

    (void)self, (void)err;
    out->name = FRIT_STR("neg");
    out->n_ops = 1;
    out->n_candidates = 1;
    out->candidate_stride = sizeof(plain);
    out->candidates = &plain;
    return FRIT_OK;
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    (void)self, (void)candidate, (void)sig, (void)out, (void)variant, (void)err;
    return FRIT_OK;
}

static void destroy(void *self)
{
    (void)self; /* the device: a program has nothing of its own */
}

static int is_ours(const frit_op_desc *op)
{
    return op->id == FRIT_OP_neg && op->n_in == 1 && op->n_out == 1 &&
           op->in[0].kind == FRIT_OPERAND_TENSOR && op->in[0].dtype == FRIT_F32;
}

static frit_status supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err)
{
    (void)self, (void)err;
    memset(bits, 0, (count + 63) / 64 * sizeof(*bits));
    for (uint32_t i = 0; i < count; i++) {
        const char *op = (const char *)ops + (size_t)stride * i;

        if (is_ours((const frit_op_desc *)(const void *)op))
            bits[i / 64] |= 1ull << (i % 64);
    }
    return FRIT_OK;
}

static frit_status op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    static const frit_program_table table = {
        .struct_size = sizeof(table), .describe = describe, .prepare = prepare, .destroy = destroy};

    if (!is_ours(op))
        return refuse(((struct device *)self)->driver, err, FRIT_UNSUPPORTED, "only neg of f32");
    out->table = &table;
    out->self = self;
    return FRIT_OK;
}

/* ---- the queue
 * ----------------------------------------------------------------------------------- */

static frit_status submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    struct device *device = self;

    (void)queue, (void)waits, (void)n_waits, (void)err;
    for (uint32_t i = 0; i < count; i++) {
        const frit_cmd *cmd =
            (const frit_cmd *)(const void *)((const char *)cmds + (size_t)stride * i);
        char *dst = (char *)cmd->dst + cmd->dst_offset;

        if (cmd->kind == FRIT_CMD_LAUNCH)
            run(device->driver, cmd->launch);
        else if (cmd->kind == FRIT_CMD_COPY)
            memmove(dst, (const char *)cmd->src + cmd->src_offset, cmd->bytes);
        else if (cmd->kind == FRIT_CMD_FILL)
            for (uint64_t at = 0; at < cmd->bytes; at += cmd->pattern_bytes)
                memcpy(dst + at, &cmd->pattern, cmd->pattern_bytes);
    }
    *value = atomic_fetch_add(&device->value, 1) + 1;
    return FRIT_OK;
}

static frit_status wait_value(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                              frit_failure *out, frit_err *err)
{
    struct device *device = self;

    (void)queue, (void)timeout_ns;
    out->status = FRIT_OK;
    if (value <= atomic_load(&device->value))
        return FRIT_OK;
    return refuse(device->driver, err, FRIT_TIMEOUT, "nothing is on its way to that value");
}

/* ---- the plugin
 * ---------------------------------------------------------------------------------- */

static const frit_backend backend = {
    .struct_size = sizeof(backend),
    .driver_name = {"outside", 7},
    .enumerate = enumerate,
    .device_open = device_open,
    .device_close = device_close,
    .alloc = memory_alloc,
    .free = memory_free,
    .write = memory_write,
    .read = memory_read,
    .submit = submit,
    .wait = wait_value,
    .supports = supports,
    .op_program = op_program,
};

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    const frit_host_core *core = host->get_interface(host->self, FRIT_STR(FRIT_HOST_CORE));
    const frit_host_options *options = host->get_interface(host->self, FRIT_STR(FRIT_HOST_OPTIONS));
    struct driver *driver;

    if (!core || !options)
        return FRIT_INCOMPATIBLE;
    driver = core->mem_alloc(host->self, sizeof(*driver), 16);
    if (!driver)
        return core->err_set(host->self, err, FRIT_NO_HOST_MEMORY, 0, FRIT_STR("no memory"));
    *driver = (struct driver){.host = host, .core = core};
    *instance = driver;
    return options->get_f64(host->self, FRIT_STR("sign"), &driver->sign, err);
}

static void plugin_close(void *instance)
{
    free_memory(instance, instance);
}

static const void *get_interface(void *instance, frit_str id)
{
    (void)instance;
    return id.len == strlen(FRIT_BACKEND) && memcmp(id.ptr, FRIT_BACKEND, id.len) == 0 ? &backend
                                                                                       : NULL;
}

static const frit_option options[] = {{.struct_size = sizeof(frit_option),
                                       .type = FRIT_OPTION_F64,
                                       .name = {"sign", 4},
                                       .default_value = {"-1", 2},
                                       .meaning = {"what neg multiplies by", 22}}};

static const frit_plugin plugin = {
    .struct_size = sizeof(plugin),
    .n_options = 1,
    .option_stride = sizeof(options[0]),
    .id = {"org.example.outside", 19},
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .options = options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = get_interface,
};

FRIT_DEFINE_PLUGIN("org.example.outside", "1.0", "", &plugin)
