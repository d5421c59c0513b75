/* SPDX-License-Identifier: Apache-2.0 */
/* The second queue of a wrong driver.  Threads: one at a time. */
#ifndef FAKE_WRONG_QUEUE_H
#define FAKE_WRONG_QUEUE_H

#include "wrong.h"

/* Slots of frit.backend/1. */
frit_status wrong_queue_create(void *self, const frit_queue_desc *desc, frit_queue **out,
                               frit_err *err);
void wrong_queue_destroy(void *self, frit_queue *queue);

/* FRIT_INVALID for a queue or a value that was never made. */
frit_status wrong_queue_check(void *self, const frit_queue *queue, const frit_point *waits,
                              uint32_t n_waits, frit_err *err);
/* Before a call on the queue, a wait for it too: what must have run by then runs. */
frit_status wrong_queue_enter(void *self, const frit_queue *queue, const frit_point *waits,
                              uint32_t n_waits, frit_err *err);
/* Whether the commands are held back; the call takes its value all the same. */
bool wrong_queue_hold(void *self, const frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                      uint32_t stride);

#endif
