/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a module's code: equal for modules that do the same by the same instructions, else
 * not, in any process.  The kernel's name is no part of it. */
#ifndef KIR_DIGEST_H
#define KIR_DIGEST_H

#include <stdint.h>

#include "ir/kir.h"

enum { KIR_DIGEST = 16 }; /* bytes */

/* Of a module that keeps the rules of verify.h. */
void kir_digest(const struct kir_module *module, uint8_t out[KIR_DIGEST]);

#endif
