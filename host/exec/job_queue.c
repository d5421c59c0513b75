/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs are a list in order of arrival, which a free thread searches for the best job: there are at
 * most some hundreds, and each takes milliseconds. */
#include "exec/job_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/thread.h"
#include "exec/team.h"

enum { MAX_THREADS = 8, PROCESSORS_PER_THREAD = 2 };

struct job_thread {
    struct job_queue *queue;
    pthread_t thread;
    struct job *job; /* running job; guarded by the queue's lock; NULL once it has returned */
    const void *owner;
    bool busy; /* until the job's `end` has returned */
    id_t id;
    int priority; /* the program's, when the thread began */
    bool hurried; /* has the program's priority until the job has ended */
};

struct job_queue {
    uint32_t limit;
    int niceness;
    pthread_mutex_t lock;     /* guards the fields below */
    pthread_cond_t work;      /* signalled when a job can run, or when the queue ends */
    pthread_cond_t job_ended; /* signalled when a thread has finished a job */
    struct job *first, *last;
    struct job_thread threads[MAX_THREADS + 1];
    uint32_t n_queued;
    uint32_t n_threads, n_sleeping;
    uint32_t n_spare; /* threads that run a spare job */
    uint64_t last_id;
    bool ending;
};

uint32_t job_queue_limit(uint32_t processors)
{
    uint32_t limit = 1 + processors / PROCESSORS_PER_THREAD;

    return limit < MAX_THREADS ? limit : MAX_THREADS;
}

/* ---- the list; these functions require the lock ---- */

static void link_last(struct job_queue *queue, struct job *job)
{
    job->queued = true;
    job->prev = queue->last;
    job->next = NULL;
    *(queue->last ? &queue->last->next : &queue->first) = job;
    queue->last = job;
    queue->n_queued++;
}

static void unlink_job(struct job_queue *queue, struct job *job)
{
    *(job->prev ? &job->prev->next : &queue->first) = job->next;
    *(job->next ? &job->next->prev : &queue->last) = job->prev;
    job->prev = job->next = NULL;
    job->queued = false;
    queue->n_queued--;
}

static bool have_equal_keys(const struct job *a, const struct job *b)
{
    return a->key && b->key && a->key_bytes == b->key_bytes &&
           memcmp(a->key, b->key, a->key_bytes) == 0;
}

static bool equal_job_runs(const struct job_queue *queue, const struct job *job)
{
    for (uint32_t i = 0; i < queue->n_threads; i++) {
        if (queue->threads[i].job && have_equal_keys(queue->threads[i].job, job))
            return true;
    }
    return false;
}

static bool may_run(const struct job_queue *queue, const struct job *job)
{
    return (job->class == JOB_AWAITED || queue->n_spare < queue->limit) &&
           !equal_job_runs(queue, job);
}

static bool precedes(const struct job *a, const struct job *b)
{
    return a->class != b->class ? a->class > b->class : a->priority > b->priority;
}

static struct job *find_best(const struct job_queue *queue)
{
    struct job *best = NULL;

    for (struct job *job = queue->first; job; job = job->next) {
        if ((!best || precedes(job, best)) && may_run(queue, job))
            best = job;
    }
    return best;
}

static void raise_priority(struct job *job, uint64_t by)
{
    if (__builtin_add_overflow(job->priority, by, &job->priority))
        job->priority = UINT64_MAX;
}

/* Adds the new job's priority and class to the first queued job with an equal key. */
static void merge_with_equal(struct job_queue *queue, struct job *job)
{
    struct job *equal = queue->first;

    while (equal && !have_equal_keys(equal, job))
        equal = equal->next;
    job->joined = equal || equal_job_runs(queue, job);
    if (!equal)
        return;
    raise_priority(equal, job->priority);
    if (job->class > equal->class)
        equal->class = job->class;
}

/* ---- threads; the first two functions require the lock ---- */

static void yield(struct job_thread *thread)
{
    (void)setpriority(PRIO_PROCESS, thread->id, thread->priority + thread->queue->niceness);
    thread->hurried = false;
}

/* For somebody who waits for the thread's job: where other programs want the processors, too, it
 * would take ten times as long.  The system may refuse, unless the program is privileged. */
