/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer for the parameters of kernels, which grows with the launches that need it.  Threads: the
 * owner locks. */
#ifndef GPU_LAUNCH_WORDS_H
#define GPU_LAUNCH_WORDS_H

#include <stdint.h>

#include <frit/program.h>
#include <frit/status.h>

struct kernels_launch;
struct plug;

struct launch_words {
    const struct plug *plug;
    uint64_t *words;
    uint32_t capacity;
};

/* Sets `out` to the first kernel of a launch; kernels_next goes on from there.  The kernel's words
 * lie in the buffer and are valid until the next call. */
frit_status launch_words_first(struct launch_words *buffer, const frit_launch *launch,
                               struct kernels_launch *out, frit_err *err);
void launch_words_fini(struct launch_words *buffer);

#endif
