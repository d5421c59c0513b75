/* SPDX-License-Identifier: Apache-2.0 */
/* Each kernel is compiled in up to four forms, the most usual one at once and the others when a
 * launch first needs them, or in the background for a recording to be made.  Code objects are kept
 * in the host's disk cache by the digest of the module, the form, and what the adapter's
 * fingerprint says of architecture and versions. */
#include "compile.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#include "adapter.h"
#include "device.h"
#include "parts.h"
#include "plugin.h"
#include "scope.h"
#include "target.h"

enum {
    KEPT_MAGIC = 0x334b4346, /* "FCK3": layout of struct kept */
    OBJECT_ALIGN = 16,
    PLAIN_SHARED_BYTES = 48 << 10, /* a kernel of CUDA that needs more has to say so */
    ATTRIBUTE_DYNAMIC_SHARED = 8,  /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    MAX_PHASES = 256
};

/* A form as the disk cache has it: then `n_phases` of struct ctext_phase and the code objects, each
 * in so many bytes. */
struct kept {
    uint32_t magic;
    uint32_t n_phases;
    uint64_t object_bytes[MOST_PARTS]; /* 0: there are no more */
    uint32_t by_value, same_unaligned;
    uint64_t checksum; /* of what follows: the runtime trusts a code object */
};

/* ---- the run-time compiler ---- */

static frit_status fail_compile(struct device *device, const char *name, gpu_program program,
                                gpu_result result, frit_err *err)
{
    const struct api *api = device->api;
    const struct instance *instance = device->instance;
    size_t n = 0;
    char *log = !program || api->GetLogSize(program, &n) ? NULL : hip_alloc(instance, n + 1);

    if (log && api->GetLog(program, log))
        log[0] = 0;
    (void)plug_fail(&instance->plug, err, FRIT_INTERNAL, "compiling kernel %s: error %d: %.300s",
                    name, result, log ? log : "");
    if (log)
        instance->plug.core->log(instance->plug.host->self, FRIT_LOG_DEBUG, FRIT_STR("compile"),
                                 (frit_str){log, strlen(log)});
    hip_free(instance, log);
    return FRIT_INTERNAL;
}

static frit_status take_code(struct device *device, gpu_program program, void **code,
                             uint64_t *n_bytes, gpu_result *result)
{
    const struct api *api = device->api;
    size_t n = 0;

    *result = api->GetCodeSize(program, &n);
    if (*result)
        return FRIT_INTERNAL;
    *code = hip_alloc(device->instance, n + 1);
    if (!*code)
        return FRIT_NO_HOST_MEMORY;
    *result = api->GetCode(program, *code);
    *n_bytes = n;
    return *result ? FRIT_INTERNAL : FRIT_OK;
}

frit_status compile_text(struct device *device, const char *name, const char *text,
                         bool folds_fragments, void **code, uint64_t *n_bytes, frit_err *err)
{
    const struct api *api = device->api;
    const int version =
        device->instance->compiler_version[0] * 100 + device->instance->compiler_version[1];
    const char *options[8];
    char arch[128];
    gpu_program program = NULL;
    int n = 0;
    gpu_result result;
    frit_status status = FRIT_INTERNAL;

    *code = NULL;
    snprintf(arch, sizeof arch, "%s%s", vendor.options[0], device->adapter->arch);
    options[n++] = arch;
    for (const char *const *option = vendor.options + 1; *option; option++)
        options[n++] = *option;
    for (const struct newer_option *newer = vendor.newer_options; newer && newer->option; newer++)
        if (version >= newer->since && (folds_fragments || !newer->of_folds))
            options[n++] = newer->option;
    result = api->CreateProgram(&program, text, name, 0, NULL, NULL);
    if (!result)
        result = api->CompileProgram(program, n, options);
    if (!result)
        status = take_code(device, program, code, n_bytes, &result);
    if (result)
        status = fail_compile(device, name, program, result, err);
    else if (status)
        status = plug_fail(&device->instance->plug, err, status, "no memory for kernel %s", name);
    if (program)
        (void)api->DestroyProgram(&program);
    if (status) {
        hip_free(device->instance, *code);
        *code = NULL;
    }
    return status;
}

