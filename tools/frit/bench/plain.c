/* SPDX-License-Identifier: Apache-2.0 */
/* Threads meet at a barrier before and after each round, so that a round is memory and nothing
 * else.  Each touches its part of the memory first. */
#include "bench/plain.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "bench/bench.h"

enum { MAX_THREADS = 256, ROUNDS = 12, LARGE_PAGE = 1 << 21, WIDE = 32 };

enum way { WAY_COPY, WAY_STREAM, WAY_READ, WAYS };

struct crew {
    pthread_mutex_t gate;
    pthread_barrier_t meet;
    float *from, *to;
    size_t part;  /* elements of each */
    double moved; /* bytes of a round, times nanoseconds of a second */
    double best[WAYS];
};

struct plain_worker {
    struct crew *crew;
    pthread_t thread;
    uint32_t number;
    float sum; /* keeps reads alive */
};

static void stream_copy(float *to, const float *from, size_t count)
{
#ifdef __SSE__
    for (size_t i = 0; i < count; i += 4)
        _mm_stream_ps(to + i, _mm_load_ps(from + i));
    _mm_sfence();
#else
    memcpy(to, from, count * sizeof(float));
#endif
}

static float sum_of(const float *from, size_t count)
{
    float sums[WIDE] = {0}, sum = 0;

    for (size_t i = 0; i < count; i += WIDE)
        for (size_t k = 0; k < WIDE; k++)
            sums[k] += from[i + k];
    for (size_t k = 0; k < WIDE; k++)
        sum += sums[k];
    return sum;
}

static void *work(void *ctx)
{
    struct plain_worker *w = ctx;
    struct crew *crew = w->crew;
    float *from, *to;

    pthread_mutex_lock(&crew->gate);
    pthread_mutex_unlock(&crew->gate);
    from = crew->from + w->number * crew->part;
    to = crew->to + w->number * crew->part;
    memset(from, 0, crew->part * sizeof(float));
    memset(to, 0, crew->part * sizeof(float));
    for (int i = 0; i < ROUNDS * WAYS; i++) {
        uint64_t begun;
        double rate;

        pthread_barrier_wait(&crew->meet);
        begun = bench_now();
        if (i % WAYS == WAY_COPY)
            memcpy(to, from, crew->part * sizeof(float));
        else if (i % WAYS == WAY_STREAM)
            stream_copy(to, from, crew->part);
        else
            w->sum += sum_of(from, crew->part);
        pthread_barrier_wait(&crew->meet);
        rate = 1 / (double)(bench_now() - begun);
        if (w->number == 0 && rate > crew->best[i % WAYS])
            crew->best[i % WAYS] = rate;
    }
    return NULL;
}

static uint32_t processors(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set))
        return 1;
    return CPU_COUNT(&set) < MAX_THREADS ? (uint32_t)CPU_COUNT(&set) : MAX_THREADS;
}

/* As many as can be made; they begin when it is known how many. */
static void run(struct crew *crew, size_t count, uint32_t wanted)
{
    struct plain_worker *workers = calloc(wanted, sizeof(*workers));
    uint32_t n = 1;

    if (!workers)
        return;
    pthread_mutex_lock(&crew->gate);
    for (uint32_t i = 0; i < wanted; i++)
        workers[i] = (struct plain_worker){.crew = crew, .number = i};
    while (n < wanted && !pthread_create(&workers[n].thread, NULL, work, &workers[n]))
        n++;
    crew->part = count / n / WIDE * WIDE;
    crew->moved = 1e9 * (double)(crew->part * n) * sizeof(float);
    pthread_barrier_init(&crew->meet, NULL, n);
    pthread_mutex_unlock(&crew->gate);
    work(&workers[0]);
    for (uint32_t i = 1; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&crew->meet);
    free(workers);
}

struct plain plain_measure(size_t count)
{
    struct crew crew = {.gate = PTHREAD_MUTEX_INITIALIZER};
    size_t bytes = (count * sizeof(float) + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    double copy;

    crew.from = aligned_alloc(LARGE_PAGE, bytes);
    crew.to = aligned_alloc(LARGE_PAGE, bytes);
    if (crew.from && crew.to)
        run(&crew, count, processors());
    free(crew.from);
    free(crew.to);
    copy =
        crew.best[WAY_COPY] > crew.best[WAY_STREAM] ? crew.best[WAY_COPY] : crew.best[WAY_STREAM];
    return (struct plain){.copy = 2 * crew.moved * copy, .read = crew.moved * crew.best[WAY_READ]};
}
