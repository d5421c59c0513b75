/* SPDX-License-Identifier: Apache-2.0 */
/* `frit bench DEVICE`: how near to the device's limit ops run that are written one by one.
 *
 * A row is queued several times and waited for once, so that what is measured is the device and not
 * the way there; the figure is the median over rounds.  The limit is what the same device copies in
 * the same mode, and, of processors, what plain threads copy and read in the same run, if that is
 * more.  Each round takes fresh rows A, B, A, B with the limit, so that both drift alike. */
#include "bench/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/models.h"
#include "bench/plain.h"
#include "bench/plot.h"
#include "bench/products.h"
#include "bench/resnet.h"
#include "invocation.h"

enum {
    COLUMNS = 4096,
    MAX_ROUNDS = 64,
    IN_QUEUE_NS = 100000000,
    WARM_NS = 1000000000,
    QUICK_NS = 1000000,
    MAX_IN_QUEUE = 64
};

struct device_stage {
    const struct bench *bench;
    frit_host *host;
    frit_device *device;
    frit_device_desc desc;
    struct bench_data data;
    struct plain plain; /* of processors */
};

/* ---- the stage ---- */

static int find_desc(struct device_stage *stage, const char *name)
{
    uint64_t i = 0;

    for (;; i++) {
        stage->desc.struct_size = sizeof(stage->desc);
        if (frit_device_info_at(stage->host, i, &stage->desc))
            return fail_usage(stage->bench->in,
                              "no suite '%s' here; there is: overhead, and each usable device of "
                              "`frit devices`",
                              name);
        if (strncmp(stage->desc.name, name, strlen(name)) == 0 && stage->desc.reason == 0)
            return CLI_FINE;
    }
}

static frit_tensor *matrix(const struct device_stage *stage, int64_t rows, int64_t columns)
{
    return frit_random_uniform(stage->device, FRIT_F32, FRIT_SHAPE(rows, columns), 0.5, 1.5);
}

/* Processors are measured with 64 MiB, others with 1 GiB; rows have 4096 columns. */
static int64_t side_of(const struct device_stage *stage)
{
    if (stage->bench->side)
        return stage->bench->side;
    if (stage->bench->quick)
        return 128;
    if (strcmp(stage->desc.type, "processor") == 0)
        return 4096;
    return strcmp(stage->desc.type, "software") == 0 ? 512 : 16384;
}

static int stage_open(struct device_stage *stage, const struct bench *bench, const char *name)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {{"fusion", "compile", "wait"}};
    frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 1};
    int status;

    *stage = (struct device_stage){.bench = bench};
    if (frit_host_open(&params, &stage->host, &err))
        return fail_command(bench->in, "%s", err.text);
    status = find_desc(stage, name);
    if (status != CLI_FINE)
        return status;
    if (frit_device_open(stage->host, stage->desc.name, &stage->device, &err))
        return fail_command(bench->in, "%s", err.text);
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

static void stage_close(struct device_stage *stage)
{
    frit_release(stage->data.x);
    frit_release(stage->data.y);
    frit_release(stage->data.yt);
    frit_release(stage->data.row);
    frit_release(stage->data.column);
    frit_host_close(stage->host);
}

/* ---- rows ---- */

double bench_run(const struct bench_job *job, uint32_t n)
{
    uint64_t begun = bench_now();

    for (uint32_t i = 0; i < n; i++) {
        frit_tensor *result = job->run(job->self);
        frit_status status = frit_flush(job->device, job->err);

        frit_release(result);
        if (status)
            return -1;
    }
    return frit_sync(job->device, job->err) ? -1 : (double)(bench_now() - begun) / n;
}

/* What takes about IN_QUEUE_NS.  Before, three runs that are not measured, and more until drivers
 * have had WARM_NS to compile. */
uint32_t bench_queue(const struct bench *bench, const struct bench_job *job)
{
    double whole = bench->quick ? QUICK_NS : IN_QUEUE_NS, once = 0;
    uint64_t begun = bench_now();

    for (int i = 0; i < 3 || (!bench->quick && once > 0 && bench_now() - begun < WARM_NS); i++)
        once = bench_run(job, 1);
    if (once <= 0)
        return 1;
    once = whole / once;
    return once < 1 ? 1 : once > MAX_IN_QUEUE ? MAX_IN_QUEUE : (uint32_t)once;
}

struct matrices {
    const struct device_stage *stage;
    const struct bench_work *work;
};

static frit_tensor *run_work(const void *self)
{
    const struct matrices *m = self;

    return m->work->run(&m->stage->data);
}

/* Milliseconds of one run, by the host's clock and by the device's (0: it has none). */
struct times {
    double ms, device_ms;
};

