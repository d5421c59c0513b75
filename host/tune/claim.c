/* SPDX-License-Identifier: Apache-2.0 */
/* A process of another boot, or of another process namespace, cannot be looked up: its claims only
 * expire. */
#include "tune/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { EXPIRY_S = 120, START_TIME = 22 /* its field in /proc/PID/stat */ };

/* Reads a small file of /proc as a text; false: it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

static int64_t this_machine(void)
{
    struct {
        char boot[64];
        uint64_t space;
    } machine = {0};
    struct stat info;

    if (!read_text("/proc/sys/kernel/random/boot_id", machine.boot, sizeof(machine.boot)))
        gethostname(machine.boot, sizeof(machine.boot) - 1);
    if (!stat("/proc/self/ns/pid", &info))
        machine.space = info.st_ino;
    return (int64_t)XXH3_64bits(&machine, sizeof(machine));
}

/* Ticks since the boot; 0: unknown; -1: there is no such process, or it has ended and waits for its
 * parent. */
static int64_t start_of(int64_t process)
{
    char path[64], text[1024];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)process);
    if (!read_text(path, text, sizeof(text)))
        return kill((pid_t)process, 0) && errno == ESRCH ? -1 : 0;
    at = strrchr(text, ')'); /* the name before it may hold anything */
    if (!at || at[1] != ' ')
        return 0;
    if (at[2] == 'Z' || at[2] == 'X')
        return -1;
    for (int field = 2; field < START_TIME && at; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoll(at + 1, NULL, 10) : 0;
}

struct tune_claim tune_claim_own(int64_t store)
{
    return (struct tune_claim){.machine = this_machine(),
                               .process = getpid(),
                               .started = start_of(getpid()),
                               .store = store,
                               .since = time(NULL)};
}

bool tune_claim_same(const struct tune_claim *a, const struct tune_claim *b)
{
    return a->machine == b->machine && a->process == b->process && a->started == b->started &&
           a->store == b->store;
}

bool tune_claim_is_live(const struct tune_claim *claim)
{
    const int64_t now = time(NULL);

    /* A claim from the future is of a clock that was set back. */
    if (claim->since > now || claim->since < now - EXPIRY_S)
        return false;
    if (claim->machine != this_machine())
        return true;
    return claim->process > 0 && claim->process <= INT32_MAX &&
           start_of(claim->process) == claim->started;
}
