/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: host memory, counted against the option memory_bytes.
 *
 * The system clears a page when it is first touched; with small pages that takes many times as long
 * as reading the memory.  So large allocations are aligned to a large page and request large pages.
 * Freed memory goes back to the system at once: the host's pools reuse it. */
#include "buffer.h"

#include <sys/mman.h>

#include "cpu.h"
#include "util/memory.h"

#define LARGE_PAGE ((uint64_t)2 << 20)

static void *take(const struct plug *plug, uint64_t bytes, uint64_t align)
{
    void *data;

    if (bytes < LARGE_PAGE)
        return plug_alloc(plug, bytes, align);
    if (bytes > UINT64_MAX - LARGE_PAGE)
        return NULL;
    bytes = (bytes + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    data = plug_alloc(plug, bytes, align > LARGE_PAGE ? align : LARGE_PAGE);
    if (data)
        (void)madvise(data, bytes, MADV_HUGEPAGE); /* a wish */
    return data;
}

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct hosted *hosted = self;
    frit_status status = budget_take(&hosted->budget, desc->bytes, err);
    frit_memory *memory;
    char *data;

    if (status)
        return status;
    memory = plug_alloc(hosted->plug, sizeof *memory, _Alignof(frit_memory));
    data = memory ? take(hosted->plug, desc->bytes, desc->align) : NULL;
    if (!data) {
        plug_free(hosted->plug, memory);
        return budget_fail(&hosted->budget, desc->bytes, err);
    }
    *memory = (frit_memory){.data = data, .bytes = desc->bytes, .block = data};
    memory_report(memory, out);
    return FRIT_OK;
}
