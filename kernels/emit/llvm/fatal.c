/* SPDX-License-Identifier: Apache-2.0 */
#include "emit/llvm/fatal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/thread.h"

/* Address space that a compile must find, in bytes: several times what the largest kernels took.
 * Where the C++ library of LLVM finds none, it ends the process without calling any handler. */
static const size_t compile_space = (size_t)64 << 20;

struct compile_thread {
    frit_status (*run)(void *ctx, frit_err *err);
    void *ctx;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t ends;
    bool ended;
    bool failed; /* by a fatal error: the thread sleeps in LLVM's handler */
    frit_status status;
    frit_err err;
};

static _Thread_local struct compile_thread *current;

static struct {
    atomic_flag claimed;
    atomic_bool watches_memory; /* LLVM takes that handler once only */
    atomic_bool happened;
    char text[256]; /* constant once it happened */
} fatal = {.claimed = ATOMIC_FLAG_INIT};

/* ---- the handler ---- */

static void end(struct compile_thread *thread, frit_status status, bool failed)
{
    pthread_mutex_lock(&thread->lock);
    thread->status = status;
    thread->failed = failed;
    thread->ended = true;
    pthread_cond_signal(&thread->ends);
    pthread_mutex_unlock(&thread->lock);
}

static void on_fatal(const char *reason)
{
    if (!current) {
        (void)fprintf(stderr, "LLVM ERROR: %s\n", reason);
        return;
    }
    if (!atomic_flag_test_and_set(&fatal.claimed)) {
        (void)snprintf(fatal.text, sizeof(fatal.text), "%s", reason);
        atomic_store(&fatal.happened, true);
    }
    end(current,
        fail(&current->err, FRIT_UNSUPPORTED, "LLVM reported a fatal error: %.256s", reason), true);
    for (;;)
        (void)pause();
}

static void on_no_memory(void *unused, const char *reason, bool crash)
{
    (void)unused;
    (void)crash;
    on_fatal(reason);
}

/* The handler for a lack of memory is not in LLVM's C API, but among its symbols. */
void fatal_watch(const struct ll_api *api, void *library)
{
    void (*install)(void (*handler)(void *, const char *, bool), void *ctx);

    api->InstallFatalErrorHandler(on_fatal);
    *(void **)&install = dlsym(library, "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
    if (install && !atomic_exchange(&fatal.watches_memory, true))
        install(on_no_memory, NULL);
}

frit_status fatal_check(frit_err *err)
{
    return atomic_load(&fatal.happened)
               ? fail(err, FRIT_UNSUPPORTED,
                      "LLVM is not used any more, since it reported a fatal error: %s", fatal.text)
               : FRIT_OK;
}

/* ---- a compile ---- */

static frit_status check_space(frit_err *err)
{
    void *space =
        mmap(NULL, compile_space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (space == MAP_FAILED)
        return fail(err, FRIT_NO_HOST_MEMORY, "LLVM is not started with less than %zu bytes free",
                    compile_space);
    (void)munmap(space, compile_space);
    return FRIT_OK;
}

static void *work(void *ctx)
{
    struct compile_thread *thread = ctx;

    current = thread;
    end(thread, thread->run(thread->ctx, &thread->err), false);
    return NULL;
}

static frit_status await(struct compile_thread *thread, pthread_t id, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&thread->lock);
    while (!thread->ended)
        pthread_cond_wait(&thread->ends, &thread->lock);
    pthread_mutex_unlock(&thread->lock);
    status = thread->status;
    if (status && err)
        *err = thread->err;
    if (thread->failed) { /* it has `thread` for ever */
        (void)pthread_detach(id);
        return status;
    }
    (void)pthread_join(id, NULL);
    pthread_cond_destroy(&thread->ends);
    pthread_mutex_destroy(&thread->lock);
    free(thread);
    return status;
}

frit_status fatal_run(frit_status (*run)(void *ctx, frit_err *err), void *ctx, frit_err *err)
{
    struct compile_thread *thread;
    pthread_t id;
    int error;

    TRY(check_space(err));
    thread = malloc(sizeof(*thread));
    if (!thread)
        return fail_memory(err, sizeof(*thread));
    *thread = (struct compile_thread){.run = run, .ctx = ctx, .err = ERR_INIT};
    pthread_mutex_init(&thread->lock, NULL);
    pthread_cond_init(&thread->ends, NULL);
    error = thread_start(&id, work, thread);
    if (!error)
        return await(thread, id, err);
    pthread_cond_destroy(&thread->ends);
    pthread_mutex_destroy(&thread->lock);
    free(thread);
    return fail(err, FRIT_NO_HOST_MEMORY, "the thread for a compile cannot be started: error %d",
                error);
}
