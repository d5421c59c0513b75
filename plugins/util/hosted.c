/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/hosted.h"

#include <unistd.h>

#include "util/kernel.h"
#include "util/memory.h"

void hosted_init(struct hosted *hosted, const struct plug *plug, const struct serial_driver *driver,
                 void *ctx, uint64_t memory_bytes)
{
    hosted->plug = plug;
    hosted->budget = (struct budget){.plug = plug, .cap = memory_bytes};
    (void)serial_init(&hosted->queue, plug, driver, ctx, NULL);
}

void hosted_fini(struct hosted *hosted)
{
    serial_fini(&hosted->queue);
}

uint64_t hosted_machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

uint64_t hosted_cache_bytes(void)
{
    const long third = sysconf(_SC_LEVEL3_CACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);

    if (third > 0)
        return (uint64_t)third;
    return second > 0 ? (uint64_t)second : 0;
}

/* ---- memory: blocks of host memory ---- */

/* One block of host memory: the struct frit_memory, then the bytes, aligned as `desc` requires. */
frit_status hosted_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct hosted *hosted = self;
    uint64_t align = desc->align > 64 ? desc->align : 64; /* room for the header */
    frit_status status = budget_take(&hosted->budget, desc->bytes, err);
    frit_memory *memory;

    if (status)
        return status;
    memory = desc->bytes <= UINT64_MAX - align
                 ? plug_alloc(hosted->plug, align + desc->bytes, align)
                 : NULL;
    if (!memory)
        return budget_fail(&hosted->budget, desc->bytes, err);
    *memory = (frit_memory){.data = (char *)memory + align, .bytes = desc->bytes};
    out->memory = memory;
    out->address = (uint64_t)(uintptr_t)memory->data;
    out->host_pointer = memory->data;
    return FRIT_OK;
}

frit_status hosted_import(void *self, const frit_import_desc *desc, frit_allocation *out,
                          frit_err *err)
{
    struct hosted *hosted = self;
    frit_memory *memory = plug_alloc(hosted->plug, sizeof *memory, _Alignof(frit_memory));

    if (!memory)
        return plug_fail(hosted->plug, err, FRIT_NO_HOST_MEMORY, "no memory to import memory");
    *memory = (frit_memory){
        .data = (char *)(uintptr_t)desc->data, .bytes = desc->bytes, .is_imported = true};
    out->memory = memory;
    out->address = (uint64_t)(uintptr_t)memory->data;
    out->host_pointer = memory->data;
    return FRIT_OK;
}

void hosted_free(void *self, frit_memory *memory)
{
    struct hosted *hosted = self;

    if (!memory)
        return;
    if (!memory->is_imported)
        budget_give(&hosted->budget, memory->bytes);
    plug_free(hosted->plug, memory);
}

void *hosted_native(void *self, frit_memory *memory, frit_str name)
{
    (void)self;
    return memory && plug_is(name, FRIT_STR("host.ptr")) ? memory->data : NULL;
}

/* ---- queues ---- */

static frit_status find(void *self, frit_queue *queue, struct serial **out, frit_err *err)
{
    return serial_find(&((struct hosted *)self)->queue, queue, out, err);
}

frit_status hosted_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                         frit_err *err)
{
    struct serial *serial;
    frit_status status = find(self, to->queue, &serial, err);

    return status ? status : serial_write(serial, to, from, value, err);
}

frit_status hosted_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                        frit_err *err)
{
    struct serial *serial;
    frit_status status = find(self, from->queue, &serial, err);

    return status ? status : serial_read(serial, from, into, value, err);
}

frit_status hosted_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    struct serial *serial;
    frit_status status = find(self, queue, &serial, err);

    return status ? status : serial_submit(serial, cmds, count, stride, waits, n_waits, value, err);
}

/* What was handed out is reached, but by a call that is still inside: only that can be late. */
frit_status hosted_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                        frit_failure *failure, frit_err *err)
{
    struct serial *serial;
    frit_status status = find(self, queue, &serial, err);

    return status ? status : progress_wait(&serial->progress, value, timeout_ns, failure, err);
}

frit_status hosted_clock(void *self, frit_clock *out, frit_err *err)
{
    (void)err;
    serial_clock(&((struct hosted *)self)->queue, out);
    return FRIT_OK;
}

frit_status hosted_kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err)
{
    return kernel_load(((struct hosted *)self)->plug, format, bytes, n_bytes, kernel, err);
}

void hosted_kernel_unload(void *self, frit_kernel *kernel)
{
    kernel_unload(((struct hosted *)self)->plug, kernel);
}
