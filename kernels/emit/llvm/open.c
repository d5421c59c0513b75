/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the library.  It stays in the process: it registers things with the C library that it
 * does not take back. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#include "emit/llvm/fatal.h"
#include "emit/llvm/open.h"

/* Before 15, pointers have types. */
static const char *const names[] = {
    "libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM.so.18.1", "libLLVM-18.so.1",
    "libLLVM-17.so.1", "libLLVM-16.so.1", "libLLVM-15.so.1", NULL,
};

static frit_status load(struct llvm *llvm, const char *name, frit_err *err)
{
    const char *missing = NULL;

    llvm->name = name;
#define LL_SYM(result, symbol, arguments)                               \
    *(void **)&llvm->api.symbol = dlsym(llvm->library, "LLVM" #symbol); \
    missing = missing || llvm->api.symbol ? missing : "LLVM" #symbol;
#include "emit/llvm/syms.def"
#undef LL_SYM
    if (missing)
        return fail(err, FRIT_UNSUPPORTED, "%s has no %s", name, missing);
    fatal_watch(&llvm->api, llvm->library);
    llvm->api.InitializeX86TargetInfo();
    llvm->api.InitializeX86Target();
    llvm->api.InitializeX86TargetMC();
    llvm->api.InitializeX86AsmPrinter();
    return FRIT_OK;
}

/* Whether a library is there and cannot be opened, as for lack of memory. */
static bool is_there(const char *why)
{
    return !strstr(why, strerror(ENOENT));
}

static frit_status find(struct llvm *llvm, const char *path, frit_err *err)
{
    const char *const only[] = {path, NULL}, *const *try = path ? only : names;
    char reason[200] = "no libLLVM is installed";
    bool found = false;

    for (; *try; try++) {
        const char *why;

        llvm->library = dlopen(*try, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        if (llvm->library)
            return load(llvm, *try, err);
        why = dlerror();
        if (!found && why && (path || is_there(why)))
            snprintf(reason, sizeof(reason), "%s", why);
        found = found || (why && is_there(why));
    }
    return fail(err, FRIT_UNSUPPORTED, "%s; LLVM 15 to 19 will do (libllvm19)", reason);
}

frit_status llvm_open(const char *path, struct llvm **out, frit_err *err)
{
    struct llvm *llvm;
    frit_status status;

    *out = NULL;
#ifndef __x86_64__
    return fail(err, FRIT_UNSUPPORTED, "machine code is made for x86-64 only");
#endif
    TRY(fatal_check(err));
    llvm = calloc(1, sizeof(*llvm));
    if (!llvm)
        return fail_memory(err, sizeof(*llvm));
    llvm->own = path ? strdup(path) : NULL;
    status = path && !llvm->own ? fail_memory(err, strlen(path)) : find(llvm, path, err);
    if (status) {
        llvm_close(llvm);
        return status;
    }
    *out = llvm;
    return FRIT_OK;
}

static void close_library(struct llvm *llvm)
{
    for (int i = 0; i < LLVM_ISAS * LLVM_LEVELS; i++) {
        ll_machine machine = llvm->idle[i / LLVM_LEVELS][i % LLVM_LEVELS];

        if (machine)
            llvm->api.DisposeTargetMachine(machine);
    }
    dlclose(llvm->library);
}

void llvm_close(struct llvm *llvm)
{
    if (!llvm)
        return;
    if (llvm->library)
        close_library(llvm);
    free(llvm->own);
    free(llvm);
}

const char *llvm_version(const struct llvm *llvm)
{
    const char *slash = strrchr(llvm->name, '/');

    return slash ? slash + 1 : llvm->name;
}

bool llvm_file(const struct llvm *llvm, char *path, size_t size)
{
    struct link_map *map;

    return !dlinfo(llvm->library, RTLD_DI_LINKMAP, &map) && map->l_name[0] &&
           (size_t)snprintf(path, size, "%s", map->l_name) < size;
}

uint32_t llvm_major(const struct llvm *llvm)
{
    const char *name = llvm_version(llvm);

    return (uint32_t)strtoul(name + strcspn(name, "0123456789"), NULL, 10);
}

bool llvm_is_off(frit_err *err)
{
    return fatal_check(err);
}

/* AMD's divide fast enough: divide.c made layernorm slower there, and softmax faster on Intel's by
 * 1.14. */
bool llvm_cpu_find(struct llvm_cpu *out)
{
#ifdef __x86_64__
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt"))
        return false;
    *out = (struct llvm_cpu){LLVM_BASE, __builtin_cpu_is("intel"), false};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        out->isa = LLVM_AVX2;
    if (out->isa == LLVM_AVX2 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        out->isa = LLVM_AVX512;
    out->dot2 = __builtin_cpu_supports("avx512bf16");
    return true;
#else
    (void)out;
    return false;
#endif
}
