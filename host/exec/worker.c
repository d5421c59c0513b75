/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/worker.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/thread.h"

struct worker_job {
    struct worker_job *next;
    void (*fn)(void *ctx);
    void *ctx;
};

struct worker {
    pthread_mutex_t lock;
    pthread_cond_t work; /* signalled when a job is added, or when the worker ends */
    pthread_cond_t idle; /* signalled when the list becomes empty */
    pthread_t thread;
    struct worker_job *first, **last; /* the running job stays first */
    bool started, ending;
};

static void *work(void *ctx)
{
    struct worker *worker = ctx;

    pthread_mutex_lock(&worker->lock);
    for (;;) {
        struct worker_job *job = worker->first;

        if (!job && worker->ending)
            break;
        if (!job) {
            pthread_cond_wait(&worker->work, &worker->lock);
            continue;
        }
        pthread_mutex_unlock(&worker->lock);
        job->fn(job->ctx);
        pthread_mutex_lock(&worker->lock);
        worker->first = job->next;
        if (!worker->first) {
            worker->last = &worker->first;
            pthread_cond_broadcast(&worker->idle);
        }
        free(job);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static frit_status start(struct worker *worker, frit_err *err)
{
    int error;

    error = thread_start(&worker->thread, work, worker);
    if (error)
        return fail(err, FRIT_NO_HOST_MEMORY, "the background thread cannot be started: error %d",
                    error);
    worker->started = true;
    return FRIT_OK;
}

frit_status worker_create(struct worker **out, frit_err *err)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    *out = worker;
    if (!worker)
        return fail_memory(err, sizeof(*worker));
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->work, NULL);
    pthread_cond_init(&worker->idle, NULL);
    worker->last = &worker->first;
    return FRIT_OK;
}

frit_status worker_spawn(struct worker *worker, void (*fn)(void *ctx), void *ctx, frit_err *err)
{
    struct worker_job *job = malloc(sizeof(*job));
    frit_status status = FRIT_OK;

    if (!job)
        return fail_memory(err, sizeof(*job));
    *job = (struct worker_job){.fn = fn, .ctx = ctx};
    pthread_mutex_lock(&worker->lock);
    if (!worker->started)
        status = start(worker, err);
    if (!status) {
        *worker->last = job;
        worker->last = &job->next;
        pthread_cond_signal(&worker->work);
    }
    pthread_mutex_unlock(&worker->lock);
    if (status)
        free(job);
    return status;
}

void worker_wait(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (worker->first)
        pthread_cond_wait(&worker->idle, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

void worker_destroy(struct worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->ending = true;
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->lock);
    if (worker->started)
        pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->idle);
    pthread_cond_destroy(&worker->work);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}
