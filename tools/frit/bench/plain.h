/* SPDX-License-Identifier: Apache-2.0 */
/* What plain threads, without any of Frit, copy and read on this machine. */
#ifndef CLI_BENCH_PLAIN_H
#define CLI_BENCH_PLAIN_H

#include <stddef.h>

struct plain {
    double copy, read; /* bytes per second, read and written bytes both counted */
};

/* The best of a few rounds with a thread per processor and `count` floats: copies with plain and
 * with streaming stores.  All 0 if out of memory. */
struct plain plain_measure(size_t count);

#endif
