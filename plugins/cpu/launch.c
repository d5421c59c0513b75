/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: phase after phase, the groups of a phase spread over the host's threads.
 *
 * Groups share nothing, so results do not depend on who runs them.  A phase that is done before
 * another thread could help runs on the calling one. */
#include <string.h>

#include "cpu.h"

/* What a thread has to be given to be worth its while, and what a nanosecond is good for. */
enum { GRAIN_NS = 5000, BYTES_PER_NS = 16, FLOPS_PER_NS = 16, WORK_PER_NS = 32 };

struct phase_run {
    const struct tile_code *tile;
    const uint64_t *words;
    void *const *args, *const *scratch;
    const uint32_t *grid;
};

/* ---- room ---- */

static bool grow_words(struct room *room, const struct instance *instance, uint32_t n)
{
    plug_free(&instance->plug, room->words);
    room->n_words = 0;
    room->words = plug_alloc(&instance->plug, n * sizeof *room->words, sizeof *room->words);
    if (room->words)
        room->n_words = n;
    return room->words;
}

static bool grow_args(struct room *room, const struct instance *instance, uint32_t n)
{
    if (n <= room->n_args)
        return true;
    plug_free(&instance->plug, room->args);
    room->n_args = 0;
    room->args = plug_alloc(&instance->plug, n * sizeof *room->args, sizeof *room->args);
    if (room->args)
        room->n_args = n;
    return room->args;
}

static void free_scratch(struct room *room, const struct instance *instance)
{
    for (uint32_t i = 0; room->scratch && i < instance->threads; i++)
        plug_free(&instance->plug, room->scratch[i]);
    plug_free(&instance->plug, room->scratch);
    room->scratch = NULL;
    room->scratch_bytes = 0;
}

static bool grow_scratch(struct room *room, const struct instance *instance, size_t bytes)
{
    uint64_t list = instance->threads * sizeof *room->scratch;

    if (bytes <= room->scratch_bytes)
        return true;
    free_scratch(room, instance);
    room->scratch = plug_alloc(&instance->plug, list, _Alignof(void *));
    if (!room->scratch)
        return false;
    memset(room->scratch, 0, list);
    for (uint32_t i = 0; i < instance->threads; i++) {
        room->scratch[i] = plug_alloc(&instance->plug, bytes, TILE_ALIGN);
        if (!room->scratch[i])
            return false;
    }
    room->scratch_bytes = bytes;
    return true;
}

void room_fini(struct room *room, const struct instance *instance)
{
    free_scratch(room, instance);
    plug_free(&instance->plug, room->words);
    plug_free(&instance->plug, room->args);
}

/* ---- phases ---- */

static void run_groups(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    const struct phase_run *run = ctx;
    const uint32_t *grid = run->grid;
    uint32_t group[3] = {(uint32_t)(first % grid[0]), (uint32_t)(first / grid[0] % grid[1]),
                         (uint32_t)(first / grid[0] / grid[1])};

    for (; first < end; first++) {
        tile_run(run->tile, run->words, run->args, group, run->scratch[thread]);
        if (++group[0] < grid[0])
            continue;
        group[0] = 0;
        if (++group[1] < grid[1])
            continue;
        group[1] = 0;
        group[2]++;
    }
}

/* How long it takes on one thread, about. */
static uint64_t estimate_ns(const frit_launch_spec *spec, uint64_t groups,
                            const struct phase_code *phase)
{
    uint64_t told = spec->predicted_bytes / BYTES_PER_NS + spec->predicted_flops / FLOPS_PER_NS;
    uint64_t seen = groups * phase->work / WORK_PER_NS;

    return told > seen ? told : seen;
}

static void run_phase(const struct instance *instance, const struct phase_run *run, uint64_t groups,
                      uint64_t ns)
{
    uint64_t grain;

    if (ns < 2 * GRAIN_NS || !instance->exec) {
        run_groups((void *)(uintptr_t)run, 0, groups, 0);
        return;
    }
    grain = groups / (ns / GRAIN_NS);
    instance->exec->parallel_for(instance->plug.host->self, groups, grain ? grain : 1, run_groups,
                                 (void *)(uintptr_t)run);
}

static void run_phases(struct device *device, const frit_launch *launch,
                       const struct kernels_launch *made)
{
    const struct module_code *code = made->code;

    for (uint32_t i = 0; i < made->n_phases; i++) {
        const uint32_t *grid = made->grid[i];
        const struct phase_run run = {code->phases[i].tile, made->words, device->room.args,
                                      device->room.scratch, grid};
        uint64_t groups = (uint64_t)grid[0] * grid[1] * grid[2];

        if (groups > 0)
            run_phase(device->instance, &run, groups,
                      estimate_ns(launch->spec, groups, &code->phases[i]));
    }
}

/* ---- launches ---- */

static void *workspace_of(const frit_launch *launch)
{
    const struct buffer *buffer = launch->workspace;

    return buffer->memory.data + launch->workspace_offset;
}

static void set_args(struct room *room, const frit_launch *launch,
                     const struct kernels_launch *made)
{
    for (uint32_t i = 0; i < made->n_args; i++)
        room->args[i] = made->args[i] == KERNELS_WORKSPACE
                            ? workspace_of(launch)
                            : serial_element(serial_arg(launch, made->args[i]));
}

frit_status launch_check(void *device, const frit_launch *launch, frit_err *err)
{
    if (kernels_owns(launch->program))
        return FRIT_OK;
    return plug_fail(&((const struct device *)device)->instance->plug, err, FRIT_INVALID,
                     "a program of another driver");
}

static frit_status no_memory(const struct instance *instance, const char *name, frit_err *err)
{
    return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory to run %s", name);
}

frit_status launch_run(void *self, const frit_launch *launch, frit_err *err)
{
    struct device *device = self;
    const struct instance *instance = device->instance;
    struct room *room = &device->room;
    struct kernels_launch made = {0};
    frit_status status = kernels_launch(launch, room->words, room->n_words, &made, err);

    if (status && made.n_words > room->n_words) {
        if (!grow_words(room, instance, made.n_words))
            return no_memory(instance, made.name, err);
        status = kernels_launch(launch, room->words, room->n_words, &made, err);
    }
    if (status)
        return status;
    if (!grow_args(room, instance, made.n_args) ||
        !grow_scratch(room, instance, ((const struct module_code *)made.code)->scratch))
        return no_memory(instance, made.name, err);
    set_args(room, launch, &made);
    run_phases(device, launch, &made);
    return FRIT_OK;
}

frit_str launch_name(const frit_launch *launch)
{
    frit_program_info info = {.struct_size = sizeof info};

    (void)launch->program->table->describe(launch->program->self, &info, NULL);
    return info.name;
}
