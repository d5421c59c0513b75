/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses "tcp://HOST:PORT" of the store of a job, and sockets to them. */
#ifndef JOB_ADDRESS_H
#define JOB_ADDRESS_H

#include <stdint.h>

#include <frit/status.h>

enum { ADDRESS_TEXT = 64 };

/* FRIT_INVALID with the form that it must have. */
frit_status address_check(const char *store, frit_err *err);
/* Listens at HOST, where it is a number or "localhost", else on all networks of this machine: the
 * name of a host may be that of its loopback address to itself. */
frit_status address_listen(const char *store, int *out, frit_err *err);
/* Connects; tries again until `deadline` (clock_ns), since rank 0 may start later. */
frit_status address_connect(const char *store, uint64_t deadline, int *out, frit_err *err);
/* The number of the other side: "10.77.0.2"; "?" where there is none. */
void address_of_peer(int fd, char out[ADDRESS_TEXT]);

#endif
