/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks lie in blocks of device memory: one is open and gets those of the next submits, others are
 * full and wait to be read, others are free.  The lock is held from profile_begin to profile_end,
 * so that the submits of several streams have their ticks one after the other; a wait inside of it
 * finds it taken and leaves the reading to somebody else. */
#include "device/profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <frit/inspect.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/label.h"
#include "device/lineage.h"
#include "device/wait.h"
#include "load/registry.h"

enum {
    BLOCK_SPANS = 1024,       /* commands; a larger submit gets a block of its own */
    MAX_FULL = 32,            /* blocks; one more is waited for and read */
    CLOCK_AGE_NS = 100000000, /* then the two clocks are compared again */
    TICKS = 2,                /* of a command */
    MAX_NS_PER_TICK = 1000000000
};

struct measured {
    uint32_t kind; /* FRIT_CMD_* */
    uint64_t cookie;
};

struct tick_block {
    struct tick_block *next;
    frit_memory *memory;
    uint64_t *ticks;      /* as they are read */
    struct points points; /* of the submits that have ticks here */
    uint32_t n, capacity;
    struct measured commands[];
};

struct profile {
    frit_device *device;
    const frit_profile_table *table;
    atomic_bool measures;
    atomic_uint n_full;
    pthread_mutex_t lock; /* of the rest */
    struct tick_block *open, *full, **full_end, *free;
    frit_cmd *cmds; /* of the submit that is under way */
    uint32_t capacity;
    uint32_t n_before; /* commands in the open block before that submit */
    frit_clock clock;  /* host_ns 0: not read yet */
    bool has_failed;   /* said once */
    atomic_bool has_no_clock;
    frit_device_time sum;
};

/* ---- from ticks to time ---- */

/* From `from` to `to`, which are less than half a turn of the counter apart. */
static int64_t ticks_between(const frit_clock *clock, uint64_t from, uint64_t to)
{
    const uint32_t unused = 64 - clock->valid_bits;

    return (int64_t)((to - from) << unused) >> unused;
}

