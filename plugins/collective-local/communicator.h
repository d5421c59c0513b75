/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator: what the ranks of one group share.  It is made by the first rank that comes, and
 * freed with the last one that leaves. */
#ifndef LOCAL_COMMUNICATOR_H
#define LOCAL_COMMUNICATOR_H

#include <time.h>

#include "util/operation.h"

#include "local.h"
#include "portion.h"

/* A rank's end.  All fields under the communicator's lock. */
struct frit_group {
    struct communicator *communicator; /* NULL: nobody came as this rank */
    uint32_t rank;
    bool left;
    uint64_t begun;
    uint32_t capacity; /* of `operations`: a power of two, or 0 */
    /* Those that have been begun and are not done: number n is at n modulo `capacity`. */
    struct operation *operations;
};

struct communicator {
    struct communicator *next; /* under the instance's lock */
    struct local *local;
    frit_group_id id;
    uint32_t size;
    uint32_t n_came, n_left; /* changed with both locks held */

    pthread_mutex_t lock;
    pthread_cond_t change;
    frit_err error; /* of the group; status FRIT_OK: it goes on */
    uint64_t done;  /* operations */
    /* Operation done + 1, if `running`: */
    bool running;
    uint32_t n_working; /* threads that move data of it */
    struct portion next_portion;
    struct agreed agreed;
    struct frit_group ranks[];
};

frit_status communicator_join(struct local *local, const frit_group_params *params,
                              frit_group **out, frit_err *err);
/* The rank has nothing to wait for any more. */
void communicator_leave(frit_group *group);

/* ---- with the communicator's lock ---- */

/* Ends the group, unless it has ended. */
void communicator_fail(struct communicator *c, frit_status status, const char *format, ...)
    FRIT_PRINTF(3, 4);
/* Copies the group's failure to `err`. */
frit_status communicator_error(const struct communicator *c, frit_err *err);

/* A time on CLOCK_MONOTONIC. */
struct deadline {
    bool never;
    struct timespec at;
};

struct deadline deadline_after(uint64_t ns);
bool deadline_has_passed(const struct deadline *deadline);
/* Waits for a change of the communicator; false: the deadline has passed. */
bool communicator_sleep(struct communicator *c, const struct deadline *deadline);

/* " 0, 2": the ranks that have not come, or for `value` > 0 have not begun that operation. */
void communicator_print_missing(const struct communicator *c, uint64_t value, char *text,
                                size_t size);

#endif
