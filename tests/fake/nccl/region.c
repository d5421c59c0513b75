/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm.h"

struct region *region_open(const char *name)
{
    const int file = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *memory = MAP_FAILED;

    if (file < 0)
        return NULL;
    if (!ftruncate(file, sizeof(struct region)))
        memory = mmap(NULL, sizeof(struct region), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

void region_close(struct region *region, const char *name)
{
    (void)shm_unlink(name);
    munmap(region, sizeof *region);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl_comm_object *comms;

void comm_link(struct nccl_comm_object *comm)
{
    pthread_mutex_lock(&lock);
    comm->next = comms;
    comms = comm;
    pthread_mutex_unlock(&lock);
}

void comm_unref(struct nccl_comm_object *comm)
{
    struct nccl_comm_object **at = &comms;

    if (atomic_fetch_sub(&comm->refs, 1) != 1)
        return;
    pthread_mutex_lock(&lock);
    while (*at != comm)
        at = &(*at)->next;
    *at = comm->next;
    pthread_mutex_unlock(&lock);
    region_close(comm->region, comm->name);
    free(comm->calls);
    free(comm);
}
