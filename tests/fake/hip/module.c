/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: code objects of the run-time compiler, PTX, or C text that begins with a function. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "jit.h"
#include "ptx.h"
#include "runtime.h"
#include "text.h"

enum { MAX_FUNCTIONS = 256, MAX_SHARED_ATTRIBUTE = 8 };

struct gpu_module_object {
    gpu_context context;
    _Atomic uint32_t refs; /* of operations, and of the application */
    struct jit *jit;
    uint32_t *dims;
    pthread_mutex_t lock; /* of `dims` and what depends on them, while a kernel runs */
    struct gpu_function_object functions[MAX_FUNCTIONS];
    uint32_t n_functions;
};

void module_ref(gpu_module module)
{
    module->refs++;
}

void module_unref(gpu_module module)
{
    if (--module->refs)
        return;
    jit_unload(module->jit);
    pthread_mutex_destroy(&module->lock);
    free(module);
}

void module_lock(gpu_module module)
{
    if (module->dims)
        pthread_mutex_lock(&module->lock);
}

void module_unlock(gpu_module module)
{
    if (module->dims)
        pthread_mutex_unlock(&module->lock);
}

/* ---- loading ---- */

static struct jit *load_text(const char *text)
{
    char *on_host = text_on_host(text), *log = NULL;
    size_t bytes;
    void *object = on_host ? jit_compile(on_host, &bytes, &log) : NULL;
    struct jit *jit = object ? jit_load(object, bytes) : NULL;

    if (on_host && !object)
        fprintf(stderr, "fake GPU: %s", log ? log : "cannot compile a module\n");
    free(on_host);
    free(log);
    free(object);
    return jit;
}

/* Other bytes have no end that could be found. */
static bool is_text(const char *code)
{
    return ptx_is(code) || strncmp(code, "void ", 5) == 0;
}

static gpu_result load(const char *code, struct jit **out)
{
    struct image image;

    if (is_text(code)) {
        *out = load_text(code);
        return *out ? GPU_SUCCESS : FAKE_INVALID_IMAGE;
    }
    if (strncmp(code, IMAGE_MAGIC, sizeof image.magic) != 0)
        return FAKE_INVALID_IMAGE;
    memcpy(&image, code, sizeof image);
    if (strcmp(image.arch, IMAGE_ARCH) != 0)
        return FAKE_NO_BINARY;
    *out = jit_load(code + sizeof image, image.bytes);
    return *out ? GPU_SUCCESS : FAKE_INVALID_IMAGE;
}

gpu_result fake_ModuleLoadData(gpu_module *out, const void *code)
{
    gpu_context context;
    gpu_result result = call_begin_on("ModuleLoadData", &context);
    struct jit *jit = NULL;
    gpu_module module;

    if (!result)
        result = load(code, &jit);
    if (result)
        return result;
    module = must_alloc(sizeof *module);
    module->context = context;
    module->refs = 1;
    module->jit = jit;
    module->dims = jit_symbol(jit, TEXT_DIMS);
    pthread_mutex_init(&module->lock, NULL);
    fake_gpu.alive[FAKE_MODULE]++;
    *out = module;
    return GPU_SUCCESS;
}

gpu_result fake_ModuleUnload(gpu_module module)
{
    gpu_context context;
    gpu_result result = call_begin_on("ModuleUnload", &context);

    module_unref(module);
    fake_gpu.alive[FAKE_MODULE]--;
    return result;
}

/* ---- functions ---- */

static uint32_t number_of(gpu_module module, const char *name, const char *suffix)
{
    char symbol[128];
    const uint32_t *number;

    snprintf(symbol, sizeof symbol, "%s%s", name, suffix);
    number = jit_symbol(module->jit, symbol);
    return number ? *number : 0;
}

static void *find_run(gpu_module module, const char *name)
{
    char symbol[128];
    void *run;

    snprintf(symbol, sizeof symbol, "%s" TEXT_BLOCK, name);
    run = jit_symbol(module->jit, symbol);
    return run ? run : jit_symbol(module->jit, name);
}

gpu_result fake_ModuleGetFunction(gpu_function *out, gpu_module module, const char *name)
{
    gpu_context context;
    gpu_result result = call_begin_on("ModuleGetFunction", &context);
    void *run = result ? NULL : find_run(module, name);
    gpu_function function;

    if (result || !run)
        return result ? result : FAKE_NOT_FOUND;
    if (module->n_functions == MAX_FUNCTIONS)
        abort_wrong_call("a module with more than %d functions", MAX_FUNCTIONS);
    function = &module->functions[module->n_functions++];
    *function = (struct gpu_function_object){
        .module = module,
        .dims = module->dims,
        .threads = number_of(module, name, TEXT_THREADS),
        .n_words = number_of(module, "", TEXT_PARAM_WORDS),
        .shared_bytes = FAKE_PICK(FAKE_SHARED, FAKE_PLAIN_SHARED),
    };
    if (!function->n_words)
        function->n_words = number_of(module, name, "_words");
    *(void **)&function->run = run;
    *out = function;
    return GPU_SUCCESS;
}

#ifndef FAKE_HIP
gpu_result fake_FuncSetAttribute(gpu_function function, int attribute, int value)
{
    gpu_context context;
    gpu_result result = call_begin_on("FuncSetAttribute", &context);

    if (result || attribute != MAX_SHARED_ATTRIBUTE || value < 0 || value > FAKE_SHARED)
        return result ? result : FAKE_INVALID_VALUE;
    function->shared_bytes = (uint32_t)value;
    return GPU_SUCCESS;
}
#endif
