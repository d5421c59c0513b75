/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

int thread_start(pthread_t *out, void *(*fn)(void *ctx), void *ctx)
{
    sigset_t blocked, before;
    int error;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    error = pthread_create(out, NULL, fn, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
