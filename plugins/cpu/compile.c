/* SPDX-License-Identifier: Apache-2.0 */
/* Code for a module.
 *
 * Machine code that was kept runs at once.  Else a module begins in the tile interpreter, or, where
 * the options say so, as code that is quickly made.  When it has run for a part of the time that a
 * compile takes it is compiled well in the background, where a processor is likely to be idle, and
 * run as that from then on: all give the same bits.  The first launch that takes much longer than a
 * compile waits for one, and so does one of a module that has run for long while its compile was
 * not begun.  A compile holds a reference, so that nobody else waits for it; of those that wait the
 * host begins with what has cost most time so far, and one that nobody wants any more is cancelled.
 */
#include "compile.h"

#include <string.h>
#include <time.h>

#include "cpu.h"
#include "emit/llvm/blob.h"

/* LATE_NS: spent while the compile waits for a processor that this process keeps busy. */
enum { HOT_NS = 500000, LONG_NS = 20000000, LATE_NS = 4000000 };

static bool is_cancelled(const frit_cancel *cancel)
{
    return cancel && __atomic_load_n(&cancel->requested, __ATOMIC_RELAXED);
}

static void unref(struct module_code *code)
{
    const struct plug *plug = &code->instance->plug;

    if (atomic_fetch_sub(&code->refs, 1) > 1)
        return;
    object_unload(code->first);
    object_unload(atomic_load(&code->best));
    for (uint32_t i = 0; i < code->n_phases; i++)
        tile_destroy(code->phases[i].tile);
    kir_fini(&code->module);
    plug_free(plug, code);
}

/* ---- in the background ---- */

static struct jit_job job_of(const struct module_code *code, const struct kir_module *module,
                             enum llvm_level level)
{
    return (struct jit_job){module, code->digest, level};
}

static void compile_well(struct module_code *code)
{
    const struct jit_job job = job_of(code, &code->module, LLVM_GOOD);
    struct object *object, *none = NULL;

    if (!atomic_load(&code->unwanted) && !atomic_load(&code->best) &&
        !jit_compile(&code->instance->jit, &job, &object, NULL)) {
        if (atomic_compare_exchange_strong(&code->best, &none, object)) {
            atomic_fetch_add(&code->generation, 1);
            (void)__atomic_add_fetch(&code->instance->serial, 1, __ATOMIC_RELEASE);
        } else {
            object_unload(object);
        }
    }
}

static void run_task(void *ctx, const frit_cancel *cancel)
{
    struct module_code *code = ctx;

    atomic_store(&code->begun, true);
    if (!is_cancelled(cancel))
        compile_well(code);
    unref(code);
}

static void drop_task(void *ctx)
{
    unref(ctx);
}

static bool can_spawn(const struct instance *instance)
{
    const frit_host_exec *exec = instance->exec;

    return exec && FRIT_HAS(exec, frit_host_exec, task_cancel);
}

/* Spawns the compile to better code.  If that fails, the next launch tries again. */
static void spawn_compile(struct module_code *code, uint64_t spent_ns)
{
    const frit_host_exec *exec = code->instance->exec;
    const frit_task task = {.struct_size = sizeof task,
                            .run = run_task,
                            .drop = drop_task,
                            .ctx = code,
                            .priority = spent_ns};
    uint64_t id;

    if (atomic_exchange(&code->spawned, true))
        return;
    atomic_fetch_add(&code->refs, 1);
    if (exec->task_spawn(code->instance->plug.host->self, &task, &id, NULL)) {
        atomic_store(&code->spawned, false);
        unref(code);
        return;
    }
    atomic_store(&code->task, id);
}

/* Raises the priority of the spawned compile each time that the time spent without its code
 * doubles. */
static void raise_priority(struct module_code *code, uint64_t before, uint64_t spent_ns)
{
    const struct instance *instance = code->instance;
    uint64_t id = atomic_load(&code->task);
    int doublings = __builtin_clzll(before | 1) - __builtin_clzll(spent_ns | 1);

    if (id && doublings > 0)
        instance->exec->task_raise(instance->plug.host->self, id,
                                   spent_ns - (spent_ns >> doublings));
}

/* Compiles on the launching thread, whether or not a task was spawned.  Once only: it may fail. */
static void hurry(struct module_code *code)
{
    if (atomic_exchange(&code->hurried, true))
        return;
    compile_well(code);
    atomic_store(&code->hurry_ended, true);
}

/* Another thread's may be under way. */
static void hurry_and_wait(struct module_code *code)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    hurry(code);
    while (!atomic_load(&code->hurry_ended))
        (void)nanosleep(&pause, NULL);
}

bool module_can_improve(const struct module_code *code)
{
    return code->compiles && !atomic_load_explicit(&code->best, memory_order_relaxed);
}

