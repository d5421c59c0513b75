/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Launches in the words of the server. */
#ifndef REMOTE_LAUNCH_H
#define REMOTE_LAUNCH_H

#include <frit/program.h>

struct remote;

/* Appends a launch to the message that submit writes.  FRIT_NO_HOST_MEMORY, or what kit_call_of
 * returns, with a text. */
frit_status remote_add_launch(struct remote *remote, const frit_launch *launch, frit_err *err);

#endif
