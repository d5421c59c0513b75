/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share tensors for a given time:
 *
 *   stress [--seconds N] [--devices 1|2] [--threads N] [--seed N] [--plugin FUSERS.so]
 *
 * Each thread has a few tensors and does one random step after the other: ops, scopes, reads,
 * drains, moves to the other device, streams of its own; it hands tensors to a board, pending or
 * not, and takes what others left there.  Threads end anew and again, with ops still queued.
 * Element i of every tensor is scale * (i + 1) + shift, small whole numbers, so that each read is
 * checked exactly; a tensor that all write is checked to be one of the writes, whole.  At the end
 * nothing may be left. Both devices are `reference`, in hosts of their own. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frit/frit.h>
#include <frit/inspect.h>

enum { POOL = 6, BOARD = 16, STREAMS = 3, MOST = 40, MAX_THREADS = 64, MAX_DEVICES = 2 };
enum { LARGEST = 4096, PATIENCE_SECONDS = 120 };

/* One owner of a tensor, and what it holds. */
struct item {
    frit_tensor *tensor;
    int device;
    int64_t n;
    int scale, shift;
};

static struct {
    int seconds, n_devices, n_threads;
    unsigned seed;
    const char *plugin;
    frit_host *host[MAX_DEVICES];
    frit_device *device[MAX_DEVICES];
    frit_tensor *written[MAX_DEVICES]; /* by all, each time with one number */
    _Atomic(struct item *) board[BOARD];
    _Atomic(frit_stream *) streams[MAX_DEVICES][STREAMS]; /* taken out while a thread has it */
    atomic_int failures;
    atomic_bool over;
    atomic_ulong steps, threads;
} all = {.seconds = 3, .n_devices = 1, .n_threads = 8, .seed = 1};

struct worker {
    unsigned random;
    int life; /* steps until it ends */
    struct item pool[POOL];
    frit_stream *stream; /* entered, on `device` */
    int device;
};

struct post {
    pthread_t thread;
    unsigned seed;
    atomic_bool ended;
};

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...)
{
    va_list args;

    if (atomic_fetch_add(&all.failures, 1) >= 10)
        return;
    va_start(args, format);
    flockfile(stderr);
    fputs("stress: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(args);
}

static unsigned pick(struct worker *w, unsigned n)
{
    return (unsigned)rand_r(&w->random) % n;
}

static void expect_ok(frit_status status, const frit_err *err, const char *what)
{
    if (status)
        complain("%s: %s", what, err->text);
}

/* ---- items ---- */

static struct item fresh(struct worker *w)
{
    struct item item = {.device = (int)pick(w, (unsigned)all.n_devices),
                        .n = pick(w, 2) ? 8 : MOST,
                        .scale = (int)pick(w, 3) + 1,
                        .shift = (int)pick(w, 7) - 3};
    float data[MOST];

    for (int i = 0; i < item.n; i++)
        data[i] = (float)(item.scale * (i + 1) + item.shift);
    item.tensor = frit_from_host(all.device[item.device], FRIT_F32, FRIT_SHAPE(item.n), data,
                                 (uint64_t)item.n * sizeof(float));
    return item;
}

static void check(const struct item *item, const float *data)
{
    for (int i = 0; i < item->n; i++) {
        float right = (float)(item->scale * (i + 1) + item->shift);

        if (data[i] == right)
            continue;
        complain("element %d of %d is %g, not %g", i, (int)item->n, (double)data[i], (double)right);
        return;
    }
}

/* `tensor`: that of the item, or a take of it. */
static void read_item(const struct item *item, frit_tensor *tensor)
{
    frit_status status;
    float data[MOST];

    status = frit_read(tensor, data, (uint64_t)item->n * sizeof(float), NULL);
    if (status)
        complain("read: %s", frit_status_name(status));
    else
        check(item, data);
}

static void set(struct item *item, struct item next)
{
    frit_release(item->tensor);
    *item = next;
    if (abs(item->scale) + abs(item->shift) > LARGEST) { /* stays exact: one more op, then anew */
        item->scale = 0;
        item->shift = 1;
        item->tensor = frit_add_f(frit_take(frit_mul_f(frit_take(item->tensor), 0)), 1);
    }
}

static struct item scaled(const struct item *from, frit_tensor *operand, int by)
{
    struct item to = *from;

    to.tensor = frit_mul_f(operand, by);
    to.scale *= by;
    to.shift *= by;
    return to;
}

static struct item shifted(const struct item *from, frit_tensor *operand, int by)
{
    struct item to = *from;

    to.tensor = frit_add_f(operand, by);
    to.shift += by;
    return to;
}

/* ---- steps ---- */

static void step_map(struct worker *w, struct item *a)
{
    int by = (int)pick(w, 5) - 2;

    set(a, pick(w, 2) ? scaled(a, a->tensor, by) : shifted(a, a->tensor, by));
}

static void step_map_taken(struct worker *w, struct item *a)
{
    struct item from = *a;

    a->tensor = NULL;
    set(a, pick(w, 2) ? scaled(&from, frit_take(from.tensor), -1)
                      : shifted(&from, frit_take(from.tensor), 3));
}

static void step_two(struct worker *w, struct item *a)
{
    struct item *b = &w->pool[pick(w, POOL)], to = *a;

    if (b->device != a->device || b->n != a->n)
        return;
    to.tensor = frit_sub(a->tensor, b->tensor);
    to.scale -= b->scale;
    to.shift -= b->shift;
    set(a, to);
}

static void step_scope(struct worker *w, struct item *a)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_scope scope = frit_scope_begin(all.device[a->device]), inner;
    struct item y = scaled(a, a->tensor, 2), z;

    frit_neg(y.tensor); /* nobody wants it */
    inner = frit_scope_begin(all.device[a->device]);
    z = shifted(&y, y.tensor, -1);
    if (pick(w, 8) == 0)
        read_item(&z, z.tensor);
    if (pick(w, 8) == 0)
        expect_ok(frit_flush(all.device[a->device], &err), &err, "flush");
    z = shifted(&z, z.tensor, 2);
    frit_keep(z.tensor);
    frit_scope_end(inner);
    frit_keep(z.tensor);
    frit_scope_end(scope);
    set(a, z);
}

