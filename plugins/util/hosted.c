/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/hosted.h"

#include <unistd.h>

#include "util/hosted_command.h"
#include "util/kernel.h"
#include "util/memory.h"

void hosted_init(struct hosted *hosted, const struct plug *plug, const struct hosted_driver *driver,
                 void *ctx, uint64_t memory_bytes)
{
    hosted->plug = plug;
    hosted->driver = driver;
    hosted->budget = (struct budget){.plug = plug, .cap = memory_bytes};
    hosted->first.device = hosted;
    hosted->first.ctx = ctx;
    progress_init(&hosted->first.progress, plug);
}

void hosted_fini(struct hosted *hosted)
{
    progress_fini(&hosted->first.progress);
}

/* ---- description ---- */

/* 0 where the system does not say. */
static uint64_t machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

frit_heap hosted_heap(uint64_t memory_bytes)
{
    const uint64_t bytes = memory_bytes ? memory_bytes : machine_bytes();

    return (frit_heap){.struct_size = sizeof(frit_heap),
                       .kind = FRIT_HEAP_DEVICE,
                       .bytes = bytes,
                       .budget = bytes};
}

uint64_t hosted_cache_bytes(void)
{
    const long third = sysconf(_SC_LEVEL3_CACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);

    if (third > 0)
        return (uint64_t)third;
    return second > 0 ? (uint64_t)second : 0;
}

void hosted_describe(frit_device_info *out, const frit_heap *heap)
{
    out->caps |= FRIT_CAP_INLINE_QUEUE | FRIT_CAP_HOST_VISIBLE;
    out->n_formats = sizeof kernel_formats / sizeof kernel_formats[0];
    out->formats = kernel_formats;
    out->cache_bytes = hosted_cache_bytes();
    out->n_heaps = 1;
    out->heap_stride = sizeof *heap;
    out->heaps = heap;
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
    memory_report(memory, out);
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
    memory_report(memory, out);
    return FRIT_OK;
}

void hosted_free(void *self, frit_memory *memory)
{
    struct hosted *hosted = self;

    if (!memory)
        return;
    if (!memory->is_imported)
        budget_give(&hosted->budget, memory->bytes);
    plug_free(hosted->plug, memory->block);
    plug_free(hosted->plug, memory);
}

void *hosted_native(void *self, frit_memory *memory, frit_str name)
{
    (void)self;
    return memory && plug_is(name, FRIT_STR("host.ptr")) ? memory->data : NULL;
}

char *hosted_element(const frit_arg *arg)
{
    return arg->memory ? memory_at(arg->memory, arg->offset + arg->origin) : NULL;
}

/* ---- clock and kernels ---- */

frit_status hosted_clock(void *self, frit_clock *out, frit_err *err)
{
    (void)err;
    out->valid_bits = 64;
    out->ticks = out->host_ns = hosted_now_ns(self);
    out->ns_per_tick = 1;
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

const frit_native_table hosted_native_table = {
    .struct_size = sizeof(frit_native_table),
    .get = hosted_native,
};

const frit_profile_table hosted_profile_table = {
    .struct_size = sizeof(frit_profile_table),
    .clock = hosted_clock,
};