static uint64_t host_ns(const frit_clock *clock, uint64_t ticks)
{
    double ns = (double)ticks_between(clock, clock->ticks, ticks) * clock->ns_per_tick;
    int64_t at = (int64_t)clock->host_ns + (int64_t)ns;

    return at > 0 ? (uint64_t)at : 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static frit_status compare_clocks(struct profile *p, frit_err *err)
{
    frit_clock clock = {.struct_size = sizeof(clock)};

    if (p->clock.host_ns && now_ns() < p->clock.host_ns + CLOCK_AGE_NS)
        return FRIT_OK;
    TRY(fail_from(err, p->table->clock(p->device->self, &clock, err), "clock"));
    if (clock.valid_bits < 1 || clock.valid_bits > 64 || !(clock.ns_per_tick > 0) ||
        clock.ns_per_tick > MAX_NS_PER_TICK)
        return fail(err, FRIT_INTERNAL, "clock gives %u valid bits and %g ns per tick",
                    clock.valid_bits, clock.ns_per_tick);
    p->clock = clock;
    return FRIT_OK;
}

/* ---- blocks ---- */

static void block_destroy(frit_device *device, struct tick_block *block)
{
    device->backend->free(device->self, block->memory);
    free(block->ticks);
    free(block);
}

/* Memory of the driver's own, so that what is measured shows in no counter of the pools. */
static frit_status block_alloc(frit_device *device, struct tick_block *block)
{
    const uint64_t bytes = (uint64_t)block->capacity * TICKS * sizeof(uint64_t);
    const frit_alloc_desc desc = {
        .struct_size = sizeof(desc), .bytes = bytes, .align = device->info->align_bytes};
    frit_allocation allocation = {.struct_size = sizeof(allocation)};
    frit_err err = ERR_INIT;

    block->ticks = malloc(bytes);
    if (!block->ticks)
        return FRIT_NO_HOST_MEMORY;
    TRY(fail_from(&err, device->backend->alloc(device->self, &desc, &allocation, &err), "alloc"));
    block->memory = allocation.memory;
    return allocation.memory ? FRIT_OK : FRIT_INTERNAL;
}

static struct tick_block *block_create(frit_device *device, uint32_t capacity)
{
    struct tick_block *block = calloc(1, sizeof(*block) + capacity * sizeof(*block->commands));

    if (!block)
        return NULL;
    block->capacity = capacity;
    if (!block_alloc(device, block))
        return block;
    free(block->ticks);
    free(block);
    return NULL;
}

static void block_recycle(struct profile *p, struct tick_block *block)
{
    block->n = 0;
    block->points = (struct points){0};
    if (block->capacity != BLOCK_SPANS) {
        block_destroy(p->device, block);
        return;
    }
    block->next = p->free;
    p->free = block;
}

/* ---- reading ---- */

static frit_status read_ticks(struct profile *p, struct tick_block *block, frit_err *err)
{
    frit_device *device = p->device;
    frit_transfer from = {.struct_size = sizeof(from),
                          .memory = block->memory,
                          .bytes = (uint64_t)block->n * TICKS * sizeof(uint64_t)};
    uint64_t point = 0;

    TRY(compare_clocks(p, err));
    TRY(device_read(device, 0, &from, block->ticks, &block->points, &point, err));
    return device_wait(device, point, err);
}

static frit_str name_of(const frit_device *device, const struct measured *command)
{
    const char *label = label_text(device->labels, lineage_label(command->cookie));

    if (command->kind == FRIT_CMD_COPY)
        return str_of("copy");
    if (command->kind == FRIT_CMD_FILL)
        return str_of("fill");
    return str_of(label ? label : "kernel");
}

static void show(struct profile *p, const struct tick_block *block)
{
    const uint32_t track = (uint32_t)p->device->id;

    timeline_track(track, str_of(p->device->name));
    for (uint32_t i = 0; i < block->n; i++)
        timeline_span(track, host_ns(&p->clock, block->ticks[TICKS * i]),
                      host_ns(&p->clock, block->ticks[TICKS * i + 1]), p->device->name,
                      name_of(p->device, &block->commands[i]));
}

static void add_up(struct profile *p, const struct tick_block *block)
{
    double ns = 0;

    for (uint32_t i = 0; i < block->n; i++) {
        int64_t ticks =
            ticks_between(&p->clock, block->ticks[TICKS * i], block->ticks[TICKS * i + 1]);

        ns += ticks > 0 ? (double)ticks * p->clock.ns_per_tick : 0;
    }
    p->sum.commands += block->n;
    p->sum.busy_ns += (uint64_t)ns;
}

static void note_failure(struct profile *p, const frit_err *err)
{
    if (!p->has_failed)
        log_write(FRIT_LOG_WARN, "timeline", "%s: no device time: %s", p->device->name, err->text);
    p->has_failed = true;
}

/* The first full block, whose commands have ended. */
static void take_up(struct profile *p)
{
    struct tick_block *block = p->full;
    frit_err err = ERR_INIT;
    frit_status st = read_ticks(p, block, &err);

    p->full = block->next;
    if (!p->full)
        p->full_end = &p->full;
    atomic_fetch_sub(&p->n_full, 1);
    if (st) {
        p->sum.lost += block->n;
        note_failure(p, &err);
    } else {
        if (timeline_is_on())
            show(p, block);
        add_up(p, block);
    }
    block_recycle(p, block);
}

static void close_open(struct profile *p)
{
    struct tick_block *block = p->open;

    p->open = NULL;
    if (!block)
        return;
    if (!block->n) {
        block_recycle(p, block);
        return;
    }
    block->next = NULL;
    *p->full_end = block;
    p->full_end = &block->next;
    atomic_fetch_add(&p->n_full, 1);
}

/* Waits for what was submitted and reads all of it. */
static void flush(struct profile *p)
{
    close_open(p);
    while (p->full) {
        (void)device_wait_points(p->device, &p->full->points, NULL);
        take_up(p);
    }
}

void profile_poll(struct profile *p)
{
    if (!p || !atomic_load_explicit(&p->n_full, memory_order_relaxed) ||
        pthread_mutex_trylock(&p->lock))
        return;
    while (p->full && device_knows_reached(p->device, &p->full->points))
        take_up(p);
    pthread_mutex_unlock(&p->lock);
}

/* ---- a submit ---- */

bool profile_is_on(const struct profile *p)
{
    return p && (timeline_is_on() || atomic_load_explicit(&p->measures, memory_order_relaxed)) &&
           !atomic_load_explicit(&p->has_no_clock, memory_order_relaxed);
}

/* Checked before the first TIMESTAMP. */
static bool has_clock(struct profile *p)
{
    frit_err err = ERR_INIT;

    if (p->clock.host_ns)
        return true;
    if (!compare_clocks(p, &err))
        return true;
    note_failure(p, &err);
    atomic_store(&p->has_no_clock, true);
    return false;
}

/* An open block with room for `n` more commands. */
static bool make_room(struct profile *p, uint32_t n)
{
    if (p->open && p->open->capacity - p->open->n >= n)
        return true;
    close_open(p);
    if (atomic_load(&p->n_full) > MAX_FULL) {
        (void)device_wait_points(p->device, &p->full->points, NULL);
        take_up(p);
    }
    if (p->free && n <= BLOCK_SPANS) {
        p->open = p->free;
        p->free = p->open->next;
    } else {
        p->open = block_create(p->device, n > BLOCK_SPANS ? n : BLOCK_SPANS);
    }
    return p->open;
}

static frit_cmd timestamp(const struct tick_block *block, uint32_t number)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_TIMESTAMP,
                      .dst = block->memory,
                      .dst_offset = number * sizeof(uint64_t)};
}

