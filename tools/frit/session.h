/* SPDX-License-Identifier: Apache-2.0 */
/* The host and the device of a command. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <frit/frit.h>

#include "command.h"

struct session {
    frit_host *host;
    frit_device *device; /* NULL until session_device */
};

/* Opens the host with settings above the configuration's; session_close must be called in every
 * case. */
int session_open_with(struct session *session, const struct invocation *in,
                      const frit_setting *settings, uint64_t n);
/* Opens the host; with --no-fuse fusion is disabled.  CLI_FAILED after a message; session_close
 * must be called in every case. */
int session_open(struct session *session, const struct invocation *in);
/* As session_open with `fuse` instead of --no-fuse; programs are compiled before they run, whatever
 * the configuration.  For programs that run once. */
int session_open_waiting(struct session *session, const struct invocation *in, bool fuse);
/* Opens the device of --device, or the configured one. */
int session_device(struct session *session, const struct invocation *in);
void session_close(struct session *session);
/* Loads plugins so that text programs can use their ops; errors are ignored, the ops are unknown
 * then. */
void session_load_ops(void);

/* Prints the number of programs that failed by a fault of the driver, if any. */
void session_faults(uint64_t faults);

/* "not-found" etc.; "?" for codes of newer libraries. */
const char *session_reason(uint32_t reason);

#endif
