/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a device as a whole: transfers, threads, allocations that cannot succeed, and leaks
 * after many opens. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conform/lab.h"
#include "conform/play.h"
#include "term.h"

/* ---- transfers ---- */

static const int64_t sizes[] = {1, 2, 3, 7, 63, 64, 65, 255, 4095, 4096, 4097, 65537, 1048577};
enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void fill_bytes(unsigned char *data, int64_t count, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (unsigned char)(seed >> 24);
    }
}

/* Whether the tensor holds the bytes. */
static frit_status reads_as(frit_tensor *tensor, const unsigned char *want, unsigned char *got,
                            int64_t count, char reason[CONFORM_REASON])
{
    frit_status status;

    memset(got, 0xa5, (size_t)count);
    status = frit_read(tensor, got, (uint64_t)count, NULL);
    if (status)
        return lab_fail(status, frit_tensor_error(tensor), reason);
    for (int64_t i = 0; i < count; i++) {
        if (want[i] == got[i])
            continue;
        snprintf(reason, CONFORM_REASON,
                 "of %" PRId64 " bytes that were written, number %" PRId64 " reads as %u, not %u",
                 count, i, got[i], want[i]);
        return FRIT_INTERNAL;
    }
    return FRIT_OK;
}

/* Bytes go to the device and back, twice. */
static frit_status carry(frit_device *device, int64_t count, uint32_t seed,
                         char reason[CONFORM_REASON])
{
    unsigned char *want = calloc((size_t)count, 2), *got = want ? want + count : NULL;
    frit_dims dims = {1, {count}};
    frit_tensor *tensor;
    frit_status status;

    if (!want)
        return lab_fail(FRIT_NO_HOST_MEMORY, "no memory", reason);
    fill_bytes(want, count, seed);
    tensor = frit_from_host(device, FRIT_U8, dims, want, (uint64_t)count);
    status = reads_as(tensor, want, got, count, reason);
    if (!status) {
        fill_bytes(want, count, seed + 1);
        status = frit_write(tensor, want, (uint64_t)count, NULL);
        status = status ? lab_fail(status, frit_tensor_error(tensor), reason)
                        : reads_as(tensor, want, got, count, reason);
    }
    frit_release(tensor);
    free(want);
    return status;
}

static frit_status transfers(const struct conform_options *options, const struct lab *lab,
                             char reason[CONFORM_REASON])
{
    frit_status status = FRIT_OK;

    (void)options;
    for (uint32_t i = 0; i < N_SIZES && !status; i++)
        status = carry(lab->device, sizes[i], i, reason);
    return status;
}

/* ---- threads ---- */

enum { N_THREADS = 4, ROUNDS = 8 };

struct worker {
    pthread_t thread;
    frit_device *device;
    uint32_t number;
    frit_status status;
    char reason[CONFORM_REASON];
};

static void *work(void *ctx)
{
    struct worker *worker = ctx;

    for (uint32_t i = 0; i < ROUNDS * N_SIZES && !worker->status; i++)
        worker->status =
            carry(worker->device, sizes[i % N_SIZES], 100 * worker->number + i, worker->reason);
    return NULL;
}

static frit_status threads(const struct conform_options *options, const struct lab *lab,
                           char reason[CONFORM_REASON])
{
    static struct worker workers[N_THREADS];
    frit_status status = FRIT_OK;
    uint32_t n = 0;

    (void)options;
    for (; n < N_THREADS && !status; n++) {
        workers[n] = (struct worker){.device = lab->device, .number = n};
        if (pthread_create(&workers[n].thread, NULL, work, &workers[n]))
            status = lab_fail(FRIT_NO_HOST_MEMORY, "no thread", reason);
    }
    n -= status != FRIT_OK;
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].status && !status) {
            status = workers[i].status;
            snprintf(reason, CONFORM_REASON, "%s", workers[i].reason);
        }
    }
    return status;
}

/* ---- memory that is not there ---- */

/* More than a 64-bit processor can address, so that no device has it. */
static frit_status out_of_memory(const struct conform_options *options, const struct lab *lab,
                                 char reason[CONFORM_REASON])
{
    const float one = 1;
    frit_tensor *x = frit_from_host(lab->device, FRIT_F32, FRIT_SHAPE(1), &one, sizeof(one));
    frit_tensor *wide = frit_expand(x, FRIT_SHAPE((int64_t)1 << 25, (int64_t)1 << 30));
    frit_tensor *y = frit_copy(wide);
    frit_status status;

    (void)frit_sync(lab->device, NULL);
    status = frit_tensor_status(y);
    if (status != FRIT_NO_DEVICE_MEMORY && status != FRIT_UNSUPPORTED) {
        snprintf(reason, CONFORM_REASON, "%s where memory is not enough: %.300s",
                 frit_status_name(status), frit_tensor_error(y));
        status = FRIT_INTERNAL;
    }
    if (status == FRIT_UNSUPPORTED)
        lab_fail(status, frit_tensor_error(y), reason);
    frit_release(x);
    frit_release(wide);
    frit_release(y);
    if (status == FRIT_NO_DEVICE_MEMORY)
        status = transfers(options, lab, reason); /* all else is as it was */
    return status;
}

