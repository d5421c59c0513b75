/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of an MPI job, which mpi_test.sh starts several times:  rank SCENARIO
 *
 * Exits with 0 if what it saw is right.  Results are compared with sums in the order of ranks, bit
 * for bit. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frit/collective.h>
#include <frit/op.h>

#include "plugins/rig.h"

static const uint64_t patience = 30000000000u;

static struct rig rig;
static const frit_collective_table *table;
static frit_group *group;
static uint32_t rank, size;
static frit_err err = {.struct_size = sizeof err};

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "rank %u: line %d: %s [%s]\n", rank, __LINE__, #condition, err.text); \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

/* From the launcher of Open MPI, or that of MPICH. */
static uint32_t number_of(const char *variable, const char *other)
{
    const char *text = getenv(variable) ? getenv(variable) : getenv(other);

    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static frit_status join(uint8_t number, uint64_t timeout_ns, uint32_t of)
{
    const frit_group_id id = {{number, 77}};
    const frit_group_params params = {.struct_size = sizeof params,
                                      .rank = rank,
                                      .size = of,
                                      .id = &id,
                                      .timeout_ns = timeout_ns,
                                      .space = FRIT_STR("host.ptr"),
                                      .name = FRIT_STR("test")};

    return table->group_create(rig.instance, &params, &group, &err);
}

static void leave(void)
{
    table->group_destroy(group);
    group = NULL;
}

static frit_status begin(uint32_t kind, uint32_t combine, const frit_collective_buffer *buffers,
                         uint32_t n, uint64_t *value)
{
    const frit_collective_op op = {.struct_size = sizeof op,
                                   .kind = kind,
                                   .combine = combine,
                                   .root = kind == FRIT_COLLECTIVE_BROADCAST ? size - 1 : 0,
                                   .n_buffers = n,
                                   .buffer_stride = sizeof *buffers,
                                   .buffers = buffers};

    return table->begin(group, &op, value, &err);
}

static void run(uint32_t kind, uint32_t combine, const void *from, void *into, uint64_t count,
                uint32_t dtype)
{
    const frit_collective_buffer buffer = {from, into, count, dtype, 0};
    uint64_t value = 0;

    CHECK(begin(kind, combine, &buffer, 1, &value) == FRIT_OK);
    CHECK(table->wait(group, value, patience, &err) == FRIT_OK);
}

/* ---- results ---- */

/* Values whose sums depend on their order. */
static float value_of(uint32_t r, uint64_t i)
{
    const uint32_t bits = (uint32_t)(i * 2654435761u + r * 40503u * 65537u);

    return (float)(int32_t)bits * (r % 2 ? 1e-9f : 1e-3f);
}

static float *values(uint32_t r, uint64_t n)
{
    float *out = malloc((n + 1) * sizeof *out);

    CHECK(out);
    for (uint64_t i = 0; i < n; i++)
        out[i] = value_of(r, i);
    return out;
}

static float sum_at(uint64_t i, bool is_mean)
{
    float sum = value_of(0, i);

    for (uint32_t r = 1; r < size; r++)
        sum += value_of(r, i);
    return is_mean ? sum / (float)size : sum;
}

static void all_kinds_of(uint64_t n)
{
    float *in = values(rank, n * size), *out = values(9, n * size);

    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, in, out, n, FRIT_F32);
    for (uint64_t i = 0; i < n; i++)
        CHECK(out[i] == sum_at(i, false));
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, in, out, n, FRIT_F32);
    for (uint64_t i = 0; i < n; i++)
        CHECK(out[i] == sum_at(i, true));
    run(FRIT_COLLECTIVE_REDUCE_SCATTER, FRIT_CHOICE_combine_sum, in, out, n, FRIT_F32);
    for (uint64_t i = 0; i < n; i++)
        CHECK(out[i] == sum_at(rank * n + i, false));
    run(FRIT_COLLECTIVE_ALL_GATHER, 0, in, out, n, FRIT_F32);
    for (uint64_t i = 0; i < n * size; i++)
        CHECK(out[i] == value_of((uint32_t)(i / n), i % n));
    run(FRIT_COLLECTIVE_BROADCAST, 0, rank == size - 1 ? in : NULL, out, n, FRIT_F32);
    for (uint64_t i = 0; i < n; i++)
        CHECK(out[i] == value_of(size - 1, i));
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, in, in, n, FRIT_F32);
    for (uint64_t i = 0; i < n; i++)
        CHECK(in[i] == sum_at(i, false));
    free(in);
    free(out);
}

