/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a job that mpirun starts:  collective_mpi [ROUNDS [BYTES...]]
 *
 * all_reduce of f32 by collective-mpi, in place, in turn with MPI_Allreduce of the same processes.
 * Rank 0 prints the medians of its times, bytes per second, and their ratio, also that of the times
 * which a tenth is below (on a busy machine); then the time of the processor that a rank uses while
 * it waits for another one. */
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frit/collective.h>
#include <frit/op.h>

#include "plugins/rig.h"

enum { WARM = 3, MAX_ROUNDS = 2000, MAX_SIZES = 16 };

static const uint64_t patience = 60000000000u;

static struct rig rig;
static const frit_collective_table *table;
static frit_group *group;
static uint32_t rank, size;
static frit_err err = {.struct_size = sizeof err};

/* Open MPI, as the engine has opened it. */
static int (*all_reduce)(const void *from, void *into, int count, void *type, void *op, void *comm);
static int (*barrier)(void *comm);
static void *world, *type_float, *op_sum, *in_place = (void *)1;

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %u: %s: %s\n", rank, what, err.text);
    exit(1);
}

/* From the launcher of Open MPI, or that of MPICH. */
static uint32_t number_of(const char *variable, const char *other)
{
    const char *text = getenv(variable) ? getenv(variable) : getenv(other);

    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static void join(void)
{
    const frit_group_id id = {{1, 77}};
    const frit_group_params params = {.struct_size = sizeof params,
                                      .rank = rank,
                                      .size = size,
                                      .id = &id,
                                      .timeout_ns = patience,
                                      .space = FRIT_STR("host.ptr"),
                                      .name = FRIT_STR("bench")};

    check(table->group_create(rig.instance, &params, &group, &err) == FRIT_OK, "group_create");
}

static void open_mpi(void)
{
    void *library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_NOLOAD);

    check(library, "libmpi.so.40 is not there");
    *(void **)&all_reduce = dlsym(library, "MPI_Allreduce");
    *(void **)&barrier = dlsym(library, "MPI_Barrier");
    world = dlsym(library, "ompi_mpi_comm_world");
    type_float = dlsym(library, "ompi_mpi_float");
    op_sum = dlsym(library, "ompi_mpi_op_sum");
    check(all_reduce && barrier && world && type_float && op_sum, "symbols of Open MPI");
}

static double seconds_of(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void run_engine(float *data, uint64_t count)
{
    const frit_collective_buffer buffer = {data, data, count, FRIT_F32, 0};
    const frit_collective_op op = {.struct_size = sizeof op,
                                   .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                                   .combine = FRIT_CHOICE_combine_sum,
                                   .n_buffers = 1,
                                   .buffer_stride = sizeof buffer,
                                   .buffers = &buffer};
    uint64_t value = 0;

    check(table->begin(group, &op, &value, &err) == FRIT_OK, "begin");
    check(table->wait(group, value, patience, &err) == FRIT_OK, "wait");
}

static void run_plain(float *data, uint64_t count)
{
    (void)all_reduce(in_place, data, (int)count, type_float, op_sum, world);
}

/* Seconds until rank 0 has its result. */
static double measure(void (*run)(float *data, uint64_t count), float *data, uint64_t count)
{
    double begun;

    (void)barrier(world);
    begun = seconds_of(CLOCK_MONOTONIC);
    run(data, count);
    return seconds_of(CLOCK_MONOTONIC) - begun;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sort(double *times, int n)
{
    qsort(times, (size_t)n, sizeof(*times), compare);
}

static void run_size(uint64_t bytes, int rounds)
{
    static double engine[MAX_ROUNDS], plain[MAX_ROUNDS];
    const uint64_t count = bytes / sizeof(float);
    float *data = calloc(count + 1, sizeof *data);

    check(data, "memory");
    for (int i = -WARM; i < rounds; i++) {
        const double first = measure(run_engine, data, count);
        const double second = measure(run_plain, data, count);

        if (i >= 0) {
            engine[i] = first;
            plain[i] = second;
        }
    }
    sort(engine, rounds);
    sort(plain, rounds);
    if (rank == 0)
        printf("%9llu bytes: engine %9.1f us, %6.2f GB/s; MPI_Allreduce %9.1f us, %6.2f GB/s; "
               "ratio %.2f; of the first tenths %.2f\n",
               (unsigned long long)bytes, engine[rounds / 2] * 1e6,
               (double)bytes / engine[rounds / 2] * 1e-9, plain[rounds / 2] * 1e6,
               (double)bytes / plain[rounds / 2] * 1e-9, plain[rounds / 2] / engine[rounds / 2],
               plain[rounds / 10] / engine[rounds / 10]);
    free(data);
}

/* Rank 0 waits for the others, which sleep. */
static void run_idle(void)
{
    float x = 0;
    double used;

    (void)barrier(world);
    used = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    if (rank)
        sleep(2);
    run_engine(&x, 1);
    used = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - used;
    if (rank == 0)
        printf("waiting for two seconds: %.1f %% of a processor\n", used / 2 * 100);
}

/* ---- the host ---- */

static frit_status get_text(void *self, frit_str name, frit_str *out, frit_err *error)
{
    (void)self;
    (void)name;
    (void)error;
    *out = FRIT_STR("");
    return FRIT_OK;
}

/* FRIT_TEST_MESSAGES: also between ranks on the same host. */
static frit_status get_bool(void *self, frit_str name, uint32_t *out, frit_err *error)
{
    (void)self;
    (void)name;
    (void)error;
    *out = !getenv("FRIT_TEST_MESSAGES");
    return FRIT_OK;
}

static const void *own_table(frit_str id)
{
    static const frit_host_options options = {
        .struct_size = sizeof options, .get_str = get_text, .get_bool = get_bool};

    return id.len == sizeof FRIT_HOST_OPTIONS - 1 && memcmp(id.ptr, FRIT_HOST_OPTIONS, id.len) == 0
               ? &options
               : NULL;
}

int main(int argc, char **argv)
{
    static const uint64_t usual[] = {8, 1024, 65536, 1 << 20, 2 << 20, 4 << 20, 5 << 20, 25 << 20};
    const int rounds = argc > 1 ? atoi(argv[1]) : 101;

    rank = number_of("OMPI_COMM_WORLD_RANK", "PMI_RANK");
    size = number_of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    check(rounds > 0 && rounds <= MAX_ROUNDS && size > 1, "ROUNDS, or mpirun");
    rig.own_table = own_table;
    check(rig_load(&rig) == FRIT_OK, "the plugin");
    table = rig.plugin->get_interface(rig.instance, FRIT_STR(FRIT_COLLECTIVE_TABLE));
    join();
    open_mpi();
    if (argc > 2) {
        for (int i = 2; i < argc; i++)
            run_size(strtoull(argv[i], NULL, 10), rounds);
    } else {
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
            run_size(usual[i], rounds);
    }
    run_idle();
    table->group_destroy(group);
    rig.plugin->close(rig.instance);
    return 0;
}
