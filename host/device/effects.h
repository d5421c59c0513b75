/* SPDX-License-Identifier: Apache-2.0 */
/* The order of effects: of what ORDERED ops do outside of the device's memory, where no buffer's
 * last use orders them.
 *
 * A submit with effects runs after the previous one, on whichever queue that is: the
 * driver's queue waits for its point, the host does not.  So effects of two streams run one after
 * the other, in the order in which the streams submit.  What the host runs itself (an op on the
 * fallback device, a collective row) waits on the host for the effects submitted before it.
 * Threads: any. */
#ifndef DEVICE_EFFECTS_H
#define DEVICE_EFFECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <frit/frit.h>

struct points;

struct effects {
    pthread_mutex_t lock;       /* taken before a queue's: one submit with effects at a time */
    atomic_uint_least64_t last; /* point of the last such submit, 0: there was none */
};

void effects_init(struct effects *effects);
void effects_fini(struct effects *effects);

/* Until effects_end no other thread begins; `after` gets what the effects of a submit wait for. */
void effects_begin(struct effects *effects, struct points *after);
/* The effects are over when `point` is reached, or (0) there are none that are pending. */
void effects_end(struct effects *effects, uint64_t point);
/* Waits on the host for the effects that were submitted. */
frit_status effects_await(frit_device *device, frit_err *err);

#endif
