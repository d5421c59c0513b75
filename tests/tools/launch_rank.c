/* SPDX-License-Identifier: Apache-2.0 */
/* A program for `frit launch`: its ranks reduce by the engine that the first argument names, and
 * compare the sums with a plain loop.  With a second argument rank 1 is killed in the midst of it.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <frit/frit.h>
#include <frit/ops.h>

enum { N = 100000, ROUNDS = 20 };

static float value_of(uint32_t rank, int i)
{
    return (float)(i % 1000) * (rank % 2 ? 1e-9f : 1e-3f) + (float)rank;
}

static int failed(const char *what, const frit_err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    return 1;
}

static void die(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(stderr, "killed at %lld ms\n", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    (void)kill(getpid(), SIGKILL);
}

/* 0: as a plain loop. */
static int reduce(frit_device *device, const frit_job_desc *job, frit_err *err)
{
    static float data[N], sums[N];
    frit_tensor *x;

    for (int i = 0; i < N; i++)
        data[i] = value_of(job->rank, i);
    x = frit_all_reduce(frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data)));
    if (frit_read(x, sums, sizeof(sums), err))
        return failed("all_reduce", err);
    frit_release(x);
    for (int i = 0; i < N; i++) {
        float sum = value_of(0, i);

        for (uint32_t r = 1; r < job->size; r++)
            sum += value_of(r, i);
        if (sums[i] != sum) {
            fprintf(stderr, "element %d is %g, not %g\n", i, (double)sums[i], (double)sum);
            return 1;
        }
    }
    return 0;
}

static int run(frit_host *host, frit_device *device, const char *engine, bool is_killed)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_job_desc job = {.struct_size = sizeof(job)};
    frit_group_config config = {.struct_size = sizeof(config), .engine = engine};
    frit_rank *rank;
    int status = 0;

    if (frit_job_info(host, &job, &err))
        return failed("job", &err);
    config.rank = job.rank;
    config.size = job.size;
    if (frit_group_join(device, &config, &rank, &err))
        return failed("join", &err);
    for (int i = 0; i < ROUNDS && !status; i++) {
        if (is_killed && job.rank == 1 && i == ROUNDS / 2)
            die();
        status = reduce(device, &job, &err);
    }
    if (frit_group_leave(rank, &err))
        return failed("leave", &err);
    if (!status)
        printf("rank %u of %u is right\n", job.rank, job.size);
    return status;
}

int main(int argc, char **argv)
{
    frit_host_params params = {.struct_size = sizeof(params)};
    frit_err err = {.struct_size = sizeof(err)};
    frit_device *device;
    frit_host *host;
    int status;

    if (argc < 2)
        return 2;
    if (frit_host_open(&params, &host, &err) || frit_device_open(host, NULL, &device, &err))
        return failed("open", &err);
    status = run(host, device, argv[1], argc > 2);
    frit_device_close(device);
    frit_host_close(host);
    return status;
}