static void put_between(struct profile *p, const frit_cmd *cmds, uint32_t count, uint32_t *n)
{
    struct tick_block *block = p->open;

    for (uint32_t i = 0; i < count; i++) {
        const frit_cmd *cmd = &cmds[i];

        if (cmd->kind == FRIT_CMD_BARRIER) {
            p->cmds[(*n)++] = *cmd;
            continue;
        }
        p->cmds[(*n)++] = timestamp(block, TICKS * block->n);
        p->cmds[(*n)++] = *cmd;
        p->cmds[(*n)++] = timestamp(block, TICKS * block->n + 1);
        block->commands[block->n++] =
            (struct measured){cmd->kind, cmd->launch ? cmd->launch->cookie : 0};
    }
}

bool profile_begin(struct profile *p, const frit_cmd **cmds, uint32_t *count)
{
    uint32_t n = 0;

    pthread_mutex_lock(&p->lock);
    if (!has_clock(p) ||
        !array_grow(&p->cmds, &p->capacity, 0, *count * (TICKS + 1), sizeof(*p->cmds)) ||
        !make_room(p, *count)) {
        p->sum.lost += *count;
        pthread_mutex_unlock(&p->lock);
        return false;
    }
    p->n_before = p->open->n;
    put_between(p, *cmds, *count, &n);
    *cmds = p->cmds;
    *count = n;
    return true;
}

void profile_end(struct profile *p, uint64_t point)
{
    if (point)
        points_add(&p->open->points, point);
    else
        p->open->n = p->n_before;
    pthread_mutex_unlock(&p->lock);
}

/* ---- measuring ---- */

frit_status profile_start(struct profile *p, frit_err *err)
{
    frit_status st;

    if (!p)
        return fail(err, FRIT_UNSUPPORTED, "its driver has no clock");
    pthread_mutex_lock(&p->lock);
    if (atomic_load(&p->measures))
        st = fail(err, FRIT_BUSY, "%s is being measured; stop that first", p->device->name);
    else
        st = compare_clocks(p, err);
    if (!st) {
        flush(p);
        p->sum = (frit_device_time){0};
        atomic_store(&p->measures, true);
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

frit_status profile_stop(struct profile *p, frit_device_time *out, frit_err *err)
{
    if (!p || !atomic_exchange(&p->measures, false))
        return fail(err, FRIT_INVALID, "it is not being measured");
    pthread_mutex_lock(&p->lock);
    flush(p);
    *out = p->sum;
    pthread_mutex_unlock(&p->lock);
    return FRIT_OK;
}

/* ---- the whole ---- */

frit_status profile_create(frit_device *device, struct profile **out, frit_err *err)
{
    const frit_profile_table *table = &device->entry->plugin->profile;
    struct profile *p;

    *out = NULL;
    if (!table->clock)
        return FRIT_OK;
    p = calloc(1, sizeof(*p));
    if (!p)
        return fail_memory(err, sizeof(*p));
    p->device = device;
    p->table = table;
    p->full_end = &p->full;
    pthread_mutex_init(&p->lock, NULL);
    *out = p;
    return FRIT_OK;
}

void profile_destroy(struct profile *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock); /* or a wait would read, too */
    flush(p);
    pthread_mutex_unlock(&p->lock);
    while (p->free) {
        struct tick_block *block = p->free;

        p->free = block->next;
        block_destroy(p->device, block);
    }
    free(p->cmds);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
