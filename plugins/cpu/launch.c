/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: phase after phase, the groups of a phase spread over the host's threads.
 *
 * Groups share no data, so results do not depend on the thread that runs a group.  (A group may
 * leave deferred stores to the next group of its thread; their addresses go with them.)  A phase
 * that is too short to be shared with other threads runs on the calling thread. */
#include "launch.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "compile.h"
#include "cpu.h"
#include "emit/llvm/blob.h"
#include "util/memory.h"

/* GRAIN_NS: the least work, by estimate, for which another thread is used.  The others: what one
 * thread does in a nanosecond. */
enum { GRAIN_NS = 5000, BYTES_PER_NS = 16, FLOPS_PER_NS = 16, WORK_PER_NS = 32 };

/* PRODUCT_FLOPS: operations per byte from which on a launch counts as a product.  A thread
 * interprets PRODUCT_FLOPS_PER_NS of those, in register tiles TILE_FLOPS_PER_NS. */
enum { PRODUCT_FLOPS = 8, PRODUCT_FLOPS_PER_NS = 1, TILE_FLOPS_PER_NS = 64 };

struct phase_run {
    const struct tile_code *tile; /* NULL: machine code */
    const struct object_phase *code;
    const uint64_t *words;
    void *const *args, *const *scratch;
    const uint32_t *grid;
    const uint32_t *first; /* groups before each space; NULL: there is one */
    uint32_t n_spaces, n_words, n_args;
    bool non_temporal;                /* stores bypass the caches */
    const struct tile_bounds *bounds; /* NULL: nothing is checked */
    atomic_uint_least64_t *outside;   /* elements that were not within bounds */
};

/* ---- memory ---- */

static bool grow_words(struct launch_memory *memory, const struct instance *instance, uint32_t n)
{
    plug_free(&instance->plug, memory->words);
    memory->n_words = 0;
    memory->words = plug_alloc(&instance->plug, n * sizeof *memory->words, sizeof *memory->words);
    if (memory->words)
        memory->n_words = n;
    return memory->words;
}

static bool grow_args(struct launch_memory *memory, const struct instance *instance, uint32_t n)
{
    if (n <= memory->n_args)
        return true;
    plug_free(&instance->plug, memory->args);
    plug_free(&instance->plug, memory->bounds);
    memory->n_args = 0;
    memory->args = plug_alloc(&instance->plug, n * sizeof *memory->args, sizeof *memory->args);
    memory->bounds =
        plug_alloc(&instance->plug, n * sizeof *memory->bounds, _Alignof(struct tile_bounds));
    if (memory->args && memory->bounds)
        memory->n_args = n;
    return memory->n_args > 0;
}

static void free_scratch(struct launch_memory *memory, const struct instance *instance)
{
    for (uint32_t i = 0; memory->scratch && i < instance->threads; i++)
        plug_free(&instance->plug, memory->scratch[i]);
    plug_free(&instance->plug, memory->scratch);
    memory->scratch = NULL;
    memory->scratch_bytes = 0;
}

static bool grow_scratch(struct launch_memory *memory, const struct instance *instance,
                         size_t bytes)
{
    uint64_t list = instance->threads * sizeof *memory->scratch;

    if (bytes <= memory->scratch_bytes)
        return true;
    free_scratch(memory, instance);
    memory->scratch = plug_alloc(&instance->plug, list, _Alignof(void *));
    if (!memory->scratch)
        return false;
    memset(memory->scratch, 0, list);
    for (uint32_t i = 0; i < instance->threads; i++) {
        memory->scratch[i] = plug_alloc(&instance->plug, bytes, TILE_ALIGN);
        if (!memory->scratch[i])
            return false;
    }
    memory->scratch_bytes = bytes;
    return true;
}

void launcher_fini(struct launcher *launcher)
{
    const struct instance *instance = launcher->instance;
    struct launch_memory *memory = &launcher->memory;

    free_scratch(memory, instance);
    plug_free(&instance->plug, memory->words);
    plug_free(&instance->plug, memory->args);
    plug_free(&instance->plug, memory->bounds);
}