/* In many buffers of one operation as in one. */
static void layouts(void)
{
    enum { N = 300007, PARTS = 7 };
    float *one = values(rank, N), *many = values(rank, N);
    frit_collective_buffer buffers[PARTS];
    uint64_t value, at = 0;

    for (uint32_t i = 0; i < PARTS; i++) {
        const uint64_t count = i == PARTS - 1 ? N - at : i * 1001;

        buffers[i] = (frit_collective_buffer){many + at, many + at, count, FRIT_F32, 0};
        at += count;
    }
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, one, one, N, FRIT_F32);
    CHECK(begin(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, buffers, PARTS, &value) ==
          FRIT_OK);
    CHECK(table->wait(group, value, patience, &err) == FRIT_OK);
    CHECK(memcmp(one, many, N * sizeof *one) == 0);
    free(one);
    free(many);
}

/* Sums of f16 and bf16 are made in f32: 60000 of each rank has a mean, and small values count. */
static void narrow_floats(void)
{
    const uint16_t big = 0x7b53, tiny = 0x0001, one_bf16 = 0x3f80, small_bf16 = 0x3b80; /* 2^-8 */
    /* 1 + k/256, of which those with odd k are rounded to even. */
    static const uint16_t sums[] = {0x3f80, 0x3f80, 0x3f81, 0x3f82, 0x3f82};
    uint16_t out;

    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, &big, &out, 1, FRIT_F16);
    CHECK(out == big);
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, &big, &out, 1, FRIT_F16);
    CHECK(out == (size == 1 ? big : 0x7c00));
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, &tiny, &out, 1, FRIT_F16);
    CHECK(out == size);
    out = rank == 0 ? one_bf16 : small_bf16;
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, &out, &out, 1, FRIT_BF16);
    CHECK(out == sums[size - 1]);
}

static void integers(void)
{
    const int64_t in = INT64_MAX - (int64_t)rank;
    const int8_t byte = (int8_t)(100 + rank);
    int64_t out;
    int8_t sum;
    uint8_t bits = (uint8_t)(rank + 1), all[64];
    uint64_t expected = 0;
    uint32_t bytes = 0;

    for (uint32_t r = 0; r < size; r++) {
        expected += (uint64_t)(INT64_MAX - (int64_t)r);
        bytes += 100 + r;
    }
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, &in, &out, 1, FRIT_I64);
    CHECK((uint64_t)out == expected);
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, &byte, &sum, 1, FRIT_I8);
    CHECK(sum == (int8_t)(uint8_t)bytes);
    run(FRIT_COLLECTIVE_ALL_GATHER, 0, &bits, all, 1, FRIT_BOOL);
    for (uint32_t r = 0; r < size; r++)
        CHECK(all[r] == r + 1);
}

/* Element `i` of a rank, small enough that sums of integers of 8 bits wrap, and its sum. */
static int64_t whole_of(uint32_t r, uint64_t i)
{
    return (int64_t)((i * 37 + r * 11) % 251) - 100;
}

static void put_whole(char *at, uint32_t dtype, int64_t value)
{
    const uint32_t bytes = (uint32_t)frit_storage_bytes(dtype, 1);
    const double d = (double)value;
    const float f = (float)value;

    if (dtype == FRIT_F64)
        memcpy(at, &d, sizeof d);
    else if (dtype == FRIT_F32)
        memcpy(at, &f, sizeof f);
    else
        memcpy(at, &value, bytes); /* little-endian */
}