static void hurry(struct job_thread *thread)
{
    if (!thread->queue->niceness || thread->hurried)
        return;
    (void)setpriority(PRIO_PROCESS, thread->id, thread->priority);
    thread->hurried = true;
}

/* Requires the lock, which is released while the job runs. */
static void run_job(struct job_queue *queue, struct job_thread *self, struct job *job)
{
    bool spare = job->class == JOB_SPARE;

    unlink_job(queue, job);
    job->begun = true;
    self->job = job;
    self->owner = job->owner;
    self->busy = true;
    queue->n_spare += spare;
    pthread_mutex_unlock(&queue->lock);
    if (queue->niceness)
        team_lend_processor();
    job->run(job);
    if (queue->niceness)
        team_return_processor();
    pthread_mutex_lock(&queue->lock);
    self->job = NULL; /* from here on only its owner accesses it */
    queue->n_spare -= spare;
    if (queue->n_sleeping && queue->first)
        pthread_cond_broadcast(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    job->end(job);
    pthread_mutex_lock(&queue->lock);
    self->busy = false;
    if (self->hurried)
        yield(self);
    pthread_cond_broadcast(&queue->job_ended);
}

static void *work(void *ctx)
{
    struct job_thread *self = ctx;
    struct job_queue *queue = self->queue;

    pthread_mutex_lock(&queue->lock);
    self->id = (id_t)syscall(SYS_gettid);
    self->priority = getpriority(PRIO_PROCESS, self->id);
    if (queue->niceness)
        yield(self);
    while (!queue->ending) {
        struct job *job = find_best(queue);

        if (job) {
            run_job(queue, self, job);
            continue;
        }
        queue->n_sleeping++;
        pthread_cond_wait(&queue->work, &queue->lock);
        queue->n_sleeping--;
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static int start_thread(struct job_queue *queue)
{
    struct job_thread *thread = &queue->threads[queue->n_threads];
    int error;

    thread->queue = queue;
    error = thread_start(&thread->thread, work, thread);
    queue->n_threads += !error;
    return error;
}

/* Starts a thread for a new job if none sleeps and the limit allows it.  Fails only if there is no
 * thread at all. */
static frit_status need_thread(struct job_queue *queue, const struct job *job, frit_err *err)
{
    uint32_t limit = queue->limit + (job->class == JOB_AWAITED);
    int error;

    if (queue->n_sleeping > queue->n_queued || queue->n_threads >= limit)
        return FRIT_OK;
    error = start_thread(queue);
    return error && !queue->n_threads
               ? fail(err, FRIT_NO_HOST_MEMORY, "the background thread cannot be started: error %d",
                      error)
               : FRIT_OK;
}

/* ---- calls ---- */

frit_status job_queue_create(uint32_t limit, int niceness, struct job_queue **out, frit_err *err)
{
    struct job_queue *queue = calloc(1, sizeof(*queue));

    *out = queue;
    if (!queue)
        return fail_memory(err, sizeof(*queue));
    queue->limit = limit < MAX_THREADS ? limit : MAX_THREADS;
    queue->niceness = niceness;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->work, NULL);
    pthread_cond_init(&queue->job_ended, NULL);
    return FRIT_OK;
}

frit_status job_queue_add(struct job_queue *queue, struct job *job, uint64_t *id, frit_err *err)
{
    frit_status st;

    job->cancel = (frit_cancel){.struct_size = sizeof(job->cancel)};
    job->begun = false;
    pthread_mutex_lock(&queue->lock);
    st = need_thread(queue, job, err);
    if (!st) {
        job->id = ++queue->last_id;
        if (id)
            *id = job->id;
        merge_with_equal(queue, job);
        link_last(queue, job);
        pthread_cond_signal(&queue->work);
    }
    pthread_mutex_unlock(&queue->lock);
    return st;
}

void job_queue_raise(struct job_queue *queue, struct job *job, uint64_t by)
{
    pthread_mutex_lock(&queue->lock);
    if (job->queued)
        raise_priority(job, by);
    pthread_mutex_unlock(&queue->lock);
}

static void request_stop(struct job *job)
{
    __atomic_store_n(&job->cancel.requested, 1, __ATOMIC_RELAXED);
}

/* Requires the lock. */
static bool take(struct job_queue *queue, struct job *job)
{
    if (!job->queued)
        return false;
    unlink_job(queue, job);
    return true;
}

void job_queue_hurry(struct job_queue *queue, const struct job *job)
{
    pthread_mutex_lock(&queue->lock);
    for (uint32_t i = 0; i < queue->n_threads; i++) {
        if (queue->threads[i].job == job)
            hurry(&queue->threads[i]);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool job_queue_take(struct job_queue *queue, struct job *job)
{
    bool taken;

    pthread_mutex_lock(&queue->lock);
    taken = take(queue, job);
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

bool job_queue_cancel(struct job_queue *queue, struct job *job)
{
    bool taken;

    pthread_mutex_lock(&queue->lock);
    taken = take(queue, job);
    if (!taken)
        request_stop(job);
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

/* Returns NULL if the job has ended.  Requires the lock. */
static struct job *find_id(const struct job_queue *queue, const void *owner, uint64_t id)
{
    struct job *job = queue->first;

    while (job && (job->id != id || job->owner != owner))
        job = job->next;
    for (uint32_t i = 0; i < queue->n_threads && !job; i++) {
        struct job *running = queue->threads[i].job;

        if (running && running->id == id && running->owner == owner)
            job = running;
    }
    return job;
}

void job_queue_raise_id(struct job_queue *queue, const void *owner, uint64_t id, uint64_t by)
{
    struct job *job;

    pthread_mutex_lock(&queue->lock);
    job = find_id(queue, owner, id);
    if (job && job->queued)
        raise_priority(job, by);
    pthread_mutex_unlock(&queue->lock);
}

struct job *job_queue_cancel_id(struct job_queue *queue, const void *owner, uint64_t id)
{
    struct job *job;

    pthread_mutex_lock(&queue->lock);
    job = find_id(queue, owner, id);
    if (job && !take(queue, job)) {
        request_stop(job);
        job = NULL;
    }
    pthread_mutex_unlock(&queue->lock);
    return job;
}

static bool belongs_to(const void *job_owner, const void *owner)
{
    return !owner || job_owner == owner;
}

/* Requests running jobs of the owner to stop, soon; false: there are none.  Requires the lock. */
static bool stop_running(struct job_queue *queue, const void *owner)
{
    bool busy = false;

    for (uint32_t i = 0; i < queue->n_threads; i++) {
        struct job_thread *thread = &queue->threads[i];

        if (!thread->busy || !belongs_to(thread->owner, owner))
            continue;
        busy = true;
        hurry(thread);
        if (thread->job)
            request_stop(thread->job);
    }
    return busy;
}

/* Takes all queued jobs of the owner, in order.  Requires the lock. */
static struct job *take_all(struct job_queue *queue, const void *owner)
{
    struct job *taken = NULL, **end = &taken;

    for (struct job *job = queue->first, *next; job; job = next) {
        next = job->next;
        if (!belongs_to(job->owner, owner))
            continue;
        unlink_job(queue, job);
        *end = job;
        end = &job->next;
    }
    return taken;
}

void job_queue_cancel_all(struct job_queue *queue, const void *owner)
{
    struct job *taken;

    /* In one critical section, so that no thread starts one of them after another was cancelled. */
    pthread_mutex_lock(&queue->lock);
    taken = take_all(queue, owner);
    (void)stop_running(queue, owner);
    pthread_mutex_unlock(&queue->lock);
    for (struct job *job = taken, *next; job; job = next) {
        next = job->next;
        job->end(job);
    }
    pthread_mutex_lock(&queue->lock);
    while (stop_running(queue, owner))
        pthread_cond_wait(&queue->job_ended, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
}

void job_queue_destroy(struct job_queue *queue)
{
    if (!queue)
        return;
    job_queue_cancel_all(queue, NULL);
    pthread_mutex_lock(&queue->lock);
    queue->ending = true;
    pthread_cond_broadcast(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    for (uint32_t i = 0; i < queue->n_threads; i++)
        pthread_join(queue->threads[i].thread, NULL);
    pthread_cond_destroy(&queue->job_ended);
    pthread_cond_destroy(&queue->work);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}