static void step_read(struct worker *w, struct item *a)
{
    if (pick(w, 2)) {
        read_item(a, a->tensor);
        return;
    }
    read_item(a, frit_take(a->tensor));
    *a = fresh(w);
}

static void step_read_many(struct worker *w, struct item *a)
{
    frit_read_item reads[POOL];
    float data[POOL][MOST];

    (void)a;
    for (int i = 0; i < POOL; i++)
        reads[i] = (frit_read_item){.tensor = w->pool[i].tensor,
                                    .data = data[i],
                                    .bytes = (uint64_t)w->pool[i].n * sizeof(float)};
    if (frit_read_many(reads, POOL, NULL)) {
        complain("read_many failed");
        return;
    }
    for (int i = 0; i < POOL; i++)
        check(&w->pool[i], data[i]);
}

static void step_sum(struct worker *w, struct item *a)
{
    int n = (int)a->n, right = a->scale * n * (n + 1) / 2 + a->shift * n;
    float sum = 0;

    if (frit_read(frit_take(frit_sum(a->tensor, .axes = FRIT_AXES(0))), &sum, sizeof(sum), NULL) ||
        sum != (float)right)
        complain("the sum is %g, not %d", (double)sum, right);
    (void)w;
}

static void step_view(struct worker *w, struct item *a)
{
    struct item part = *a;

    part.n = a->n / 2; /* the upper half, turned round and back */
    part.shift += (int)part.n * a->scale;
    part.tensor = frit_flip(frit_take(frit_slice(a->tensor, FRIT_SLICES({part.n, a->n, 1}))),
                            .axes = FRIT_AXES(0));
    part.tensor = frit_flip(frit_take(part.tensor), .axes = FRIT_AXES(0));
    if (pick(w, 2))
        part = shifted(&part, frit_take(part.tensor), 1);
    read_item(&part, frit_take(part.tensor));
}

static void step_move(struct worker *w, struct item *a)
{
    struct item to = *a;

    to.device = (int)pick(w, (unsigned)all.n_devices);
    to.tensor = frit_to_device(a->tensor, all.device[to.device]);
    set(a, to);
}

