/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <pthread.h>

#include "base/fail.h"

atomic_bool process_barred;

static struct {
    atomic_uint n_hosts; /* open, being opened or being closed */
    void (*_Atomic on_bar)(void);
    pthread_once_t once;
} process = {.once = PTHREAD_ONCE_INIT};

static void in_child(void)
{
    void (*on_bar)(void) = atomic_load(&process.on_bar);

    if (atomic_load(&process.n_hosts) == 0 || process_is_barred())
        return;
    atomic_store(&process_barred, true);
    on_bar();
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

void process_host_opens(void (*on_bar)(void))
{
    atomic_store(&process.on_bar, on_bar);
    pthread_once(&process.once, watch_forks);
    atomic_fetch_add(&process.n_hosts, 1);
}

void process_host_closed(void)
{
    atomic_fetch_sub(&process.n_hosts, 1);
}

frit_status process_refuse(frit_err *err)
{
    return fail(err, FRIT_UNSUPPORTED, "%s", PROCESS_BARRED_TEXT);
}