static void one_type(uint32_t dtype, uint32_t combine, uint64_t n)
{
    const uint64_t bytes = frit_storage_bytes(dtype, 1);
    char *x = calloc(n + 1, bytes), expected[8];

    CHECK(x);
    for (uint64_t i = 0; i < n; i++)
        put_whole(x + i * bytes, dtype, whole_of(rank, i) * size);
    run(FRIT_COLLECTIVE_ALL_REDUCE, combine, x, x, n, dtype);
    for (uint64_t i = 0; i < n; i++) {
        int64_t sum = 0;

        for (uint32_t r = 0; r < size; r++)
            sum += whole_of(r, i);
        put_whole(expected, dtype, combine == FRIT_CHOICE_combine_mean ? sum : sum * size);
        CHECK(memcmp(x + i * bytes, expected, bytes) == 0);
    }
    free(x);
}

/* Sums and means of each type with numbers that it has; f16 and bf16 are in narrow_floats. */
static void types(void)
{
    static const uint32_t wide[] = {FRIT_F64, FRIT_F32, FRIT_I64, FRIT_I32, FRIT_U64, FRIT_U32};
    static const uint32_t narrow[] = {FRIT_I16, FRIT_I8, FRIT_U16, FRIT_U8};
    const uint64_t counts[] = {0, 1, size - 1, size, size + 1, 1000003};

    CHECK(join(1, patience, size) == FRIT_OK);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t d = 0; d < sizeof wide / sizeof *wide; d++) {
            one_type(wide[d], FRIT_CHOICE_combine_sum, counts[c]);
            if (wide[d] != FRIT_U64 && wide[d] != FRIT_U32) /* no mean of what wraps */
                one_type(wide[d], FRIT_CHOICE_combine_mean, counts[c]);
        }
        for (size_t d = 0; d < sizeof narrow / sizeof *narrow; d++)
            one_type(narrow[d], FRIT_CHOICE_combine_sum, counts[c]);
    }
    narrow_floats();
    leave();
}

/* The group goes on. */
static void what_it_cannot(void)
{
    frit_collective_buffer buffer = {&rank, &rank, 1, FRIT_BOOL, 0};
    uint64_t value;

    CHECK(begin(FRIT_COLLECTIVE_ALL_REDUCE, 0, &buffer, 1, &value) == FRIT_UNSUPPORTED);
    CHECK(begin(99, 0, &buffer, 1, &value) == FRIT_UNSUPPORTED);
    CHECK(table->wait(group, 1000000, 0, &err) == FRIT_INVALID);
}

/* Many at once, each on what the one before made. */
static void order(void)
{
    float x = (float)(rank + 1), expected = (float)(size * (size + 1)) / 2;
    const frit_collective_buffer buffer = {&x, &x, 1, FRIT_F32, 0};
    uint64_t value = 0;

    for (int i = 0; i < 40; i++)
        CHECK(begin(FRIT_COLLECTIVE_ALL_REDUCE,
                    i % 2 ? FRIT_CHOICE_combine_mean : FRIT_CHOICE_combine_sum, &buffer, 1,
                    &value) == FRIT_OK);
    CHECK(begin(FRIT_COLLECTIVE_BARRIER, 0, NULL, 0, &value) == FRIT_OK);
    CHECK(table->wait(group, value, patience, &err) == FRIT_OK);
    for (int i = 2; i < 40; i += 2)
        expected *= (float)size;
    CHECK(x == expected);
}

