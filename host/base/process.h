/* SPDX-License-Identifier: Apache-2.0 */
/* Forks.  The child of a fork has only the thread that forked: other threads held locks that nobody
 * releases now, and devices, their memory and their queues do not survive.  A child that was forked
 * while a host was open is therefore barred: no call of it takes a lock, joins a thread or calls a
 * plugin; calls that can fail do, others do nothing.  A child that was forked before, or after
 * the last host was closed, is like any process. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/status.h>

extern atomic_bool process_barred;

/* Whether this process is such a child. */
static inline bool process_is_barred(void)
{
    return __builtin_expect(atomic_load_explicit(&process_barred, memory_order_relaxed), 0);
}

/* What such a child reports: FRIT_UNSUPPORTED, and in words. */
#define PROCESS_BARRED_TEXT                                                                   \
    "this process was forked while a host was open, and devices do not survive a fork; fork " \
    "before frit_host_open or after frit_host_close, or start another program instead"
frit_status process_refuse(frit_err *err);

/* A host is open from here on, until process_host_closed.  `on_bar` is called in a child that
 * becomes barred, by its only thread; it is the same in all calls. */
void process_host_opens(void (*on_bar)(void));
void process_host_closed(void);

#endif
