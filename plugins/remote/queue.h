/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The queue of a device, and the messages that go to its server. */
#ifndef REMOTE_QUEUE_H
#define REMOTE_QUEUE_H

#include <frit/backend.h>

struct remote;
struct wire_range;

/* Slots of frit.backend/1. */
frit_status remote_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                         frit_err *err);
frit_status remote_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                        frit_err *err);
frit_status remote_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err);
frit_status remote_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                        frit_failure *failure, frit_err *err);

/* `bytes` more bytes of the message that submit writes, NULL where there is no memory. */
void *remote_add(struct remote *remote, uint64_t bytes);
/* Sends a message that needs no value.  The caller holds `sending`. */
void remote_send(struct remote *remote, uint32_t kind, const struct wire_range *range);

#endif