static void results(void)
{
    const uint64_t counts[] = {0, 1, size - 1, size, size + 1, 600003};

    CHECK(join(1, patience, size) == FRIT_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        all_kinds_of(counts[i]);
    layouts();
    narrow_floats();
    integers();
    what_it_cannot();
    if (size <= 4)
        order();
    leave();
    CHECK(join(2, patience, size) == FRIT_OK); /* another group of the same ranks */
    all_kinds_of(5);
    leave();
}

/* ---- failures ---- */

static void mismatch(void)
{
    float x = 1, y = 7;
    const frit_collective_buffer first = {&x, &x, 1, FRIT_F32, 0};
    const frit_collective_buffer second = {&y, &y, 1, rank == 1 ? FRIT_I32 : FRIT_F32, 0};
    uint64_t value;

    CHECK(join(1, patience, size) == FRIT_OK);
    CHECK(begin(FRIT_COLLECTIVE_ALL_REDUCE, 0, &first, 1, &value) == FRIT_OK);
    if (begin(FRIT_COLLECTIVE_ALL_REDUCE, 0, &second, 1, &value) == FRIT_OK)
        CHECK(table->wait(group, value, patience, &err) == FRIT_MISMATCH);
    CHECK(err.status == FRIT_MISMATCH && y == 7);
    CHECK(strcmp(err.text,
                 "operation 2 is all_reduce of 1 f32 on rank 0, all_reduce of 1 i32 on rank 1") ==
          0);
    CHECK(table->wait(group, 1, patience, &err) == FRIT_OK && x == (float)size);
    leave();
    CHECK(join(2, patience, size) == FRIT_OK); /* the processes go on */
    all_kinds_of(3);
    leave();
}

static void mismatched_notes(void)
{
    float x = 7;
    const frit_collective_buffer buffer = {&x, &x, 1, FRIT_F32, 0};
    frit_collective_op op = {.struct_size = sizeof op,
                             .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                             .n_buffers = 1,
                             .buffer_stride = sizeof buffer,
                             .buffers = &buffer,
                             .note = "step 1"};
    uint64_t value;

    op.note[5] = rank == 1 ? '2' : '1';
    CHECK(join(1, patience, size) == FRIT_OK);
    if (table->begin(group, &op, &value, &err) == FRIT_OK)
        CHECK(table->wait(group, value, patience, &err) == FRIT_MISMATCH);
    CHECK(strcmp(err.text, "operation 1 is all_reduce of 1 f32 (step 1) on rank 0, all_reduce of "
                           "1 f32 (step 2) on rank 1") == 0);
    CHECK(x == 7);
    leave();
}

static void aborted(void)
{
    const frit_err why = {.struct_size = sizeof why, .text = "the step took too long"};
    uint64_t value;

    CHECK(join(1, patience, size) == FRIT_OK);
    if (rank == 0)
        table->group_abort(group, &why);
    if (begin(FRIT_COLLECTIVE_BARRIER, 0, NULL, 0, &value) == FRIT_OK)
        (void)table->wait(group, value, patience, &err);
    CHECK(err.status == FRIT_ABORTED && strcmp(err.text, "the step took too long") == 0);
    leave();
}

static void left(void)
{
    float x = 1;
    const frit_collective_buffer buffer = {&x, &x, 1, FRIT_F32, 0};
    uint64_t value;

    CHECK(join(1, patience, size) == FRIT_OK);
    if (rank != 1) {
        CHECK(begin(FRIT_COLLECTIVE_ALL_REDUCE, 0, &buffer, 1, &value) == FRIT_OK);
        CHECK(table->wait(group, value, patience, &err) == FRIT_PEER_LOST);
        CHECK(strstr(err.text, "rank 1 (host ") && strstr(err.text, "has left the group"));
    }
    leave();
}

/* Rank 1 does not come in time. */
static void late(void)
{
    uint64_t value;

    CHECK(join(1, patience, size) == FRIT_OK);
    if (rank != 1) {
        frit_group *first = group;

        CHECK(join(2, 200000000, size) == FRIT_TIMEOUT);
        CHECK(!group && strstr(err.text, "no word from rank 1"));
        group = first;
    }
    CHECK(begin(FRIT_COLLECTIVE_BARRIER, 0, NULL, 0, &value) == FRIT_OK);
    CHECK(table->wait(group, value, patience, &err) == FRIT_OK);
    if (rank == 0) {
        CHECK(begin(FRIT_COLLECTIVE_BARRIER, 0, NULL, 0, &value) == FRIT_OK);
        CHECK(table->wait(group, value, 0, &err) == FRIT_TIMEOUT);
        CHECK(table->wait(group, value, 50000000, &err) == FRIT_TIMEOUT);
        CHECK(strstr(err.text, "operation 2 waits for rank 1 (host "));
    } else {
        (void)usleep(1000000);
        CHECK(begin(FRIT_COLLECTIVE_BARRIER, 0, NULL, 0, &value) == FRIT_OK);
    }
    CHECK(table->wait(group, value, patience, &err) == FRIT_OK);
    leave();
    CHECK(join(3, patience, size + 1) == FRIT_UNSUPPORTED);
    CHECK(strstr(err.text, "a group's ranks are those of the job"));
}

/* Ranks of a job have one parent. */
static void name_note(char name[64], int round)
{
    snprintf(name, 64, "/tmp/frit-mpi-%ld-%d", (long)getppid(), round);
}

/* By a file, since rank 1 may call nothing of the engine. */
static void await_rank_0(int round)
{
    char name[64];

    name_note(name, round);
    for (int ms = 0; ms < 50000 && access(name, F_OK); ms += 5)
        (void)usleep(5000);
    CHECK(unlink(name) == 0);
}

static void report_end(int round)
{
    char name[64];
    int file;

    name_note(name, round);
    file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    close(file);
}

/* Rank 1 begins and does something else until rank 0, which needs it, has ended. */
static void background(void)
{
    enum { N = 1000003 };
    float *x = values(rank, N);
    const frit_collective_buffer buffer = {x, x, N, FRIT_F32, 0};
    uint64_t value;

    CHECK(join(1, patience, size) == FRIT_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(begin(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, &buffer, 1, &value) ==
              FRIT_OK);
        if (rank == 1)
            await_rank_0(i);
        CHECK(table->wait(group, value, patience, &err) == FRIT_OK);
        if (rank == 0)
            report_end(i);
    }
    leave();
    free(x);
}

static void *abort_soon(void *arg)
{
    const frit_err why = {.struct_size = sizeof why, .text = "enough"};

    (void)usleep(*(const unsigned *)arg);
    table->group_abort(group, &why);
    return NULL;
}

/* A group that is aborted in the midst of an operation touches no buffer after wait has returned.
 */
static void quiet(void)
{
    enum { N = 8000000 };
    float *x = calloc(N, sizeof *x);
    const frit_collective_buffer buffer = {x, x, N, FRIT_F32, 0};
    uint64_t value;

    CHECK(x);
    for (unsigned i = 0; i < 8; i++) {
        unsigned delay = i * 700;
        pthread_t other;

        CHECK(join((uint8_t)(10 + i), patience, size) == FRIT_OK);
        if (rank == i % size)
            CHECK(pthread_create(&other, NULL, abort_soon, &delay) == 0);
        if (begin(FRIT_COLLECTIVE_ALL_REDUCE, 0, &buffer, 1, &value) == FRIT_OK)
            (void)table->wait(group, value, patience, &err);
        memset(x, 1, N * sizeof *x);
        (void)usleep(20000);
        for (uint64_t at = 0; at < N; at++)
            CHECK(((const uint32_t *)(const void *)x)[at] == 0x01010101);
        if (rank == i % size)
            (void)pthread_join(other, NULL);
        leave();
    }
    free(x);
}

/* Two groups, whose operations the ranks begin in different orders: each waits for the other one,
 * and rank 1, whose limit passes, finds who is missing.  Then it begins the other one, and both
 * end. */
static void crossed(void)
{
    frit_group *groups[2];
    uint64_t values[2];

    for (uint8_t i = 0; i < 2; i++) {
        CHECK(join((uint8_t)(1 + i), patience, size) == FRIT_OK);
        groups[i] = group;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t at = i ^ (rank & 1);

        group = groups[at];
        CHECK(begin(FRIT_COLLECTIVE_BARRIER, 0, NULL, 0, &values[at]) == FRIT_OK);
        if (i == 0 && rank == 1) {
            CHECK(table->wait(group, values[at], 100000000, &err) == FRIT_TIMEOUT);
            CHECK(strstr(err.text, "operation 1 waits for rank 0 (host "));
        } else {
            CHECK(table->wait(group, values[at], patience, &err) == FRIT_OK);
        }
    }
    CHECK(table->wait(groups[1], values[1], patience, &err) == FRIT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        group = groups[i];
        leave();
    }
}

static void *run_other(void *arg)
{
    frit_group *other = arg;
    uint32_t x[2] = {rank, 1};
    const frit_collective_buffer buffer = {x, x, 2, FRIT_U32, 0};
    const frit_collective_op op = {.struct_size = sizeof op,
                                   .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                                   .n_buffers = 1,
                                   .buffer_stride = sizeof buffer,
                                   .buffers = &buffer};
    frit_err error = {.struct_size = sizeof error};
    uint64_t value;

    for (int i = 0; i < 300; i++) {
        if (table->begin(other, &op, &value, &error) || table->wait(other, value, patience, &error))
            return other;
        x[0] /= size;
        x[1] /= size;
    }
    return x[1] == 1 ? NULL : other;
}

/* Two groups, each with a thread that waits. */
static void together(void)
{
    enum { N = 200000 };
    float *x = values(rank, N);
    frit_group *other;
    pthread_t thread;
    void *failed;

    CHECK(join(2, patience, size) == FRIT_OK);
    other = group;
    CHECK(join(1, patience, size) == FRIT_OK);
    CHECK(pthread_create(&thread, NULL, run_other, other) == 0);
    for (int i = 0; i < 100; i++)
        run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, x, x, N, FRIT_F32);
    (void)pthread_join(thread, &failed);
    CHECK(!failed);
    leave();
    group = other;
    leave();
    free(x);
}

