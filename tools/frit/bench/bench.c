/* SPDX-License-Identifier: Apache-2.0 */
/* `frit bench`: measures, and prints each figure beside its target.  The exit code does not depend
 * on the figures. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frit/inspect.h>

#include "bench/device.h"
#include "bench/overhead.h"
#include "bench/programs.h"
#include "invocation.h"
#include "term.h"

uint64_t bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool bench_clock_start(frit_device *device)
{
    return frit_device_time_start(device, NULL) == FRIT_OK;
}

double bench_clock_stop(frit_device *device, uint64_t n)
{
    frit_device_time time = {.struct_size = sizeof(time)};

    if (frit_device_time_stop(device, &time, NULL))
        return 0;
    return (double)time.busy_ns * 1e-6 / (double)n;
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

double bench_median(double *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), compare);
    return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

/* ---- rows ---- */

bool bench_wants(const struct bench *bench, const char *row)
{
    const char *filter;
    bool wanted = !invocation_has(bench->in, "--filter");

    for (int at = 0; !wanted && (filter = invocation_next(bench->in, "--filter", &at));)
        wanted = filter_fits(filter, row);
    return wanted;
}

int bench_check_filters(const struct bench *bench, const char *(*row_at)(size_t index))
{
    const char *filter, *row;
    char rows[1024] = "";
    size_t used = 0;

    for (size_t i = 0; (row = row_at(i)) && used < sizeof(rows); i++)
        used += (size_t)snprintf(rows + used, sizeof(rows) - used, "%s%s", i ? ", " : "", row);
    for (int at = 0; (filter = invocation_next(bench->in, "--filter", &at));) {
        size_t i = 0;

        while ((row = row_at(i)) && !filter_fits(filter, row))
            i++;
        if (!row)
            return fail_usage(bench->in, "no row is named '%s'; there are: %s", filter, rows);
    }
    return CLI_FINE;
}

static void print_json(const struct bench_row *row)
{
    printf("{\"suite\":\"%s\",\"row\":\"%s\",\"case\":\"%s\",\"device\":\"%s\",\"threads\":%" PRIu64
           ",\"ops\":%" PRIu64 ",\"streams\":%" PRIu64 ",\"plans\":%" PRIu64,
           row->suite, row->row, row->what, row->device, row->streams, row->ops, row->streams,
           row->plans);
    for (uint32_t i = 0; i < row->n_figures; i++) {
        const struct bench_figure *figure = &row->figures[i];

        printf(",\"%s\":%.6g", figure->key, figure->value);
        if (figure->target > 0)
            printf(",\"%s_target\":%.6g", figure->key, figure->target);
    }
    puts("}");
}

static void print_figure(const struct bench_figure *figure)
{
    bool good =
        figure->at_least ? figure->value >= figure->target : figure->value <= figure->target;
    char text[48];

    snprintf(text, sizeof(text), "%.4g %s", figure->value, figure->unit);
    printf("    ");
    if (figure->target <= 0) {
        printf("%s\n", text);
        return;
    }
    term_paint(stdout, good ? PAINT_GOOD : PAINT_BAD, 32, text);
    printf(" %s %.4g\n", figure->at_least ? "at least" : "at most", figure->target);
}

void bench_print(const struct bench *bench, const struct bench_row *row)
{
    if (bench->json) {
        print_json(row);
    } else {
        term_paint(stdout, PAINT_HEAD, 16, row->row);
        printf(" %s", row->what);
        if (row->streams)
            printf(", %" PRIu64 " %s, %" PRIu64 " other %s known", row->streams,
                   row->streams == 1 ? "thread" : "threads", row->plans,
                   row->plans == 1 ? "plan" : "plans");
        putchar('\n');
        for (uint32_t i = 0; i < row->n_figures; i++)
            print_figure(&row->figures[i]);
    }
    fflush(stdout);
}

/* ---- the command line ---- */

/* The plugin lies beside this program's bin/ in a build tree. */
static void find_beside(char path[4096])
{
    static const char file[] = "tests/fake/null/libfrit-null.so";
    ssize_t length = readlink("/proc/self/exe", path, 4096);

    for (int up = 0; up < 2 && length > 0; up++)
        while (length > 0 && path[--length] != '/')
            ;
    if (length <= 0 || (size_t)length + 1 + sizeof(file) > 4096) {
        path[0] = 0;
        return;
    }
    memcpy(path + length + 1, file, sizeof(file));
    if (access(path, R_OK))
        path[0] = 0;
}