/* Medians in turn with the copy; bytes per second, below 0 after a failure. */
static double measure(const struct device_stage *stage, const struct bench_work *work,
                      double *limit, struct times *times, frit_err *err)
{
    double ours[MAX_ROUNDS], copies[MAX_ROUNDS];
    uint32_t rounds =
        stage->bench->rounds < MAX_ROUNDS ? (uint32_t)stage->bench->rounds : MAX_ROUNDS;
    const struct matrices mine = {stage, work}, plain = {stage, &bench_works[0]};
    const struct bench_job job = {stage->device, run_work, &mine, err};
    const struct bench_job copy = {stage->device, run_work, &plain, err};
    uint32_t n = bench_queue(stage->bench, &job), n_copy = bench_queue(stage->bench, &copy);
    double bytes = (double)(stage->data.side * stage->data.side) * sizeof(float);

    for (uint32_t i = 0; i < rounds; i++) {
        ours[i] = bench_run(&job, n);
        copies[i] = bench_run(&copy, n_copy);
        if (ours[i] < 0 || copies[i] < 0)
            return -1;
    }
    if (bench_clock_start(stage->device)) {
        (void)bench_run(&job, n);
        times->device_ms = bench_clock_stop(stage->device, n);
    }
    times->ms = bench_median(ours, rounds) * 1e-6;
    *limit = 2e9 * bytes / bench_median(copies, rounds);
    return 1e3 * bytes * (work->reads + work->writes) / times->ms;
}

static int run_row(const struct device_stage *stage, const struct bench_work *work,
                   struct plot *plot)
{
    frit_err err = {.struct_size = sizeof(err)};
    bool processor = strcmp(stage->desc.type, "processor") == 0;
    double plain = work->limit == LIMIT_READ ? stage->plain.read : stage->plain.copy;
    struct times times = {0};
    double limit = 0, rate = measure(stage, work, &limit, &times, &err);
    char what[96];
    struct bench_row row = {.suite = "device",
                            .row = work->name,
                            .what = what,
                            .device = stage->desc.name,
                            .n_figures = times.device_ms > 0 ? 4 : 3};

    if (rate < 0)
        return fail_command(stage->bench->in, "%s: %s", work->name, err.text);
    limit = plain > limit ? plain : limit;
    snprintf(what, sizeof(what), "%s, %" PRId64 " x %" PRId64 " f32", work->what, stage->data.rows,
             stage->data.columns);
    row.figures[0] = (struct bench_figure){"gb_per_s", "GB/s", rate * 1e-9, 0, false};
    row.figures[1] = (struct bench_figure){"ratio", "of the limit", rate / limit,
                                           processor ? work->target : 0, true};
    row.figures[2] = (struct bench_figure){"ms", "ms", times.ms, 0, false};
    row.figures[3] =
        (struct bench_figure){"device_ms", "ms of the device", times.device_ms, 0, false};
    bench_print(stage->bench, &row);
    plot_add(plot, work->name, rate / limit);
    return CLI_FINE;
}

static const char *row_at(size_t index)
{
    size_t n_models = 0;

    while (bench_model_at(n_models))
        n_models++;
    if (index < n_bench_works)
        return bench_works[index].name;
    index -= n_bench_works;
    if (index == 0)
        return bench_resnet_name;
    return --index < n_models ? bench_model_at(index) : bench_product_at(index - n_models);
}

int bench_device(const struct bench *bench, const char *name)
{
    struct plot plot = {.title = name};
    struct device_stage stage;
    int status = bench_check_filters(bench, row_at);

    if (status != CLI_FINE)
        return status;
    status = stage_open(&stage, bench, name);

    if (status == CLI_FINE && strcmp(stage.desc.type, "processor") == 0)
        stage.plain = plain_measure((size_t)(stage.data.side * stage.data.side));
    for (uint32_t i = 0; i < n_bench_works && status == CLI_FINE; i++)
        status = bench_wants(bench, bench_works[i].name) ? run_row(&stage, &bench_works[i], &plot)
                                                         : CLI_FINE;
    if (status == CLI_FINE && bench_wants(bench, bench_resnet_name))
        status = bench_resnet(bench, stage.device, &stage.desc);
    if (status == CLI_FINE)
        status = bench_models(bench, stage.device, &stage.desc);
    if (status == CLI_FINE)
        status = bench_products(bench, stage.device, &stage.desc);
    if (status == CLI_FINE && bench->plot && !plot_write(&plot, bench->plot))
        status = fail_command(bench->in, "cannot write %s", bench->plot);
    stage_close(&stage);
    return status;
}
