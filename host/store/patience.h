/* SPDX-License-Identifier: Apache-2.0 */
/* How long a program has been waiting for a file that another process has locked, or that is slow.
 * Computing does not count, nor does time in which the thread could have computed but for others.
 *
 * A file that exhausted the patience of this process is not used again by it.  Threads: one per
 * struct; patience_gave_up and patience_give_up any. */
#ifndef STORE_PATIENCE_H
#define STORE_PATIENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct patience {
    int64_t limit_ns;
    /* NULL, or of a background thread, which may wait longer; once it is set, somebody waits for
     * that thread, which then has `hurried_ns` left. */
    const atomic_bool *ending;
    int64_t hurried_ns;
    /* Set by the functions. */
    int64_t begun_ns, begun_queued_ns;
    bool hurried, exhausted;
};

/* Begins to count, with the first three fields set. */
void patience_begin(struct patience *patience);
/* Whether the limit is exceeded, or was before. */
bool patience_exhausted(struct patience *patience);
/* Waits a little, longer after more waits; false, at once: the patience is exhausted. */
bool patience_wait(struct patience *patience, int n_waits);
/* What has been waited since it began. */
int64_t patience_waited_ns(const struct patience *patience);

/* Whether this process has given the file up. */
bool patience_gave_up(const char *path);
/* Gives it up; false: it was given up before. */
bool patience_give_up(const char *path);

#endif
