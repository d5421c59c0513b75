/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the library, as NCCL documents them for communicators that do not block.  They
 * end the process where NCCL leaves open what happens. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "collective-nccl/nccl.h"
#include "hip/fake.h"

#include "comm.h"

#define EXPORT __attribute__((visibility("default")))

#define DECLARE(name, ...) EXPORT int nccl##name(__VA_ARGS__);
NCCL_FUNCTIONS(DECLARE)
#undef DECLARE
EXPORT int ncclCommFinalize(nccl_comm comm);
EXPORT const char *ncclGetErrorString(int result);
EXPORT const char *ncclGetLastError(nccl_comm comm);

EXPORT struct fake_nccl fake_nccl;

#ifndef FAKE_NCCL_VERSION
#define FAKE_NCCL_VERSION 22809
#endif

/* ---- settings ---- */

static const char *setting(const char *name)
{
    char variable[64];

    snprintf(variable, sizeof variable, "FAKE_NCCL_%s", name);
    return getenv(variable);
}

static int number(const char *name, int usual)
{
    const char *text = setting(name);

    return text ? atoi(text) : usual;
}

static void reset(void)
{
    fake_nccl.version = number("VERSION", FAKE_NCCL_VERSION);
    fake_nccl.failing_name = setting("FAIL");
    fake_nccl.failing_result = number("RESULT", NCCL_INTERNAL_ERROR);
    fake_nccl.init_hangs = number("INIT_HANGS", 0);
    fake_nccl.kernels_hang = number("KERNELS_HANG", 0);
    fake_nccl.abort_ms = (uint32_t)number("ABORT_MS", 0);
    fake_nccl.aborts_hang = false;
    fake_nccl.async_error = number("ASYNC", 0);
    fake_nccl.polls = (uint32_t)number("POLLS", 2);
    fake_nccl.checks_memory = number("CHECKS_MEMORY", 0);
    fake_nccl.n_aborted = fake_nccl.n_destroyed = fake_nccl.n_groups = 0;
    fake_nccl.most_calls = 0;
}

__attribute__((constructor)) static void setup(void)
{
    reset();
    fake_nccl.reset = reset;
}

/* ---- the device's runtime ---- */

static struct fake_gpu *gpu;

static _Noreturn void wrong(const char *text)
{
    fprintf(stderr, "fake NCCL: %s\n", text);
    abort();
}

/* ---- calls ---- */

static int begin(const char *name)
{
    const char *failing = fake_nccl.failing_name;

    return failing && strcmp(failing, name) == 0 ? fake_nccl.failing_result : NCCL_SUCCESS;
}

int ncclGetVersion(int *version)
{
    const int result = begin(__func__);

    *version = fake_nccl.version;
    return result;
}

const char *ncclGetErrorString(int result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled device error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "in progress",
                                        "timeout"};

    return result >= 0 && result <= NCCL_TIMEOUT ? texts[result] : "unknown result code";
}

#ifndef FAKE_NCCL_LACKS_OPTIONAL
const char *ncclGetLastError(nccl_comm comm)
{
    (void)comm;
    return "the fake said so";
}
#endif

int ncclGetUniqueId(struct nccl_id *id)
{
    const int result = begin(__func__);
    uint64_t random = 0;

    if (result)
        return result;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return NCCL_SYSTEM_ERROR;
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "/frit-fake-nccl.%016llx", (unsigned long long)random);
    return NCCL_SUCCESS;
}

/* ---- communicators ---- */

