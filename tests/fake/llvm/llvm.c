/* SPDX-License-Identifier: Apache-2.0 */
/* A libLLVM whose code generator finds a defect: every function is that of the real library but the
 * step that makes code, which calls LLVM's function for fatal errors. */
#include <dlfcn.h>
#include <stdbool.h>

#include "emit/llvm/api.h"

#define LL_SYM(result, name, arguments)                                                  \
    __attribute__((visibility("hidden"), used)) void *real_##name;                       \
    __asm__(".pushsection .text\n.globl LLVM" #name "\n.type LLVM" #name ", @function\n" \
            "LLVM" #name ":\n\tjmp *real_" #name "(%rip)\n.popsection\n");
#include "emit/llvm/syms.def"
#undef LL_SYM

static void *library;

static int die(void)
{
    void (*report)(const char *reason, bool crash);

    *(void **)&report = dlsym(library, "_ZN4llvm18report_fatal_errorEPKcb");
    if (report)
        report("a planted defect", true);
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const names[] = {"libLLVM.so.19.1", "libLLVM.so.18.1", "libLLVM-17.so.1",
                                        "libLLVM-16.so.1", "libLLVM-15.so.1"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return;
#define LL_SYM(result, name, arguments) real_##name = dlsym(library, "LLVM" #name);
#include "emit/llvm/syms.def"
#undef LL_SYM
    *(int (**)(void)) & real_TargetMachineEmitToMemoryBuffer = die;
}
