/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* One connection of the server: the device of one driver. */
#ifndef REMOTE_SESSION_H
#define REMOTE_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The signal that is to end the process, 0: none. */
extern volatile sig_atomic_t session_stop_signal;

/* Waits until there is something to read.  False: a signal came, or something fails. */
bool session_wait(int fd);
/* Serves until the driver closes the connection, or a signal came.  Buffers hold at most
 * `memory_bytes` together. */
void session_run(int fd, uint64_t memory_bytes);

#endif
