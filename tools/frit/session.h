/* SPDX-License-Identifier: Apache-2.0 */
/* The host and the device that a command works with. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <frit/frit.h>

#include "command.h"

struct session {
    frit_host *host;
    frit_device *device; /* NULL until session_device */
};

/* With --no-fuse no ops run together.  CLI_FAILED after a message; session_close afterwards in
 * every case. */
int session_open(struct session *session, const struct invocation *in);
/* The same where that is said otherwise, and for programs that run once: they are waited for while
 * they are compiled, whatever the configuration says. */
int session_open_waiting(struct session *session, const struct invocation *in, bool fuse);
/* The device of --device, or what the configuration says. */
int session_device(struct session *session, const struct invocation *in);
void session_close(struct session *session);
/* Text programs may have ops that plugins bring, which are known once a host was open.  Says
 * nothing where none can be: then the ops are unknown. */
void session_know_ops(void);

/* Says how many programs failed by a fault of the driver; nothing where none did. */
void session_faults(uint64_t faults);

/* "not-found" and so on; "?" for a code of a newer library. */
const char *session_reason(uint32_t reason);

#endif
