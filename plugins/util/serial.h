/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A queue of a driver on host memory (util/memory.h) that runs commands inside of submit, in order,
 * on the thread of its caller: several queues run at once.
 *
 * What could be wrong with a command is found before the first one of its submit runs; what fails
 * after that (a kernel of another plugin, a launch that lacks memory) the timeline keeps for wait.
 * Every value that was ever handed out is reached, and a submit that waits for another
 * queue blocks until then.  Threads: as frit.backend/1 says. */
#ifndef UTIL_SERIAL_H
#define UTIL_SERIAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/profile.h>

#include "util/plug.h"
#include "util/progress.h"

enum { SERIAL_MORE = 15 }; /* queues of a device beside its first one */

/* What the driver does with a LAUNCH; `ctx` is the queue's. */
struct serial_driver {
    /* Negative with a text for a launch that `run` cannot take; its arguments and workspace lie in
     * their memory. */
    frit_status (*check)(void *ctx, const frit_launch *launch, frit_err *err);
    frit_status (*run)(void *ctx, const frit_launch *launch, frit_err *err);
    /* Of the program of a launch that passed the check. */
    frit_str (*name)(const frit_launch *launch);
};

struct serial {
    const struct plug *plug;
    const struct serial_driver *driver;
    void *ctx; /* first argument of the driver's functions */
    struct progress progress;
    struct serial *first; /* queue of the device, which may be this one */
    _Atomic(struct serial *)
        more[SERIAL_MORE]; /* of the first one: the others, NULL between them */
};

/* `first`: NULL for the device's first queue; another one is the start of a struct frit_queue
 * (util/queue.h).  False where the device has as many as there is room for. */
bool serial_init(struct serial *serial, const struct plug *plug, const struct serial_driver *driver,
                 void *ctx, struct serial *first);
void serial_fini(struct serial *serial);

/* The queue that a handle names, seen from the first one.  FRIT_INVALID for one that
 * is of no queue. */
frit_status serial_find(struct serial *first, frit_queue *queue, struct serial **out,
                        frit_err *err);

/* As the slots of frit.backend/1. */
frit_status serial_write(struct serial *serial, const frit_transfer *to, const void *from,
                         uint64_t *value, frit_err *err);
frit_status serial_read(struct serial *serial, const frit_transfer *from, void *into,
                        uint64_t *value, frit_err *err);
frit_status serial_submit(struct serial *serial, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err);

/* As the slot of frit.profile/1: ticks are the host's nanoseconds. */
void serial_clock(const struct serial *serial, frit_clock *out);

/* Argument `i` of a launch. */
const frit_arg *serial_arg(const frit_launch *launch, uint32_t i);
/* Where element 0 of an argument lies, NULL without memory. */
char *serial_element(const frit_arg *arg);

#endif
