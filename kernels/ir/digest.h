/* SPDX-License-Identifier: Apache-2.0 */
/* A digest of a module, the same in every process: equal if and only if the modules have the same
 * instructions, arguments and parameters.  Names do not count. */
#ifndef KIR_DIGEST_H
#define KIR_DIGEST_H

#include <stdint.h>

#include "ir/kir.h"

enum { KIR_DIGEST = 16 }; /* bytes */

/* Of a module that keeps the rules of verify.h. */
void kir_digest(const struct kir_module *module, uint8_t out[KIR_DIGEST]);

#endif
