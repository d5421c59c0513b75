/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of rank 0 that all ranks are connected to; it does nothing else.
 *
 * A connection is nobody's until it has sent the greeting with the job's token.  What sends
 * something else, or nothing for 5 s, is closed; that is logged once, and does not matter to the
 * others. */
#ifndef JOB_SERVER_H
#define JOB_SERVER_H

#include "job/roster.h"

struct job_server;

struct server_config {
    struct roster_config roster;
    const char *store; /* "tcp://HOST:PORT" */
    uint8_t token[WIRE_TOKEN];
};

/* `own` is the connection of rank 0 itself, which needs no greeting; it is the caller's. */
frit_status server_start(const struct server_config *config, struct job_server **out, int *own,
                         frit_err *err);
/* Sends what is left, with the news that rank 0 leaves.  NULL does nothing. */
void server_stop(struct job_server *server);
/* In the child of a fork: the other end of a connection is to notice when the parent ends. */
void server_close_inherited(struct job_server *server);

#endif
