/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel of another plugin reads at a DISPATCH, as frit/backend.h defines it.  Threads:
 * any. */
#ifndef GPU_FOREIGN_WORDS_H
#define GPU_FOREIGN_WORDS_H

#include <stdint.h>

#include <frit/program.h>

/* Number of words that foreign_words_write writes. */
uint64_t foreign_words_count(const frit_launch *launch);
void foreign_words_write(uint64_t *to, const frit_launch *launch);

#endif
