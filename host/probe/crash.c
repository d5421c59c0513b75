/* SPDX-License-Identifier: Apache-2.0 */
/* The process is about to end, so that functions which are not safe in a handler may be called: at
 * worst the line is missing, and the parent sees the signal all the same. */
#include "probe/crash.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "probe/report.h"

enum { STACK_BYTES = 65536 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};

static uintptr_t instruction_of(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    const uintptr_t at = instruction_of(context);
    const char *file = "?", *symbol = "?";
    uintptr_t offset = 0;
    Dl_info where;

    (void)signal(number, SIG_DFL);
    if (at && dladdr((void *)at, &where) && where.dli_fname) {
        const char *slash = strrchr(where.dli_fname, '/');

        file = slash ? slash + 1 : where.dli_fname;
        symbol = where.dli_sname ? where.dli_sname : "?";
        offset = at - (uintptr_t)(where.dli_sname ? where.dli_saddr : where.dli_fbase);
    }
    report_line("crash %d SIG%s at address %#lx in %s+%#lx of %s", number,
                sigabbrev_np(number) ? sigabbrev_np(number) : "?",
                number == SIGABRT ? 0ul : (unsigned long)(uintptr_t)info->si_addr, symbol,
                (unsigned long)offset, file);
    (void)raise(number);
}

void crash_install(void)
{
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    static char bytes[STACK_BYTES];
    const stack_t stack = {.ss_sp = bytes, .ss_size = sizeof(bytes)};

    (void)sigaltstack(&stack, NULL);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        (void)sigaction(signals[i], &action, NULL);
}
