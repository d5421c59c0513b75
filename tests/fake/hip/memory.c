/* SPDX-License-Identifier: Apache-2.0 */
/* Device and pinned memory: pages of the host's, so that an access past an allocation, or to one
 * that is freed, ends the process.  Freed ranges stay reserved for a while. */
#include <string.h>
#include <sys/mman.h>

#include "runtime.h"
#include "stream.h"

enum {
    ALIGN = 256, /* bytes, of addresses */
    PAGE = 4096,
    POISON = 0xff,        /* new memory: NaN in every float format */
    MAX_POISON = 1 << 16, /* larger allocations are zero after it, to save time */
    MAX_ALLOCATIONS = 1 << 14,
    QUARANTINE = 256
};

struct allocation {
    uint64_t address, bytes;
    char *pages;
    size_t page_bytes; /* with the page after */
    int device;        /* -1: pinned memory */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation allocations[MAX_ALLOCATIONS]; /* in no order; `n` are used */
static uint32_t n;
static uint64_t used[FAKE_MAX_DEVICES];
static struct {
    char *pages;
    size_t bytes;
} quarantine[QUARANTINE];
static uint32_t next_freed;

static bool map(struct allocation *allocation)
{
    const uint64_t aligned = (allocation->bytes + ALIGN - 1) / ALIGN * ALIGN;
    const size_t inside = (aligned + PAGE - 1) / PAGE * PAGE;
    char *pages = mmap(NULL, inside + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (pages == MAP_FAILED || mprotect(pages + inside, PAGE, PROT_NONE))
        return false;
    allocation->pages = pages;
    allocation->page_bytes = inside + PAGE;
    allocation->address = (uintptr_t)pages + inside - aligned;
    memset((void *)(uintptr_t)allocation->address, POISON,
           aligned < MAX_POISON ? aligned : MAX_POISON);
    return true;
}

static void unmap(const struct allocation *allocation)
{
    const uint32_t slot = next_freed++ % QUARANTINE;

    if (quarantine[slot].pages)
        munmap(quarantine[slot].pages, quarantine[slot].bytes);
    quarantine[slot].pages = allocation->pages;
    quarantine[slot].bytes = allocation->page_bytes;
    mmap(allocation->pages, allocation->page_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static gpu_result allocate(uint64_t bytes, int device, uint64_t *address)
{
    struct allocation made = {.bytes = bytes, .device = device};
    gpu_result result = GPU_OUT_OF_MEMORY;

    if (!bytes)
        return FAKE_INVALID_VALUE;
    if (bytes > fake_gpu.device_bytes)
        return result;
    pthread_mutex_lock(&lock);
    if (n < MAX_ALLOCATIONS && (device < 0 || bytes + used[device] <= fake_gpu.device_bytes) &&
        map(&made)) {
        allocations[n++] = made;
        *address = made.address;
        if (device >= 0)
            used[device] += bytes;
        fake_gpu.alive[device < 0 ? FAKE_PINNED : FAKE_MEMORY]++;
        result = GPU_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static gpu_result release(uint64_t address, bool is_pinned)
{
    gpu_result result = FAKE_INVALID_VALUE;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n && result; i++) {
        const struct allocation freed = allocations[i];

        if (freed.address != address || is_pinned != (freed.device < 0))
            continue;
        unmap(&freed);
        if (freed.device >= 0)
            used[freed.device] -= freed.bytes;
        fake_gpu.alive[is_pinned ? FAKE_PINNED : FAKE_MEMORY]--;
        allocations[i] = allocations[--n];
        result = GPU_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* The device of the allocation that has the range, -1: pinned; false: none has it. */
static bool find_range(uint64_t address, uint64_t bytes, int *device)
{
    bool has = false;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n && !has; i++) {
        has = address >= allocations[i].address && bytes <= allocations[i].bytes &&
              address - allocations[i].address <= allocations[i].bytes - bytes;
        *device = allocations[i].device;
    }
    pthread_mutex_unlock(&lock);
    return has;
}

bool memory_is_device(uint64_t address, uint64_t bytes)
{
    int device;

    return find_range(address, bytes, &device);
}

bool memory_is_pinned(const void *from, uint64_t bytes)
{
    int device;

    return find_range((uintptr_t)from, bytes, &device) && device < 0;
}

bool memory_is_on(int device, uint64_t address, uint64_t bytes)
{
    int found;

    return find_range(address, bytes, &found) && (found < 0 || found == device);
}

/* ---- the functions ---- */

gpu_result fake_MemAlloc(gpu_ptr *out, size_t bytes)
{
    gpu_context context;
    gpu_result result = call_begin_on("MemAlloc", &context);

    return result ? result : allocate(bytes, context->device, out);
}

/* What is freed is freed even if the call reports an error of earlier work. */
gpu_result fake_MemFree(gpu_ptr address)
{
    gpu_context context;
    gpu_result result = call_begin_on("MemFree", &context), freed = release(address, false);

    if (freed)
        abort_wrong_call("MemFree of %#llx, which is not allocated", (unsigned long long)address);
    return result;
}

gpu_result fake_MemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    gpu_context context;
    gpu_result result = call_begin_on("MemHostAlloc", &context);
    uint64_t address = 0;

    if (result || flags & ~3u)
        return result ? result : FAKE_INVALID_VALUE;
    result = allocate(bytes, -1, &address);
    *out = (void *)(uintptr_t)address;
    return result;
}

gpu_result fake_MemFreeHost(void *memory)
{
    gpu_context context;
    gpu_result result = call_begin_on("MemFreeHost", &context);

    if (release((uintptr_t)memory, true))
        abort_wrong_call("MemFreeHost of %p, which is not allocated", memory);
    return result;
}

gpu_result fake_MemGetInfo(size_t *free_bytes, size_t *total)
{
    gpu_context context;
    gpu_result result = call_begin_on("MemGetInfo", &context);

    if (result)
        return result;
    pthread_mutex_lock(&lock);
    *total = fake_gpu.device_bytes;
    *free_bytes = fake_gpu.device_bytes - used[context->device];
    pthread_mutex_unlock(&lock);
    return GPU_SUCCESS;
}
