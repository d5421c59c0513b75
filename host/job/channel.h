/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that never waits: bytes that came and were not read yet, bytes that are to be sent.
 * Errors are numbers of errno, or CHANNEL_CLOSED where the other side has closed.  Not thread-safe.
 */
#ifndef JOB_CHANNEL_H
#define JOB_CHANNEL_H

#include "job/wire.h"

enum { CHANNEL_CLOSED = -1, CHANNEL_QUEUE = 8 << 20, CHANNEL_REASON = 128 };

struct channel {
    int fd; /* -1: none */
    struct str in, out;
    size_t sent; /* of `out` */
};

/* Takes the socket and makes it one that never waits.  A TCP connection ends with ETIMEDOUT when
 * the other host has acknowledged nothing for `dead_ns`, whether or not there is something to send.
 */
void channel_init(struct channel *channel, int fd, uint64_t dead_ns);
void channel_fini(struct channel *channel);

/* Reads what is there, as long as `in` has less than `most` bytes. */
int channel_read(struct channel *channel, size_t most);
/* Calls `take` for each whole frame that has come, and removes it; `take` sets `failed` for one
 * that is wrong.  EPROTO for that, and for what is no frame. */
int channel_each(struct channel *channel,
                 void (*take)(void *ctx, uint32_t kind, struct wire_reader *in), void *ctx);
/* Removes bytes at the front of `in`. */
void channel_drop(struct channel *channel, size_t n);
/* Sends what can be sent.  ENOBUFS: the other side does not read, or there was no memory. */
int channel_send(struct channel *channel);
bool channel_wants_to_send(const struct channel *channel);
/* Sends what is left and says that nothing more comes; waits for at most `limit_ns`. */
void channel_end(struct channel *channel, uint64_t limit_ns);

/* What an error says of the process at the other end: "died: connection reset", "is cut off: its
 * host has acknowledged nothing for 5.0 s". */
void channel_reason(int error, uint64_t dead_ns, char out[CHANNEL_REASON]);

#endif