#ifndef FAKE_NCCL_IS_OLD
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The one of the vendor that is in the process; it lies beside this library. */
static void find_gpu(void)
{
    static const char *const names[] = FAKE_NCCL_RUNTIMES;
    char path[1024];
    Dl_info self;

    for (size_t i = 0; i < sizeof names / sizeof *names && !gpu; i++) {
        void *library;

        if (!dladdr(&once, &self) || !strrchr(self.dli_fname, '/'))
            break;
        snprintf(path, sizeof path, "%.*s/libfake-%s.so",
                 (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname, names[i]);
        library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        gpu = library ? dlsym(library, FAKE_GPU) : NULL;
    }
}

int ncclCommInitRankConfig(nccl_comm *out, int size, struct nccl_id id, int rank,
                           struct nccl_config *config)
{
    const int result = begin(__func__);
    struct nccl_comm_object *comm;

    *out = NULL;
    if (result)
        return result;
    pthread_once(&once, find_gpu);
    if (!gpu || !gpu->current())
        return NCCL_UNHANDLED_GPU_ERROR;
    if (config->size < sizeof *config || config->magic != NCCL_CONFIG_MAGIC ||
        config->version < NCCL_CONFIG_VERSION || size < 1 || size > FAKE_NCCL_RANKS || rank < 0 ||
        rank >= size || id.bytes[0] != '/')
        return NCCL_INVALID_ARGUMENT;
    if (config->blocking)
        wrong("a communicator that blocks");
    comm = calloc(1, sizeof *comm);
    if (!comm)
        return NCCL_SYSTEM_ERROR;
    comm->size = size;
    comm->rank = rank;
    comm->refs = 1;
    comm->context = gpu->current();
    snprintf(comm->name, sizeof comm->name, "%.40s", id.bytes);
    comm->region = region_open(comm->name);
    if (!comm->region) {
        free(comm);
        return NCCL_SYSTEM_ERROR;
    }
    if (!fake_nccl.init_hangs)
        atomic_fetch_or(&comm->region->came, 1u << rank);
    comm_link(comm);
    fake_nccl.comms++;
    *out = comm;
    return NCCL_IN_PROGRESS;
}
#endif

static bool has_all(const struct nccl_comm_object *comm)
{
    const uint32_t all = comm->size == 32 ? UINT32_MAX : (1u << comm->size) - 1;

    return !fake_nccl.init_hangs && comm->region->came == all;
}

static void nap(uint32_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&pause, NULL);
}

static void release(struct nccl_comm_object *comm)
{
    fake_nccl.comms--;
    comm_unref(comm);
}

/* Returns when no call runs any more; what is still enqueued does nothing. */
int ncclCommAbort(nccl_comm comm)
{
    const int result = begin(__func__);

    comm->aborted = true;
    nap(fake_nccl.abort_ms);
    while (comm->n_running || fake_nccl.aborts_hang)
        nap(1);
    fake_nccl.n_aborted++;
    release(comm);
    return result;
}

int ncclCommDestroy(nccl_comm comm)
{
    const int result = begin(__func__);

    if (comm->n_calls || comm->refs > 1)
        wrong("ncclCommDestroy beside operations");
    fake_nccl.n_destroyed++;
    release(comm);
    return result;
}

#ifndef FAKE_NCCL_LACKS_OPTIONAL
int ncclCommFinalize(nccl_comm comm)
{
    const int result = begin(__func__);

    comm->polls = fake_nccl.polls;
    return result ? result : comm->polls ? NCCL_IN_PROGRESS : NCCL_SUCCESS;
}
#endif

/* ---- groups of calls ---- */

static _Thread_local struct {
    int depth;
    struct nccl_comm_object *comm; /* of the calls */
    int result;
} group;

static int enqueue(struct nccl_comm_object *comm)
{
    int result = 0;

    for (uint32_t i = 0; i < comm->n_calls && !result; i++) {
        comm->refs++;
        result = gpu->enqueue_waiting(comm->calls[i].stream, collective_run, &comm->calls[i],
                                      sizeof comm->calls[i]);
        if (result)
            comm->refs--;
    }
    if (comm->n_calls) {
        comm->has_launched = true;
        fake_nccl.n_groups++;
    }
    if (comm->n_calls > fake_nccl.most_calls)
        fake_nccl.most_calls = comm->n_calls;
    comm->n_calls = 0;
    return result ? NCCL_UNHANDLED_GPU_ERROR : NCCL_SUCCESS;
}

/* What a thread of the real library does is done by the calls that query it. */
int ncclCommGetAsyncError(nccl_comm comm, int *state)
{
    const int result = begin(__func__);

    *state = NCCL_SUCCESS;
    if (result)
        return result;
    if (!comm->is_made && !has_all(comm))
        *state = NCCL_IN_PROGRESS;
    else if (comm->polls && comm->polls--)
        *state = NCCL_IN_PROGRESS;
    else if (comm->has_launched && fake_nccl.async_error)
        *state = fake_nccl.async_error;
    else
        *state = enqueue(comm);
    comm->is_made |= *state != NCCL_IN_PROGRESS;
    return NCCL_SUCCESS;
}

