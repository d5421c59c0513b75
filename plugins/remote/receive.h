/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The receiver: the thread that reads replies. */
#ifndef REMOTE_RECEIVE_H
#define REMOTE_RECEIVE_H

#include <stdint.h>

struct remote;

/* The thread; `arg` is the struct remote.  Ends with the connection. */
void *remote_receive(void *arg);
/* Forgets reads up to a value, whose bytes have come or never will. */
void remote_drop_reads(struct remote *remote, uint64_t up_to);

#endif