/* One writes, or looks at, what all write. */
static void step_write(struct worker *w, struct item *a)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *tensor = all.written[a->device], *seen = NULL;
    float data[MOST];

    for (int i = 0; i < MOST; i++)
        data[i] = (float)w->random;
    if (pick(w, 2))
        expect_ok(frit_write(tensor, data, sizeof(data), &err), &err, "write");
    if (pick(w, 2))
        tensor = seen = frit_neg(tensor);
    expect_ok(frit_read(tensor, data, sizeof(data), &err), &err, "read");
    frit_release(seen);
    for (int i = 1; i < MOST; i++) {
        if (data[i] != data[0])
            complain("half a write is seen");
    }
}

static void step_drain(struct worker *w, struct item *a)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_stats stats = {.struct_size = sizeof(stats)};
    frit_device *device = all.device[a->device];
    unsigned what = pick(w, 32);

    if (what < 16)
        expect_ok(frit_flush(device, &err), &err, "flush");
    else if (what < 30)
        expect_ok(frit_sync(device, &err), &err, "sync");
    else if (what < 31)
        expect_ok(frit_sync_all(device, &err), &err, "sync_all");
    else
        frit_trim(device);
    frit_stats_get(device, &stats);
}

/* ---- what others see ---- */

/* Whoever takes it out releases it. */
static void put(struct worker *w, struct item item)
{
    struct item *box = malloc(sizeof(*box)), *old;

    if (!box)
        abort();
    *box = item;
    old = atomic_exchange(&all.board[pick(w, BOARD)], box);
    if (!old)
        return;
    if (pick(w, 2))
        read_item(old, old->tensor);
    frit_release(old->tensor);
    free(old);
}

static void step_put(struct worker *w, struct item *a)
{
    put(w, *a);
    *a = fresh(w);
}

/* Both go on using it. */
static void step_share(struct worker *w, struct item *a)
{
    struct item shared = *a;

    frit_ref(shared.tensor);
    put(w, shared);
}

static void step_get(struct worker *w, struct item *a)
{
    struct item *box = atomic_exchange(&all.board[pick(w, BOARD)], NULL);

    if (!box)
        return;
    set(a, *box);
    free(box);
}

/* ---- streams ---- */

static void leave_stream(struct worker *w)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_stream *left = NULL;

    if (!w->stream)
        return;
    expect_ok(frit_stream_enter(all.device[w->device], NULL, &left, &err), &err, "leave");
    if (left != w->stream)
        complain("another stream was entered");
    if (pick(w, 4) == 0) {
        expect_ok(frit_stream_close(left, &err), &err, "stream_close");
        (void)!frit_stream_open(all.device[w->device], &left, NULL);
    }
    left = atomic_exchange(&all.streams[w->device][pick(w, STREAMS)], left);
    if (left)
        expect_ok(frit_stream_close(left, &err), &err, "stream_close");
    w->stream = NULL;
}

static void step_stream(struct worker *w, struct item *a)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device *device = all.device[a->device];

    leave_stream(w);
    w->device = a->device;
    w->stream = atomic_exchange(&all.streams[a->device][pick(w, STREAMS)], NULL);
    if (!w->stream)
        (void)!frit_stream_open(device, &w->stream, NULL);
    expect_ok(frit_stream_enter(device, w->stream, NULL, &err), &err, "enter");
}

static void (*const steps[])(struct worker *w, struct item *a) = {
    step_map,   step_map,  step_map,   step_map_taken, step_map_taken, step_two,    step_two,
    step_scope, step_put,  step_share, step_get,       step_get,       step_read,   step_read_many,
    step_sum,   step_view, step_move,  step_write,     step_drain,     step_stream,
};

/* ---- threads ---- */

static void *work(void *arg)
{
    struct post *post = arg;
    struct worker w = {.random = post->seed};
    unsigned long done = 0;

    w.life = 20 + (int)pick(&w, 2000);
    for (int i = 0; i < POOL; i++)
        w.pool[i] = fresh(&w);
    for (; w.life > 0 && !atomic_load(&all.over); w.life--, done++)
        steps[pick(&w, sizeof(steps) / sizeof(steps[0]))](&w, &w.pool[pick(&w, POOL)]);
    leave_stream(&w);
    for (int i = 0; i < POOL; i++) { /* what is queued stays behind */
        if (pick(&w, 2))
            put(&w, w.pool[i]);
        else
            frit_release(w.pool[i].tensor);
    }
    atomic_fetch_add(&all.steps, done);
    atomic_store(&post->ended, true);
    return NULL;
}

