/* SPDX-License-Identifier: Apache-2.0 */
/* `frit bench DEVICE`: how near to the device's limit ops run that are written one by one.
 *
 * A row is queued several times and waited for once, so that what is measured is the device and not
 * the way there; the figure is the median over rounds.  The limit is what the same device copies in
 * the same mode, and, of processors, what plain threads copy and read in the same run, if that is
 * more.  Each round takes fresh rows A, B, A, B with the limit, so that both drift alike. */
#include "bench_device.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_plot.h"

enum {
    COLUMNS = 4096,
    MOST_ROUNDS = 64,
    IN_QUEUE_NS = 100000000,
    MOST_IN_QUEUE = 64,
    MOST_THREADS = 64
};

struct stage {
    const struct bench *bench;
    frit_host *host;
    frit_device *device;
    frit_device_desc desc;
    struct bench_data data;
    double copy_limit, read_limit; /* bytes per second */
};

/* ---- the stage ---- */

static int find_desc(struct stage *stage, const char *name)
{
    uint64_t i = 0;

    for (;; i++) {
        stage->desc.struct_size = sizeof(stage->desc);
        if (frit_device_at(stage->host, i, &stage->desc))
            return misused(stage->bench->in,
                           "no suite '%s' here; there is: overhead, and each usable device of "
                           "`frit devices`",
                           name);
        if (strncmp(stage->desc.name, name, strlen(name)) == 0 && stage->desc.reason == 0)
            return CLI_FINE;
    }
}

static frit_tensor *matrix(const struct stage *stage, int64_t rows, int64_t columns)
{
    return frit_random_uniform(stage->device, FRIT_F32, FRIT_SHAPE(rows, columns), 0.5, 1.5);
}

/* Processors are measured with 64 MiB, others with 1 GiB; rows have 4096 columns. */
static int64_t side_of(const struct stage *stage)
{
    if (stage->bench->side)
        return stage->bench->side;
    if (strcmp(stage->desc.type, "processor") == 0)
        return 4096;
    return strcmp(stage->desc.type, "software") == 0 ? 512 : 16384;
}

static int stage_open(struct stage *stage, const struct bench *bench, const char *name)
{
    const frit_setting settings[] = {{"fusion", "compile", "wait"}};
    frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 1};
    int status;

    *stage = (struct stage){.bench = bench};
    if (frit_host_open(&params, &stage->host))
        return failed(bench->in, "%s",
                      stage->host ? frit_host_error(stage->host) : "no memory for a host");
    status = find_desc(stage, name);
    if (status != CLI_FINE)
        return status;
    if (frit_device_open(stage->host, stage->desc.name, &stage->device))
        return failed(bench->in, "%s", frit_host_error(stage->host));
    stage->data.side = side_of(stage);
    stage->data.columns = stage->data.side < COLUMNS ? stage->data.side : COLUMNS;
    stage->data.rows = stage->data.side * stage->data.side / stage->data.columns;
    stage->data.x = matrix(stage, stage->data.rows, stage->data.columns);
    stage->data.y = matrix(stage, stage->data.rows, stage->data.columns);
    stage->data.yt = matrix(stage, stage->data.columns, stage->data.rows);
    stage->data.row = matrix(stage, 1, stage->data.columns);
    stage->data.column = matrix(stage, stage->data.rows, 1);
    return CLI_FINE;
}

static void stage_close(struct stage *stage)
{
    frit_release(stage->data.x);
    frit_release(stage->data.y);
    frit_release(stage->data.yt);
    frit_release(stage->data.row);
    frit_release(stage->data.column);
    frit_host_close(stage->host);
}

/* ---- plain threads ---- */

struct stream {
    float *from, *to;
    size_t count;
    float sum;
    bool reads;
};

static void *stream_main(void *ctx)
{
    struct stream *s = ctx;
    float sums[16] = {0};

    if (!s->reads) {
        memcpy(s->to, s->from, s->count * sizeof(float));
        return NULL;
    }
    for (size_t i = 0; i + 16 <= s->count; i += 16)
        for (size_t k = 0; k < 16; k++)
            sums[k] += s->from[i + k];
    for (size_t k = 0; k < 16; k++)
        s->sum += sums[k];
    return NULL;
}

/* Nanoseconds that all threads together take. */
static double stream_once(float *from, float *to, size_t count, uint32_t n, bool reads)
{
    pthread_t threads[MOST_THREADS];
    struct stream streams[MOST_THREADS];
    uint64_t begun = bench_now();

    for (uint32_t i = 0; i < n; i++) {
        size_t part = count / n / 16 * 16;

        streams[i] = (struct stream){from + i * part, to + i * part, part, 0, reads};
        if (i && pthread_create(&threads[i], NULL, stream_main, &streams[i]))
            return -1;
    }
    stream_main(&streams[0]);
    for (uint32_t i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    return (double)(bench_now() - begun);
}

static uint32_t processors(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set))
        return 1;
    return CPU_COUNT(&set) < MOST_THREADS ? (uint32_t)CPU_COUNT(&set) : MOST_THREADS;
}

