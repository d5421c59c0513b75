/* SPDX-License-Identifier: Apache-2.0 */
/* `frit tune show` and `frit tune forget`.  Each returns an exit code, after a message unless it is
 * CLI_FINE. */
#ifndef CLI_TUNE_DECISIONS_H
#define CLI_TUNE_DECISIONS_H

struct invocation;
struct session;

int tune_show(const struct invocation *in, const struct session *session);
int tune_forget(const struct invocation *in, const struct session *session);

#endif
