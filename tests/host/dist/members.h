/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a group: threads of the test, each a rank on a device of its own choice. */
#ifndef TESTS_DIST_MEMBERS_H
#define TESTS_DIST_MEMBERS_H

#include "unit.h"

#include <pthread.h>
#include <stdbool.h>

#include <frit/dist.h>
#include <frit/frit.h>
#include <frit/grad.h>
#include <frit/inspect.h>
#include <frit/train.h>

enum { MOST_MEMBERS = 8, MEMBER_TEXT = 1024 };

struct member {
    frit_device *device;
    uint32_t rank, size;
    frit_rank *group;         /* while `body` runs */
    void *ctx;                /* the test's */
    frit_err err;             /* for calls */
    char failed[MEMBER_TEXT]; /* why the test fails, "": it does not */
    /* Of the functions here. */
    bool (*body)(struct member *member);
    frit_group_config config;
    pthread_t thread;
};

/* Notes why the test fails, unless there is a reason already; returns false. */
bool member_fail(struct member *member, const char *format, ...) FRIT_PRINTF(2, 3);

/* In a function that returns bool: the call must succeed. */
#define MUST(member, call)                                                   \
    do {                                                                     \
        if ((call) != FRIT_OK)                                               \
            return member_fail(member, "%s: %s", #call, (member)->err.text); \
    } while (0)

/* In a function that returns bool. */
#define CHECK(member, condition)                              \
    do {                                                      \
        if (!(condition))                                     \
            return member_fail(member, "not %s", #condition); \
    } while (0)

/* The call fails with this status and a text that has `part` in it. */
#define MUST_FAIL(member, call, status, part)                     \
    do {                                                          \
        if (!member_failed_so(member, #call, call, status, part)) \
            return false;                                         \
    } while (0)
bool member_failed_so(struct member *member, const char *call, frit_status have, frit_status want,
                      const char *part);

/* A host with plugins that are looked for as ever, and its devices, by name; each is opened once.
 */
struct stage {
    frit_host *host;
    frit_device *devices[MOST_MEMBERS];
    uint32_t n_devices;
};

void stage_open(struct stage *stage, const char *const *names, uint32_t n);
bool stage_has(const char *name);      /* whether there is such a device */
void stage_close(struct stage *stage); /* nothing is left over */

/* The counters of a device when what ran on it has ended and let go of its memory. */
void stats_at_rest(frit_device *device, frit_stats *out);

/* Runs `body` in `size` threads, rank i on device i modulo their number, in a new group; then fails
 * the test if one has failed.  `members` has one for each, with `ctx` set where it is needed. */
void stage_run(struct stage *stage, uint32_t size, struct member *members,
               bool (*body)(struct member *member));

#endif
