/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams beside one:
 *
 *   streams [--elements N] [--steps N] [--rounds N] [--device NAME] [--set SECTION.KEY=VALUE]...
 *
 * Each thread has a stream of its own and a chain of ops over f32 of its own: a step is 16 rounds
 * of tanh and a product, run by a flush.  Prints the steps per second of one thread and of two, and
 * the ratio, as medians over pairs.
 *
 * Needs nothing but libfrit: cc -O2 streams.c $(pkg-config --cflags --libs frit) -lpthread */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frit/frit.h>
#include <frit/ops.h>

enum { MAX_SETTINGS = 16, MAX_ROUNDS = 1000, OPS = 16 };

struct form {
    int64_t elements, steps, rounds;
    const char *device;
    frit_setting settings[MAX_SETTINGS];
    uint64_t n_settings;
};

static void misused(const char *about)
{
    fprintf(stderr, "streams: %s; see the top of its source\n", about);
    exit(2);
}

static int64_t number(const char *text, int64_t most)
{
    char *end;
    long long n = text ? strtoll(text, &end, 10) : 0;

    if (!text || *end || n < 1 || n > most)
        misused("wants a number");
    return n;
}

/* "SECTION.KEY=VALUE"; written into. */
static void add_setting(struct form *form, char *text)
{
    char *value = text ? strchr(text, '=') : NULL, *key;

    if (!value || form->n_settings == MAX_SETTINGS)
        misused("--set wants SECTION.KEY=VALUE");
    *value++ = 0;
    key = strrchr(text, '.');
    if (!key)
        misused("--set wants SECTION.KEY=VALUE");
    *key++ = 0;
    form->settings[form->n_settings++] = (frit_setting){text, key, value};
}

static void read_form(struct form *form, char **argv)
{
    while (*++argv) {
        const char *name = *argv;
        char *value = *++argv;

        if (strcmp(name, "--elements") == 0)
            form->elements = number(value, 1 << 28);
        else if (strcmp(name, "--steps") == 0)
            form->steps = number(value, 1 << 28);
        else if (strcmp(name, "--rounds") == 0)
            form->rounds = number(value, MAX_ROUNDS);
        else if (strcmp(name, "--set") == 0)
            add_setting(form, value);
        else if (value && strcmp(name, "--device") == 0)
            form->device = value;
        else
            misused(name);
    }
}

static void check(frit_status status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "streams: %s: %s\n", what, frit_status_name(status));
    exit(1);
}

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* ---- a stream's work ---- */

struct worker {
    const struct form *form;
    frit_device *device;
    pthread_barrier_t *begin;
    pthread_barrier_t *end;
    int64_t steps;
};

static void run_steps(frit_tensor **x, frit_tensor *w, frit_device *device, int64_t steps)
{
    for (int64_t step = 0; step < steps; step++) {
        for (int i = 0; i < OPS; i++) {
            frit_tensor *bent = frit_tanh(*x), *next = frit_mul(bent, w);

            frit_release(bent);
            frit_release(*x);
            *x = next;
        }
        check(frit_flush(device, NULL), "flush");
    }
}

static void *work(void *arg)
{
    const struct worker *worker = arg;
    int64_t n = worker->form->elements;
    float *data = malloc((size_t)n * sizeof(*data));
    frit_tensor *x, *w;

    for (int64_t i = 0; data && i < n; i++)
        data[i] = (float)(i % 1000) / 500;
    x = frit_from_host(worker->device, FRIT_F32, FRIT_SHAPE(n), data, (uint64_t)n * 4);
    w = frit_from_host(worker->device, FRIT_F32, FRIT_SHAPE(n), data, (uint64_t)n * 4);
    run_steps(&x, w, worker->device, 20); /* until plans and programs are there */
    check(frit_sync(worker->device, NULL), "sync");
    pthread_barrier_wait(worker->begin);
    run_steps(&x, w, worker->device, worker->steps);
    check(frit_sync(worker->device, NULL), "sync");
    pthread_barrier_wait(worker->end);
    frit_release(x);
    frit_release(w);
    free(data);
    return NULL;
}

/* Steps per second of this many threads together. */
static double rate(const struct form *form, frit_device *device, unsigned threads)
{
    pthread_barrier_t begin, end;
    struct worker worker = {form, device, &begin, &end, form->steps};
    pthread_t thread[2];
    double begun;

    pthread_barrier_init(&begin, NULL, threads + 1);
    pthread_barrier_init(&end, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++)
        check(pthread_create(&thread[i], NULL, work, &worker) ? FRIT_IO : FRIT_OK, "a thread");
    pthread_barrier_wait(&begin);
    begun = now();
    pthread_barrier_wait(&end);
    begun = now() - begun;
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&begin);
    pthread_barrier_destroy(&end);
    return (double)threads * (double)form->steps / begun;
}

static int larger(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof(*values), larger);
    return values[n / 2];
}

int main(int argc, char **argv)
{
    struct form form = {.elements = 16384, .steps = 200, .rounds = 9, .device = "cpu:0"};
    double one[MAX_ROUNDS], two[MAX_ROUNDS], ratio[MAX_ROUNDS];
    frit_host_params params = {.struct_size = sizeof(params)};
    frit_device *device = NULL;
    frit_host *host = NULL;

    (void)argc;
    read_form(&form, argv);
    params.settings = form.settings;
    params.n_settings = form.n_settings;
    check(frit_host_open(&params, &host, NULL), "host");
    check(frit_device_open(host, form.device, &device, NULL), form.device);
    for (int64_t i = 0; i < form.rounds; i++) {
        one[i] = rate(&form, device, 1);
        two[i] = rate(&form, device, 2);
        ratio[i] = two[i] / one[i];
    }
    printf("streams  %s  %lld elements  one %.0f steps/s  two %.0f steps/s  ratio %.2f\n",
           frit_device_name(device), (long long)form.elements, median(one, form.rounds),
           median(two, form.rounds), median(ratio, form.rounds));
    frit_device_close(device);
    frit_host_close(host);
    return 0;
}
