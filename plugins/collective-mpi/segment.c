/* SPDX-License-Identifier: Apache-2.0 */
#include "segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { PART_BYTES_LOW = 65536, PART_BYTES_HIGH = 262144, PIECE_BYTES = 1048576 };

uint64_t segment_part_bytes(uint32_t n_ranks)
{
    const uint64_t bytes = PIECE_BYTES / n_ranks / 64 * 64;

    return bytes < PART_BYTES_LOW    ? PART_BYTES_LOW
           : bytes > PART_BYTES_HIGH ? PART_BYTES_HIGH
                                     : bytes;
}

uint64_t segment_bytes(uint32_t n_ranks)
{
    return sizeof(struct segment) + N_PIECES * n_ranks * segment_part_bytes(n_ranks);
}

enum { NAME_BYTES = 40 };

static void name_of(uint64_t token, char *name)
{
    snprintf(name, NAME_BYTES, "/frit-mpi-%016llx", (unsigned long long)token);
}

static struct segment *map(int file, uint32_t n_ranks)
{
    void *at = mmap(NULL, segment_bytes(n_ranks), PROT_READ | PROT_WRITE,
                    file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);

    return at == MAP_FAILED ? NULL : at;
}

static struct segment *create_shared(uint32_t n_ranks)
{
    struct segment *segment = NULL;
    char name[NAME_BYTES];
    uint64_t token = 0;
    int file;

    if (getrandom(&token, sizeof token, 0) != sizeof token || !token)
        return NULL;
    name_of(token, name);
    file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0)
        return NULL;
    /* All of it now: a full file system would be a signal later. */
    if (!posix_fallocate(file, 0, (off_t)segment_bytes(n_ranks)))
        segment = map(file, n_ranks);
    if (segment)
        segment->token = token;
    else
        (void)shm_unlink(name);
    (void)close(file);
    return segment;
}

struct segment *segment_create(uint32_t n_ranks, bool shared)
{
    struct segment *segment = shared ? create_shared(n_ranks) : NULL;

    return segment ? segment : map(-1, n_ranks);
}

struct segment *segment_open(uint64_t token, uint32_t n_ranks)
{
    struct segment *segment = NULL;
    char name[NAME_BYTES];
    int file;

    if (!token)
        return NULL;
    name_of(token, name);
    file = shm_open(name, O_RDWR, 0);
    if (file < 0)
        return NULL;
    if (lseek(file, 0, SEEK_END) == (off_t)segment_bytes(n_ranks))
        segment = map(file, n_ranks);
    (void)close(file);
    return segment;
}

void segment_unlink(const struct segment *segment)
{
    char name[NAME_BYTES];

    if (!segment->token)
        return;
    name_of(segment->token, name);
    (void)shm_unlink(name);
}

void segment_close(struct segment *segment, uint32_t n_ranks)
{
    if (segment)
        (void)munmap(segment, segment_bytes(n_ranks));
}