static void die(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(stderr, "killed at %lld ms\n", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    (void)kill(getpid(), SIGKILL);
}

/* Rank 1 dies in the midst of operations; whoever ends this process is outside of it. */
static void killed(void)
{
    float *x = values(rank, 100000);

    CHECK(join(1, patience, size) == FRIT_OK);
    for (int i = 0;; i++) {
        if (rank == 1 && i == 20)
            die();
        run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, x, x, 100000, FRIT_F32);
    }
}

/* Without a launcher. */
static void alone(void)
{
    float x = 3, y = 0;

    CHECK(join(1, patience, 1) == FRIT_OK);
    size = 1;
    run(FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, &x, &y, 1, FRIT_F32);
    CHECK(y == 3);
    leave();
    CHECK(join(2, patience, 2) == FRIT_UNSUPPORTED);
    CHECK(strstr(err.text, "was not started as a rank of an MPI job"));
}

/* A library that is none of MPI. */
static void wrong_library(void)
{
    CHECK(join(1, patience, size) == FRIT_UNSUPPORTED);
    CHECK(strstr(err.text, "libm.so.6 has no MPI_Init_thread: it is neither Open MPI nor MPICH"));
}

/* The default of each, or FRIT_TEST_LIBRARY. */
static frit_status get_text(void *self, frit_str name, frit_str *out, frit_err *error)
{
    (void)self;
    (void)name;
    (void)error;
    *out = FRIT_STR("");
    if (getenv("FRIT_TEST_LIBRARY"))
        *out = (frit_str){getenv("FRIT_TEST_LIBRARY"), strlen(getenv("FRIT_TEST_LIBRARY"))};
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
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"results", results},
                     {"mismatch", mismatch},
                     {"mismatched_notes", mismatched_notes},
                     {"aborted", aborted},
                     {"left", left},
                     {"late", late},
                     {"killed", killed},
                     {"alone", alone},
                     {"background", background},
                     {"quiet", quiet},
                     {"together", together},
                     {"crossed", crossed},
                     {"types", types},
                     {"wrong_library", wrong_library}};

    rank = number_of("OMPI_COMM_WORLD_RANK", "PMI_RANK");
    size = number_of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    rig.own_table = own_table;
    CHECK(rig_load(&rig) == FRIT_OK);
    table = rig.plugin->get_interface(rig.instance, FRIT_STR(FRIT_COLLECTIVE_TABLE));
    CHECK(table && argc == 2);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, argv[1]) != 0)
            continue;
        scenarios[i].run();
        rig.plugin->close(rig.instance);
        CHECK(rig.live == 0);
        return 0;
    }
    return 2;
}