static int find_null(struct bench *bench)
{
    const char *folder = invocation_value(bench->in, "--plugin");
    char path[4096], *real;

    if (!folder) {
        find_beside(bench->null_path);
        return CLI_FINE;
    }
    snprintf(path, sizeof(path), "%s/libfrit-null.so", folder);
    real = realpath(path, NULL);
    if (!real)
        return fail_command(bench->in, "%s: %s", path, strerror(errno));
    snprintf(bench->null_path, sizeof(bench->null_path), "%s", real);
    free(real);
    return CLI_FINE;
}

/* A number from 1 to a million; `*out` stays where the option is not given. */
static int parse_number(const struct bench *bench, const char *option, uint64_t *out)
{
    const char *text = invocation_value(bench->in, option);
    char *end;

    if (!text)
        return CLI_FINE;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (*end || end == text || *text == '-' || errno || *out == 0 || *out > 1000000)
        return fail_usage(bench->in, "%s %s: wants a number from 1 to 1000000", option, text);
    return CLI_FINE;
}

static int run(const struct invocation *in)
{
    static struct bench bench;
    int status;

    bool overhead = strcmp(in->args[0], "overhead") == 0;
    bool programs = strcmp(in->args[0], "programs") == 0;
    uint64_t side = 0;

    bench = (struct bench){.in = in,
                           .quick = invocation_has(in, "--quick"),
                           .json = invocation_has(in, "--json"),
                           .plot = invocation_value(in, "--plot")};
    bench.rounds = bench.quick ? 3 : overhead ? 400 : 9;
    status = parse_number(&bench, "--rounds", &bench.rounds);
    if (status == CLI_FINE)
        status = parse_number(&bench, "--side", &side);
    bench.side = (int64_t)side;
    if (status != CLI_FINE)
        return status;
    if (!overhead && !programs)
        return bench_device(&bench, in->args[0]);
    status = find_null(&bench);
    if (status == CLI_FINE)
        status = overhead ? bench_overhead(&bench) : bench_programs(&bench);
    return status;
}

const struct command bench_command = {
    .name = "bench",
    .summary = "measures costs and compares them with targets",
    .args = "SUITE",
    .details =
        "overhead     the host's cost per op, on a device that computes nothing: with one and\n"
        "             with many known plans, with two threads, with a queue that runs later and\n"
        "             no host pointers, with 16 shapes in a cycle; the time of one plan search\n"
        "\n"
        "programs     whole programs from their first step: SGD over many small parameters,\n"
        "             unrelated ops, loops that never wait; times, searches, launches, and\n"
        "             the device's own time if it has a clock\n"
        "\n"
        "DEVICE       a name as in `frit devices`, or its beginning: the bandwidth of chains,\n"
        "             norms and sums written op by op, relative to the device's copies; the\n"
        "             rate of products, attention, steps of a transformer\n"
        "\n"
        "Software devices and --quick leave large ones out, processors the largest.  The\n"
        "figures of --quick, from small sizes and few rounds, show only that everything runs.\n"
        "\n"
        "The device `null` is built with Frit, but not installed.  The exit code is 0 for any\n"
        "figures.\n"
        "With --json each line is an object: suite, row, case, device, threads, ops, streams,\n"
        "plans, and the figures of the row, each with KEY_target if it has a target.",
    .options =
        (const struct option[]){
            {"--filter", "F", "a row, or a pattern: 'sum*'", 'f', true},
            {"--quick", NULL, "small sizes, few rounds: checks that it runs", 'q', false},
            {"--json", NULL, "for machines", 0, false},
            {"--device", "NAME", "device of `programs`; default cpu", 'd', false},
            {"--plugin", "DIR", "where libfrit-null.so lies", 0, false},
            {"--rounds", "N", "measurements per figure; overhead 400, others 9, --quick 3", 'n',
             false},
            {"--side", "N", "rows and columns of DEVICE's matrices", 0, false},
            {"--plot", "FILE", "writes DEVICE's ratios as an SVG chart", 0, false},
            {0}},
    .examples = (const char *const[]){"bench overhead", "bench overhead --json -n 1000",
                                      "bench programs --device vulkan --filter 'loop*'",
                                      "bench cpu --plot cpu.svg",
                                      "bench cpu --quick --filter 'sum*' --filter gemv", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
