/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Queues beside the first one that run commands inside of submit: what util/serial.h works on.  A
 * driver with queues of another kind completes struct frit_queue itself, and does not include this
 * file; one that keeps more with each queue makes this the first member of its own struct. */
#ifndef UTIL_QUEUE_H
#define UTIL_QUEUE_H

#include "util/serial.h"

struct frit_queue {
    struct serial serial;
};

#endif