/* Raises the limits to what plain threads reach with as much memory. */
static void raise_limits(struct stage *stage)
{
    size_t count = (size_t)(stage->data.side * stage->data.side), bytes = count * sizeof(float);
    float *from = aligned_alloc(1 << 21, (bytes + (1 << 21)) & ~(((size_t)1 << 21) - 1));
    float *to = aligned_alloc(1 << 21, (bytes + (1 << 21)) & ~(((size_t)1 << 21) - 1));
    uint32_t n = processors();

    if (from && to) {
        memset(from, 1, bytes);
        memset(to, 1, bytes);
        for (int i = 0; i < 9; i++) {
            double copy = 2e9 * (double)bytes / stream_once(from, to, count, n, false);
            double read = 1e9 * (double)bytes / stream_once(from, to, count, n, true);

            stage->copy_limit = copy > stage->copy_limit ? copy : stage->copy_limit;
            stage->read_limit = read > stage->read_limit ? read : stage->read_limit;
        }
    }
    free(from);
    free(to);
}

/* ---- rows ---- */

/* Runs the work `n` times and waits; nanoseconds of each, below 0 after a failure. */
static double run_once(const struct stage *stage, const struct bench_work *work, uint32_t n)
{
    uint64_t begun = bench_now();

    for (uint32_t i = 0; i < n; i++) {
        frit_tensor *result = work->run(&stage->data);
        frit_status status = frit_flush(stage->device);

        frit_release(result);
        if (status)
            return -1;
    }
    return frit_sync(stage->device) ? -1 : (double)(bench_now() - begun) / n;
}

/* How often a work goes into one queue: what takes about IN_QUEUE_NS. */
static uint32_t queue_length(const struct stage *stage, const struct bench_work *work)
{
    double once = 0;

    for (int i = 0; i < 3; i++)
        once = run_once(stage, work, 1);
    if (once <= 0)
        return 1;
    once = IN_QUEUE_NS / once;
    return once < 1 ? 1 : once > MOST_IN_QUEUE ? MOST_IN_QUEUE : (uint32_t)once;
}

/* Medians in turn with the copy; bytes per second, below 0 after a failure. */
static double measure(const struct stage *stage, const struct bench_work *work, double *limit)
{
    double ours[MOST_ROUNDS], copies[MOST_ROUNDS];
    uint32_t rounds =
        stage->bench->rounds < MOST_ROUNDS ? (uint32_t)stage->bench->rounds : MOST_ROUNDS;
    uint32_t n = queue_length(stage, work), n_copy = queue_length(stage, &bench_works[0]);
    double bytes = (double)(stage->data.side * stage->data.side) * sizeof(float);

    for (uint32_t i = 0; i < rounds; i++) {
        ours[i] = run_once(stage, work, n);
        copies[i] = run_once(stage, &bench_works[0], n_copy);
        if (ours[i] < 0 || copies[i] < 0)
            return -1;
    }
    *limit = 2e9 * bytes / bench_median(copies, rounds);
    return 1e9 * bytes * (work->reads + work->writes) / bench_median(ours, rounds);
}

static int run_row(const struct stage *stage, const struct bench_work *work, struct plot *plot)
{
    bool processor = strcmp(stage->desc.type, "processor") == 0;
    double plain = work->limit == LIMIT_READ ? stage->read_limit : stage->copy_limit;
    double limit, rate = measure(stage, work, &limit);
    char what[96];
    struct bench_row row = {.suite = "device",
                            .row = work->name,
                            .what = what,
                            .device = stage->desc.name,
                            .n_figures = 2};

    if (rate < 0)
        return failed(stage->bench->in, "%s: %s", work->name, frit_host_error(stage->host));
    limit = plain > limit ? plain : limit;
    snprintf(what, sizeof(what), "%s, %" PRId64 " x %" PRId64 " f32", work->what, stage->data.rows,
             stage->data.columns);
    row.figures[0] = (struct bench_figure){"gb_per_s", "GB/s", rate * 1e-9, 0, false};
    row.figures[1] = (struct bench_figure){"ratio", "of the limit", rate / limit,
                                           processor ? work->target : 0, true};
    bench_print(stage->bench, &row);
    plot_add(plot, work->name, rate / limit);
    return CLI_FINE;
}

int bench_device(const struct bench *bench, const char *name)
{
    struct plot plot = {.title = name};
    struct stage stage;
    int status = stage_open(&stage, bench, name);

    if (status == CLI_FINE && strcmp(stage.desc.type, "processor") == 0)
        raise_limits(&stage);
    for (uint32_t i = 0; i < n_bench_works && status == CLI_FINE; i++)
        status = run_row(&stage, &bench_works[i], &plot);
    if (status == CLI_FINE && bench->plot && !plot_write(&plot, bench->plot))
        status = failed(bench->in, "cannot write %s", bench->plot);
    stage_close(&stage);
    return status;
}