static void start(struct post *post)
{
    post->seed = all.seed + (unsigned)atomic_fetch_add(&all.threads, 1) * 7919;
    atomic_store(&post->ended, false);
    if (pthread_create(&post->thread, NULL, work, post)) {
        perror("stress: pthread_create");
        exit(2);
    }
}

static double seconds_since(const struct timespec *begin)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) * 1e-9;
}

/* Whoever ends is followed by another one. */
static void run_threads(void)
{
    static struct post posts[MAX_THREADS];
    static const struct timespec moment = {0, 1000000};
    struct timespec begin;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < all.n_threads; i++)
        start(&posts[i]);
    while (seconds_since(&begin) < all.seconds && !atomic_load(&all.failures)) {
        nanosleep(&moment, NULL);
        for (int i = 0; i < all.n_threads; i++) {
            if (!atomic_load(&posts[i].ended))
                continue;
            pthread_join(posts[i].thread, NULL);
            start(&posts[i]);
        }
    }
    atomic_store(&all.over, true);
    for (int i = 0; i < all.n_threads; i++)
        pthread_join(posts[i].thread, NULL);
}

/* ---- devices ---- */

static bool open_device(int d)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {{"fusion", "store", "none"},
                                     {"plugin.org.frit.blocks", "library", all.plugin}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = all.plugin ? 2 : 1};
    const float zeros[MOST] = {0};

    if (frit_host_open(&params, &all.host[d], &err) ||
        frit_device_open(all.host[d], "reference:0", &all.device[d], &err)) {
        fprintf(stderr, "stress: %s\n", err.text);
        return false;
    }
    all.written[d] =
        frit_from_host(all.device[d], FRIT_F32, FRIT_SHAPE(MOST), zeros, sizeof(zeros));
    return true;
}

static void empty_board(void)
{
    for (int i = 0; i < BOARD; i++) {
        struct item *box = atomic_exchange(&all.board[i], NULL);

        if (!box)
            continue;
        read_item(box, frit_take(box->tensor));
        free(box);
    }
}

static void close_device(int d)
{
    frit_err err = {.struct_size = sizeof(err)};
    char *left = NULL;

    for (int i = 0; i < STREAMS; i++)
        expect_ok(frit_stream_close(atomic_exchange(&all.streams[d][i], NULL), &err), &err,
                  "stream_close");
    frit_release(all.written[d]);
    expect_ok(frit_sync_all(all.device[d], &err), &err, "sync_all");
    if (frit_leaks(all.device[d], &left))
        complain("%s is left", left);
    frit_free(left);
    frit_device_close(all.device[d]);
    frit_host_close(all.host[d]);
}

static bool read_options(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seconds"))
            all.seconds = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--devices"))
            all.n_devices = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--threads"))
            all.n_threads = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--seed"))
            all.seed = (unsigned)atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--plugin"))
            all.plugin = argv[i + 1];
        else
            return false;
    }
    return argc % 2 && all.seconds > 0 && all.n_devices > 0 && all.n_devices <= MAX_DEVICES &&
           all.n_threads > 0 && all.n_threads <= MAX_THREADS;
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) {
        fputs("usage: stress [--seconds N] [--devices 1|2] [--threads N] [--seed N]"
              " [--plugin FUSERS.so]\n",
              stderr);
        return 2;
    }
    alarm((unsigned)all.seconds + PATIENCE_SECONDS); /* who hangs is ended */
    for (int d = 0; d < all.n_devices; d++) {
        if (!open_device(d))
            return 2;
    }
    run_threads();
    empty_board();
    for (int d = all.n_devices - 1; d >= 0; d--)
        close_device(d);
    printf("stress: %d s, %d devices, %lu threads, %lu steps, %d failures\n", all.seconds,
           all.n_devices, atomic_load(&all.threads), atomic_load(&all.steps),
           atomic_load(&all.failures));
    return atomic_load(&all.failures) != 0;
}