/* ---- phases ---- */

/* Orders non-temporal stores before what follows. */
static void fence(void)
{
#ifdef __x86_64__
    __builtin_ia32_sfence();
#endif
}

/* One group of a space; how many elements were not within bounds. */
static uint64_t run_group(const struct phase_run *run, uint32_t space, const uint32_t *group,
                          uint32_t thread)
{
    const uint64_t *words = run->words + (size_t)space * run->n_words;
    size_t arg = (size_t)space * run->n_args;

    if (run->bounds)
        return tile_run_within(run->tile, words, run->args + arg, run->bounds + arg, group,
                               run->scratch[thread]);
    if (run->tile)
        tile_run(run->tile, words, run->args + arg, group, run->scratch[thread]);
    else
        run->code->run(words, run->args + arg, group, run->scratch[thread]);
    return 0;
}

/* The space that a group belongs to: the last one whose first group is not after it. */
static uint32_t find_space(const struct phase_run *run, uint64_t group)
{
    uint32_t low = 0, high = run->n_spaces;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (run->first[middle] <= group)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void run_spaces(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    const struct phase_run *run = ctx;
    uint32_t space = find_space(run, first);
    uint64_t outside = 0;

    for (; first < end; first++) {
        uint32_t group[4] = {0};

        while (run->first[space + 1] <= first)
            space++;
        group[0] = (uint32_t)first - run->first[space];
        outside += run_group(run, space, group, thread);
    }
    if (outside)
        atomic_fetch_add(run->outside, outside);
}

static void run_groups(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    const struct phase_run *run = ctx;
    const uint32_t *grid = run->grid;
    uint64_t outside = 0;
    uint32_t group[4] = {(uint32_t)(first % grid[0]), (uint32_t)(first / grid[0] % grid[1]),
                         (uint32_t)(first / grid[0] / grid[1]), run->non_temporal};

    for (; first < end; first++) {
        outside += run_group(run, 0, group, thread);
        if (++group[0] < grid[0])
            continue;
        group[0] = 0;
        if (++group[1] < grid[1])
            continue;
        group[1] = 0;
        group[2]++;
    }
    if (run->non_temporal)
        fence();
    if (outside)
        atomic_fetch_add(run->outside, outside);
}

static uint64_t groups_of(const uint32_t *grid)
{
    return (uint64_t)grid[0] * grid[1] * grid[2];
}

/* Estimates how long a phase takes on one thread: the larger of two estimates, by the bytes and
 * flops of the launch, which a brief phase has little of, and by the instructions of the code. */
static uint64_t estimate_ns(const struct kernels_launch *made, uint32_t phase)
{
    const struct module_code *code = made->code;
    uint64_t launch = (made->bytes / BYTES_PER_NS + made->flops / FLOPS_PER_NS) / made->n_bodies;
    uint64_t work = groups_of(made->grid[phase]) * code->phases[phase].work / WORK_PER_NS;

    return work > launch || made->brief_phases >> phase & 1 ? work : launch;
}

static void run_phase(const struct instance *instance, const struct phase_run *run, uint64_t groups,
                      uint64_t ns)
{
    void (*part)(void *, uint64_t, uint64_t, uint32_t) = run->first ? run_spaces : run_groups;
    uint64_t grain;

    if (ns < 2 * GRAIN_NS || !instance->exec) {
        part((void *)(uintptr_t)run, 0, groups, 0);
        return;
    }
    grain = groups / (ns / GRAIN_NS);
    instance->exec->parallel_for(instance->plug.host->self, groups, grain ? grain : 1, part,
                                 (void *)(uintptr_t)run);
}

/* Whether stores should bypass the caches: the launch writes several times as much as the L2 caches
 * hold, and nothing of it to memory that it reads, since that is in a cache already. */
static bool is_non_temporal(const struct launcher *launcher, const frit_launch *launch,
                            const struct kernels_launch *made)
{
    const struct module_code *code = made->code;
    uint64_t bytes = 0;

    if (made->first)
        return false;
    for (uint32_t i = 0; i < made->n_args; i++) {
        if (i >= 64 || !(code->writes >> i & 1))
            continue;
        if (made->args[i] == KERNELS_WORKSPACE || made->args[i] == KERNELS_DERIVED)
            return false;
        bytes += frit_arg_at(launch, made->args[i])->extent;
        for (uint32_t k = 0; k < made->n_args; k++)
            if (k != i && launcher->memory.args[k] == launcher->memory.args[i])
                return false;
    }
    return bytes >= launcher->instance->stream_bytes;
}

/* Elements that were not within bounds. */
static uint64_t run_phases(const struct launcher *launcher, const frit_launch *launch,
                           const struct kernels_launch *made, const struct object *object)
{
    const struct instance *instance = launcher->instance;
    const struct module_code *code = made->code;
    atomic_uint_least64_t outside = 0;

    for (uint32_t i = 0; i < made->n_phases; i++) {
        const struct phase_run run = {.tile = object ? NULL : code->phases[i].tile,
                                      .code = object ? &object->phases[i] : NULL,
                                      .words = made->words,
                                      .args = launcher->memory.args,
                                      .scratch = launcher->memory.scratch,
                                      .grid = made->grid[i],
                                      .first = made->first,
                                      .n_spaces = made->n_spaces,
                                      .n_words = made->n_words,
                                      .n_args = made->n_args,
                                      .non_temporal =
                                          object && is_non_temporal(launcher, launch, made),
                                      .bounds = instance->check ? launcher->memory.bounds : NULL,
                                      .outside = &outside};
        uint64_t groups = groups_of(run.grid);

        assert(run.tile || run.code);
        if (made->fill_phases >> i & 1 && !launch->derived[0].fill)
            continue;
        for (uint32_t t = 0; run.non_temporal && t < instance->threads; t++)
            object_begin(run.code, run.scratch[t]);
        if (groups > 0)
            run_phase(instance, &run, groups, estimate_ns(made, i));
        for (uint32_t t = 0; run.non_temporal && t < instance->threads; t++)
            object_finish(run.code, run.scratch[t]);
    }
    return outside;
}

static bool in_register_tiles(const struct kernels_launch *made)
{
    const struct module_code *code = made->code;

    for (uint32_t i = 0; i < made->n_phases; i++)
        if (code->phases[i].tile && tile_multiplies(code->phases[i].tile))
            return true;
    return false;
}

/* What interpreting takes: `ns`, but for products, for which machine code is many times as fast
 * unless they are register tiles. */
static uint64_t interpreted_ns(const struct instance *instance, const struct kernels_launch *made,
                               uint64_t ns)
{
    uint64_t slowly = made->flops / PRODUCT_FLOPS_PER_NS / instance->threads;

    if (made->flops / PRODUCT_FLOPS <= made->bytes)
        return ns;
    if (in_register_tiles(made))
        return made->flops / TILE_FLOPS_PER_NS / instance->threads;
    return ns > slowly ? ns : slowly;
}

/* The machine code that the launch runs; NULL: it is interpreted. */
static const struct object *choose_code(const frit_launch *launch,
                                        const struct kernels_launch *made)
{
    struct module_code *code = made->code;
    uint64_t ns = 0;

    for (uint32_t i = 0; i < made->n_phases; i++)
        ns += estimate_ns(made, i);
    ns = interpreted_ns(code->instance, made, ns);
    if (FRIT_HAS(launch, frit_launch, flags) && launch->flags & FRIT_LAUNCH_TRIAL)
        ns = MODULE_BEST;
    return module_object(code, ns);
}

static size_t scratch_of(const struct module_code *code, const struct object *object)
{
    size_t most = object ? 0 : code->scratch;

    for (uint32_t i = 0; object && i < object->n_phases; i++)
        most = object->phases[i].scratch > most ? object->phases[i].scratch : most;
    return most ? most : 1;
}

/* ---- launches ---- */

static void *workspace_of(const frit_launch *launch)
{
    return launch->workspace->data + launch->workspace_offset;
}

static void *derived_of(const frit_launch *launch)
{
    return launch->derived[0].memory->data + launch->derived[0].offset;
}

static struct tile_bounds bounds_of(const frit_launch *launch, uint32_t arg)
{
    const frit_arg *given;

    if (arg == KERNELS_WORKSPACE)
        return (struct tile_bounds){0, (int64_t)launch->spec->workspace_bytes};
    if (arg == KERNELS_DERIVED)
        return (struct tile_bounds){0, (int64_t)launch->spec->derived[0].bytes};
    given = frit_arg_at(launch, arg);
    return (struct tile_bounds){-(int64_t)given->origin,
                                (int64_t)(given->extent + given->tail - given->origin)};
}

static void set_args(struct launch_memory *memory, const frit_launch *launch,
                     const struct kernels_launch *made)
{
    for (uint32_t i = 0; i < made->n_spaces * made->n_args; i++) {
        memory->bounds[i] = bounds_of(launch, made->args[i]);
        memory->args[i] = made->args[i] == KERNELS_WORKSPACE ? workspace_of(launch)
                          : made->args[i] == KERNELS_DERIVED
                              ? derived_of(launch)
                              : hosted_element(frit_arg_at(launch, made->args[i]));
    }
}

static frit_status check(void *ctx, const frit_launch *launch, frit_err *err)
{
    if (kernels_owns(launch->program))
        return FRIT_OK;
    return plug_fail(&((const struct launcher *)ctx)->instance->plug, err, FRIT_INVALID,
                     "a program of another driver");
}

static frit_status fail_no_memory(const struct instance *instance, const char *name, frit_err *err)
{
    return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory to run %s", name);
}

/* What the calling thread has had of a processor: others may keep it waiting. */
static uint64_t thread_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One kernel of a launch; *outside: elements that were not within bounds. */
static frit_status run_kernel(struct launcher *launcher, const frit_launch *launch,
                              const struct kernels_launch *made, uint64_t *outside, frit_err *err)
{
    const struct instance *instance = launcher->instance;
    const struct object *object = choose_code(launch, made);
    const bool slow = module_can_improve(made->code);
    const uint64_t begun = slow ? thread_ns() : 0;

    if (!grow_args(&launcher->memory, instance, made->n_spaces * made->n_args) ||
        !grow_scratch(&launcher->memory, instance, scratch_of(made->code, object)))
        return fail_no_memory(instance, made->name, err);
    set_args(&launcher->memory, launch, made);
    *outside += run_phases(launcher, launch, made, object);
    if (slow)
        module_spend(made->code, thread_ns() - begun);
    return FRIT_OK;
}

static frit_status run(void *ctx, const frit_launch *launch, frit_err *err)
{
    struct launcher *launcher = ctx;
    const struct instance *instance = launcher->instance;
    struct launch_memory *memory = &launcher->memory;
    struct kernels_launch made = {0};
    uint64_t outside = 0;
    frit_status status = kernels_launch(launch, memory->words, memory->n_words, &made, err);

    if (status && made.total_words > memory->n_words) {
        if (!grow_words(memory, instance, made.total_words))
            return fail_no_memory(instance, made.name, err);
        status = kernels_launch(launch, memory->words, memory->n_words, &made, err);
    }
    if (status)
        return status;
    do {
        status = run_kernel(launcher, launch, &made, &outside, err);
    } while (!status && kernels_next(&made));
    if (!status && outside)
        return plug_fail(&instance->plug, err, FRIT_INTERNAL,
                         "%s: %" PRIu64 " elements outside of its arguments: loads gave 0, stores "
                         "were dropped",
                         made.name, outside);
    return status;
}

static frit_str name_of(const frit_launch *launch)
{
    frit_program_info info = {.struct_size = sizeof info};

    (void)launch->program->table->describe(launch->program->self, &info, NULL);
    return info.name;
}

const struct hosted_driver launcher_slots = {check, run, name_of};