void module_spend(struct module_code *code, uint64_t ns)
{
    uint64_t before = atomic_fetch_add_explicit(&code->spent_ns, ns, memory_order_relaxed);

    if (atomic_load_explicit(&code->spawned, memory_order_relaxed))
        raise_priority(code, before, before + ns);
    else if (before + ns >= HOT_NS)
        spawn_compile(code, before + ns);
}

/* Whether the background should have begun to compile it. */
static bool is_late(const struct module_code *code)
{
    return atomic_load_explicit(&code->spent_ns, memory_order_relaxed) >= LATE_NS &&
           !atomic_load_explicit(&code->begun, memory_order_relaxed);
}

const struct object *module_object(struct module_code *code, uint64_t ns)
{
    const struct object *best = atomic_load_explicit(&code->best, memory_order_acquire);

    if (best || !code->compiles)
        return best ? best : code->first;
    if (ns == MODULE_BEST)
        hurry_and_wait(code);
    else if (ns >= LONG_NS || is_late(code))
        hurry(code);
    best = atomic_load_explicit(&code->best, memory_order_acquire);
    return best ? best : code->first;
}

uint32_t module_generation(void *self, void *compiled)
{
    (void)self;
    return atomic_load(&((struct module_code *)compiled)->generation);
}

/* ---- at once ---- */

static frit_status interpret(struct module_code *code, const struct kir_module *module, uint32_t i,
                             frit_err *err)
{
    struct tile_code *tile;
    frit_status status = tile_compile(module, i, code->instance->level, &tile, err);

    if (status)
        return status;
    code->phases[i].tile = tile;
    if (tile_scratch(tile) > code->scratch)
        code->scratch = tile_scratch(tile);
    return FRIT_OK;
}

/* What there is of machine code, and made of it where the option says so. */
static frit_status find_object(struct module_code *code, const struct kir_module *module,
                               frit_err *err)
{
    struct jit *jit = &code->instance->jit;
    const struct jit_job good = job_of(code, module, LLVM_GOOD);
    const struct jit_job quick = job_of(code, module, LLVM_QUICK);
    struct object *best;

    if (jit->mode == JIT_NEVER)
        return FRIT_OK;
    best = jit_find(jit, &good);
    atomic_init(&code->best, best);
    if (best)
        return FRIT_OK;
    code->first = jit_find(jit, &quick);
    return code->first || jit->mode != JIT_ALWAYS ? FRIT_OK
                                                  : jit_compile(jit, &quick, &code->first, err);
}

static frit_status make(struct module_code *code, const struct kir_module *module,
                        const frit_cancel *cancel, frit_err *err)
{
    const struct plug *plug = &code->instance->plug;
    frit_status status = find_object(code, module, err);
    bool interpreted = !code->first && !atomic_load(&code->best);

    for (uint32_t i = 0; i < module->n_phases && !status && interpreted; i++)
        status = is_cancelled(cancel) ? plug_fail(plug, err, FRIT_CANCELLED,
                                                  "no code for %s: cancelled", module->name)
                                      : interpret(code, module, i, err);
    return status;
}

frit_status module_compile(void *self, struct kir_module *module, const uint8_t *digest,
                           const frit_cancel *cancel, void **out, frit_err *err)
{
    struct instance *instance = self;
    uint64_t bytes = sizeof(struct module_code) + module->n_phases * sizeof(struct phase_code);
    struct module_code *code = plug_alloc(&instance->plug, bytes, _Alignof(struct module_code));
    frit_status status;

    *out = NULL;
    if (!code)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for code of %s",
                         module->name);
    memset(code, 0, bytes);
    code->instance = instance;
    code->n_phases = module->n_phases;
    atomic_init(&code->refs, 1);
    memcpy(code->digest, digest, KIR_DIGEST);
    for (uint32_t i = 0; i < module->n_phases; i++)
        code->phases[i].work = (uint64_t)module->phases[i].n * module->phases[i].lanes;
    for (uint32_t i = 0; i < module->n_args && i < 64; i++)
        code->writes |= (uint64_t)((module->args[i].access & KIR_WRITE) != 0) << i;
    status = make(code, module, cancel, err);
    if (status) {
        unref(code);
        return status;
    }
    code->compiles = instance->jit.mode != JIT_NEVER && can_spawn(instance);
    if (code->compiles && !atomic_load(&code->best)) {
        code->module = *module;
        *module = (struct kir_module){0};
    }
    *out = code;
    return FRIT_OK;
}

void module_release(void *self, void *compiled)
{
    struct module_code *code = compiled;
    const struct instance *instance = self;
    uint64_t id = atomic_load(&code->task);

    atomic_store(&code->unwanted, true);
    if (id)
        instance->exec->task_cancel(instance->plug.host->self, id);
    unref(code);
}
