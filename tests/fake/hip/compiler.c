/* SPDX-License-Identifier: Apache-2.0 */
/* The run-time compiler: HIPRTC or NVRTC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "image.h"
#include "jit.h"
#include "runtime.h"
#include "text.h"

/* Results of both compilers. */
enum { COMPILER_NO_MEMORY = 1, COMPILER_INVALID = 3, COMPILER_INVALID_OPTION = 5, COMPILER_FAILED };

struct gpu_program_object {
    char *text, *log; /* owned */
    void *object;     /* owned; NULL: not compiled */
    size_t object_bytes;
    char arch[48];
};

#ifdef FAKE_HIP
static const char arch_option[] = "--offload-arch=", contraction_option[] = "-ffp-contract=off";
#else
static const char arch_option[] = "--gpu-architecture=", contraction_option[] = "--fmad=false";
#endif

gpu_result fake_Version(int *major, int *minor)
{
    gpu_result result = call_begin("Version");

#ifdef FAKE_HIP
    *major = 9;
    *minor = 0;
#else
    *major = 12;
    *minor = 8;
#endif
    return result;
}

gpu_result fake_CreateProgram(gpu_program *out, const char *text, const char *name, int n_headers,
                              const char *const *headers, const char *const *header_names)
{
    gpu_result result = call_begin("CreateProgram");
    gpu_program program;

    (void)name;
    if (result || !text || n_headers || headers || header_names)
        return result ? result : COMPILER_INVALID;
    program = must_alloc(sizeof *program);
    program->text = must_alloc(strlen(text) + 1);
    strcpy(program->text, text);
    fake_gpu.alive[FAKE_PROGRAM]++;
    *out = program;
    return GPU_SUCCESS;
}

gpu_result fake_DestroyProgram(gpu_program *program)
{
    gpu_result result = call_begin("DestroyProgram");

    free((*program)->text);
    free((*program)->log);
    free((*program)->object);
    free(*program);
    *program = NULL;
    fake_gpu.alive[FAKE_PROGRAM]--;
    return result;
}

/* Results are compared bit for bit with others, which contraction would change. */
static gpu_result read_options(gpu_program program, int n, const char *const *options)
{
    bool has_contraction = true;

    for (int i = 0; i < n; i++) {
        if (strncmp(options[i], arch_option, strlen(arch_option)) == 0)
            snprintf(program->arch, sizeof program->arch, "%s", options[i] + strlen(arch_option));
        else if (strcmp(options[i], contraction_option) == 0)
            has_contraction = false;
        else if (options[i][0] != '-')
            return COMPILER_INVALID_OPTION;
    }
    if (has_contraction)
        abort_wrong_call("a kernel is compiled with contraction");
    return strcmp(program->arch, IMAGE_ARCH) == 0 ? GPU_SUCCESS : COMPILER_INVALID_OPTION;
}

static gpu_result compile(gpu_program program)
{
    char *text = text_on_host(program->text);

    if (!text)
        return COMPILER_NO_MEMORY;
    program->object = jit_compile(text, &program->object_bytes, &program->log);
    free(text);
    return program->object ? GPU_SUCCESS : COMPILER_FAILED;
}

gpu_result fake_CompileProgram(gpu_program program, int n, const char *const *options)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    gpu_result result = call_begin("CompileProgram");

    if (!result)
        result = read_options(program, n, options);
    if (result)
        return result;
    fake_gpu.compiles++;
    fake_gpu.compiling++;
    result = compile(program);
    while (fake_gpu.holds_compiles)
        (void)nanosleep(&pause, NULL);
    fake_gpu.compiling--;
    return result;
}

gpu_result fake_GetLogSize(gpu_program program, size_t *bytes)
{
    gpu_result result = call_begin("GetLogSize");

    if (!result)
        *bytes = program->log ? strlen(program->log) + 1 : 1;
    return result;
}

gpu_result fake_GetLog(gpu_program program, char *log)
{
    gpu_result result = call_begin("GetLog");

    if (!result)
        strcpy(log, program->log ? program->log : "");
    return result;
}

gpu_result fake_GetCodeSize(gpu_program program, size_t *bytes)
{
    gpu_result result = call_begin("GetCodeSize");

    if (result || !program->object)
        return result ? result : COMPILER_INVALID;
    *bytes = sizeof(struct image) + program->object_bytes;
    return GPU_SUCCESS;
}

gpu_result fake_GetCode(gpu_program program, char *code)
{
    gpu_result result = call_begin("GetCode");
    struct image image = {.magic = IMAGE_MAGIC, .bytes = program->object_bytes};

    if (result || !program->object)
        return result ? result : COMPILER_INVALID;
    memcpy(image.arch, program->arch, sizeof image.arch);
    memcpy(code, &image, sizeof image);
    memcpy(code + sizeof image, program->object, program->object_bytes);
    return GPU_SUCCESS;
}
