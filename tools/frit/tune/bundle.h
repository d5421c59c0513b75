/* SPDX-License-Identifier: Apache-2.0 */
/* `frit tune export FILE` and `frit tune import FILE`.  Each returns an exit code, after a message
 * unless it is CLI_FINE. */
#ifndef CLI_TUNE_BUNDLE_H
#define CLI_TUNE_BUNDLE_H

struct invocation;
struct session;

int tune_export(const struct invocation *in, const struct session *session);
int tune_import(const struct invocation *in, const struct session *session);

#endif