/* ---- many opens ---- */

/* Resources of the process: a leak makes one of them grow with each open. */
struct resources {
    uint64_t bytes, files, threads;
};

static uint64_t entries_of(const char *path)
{
    DIR *dir = opendir(path);
    uint64_t n = 0;

    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static struct resources resources_now(void)
{
    struct resources held = {.files = entries_of("/proc/self/fd"),
                             .threads = entries_of("/proc/self/task")};
    FILE *file = fopen("/proc/self/statm", "r");
    uint64_t pages = 0;

    if (file && fscanf(file, "%*u %" SCNu64, &pages) == 1)
        held.bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (file)
        fclose(file);
    return held;
}

static frit_status compare_resources(const struct resources *before, uint64_t opens,
                                     char reason[CONFORM_REASON])
{
    enum { SLACK = 1 << 20, EACH = 2048 };
    const struct resources after = resources_now();
    char text[16];

    if (after.files > before->files + 2)
        snprintf(reason, CONFORM_REASON, "%" PRIu64 " files are left open after %" PRIu64 " opens",
                 after.files - before->files, opens);
    else if (after.threads > before->threads + 2)
        snprintf(reason, CONFORM_REASON, "%" PRIu64 " threads are left after %" PRIu64 " opens",
                 after.threads - before->threads, opens);
    else if (after.bytes > before->bytes + SLACK + opens * EACH)
        snprintf(reason, CONFORM_REASON, "memory grows by %s in %" PRIu64 " opens",
                 term_bytes(after.bytes - before->bytes, text), opens);
    else
        return FRIT_OK;
    return FRIT_INTERNAL;
}

/* Opens and closes the device on a host of its own; the first rounds fill what is kept for good.
 * Slow devices are opened less often. */
static frit_status many_opens(const struct conform_options *options, const struct lab *lab,
                              char reason[CONFORM_REASON])
{
    frit_err err = {.struct_size = sizeof(err)};
    const uint64_t rounds = options->quick ? 60 : 1000, warm = 10;
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = options->settings,
                                     .n_settings = options->n_settings};
    double end = term_clock() + options->timeout / 3;
    struct resources before = {0};
    frit_host *host = NULL;
    frit_device *device;
    frit_status status = frit_host_open(&params, &host, &err);
    uint64_t n = 0;

    (void)lab;
    for (; n < rounds && !status && (n < warm + 2 || term_clock() < end); n++) {
        if (n == warm)
            before = resources_now();
        status = frit_device_open(host, options->device, &device, &err);
        if (status)
            break;
        status = carry(device, 4097, (uint32_t)n, reason);
        frit_device_close(device);
    }
    if (status && !*reason)
        lab_fail(status, err.text, reason);
    if (!status)
        status = compare_resources(&before, n - warm, reason);
    frit_host_close(host);
    return status;
}

/* An object of the application under a name that no driver knows. */
static frit_status natives(const struct conform_options *options, const struct lab *lab,
                           char reason[CONFORM_REASON])
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = options->settings,
                                     .n_settings = options->n_settings};
    int object;
    const frit_native native = {"conform.nothing", &object};
    const frit_device_options wanted = {
        .struct_size = sizeof(wanted), .natives = &native, .n_natives = 1};
    frit_host *host = NULL;
    frit_device *device = NULL;
    frit_status status = frit_host_open(&params, &host, &err), opened;

    (void)lab;
    if (status) {
        lab_fail(status, err.text, reason);
        frit_host_close(host);
        return status;
    }
    opened = frit_device_open_with(host, options->device, &wanted, &device, &err);
    if (opened != FRIT_UNSUPPORTED)
        snprintf(reason, CONFORM_REASON, "with an object that nobody knows device_open %s%s",
                 opened ? "fails with " : "succeeds", opened ? frit_status_name(opened) : "");
    else if (!strstr(err.text, native.name))
        snprintf(reason, CONFORM_REASON, "an object that nobody knows is refused without its name");
    status = *reason ? FRIT_INTERNAL : FRIT_OK;
    frit_host_close(host);
    return status;
}

const struct conform_check device_checks[] = {
    {"device", "transfers", "bytes of many sizes come back from the device as they went, twice",
     transfers},
    {"device", "threads", "the same from several threads at once", threads},
    {"device", "out-of-memory", "memory that no machine has is refused, and all goes on",
     out_of_memory},
    {"device", "natives", "objects of the application that are not known are refused by name",
     natives},
    {"device", "many-opens", "opens and closes leave no memory, file or thread behind", many_opens},
    {0},
};
