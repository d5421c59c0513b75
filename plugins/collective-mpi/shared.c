/* SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { NAME_BYTES = 40 };

static void name_of(uint64_t number, char *name)
{
    snprintf(name, NAME_BYTES, "/frit-mpi-%016llx", (unsigned long long)number);
}

static void *map(int file, uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);

    return at == MAP_FAILED ? NULL : at;
}

static void *create(uint64_t bytes, uint64_t number)
{
    void *memory = NULL;
    char name[NAME_BYTES];
    int file;

    name_of(number, name);
    file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0)
        return NULL;
    /* All of it now: a full file system would be a signal later. */
    if (!posix_fallocate(file, 0, (off_t)bytes))
        memory = map(file, bytes);
    if (!memory)
        (void)shm_unlink(name);
    (void)close(file);
    return memory;
}

void *shared_create(uint64_t bytes, bool wanted, uint64_t *number)
{
    void *memory = NULL;

    *number = 0;
    if (wanted && getrandom(number, sizeof *number, 0) == sizeof *number && *number)
        memory = create(bytes, *number);
    if (memory)
        return memory;
    *number = 0;
    return map(-1, bytes);
}

void *shared_open(uint64_t number, uint64_t bytes)
{
    void *memory = NULL;
    char name[NAME_BYTES];
    int file;

    if (!number)
        return NULL;
    name_of(number, name);
    file = shm_open(name, O_RDWR, 0);
    if (file < 0)
        return NULL;
    if (lseek(file, 0, SEEK_END) == (off_t)bytes)
        memory = map(file, bytes);
    (void)close(file);
    return memory;
}

void shared_unlink(uint64_t number)
{
    char name[NAME_BYTES];

    if (!number)
        return;
    name_of(number, name);
    (void)shm_unlink(name);
}

void shared_close(void *memory, uint64_t bytes)
{
    if (memory)
        (void)munmap(memory, bytes);
}
