/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connecting to a server. */
#ifndef REMOTE_CONNECT_H
#define REMOTE_CONNECT_H

#include <frit/status.h>

struct plug;
struct wire_hello;

/* A connection whose server has said hello.  FRIT_IO or FRIT_INCOMPATIBLE with a text. */
frit_status remote_connect(const struct plug *plug, frit_str address, int *fd,
                           struct wire_hello *hello, frit_err *err);

#endif