int ncclGroupStart(void)
{
    const int result = begin(__func__);

    if (result)
        return result;
    if (group.depth++ == 0) {
        group.comm = NULL;
        group.result = NCCL_SUCCESS;
    }
    return NCCL_SUCCESS;
}

static int end_group(void)
{
    struct nccl_comm_object *comm = group.comm;

    if (group.depth == 0)
        wrong("ncclGroupEnd without ncclGroupStart");
    if (--group.depth || !comm)
        return group.result;
    if (group.result) {
        comm->n_calls = 0;
        return group.result;
    }
    comm->polls = fake_nccl.polls;
    return comm->polls ? NCCL_IN_PROGRESS : enqueue(comm);
}

int ncclGroupEnd(void)
{
    const int result = begin(__func__), ended = end_group();

    return result ? result : ended;
}

static bool has_memory(const struct call *call)
{
    const size_t bytes = call->count * collective_type_bytes(call->type),
                 n = (size_t)call->comm->size;
    const bool reads = call->kind != CALL_BROADCAST || call->root == call->comm->rank;

    if (!fake_nccl.checks_memory)
        return true;
    return (!reads || gpu->has_memory((uintptr_t)call->from,
                                      call->kind == CALL_REDUCE_SCATTER ? n * bytes : bytes)) &&
           gpu->has_memory((uintptr_t)call->into,
                           call->kind == CALL_ALL_GATHER ? n * bytes : bytes);
}

static int add(struct call call)
{
    struct nccl_comm_object *comm = call.comm;

    if (!comm->is_made || comm->polls)
        wrong("an operation on a communicator that is in progress");
    if (group.depth == 0)
        wrong("an operation outside of a group");
    if (comm->n_calls == 2048)
        wrong("more than 2048 operations in a group");
    if (gpu->current() != comm->context)
        return NCCL_INVALID_USAGE;
    if (!collective_type_bytes(call.type) || (call.op != NCCL_SUM && call.op != NCCL_AVG) ||
        !has_memory(&call))
        return NCCL_INVALID_ARGUMENT;
    if (group.comm && group.comm != comm)
        wrong("two communicators in a group");
    group.comm = comm;
    if (comm->n_calls == comm->capacity) {
        comm->capacity = comm->capacity ? 2 * comm->capacity : 8;
        comm->calls = realloc(comm->calls, comm->capacity * sizeof *comm->calls);
        if (!comm->calls)
            wrong("no memory");
    }
    comm->calls[comm->n_calls++] = call;
    return NCCL_SUCCESS;
}

/* An error is that of the group, too. */
static int call(const char *name, struct call call)
{
    int result = begin(name);

    if (!result)
        result = add(call);
    if (result)
        group.result = result;
    return result;
}

int ncclAllReduce(const void *from, void *into, size_t count, int type, int op, nccl_comm comm,
                  gpu_stream stream)
{
    return call(__func__, (struct call){.comm = comm,
                                        .kind = CALL_ALL_REDUCE,
                                        .from = from,
                                        .into = into,
                                        .count = count,
                                        .type = type,
                                        .op = op,
                                        .stream = stream});
}

int ncclReduceScatter(const void *from, void *into, size_t count, int type, int op, nccl_comm comm,
                      gpu_stream stream)
{
    return call(__func__, (struct call){.comm = comm,
                                        .kind = CALL_REDUCE_SCATTER,
                                        .from = from,
                                        .into = into,
                                        .count = count,
                                        .type = type,
                                        .op = op,
                                        .stream = stream});
}

int ncclBroadcast(const void *from, void *into, size_t count, int type, int root, nccl_comm comm,
                  gpu_stream stream)
{
    return call(__func__, (struct call){.comm = comm,
                                        .kind = CALL_BROADCAST,
                                        .from = from,
                                        .into = into,
                                        .count = count,
                                        .type = type,
                                        .root = root,
                                        .stream = stream});
}

int ncclAllGather(const void *from, void *into, size_t count, int type, nccl_comm comm,
                  gpu_stream stream)
{
    return call(__func__, (struct call){.comm = comm,
                                        .kind = CALL_ALL_GATHER,
                                        .from = from,
                                        .into = into,
                                        .count = count,
                                        .type = type,
                                        .stream = stream});
}
