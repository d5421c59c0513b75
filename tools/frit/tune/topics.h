/* SPDX-License-Identifier: Apache-2.0 */
/* What `frit tune` does by the first word of its arguments, on an open device.  One thread. */
#ifndef TUNE_TOPICS_H
#define TUNE_TOPICS_H

struct invocation;
struct session;

/* Each returns an exit code, after a message unless it is CLI_FINE. */
int tune_show(const struct invocation *in, const struct session *session);
int tune_forget(const struct invocation *in, const struct session *session);
int tune_export(const struct invocation *in, const struct session *session);
int tune_import(const struct invocation *in, const struct session *session);

#endif
