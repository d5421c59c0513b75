/* SPDX-License-Identifier: Apache-2.0 */
#include "plain.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct unique_id {
    char bytes[128];
};

static struct {
    int (*GetVersion)(int *version);
    int (*GetUniqueId)(struct unique_id *id);
    int (*CommInitRank)(void **comm, int size, struct unique_id id, int rank);
    int (*AllReduce)(const void *from, void *into, size_t count, int type, int op, void *comm,
                     void *stream);
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
} nccl;

static struct unique_id id;
static char version[32];

static void must(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "gpus: %s failed (%d)\n", what, result);
    exit(1);
}

static void load(void)
{
    const char *file = setting("GPUS_NCCL");
    void *library = dlopen(*file ? file : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int v = 0;

    must(!library, "opening NCCL");
#define FIND(name)                                                        \
    *(void **)&nccl.name = library ? dlsym(library, "nccl" #name) : NULL; \
    must(!nccl.name, "nccl" #name)
    FIND(GetVersion);
    FIND(GetUniqueId);
    FIND(CommInitRank);
    FIND(AllReduce);
    FIND(GroupStart);
    FIND(GroupEnd);
#undef FIND
    must(nccl.GetVersion(&v), "ncclGetVersion");
    snprintf(version, sizeof version, "%d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
    must(nccl.GetUniqueId(&id), "ncclGetUniqueId");
}

void plain_open(struct plain *plain, const struct rank *rank)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    plain->stream = device_new_stream();
    must(nccl.CommInitRank(&plain->comm, (int)rank->size, id, (int)rank->number),
         "ncclCommInitRank");
}

void plain_reduce(const struct plain *plain, uint64_t at, uint64_t count)
{
    void *memory = (void *)(uintptr_t)at;

    must(
        nccl.AllReduce(memory, memory, count, 7 /* f32 */, 0 /* sum */, plain->comm, plain->stream),
        "ncclAllReduce");
}

void plain_begin_group(void)
{
    must(nccl.GroupStart(), "ncclGroupStart");
}

void plain_end_group(void)
{
    must(nccl.GroupEnd(), "ncclGroupEnd");
}

void plain_wait(const struct plain *plain)
{
    device_synchronize(plain->stream);
}

const char *plain_version(void)
{
    return version;
}