/* ---- the disk cache ---- */

struct cache_key {
    uint8_t digest[KIR_DIGEST];
    uint8_t form;
};

static frit_str cache_space(const struct device *device)
{
    return (frit_str){device->adapter->fingerprint, strlen(device->adapter->fingerprint)};
}

static struct cache_key key_of(const struct kernel_code *code, uint32_t form)
{
    struct cache_key key = {.form = (uint8_t)form};

    memcpy(key.digest, code->digest, sizeof key.digest);
    return key;
}

/* Whether bytes begin as a code object does: cubin and hsaco are ELF files.  The runtime is given
 * no length, takes texts too, and decides by the first bytes where they end. */
static bool is_code_object(const void *bytes, uint64_t n)
{
    static const char magic[] = {0x7f, 'E', 'L', 'F'};

    return n > sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static uint64_t align_up(uint64_t bytes)
{
    return (bytes + OBJECT_ALIGN - 1) / OBJECT_ALIGN * OBJECT_ALIGN;
}

/* Where the first object begins. */
static uint64_t head_bytes(const struct kernel_code *code)
{
    return align_up(sizeof(struct kept) + code->n_phases * sizeof(struct ctext_phase));
}

/* Whether these bytes are code objects one after the other, for the parts of the module. */
static bool are_objects(const struct kernel_code *code, const struct kept *kept, uint64_t n_bytes)
{
    uint64_t at = head_bytes(code);
    struct parts parts;

    parts_divide(&code->module, &parts);
    for (uint32_t i = 0; i < parts.n; i++) {
        const uint64_t bytes = kept->object_bytes[i];

        if (bytes > n_bytes - at || !is_code_object((const char *)kept + at, bytes))
            return false;
        at += bytes;
    }
    return at == n_bytes;
}

/* Whether the disk cache's bytes are a form of `code`. */
static bool is_kept(const struct kernel_code *code, const struct kept *kept, uint64_t n_bytes)
{
    return n_bytes > head_bytes(code) && kept->magic == KEPT_MAGIC &&
           kept->n_phases == code->n_phases &&
           kept->checksum == hip_checksum(kept + 1, n_bytes - sizeof *kept) &&
           are_objects(code, kept, n_bytes);
}

/* The kept code object of a form, or NULL. */
static struct kept *find_kept(struct device *device, const struct kernel_code *code, uint32_t form,
                              uint64_t *n_bytes)
{
    const struct instance *instance = device->instance;
    const struct cache_key key = key_of(code, form);
    void *bytes = NULL;

    if (!instance->cache || instance->cache->get(instance->plug.host->self, cache_space(device),
                                                 &key, sizeof key, &bytes, n_bytes, NULL))
        return NULL;
    if (!bytes || is_kept(code, bytes, *n_bytes))
        return bytes;
    hip_free(instance, bytes);
    return NULL;
}

static void keep(struct device *device, const struct kernel_code *code, uint32_t form,
                 const struct kept *kept, uint64_t n_bytes)
{
    const struct instance *instance = device->instance;
    const struct cache_key key = key_of(code, form);

    if (instance->cache)
        (void)instance->cache->put(instance->plug.host->self, cache_space(device), &key, sizeof key,
                                   kept, n_bytes, NULL);
}

/* ---- forms ---- */

/* Puts the code objects after their description. */
static struct kept *make_kept(const struct device *device, const struct kernel_code *code,
                              const struct ctext_phase *phases, const struct ctext_kernels *kernels,
                              const struct parts *parts, uint64_t *n_bytes)
{
    struct kept *made;
    uint64_t at = head_bytes(code);

    *n_bytes = at;
    for (uint32_t i = 0; i < parts->n; i++)
        *n_bytes += align_up(parts->list[i].bytes);
    made = hip_alloc(device->instance, *n_bytes + 1);
    if (!made)
        return NULL;
    *made = (struct kept){.magic = KEPT_MAGIC,
                          .n_phases = code->n_phases,
                          .by_value = kernels->by_value,
                          .same_unaligned = kernels->same_unaligned};
    memcpy(made + 1, phases, code->n_phases * sizeof *phases);
    for (uint32_t i = 0; i < parts->n; i++) {
        made->object_bytes[i] = align_up(parts->list[i].bytes);
        memcpy((char *)made + at, parts->list[i].object, parts->list[i].bytes);
        at += made->object_bytes[i];
    }
    made->checksum = hip_checksum(made + 1, *n_bytes - sizeof *made);
    return made;
}

static frit_status compile_new(struct device *device, const struct kernel_code *code, uint32_t form,
                               struct kept **out, uint64_t *n_bytes, frit_err *err)
{
    struct ctext_phase phases[MAX_PHASES];
    struct ctext_kernels kernels = {0};
    struct parts parts;
    frit_status status = FRIT_UNSUPPORTED;

    if (code->n_phases > MAX_PHASES)
        return plug_fail(&device->instance->plug, err, status, "a kernel of %u phases",
                         code->n_phases);
    status = parts_compile(device, &code->module, form, &parts, phases, &kernels, err);
    if (status)
        return status;
    *out = make_kept(device, code, phases, &kernels, &parts, n_bytes);
    parts_fini(device, &parts);
    if (!*out)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for kernel %s", code->module.name);
    keep(device, code, form, *out, *n_bytes);
    return FRIT_OK;
}

static frit_status load_functions(struct device *device, const struct part *part, gpu_module module,
                                  struct code_form *form, frit_err *err)
{
    const struct api *api = device->api;
    gpu_result result = GPU_SUCCESS;

    for (uint32_t i = part->first; i < part->first + part->n && !result; i++) {
        char name[32];

        snprintf(name, sizeof name, "k_%u", i);
        result = api->ModuleGetFunction(&form->functions[i], module, name);
        if (!result && form->phases[i].shared_bytes > PLAIN_SHARED_BYTES && api->FuncSetAttribute)
            result = api->FuncSetAttribute(form->functions[i], ATTRIBUTE_DYNAMIC_SHARED,
                                           (int)form->phases[i].shared_bytes);
    }
    return result ? device_fail(device, result, "loading a kernel", err) : FRIT_OK;
}

/* Loads a form's code objects into the device, which must be entered. */
static frit_status load(struct device *device, const struct kernel_code *code,
                        const struct kept *kept, struct code_form *form, frit_err *err)
{
    const char *object = (const char *)kept + head_bytes(code);
    struct parts parts;
    frit_status status = FRIT_OK;

    memcpy(form->phases, kept + 1, code->n_phases * sizeof *form->phases);
    parts_divide(&code->module, &parts);
    for (uint32_t i = 0; i < parts.n && !status; i++) {
        gpu_result result = device->api->ModuleLoadData(&form->modules[i], object);

        if (result) {
            form->modules[i] = NULL;
            return device_fail(device, result, "loading a kernel", err);
        }
        status = load_functions(device, &parts.list[i], form->modules[i], form, err);
        object += kept->object_bytes[i];
    }
    return status;
}

static void unload(struct device *device, struct code_form *form)
{
    for (uint32_t i = 0; i < MOST_PARTS; i++) {
        if (form->modules[i])
            (void)device->api->ModuleUnload(form->modules[i]);
        form->modules[i] = NULL;
    }
}

/* Makes a form that is not there, on one thread at a time.  The device must be entered. */
static frit_status make_form(struct device *device, struct kernel_code *code, uint32_t number,
                             frit_err *err)
{
    struct code_form *form = &code->forms[number];
    uint64_t n_bytes = 0;
    struct kept *kept = find_kept(device, code, number, &n_bytes);
    frit_status status = FRIT_OK;

    if (kept &&
        load(device, code, kept, form, NULL)) { /* not what the runtime takes: make it anew */
        unload(device, form);
        hip_free(device->instance, kept);
        kept = NULL;
    }
    if (!kept) {
        status = compile_new(device, code, number, &kept, &n_bytes, err);
        assert(kept || status);
        if (!status)
            status = load(device, code, kept, form, err);
    }
    if (status) {
        unload(device, form);
    } else {
        if (number == FORM_ALIGNED) { /* the first one, before anybody else has the code */
            code->by_value = kept->by_value;
            code->same_unaligned = kept->same_unaligned;
        }
        atomic_fetch_or_explicit(&code->ready, 1u << number, memory_order_release);
    }
    hip_free(device->instance, kept);
    return status;
}

/* The form that serves for launches of a kind. */
static uint32_t form_for(const struct kernel_code *code, uint32_t form)
{
    if (code->same_unaligned)
        form |= FORM_ALIGNED;
    return code->by_value ? form : form & ~(uint32_t)FORM_BY_ADDRESS;
}

static bool is_ready(struct kernel_code *code, uint32_t form)
{
    return atomic_load_explicit(&code->ready, memory_order_acquire) & 1u << form;
}

/* Makes the form unless it is there, or waits until the thread that makes it has ended. */
static frit_status ensure_form(struct device *device, struct kernel_code *code, uint32_t form,
                               frit_err *err)
{
    const uint32_t bit = 1u << form;
    frit_status status = FRIT_OK;

    pthread_mutex_lock(&device->compile_lock);
    while (code->making & bit)
        pthread_cond_wait(&device->compile_ended, &device->compile_lock);
    if (!is_ready(code, form)) {
        code->making |= bit;
        pthread_mutex_unlock(&device->compile_lock);
        status = make_form(device, code, form, err);
        pthread_mutex_lock(&device->compile_lock);
        code->making &= ~bit;
        pthread_cond_broadcast(&device->compile_ended);
    }
    pthread_mutex_unlock(&device->compile_lock);
    return status;
}

frit_status compile_form(struct device *device, struct kernel_code *code, uint32_t form,
                         const struct code_form **out, frit_err *err)
{
    form = form_for(code, form);
    *out = &code->forms[form];
    return is_ready(code, form) ? FRIT_OK : ensure_form(device, code, form, err);
}

static void code_unref(struct device *device, struct kernel_code *code)
{
    struct scope scope;

    if (atomic_fetch_sub(&code->refs, 1) > 1)
        return;
    scope_try(device, &scope);
    for (uint32_t i = 0; i < N_FORMS; i++)
        unload(device, &code->forms[i]);
    scope_leave(device, &scope);
    kir_fini(&code->module);
    hip_free(device->instance, code);
}

/* ---- in the background ---- */

/* A form that one of the host's threads makes. */
struct form_task {
    struct device *device;
    struct kernel_code *code; /* a reference */
    uint32_t form;
};

/* The device may be closed as soon as its last task has ended. */
static void end_task(struct form_task *task, bool failed)
{
    struct device *device = task->device;
    struct kernel_code *code = task->code;

    pthread_mutex_lock(&device->compile_lock);
    code->wanted &= ~(1u << task->form);
    code->failed |= (uint32_t)failed << task->form;
    pthread_mutex_unlock(&device->compile_lock);
    code_unref(device, code);
    hip_free(device->instance, task);
    pthread_mutex_lock(&device->compile_lock);
    device->n_compile_tasks--;
    pthread_cond_broadcast(&device->compile_ended);
    pthread_mutex_unlock(&device->compile_lock);
}

static void run_task(void *ctx, const frit_cancel *cancel)
{
    struct form_task *task = ctx;
    struct device *device = task->device;
    struct scope scope;
    frit_status status = FRIT_OK;

    if (!cancel || !__atomic_load_n(&cancel->requested, __ATOMIC_RELAXED)) {
        status = scope_enter(device, &scope, NULL);
        if (!status) {
            status = ensure_form(device, task->code, task->form, NULL);
            scope_leave(device, &scope);
        }
    }
    end_task(task, status != FRIT_OK);
}

static void drop_task(void *ctx)
{
    end_task(ctx, false);
}

/* False: nobody will make the form.  Needs the compile lock. */
static bool spawn_task(struct device *device, struct kernel_code *code, uint32_t form)
{
    const struct instance *instance = device->instance;
    struct form_task *task = hip_alloc(instance, sizeof *task);
    const frit_task spawned = {
        .struct_size = sizeof spawned, .run = run_task, .drop = drop_task, .ctx = task};

    if (!task)
        return false;
    *task = (struct form_task){device, code, form};
    atomic_fetch_add(&code->refs, 1);
    device->n_compile_tasks++;
    if (!instance->exec->task_spawn(instance->plug.host->self, &spawned, &code->tasks[form], NULL))
        return true;
    device->n_compile_tasks--;
    atomic_fetch_sub(&code->refs, 1);
    hip_free(instance, task);
    return false;
}

bool compile_is_pending(struct device *device, struct kernel_code *code, uint32_t form)
{
    uint32_t bit;
    bool pending;

    form = form_for(code, form);
    if (is_ready(code, form) || !device->instance->exec)
        return false;
    bit = 1u << form;
    pthread_mutex_lock(&device->compile_lock);
    if (!is_ready(code, form) && !((code->making | code->wanted | code->failed) & bit) &&
        spawn_task(device, code, form))
        code->wanted |= bit;
    pending = !is_ready(code, form) && (code->making | code->wanted) & bit;
    pthread_mutex_unlock(&device->compile_lock);
    return pending;
}

/* ---- slots of struct kernels_device ---- */

/* Tasks that did not begin are dropped, each of which ends its reference. */
static void code_release(void *self, void *released)
{
    struct device *device = self;
    const struct instance *instance = device->instance;
    struct kernel_code *code = released;
    uint64_t tasks[N_FORMS];

    pthread_mutex_lock(&device->compile_lock);
    memcpy(tasks, code->tasks, sizeof tasks);
    pthread_mutex_unlock(&device->compile_lock);
    for (uint32_t i = 0; i < N_FORMS; i++)
        if (tasks[i])
            instance->exec->task_cancel(instance->plug.host->self, tasks[i]);
    code_unref(device, code);
}

/* One allocation with the arrays after the struct; zeroed. */
static struct kernel_code *code_alloc(const struct instance *instance, uint32_t n_phases)
{
    const uint64_t each = sizeof(gpu_function) + sizeof(struct ctext_phase);
    struct kernel_code *code = hip_alloc(instance, sizeof *code + N_FORMS * n_phases * each);
    gpu_function *functions;
    struct ctext_phase *phases;

    if (!code)
        return NULL;
    functions = (gpu_function *)(code + 1);
    phases = (struct ctext_phase *)(functions + N_FORMS * n_phases);
    for (uint32_t i = 0; i < N_FORMS; i++) {
        code->forms[i].functions = functions + i * n_phases;
        code->forms[i].phases = phases + i * n_phases;
    }
    code->n_phases = n_phases;
    atomic_init(&code->refs, 1);
    return code;
}

static frit_status code_compile(void *self, struct kir_module *module, const uint8_t *digest,
                                const frit_cancel *cancel, void **out, frit_err *err)
{
    struct device *device = self;
    struct kernel_code *code = code_alloc(device->instance, module->n_phases);
    struct scope scope;
    frit_status status;

    (void)cancel; /* the run-time compiler cannot be stopped */
    *out = NULL;
    if (!code)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for kernel %s", module->name);
    memcpy(code->digest, digest, sizeof code->digest);
    code->module = *module;
    *module = (struct kir_module){0};
    status = scope_enter(device, &scope, err);
    if (!status) {
        status = make_form(device, code, FORM_ALIGNED, err);
        scope_leave(device, &scope);
    }
    if (status)
        code_release(device, code);
    else
        *out = code;
    device_settle(device);
    return status;
}

frit_status compile_open(struct device *device, frit_err *err)
{
    target_fill_text(device->adapter, &device->text);
    device->kernels.self = device;
    device->kernels.compile = code_compile;
    device->kernels.release = code_release;
    target_fill_kernels(device->adapter, &device->kernels.target);
    products_open(device);
    return kernels_open(&device->kernels, err);
}

void compile_close(struct device *device)
{
    pthread_mutex_lock(&device->compile_lock);
    while (device->n_compile_tasks)
        pthread_cond_wait(&device->compile_ended, &device->compile_lock);
    pthread_mutex_unlock(&device->compile_lock);
    if (device->kernels.codes)
        kernels_close(&device->kernels);
}
