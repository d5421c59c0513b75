/* SPDX-License-Identifier: Apache-2.0 */
#include "store/patience.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    MIN_PAUSE_NS = 100000, /* doubled with each wait, */
    MAX_DOUBLINGS = 4      /* so often */
};

/* Files that were given up in this process, by the digests of their paths; 0: none.  Where two
 * share an entry, the earlier one may be tried again. */
static atomic_uint_fast64_t slow_files[8];

/* Time that passed without this thread computing. */
static int64_t idle_ns(void)
{
    struct timespec wall, own;

    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return (wall.tv_sec - own.tv_sec) * INT64_C(1000000000) + wall.tv_nsec - own.tv_nsec;
}

/* Time that this thread could have computed, on a busy machine, but for other threads; 0 where the
 * kernel does not count it. */
static int64_t queued_ns(void)
{
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    char text[128], *end;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    strtoll(text, &end, 10);
    return strtoll(end, NULL, 10);
}

static void count_from_now(struct patience *patience)
{
    patience->begun_ns = idle_ns();
    patience->begun_queued_ns = queued_ns();
}

void patience_begin(struct patience *patience)
{
    patience->hurried = patience->exhausted = false;
    count_from_now(patience);
}

static int64_t limit_ns(struct patience *patience)
{
    if (!patience->ending)
        return patience->limit_ns;
    if (!patience->hurried && atomic_load(patience->ending)) {
        patience->hurried = true;
        count_from_now(patience);
    }
    return patience->hurried ? patience->hurried_ns : patience->limit_ns;
}

bool patience_exhausted(struct patience *patience)
{
    const int64_t limit = limit_ns(patience);

    if (idle_ns() - patience->begun_ns > limit) /* only then, since the rest is slow */
        patience->exhausted |= patience_waited_ns(patience) > limit;
    return patience->exhausted;
}

bool patience_wait(struct patience *patience, int n_waits)
{
    const int doublings = n_waits < MAX_DOUBLINGS ? n_waits : MAX_DOUBLINGS;
    const struct timespec pause = {0, (long)MIN_PAUSE_NS << doublings};

    if (patience_exhausted(patience))
        return false;
    nanosleep(&pause, NULL);
    return true;
}

int64_t patience_waited_ns(const struct patience *patience)
{
    const int64_t waited =
        idle_ns() - patience->begun_ns - (queued_ns() - patience->begun_queued_ns);

    return waited > 0 ? waited : 0;
}

static uint64_t digest_of(const char *path)
{
    return XXH3_64bits(path, strlen(path)) | 1;
}

static atomic_uint_fast64_t *entry_of(uint64_t digest)
{
    return &slow_files[digest / 2 % (sizeof(slow_files) / sizeof(slow_files[0]))];
}

bool patience_gave_up(const char *path)
{
    const uint64_t digest = digest_of(path);

    return atomic_load(entry_of(digest)) == digest;
}

bool patience_give_up(const char *path)
{
    const uint64_t digest = digest_of(path);

    return atomic_exchange(entry_of(digest), digest) != digest;
}
