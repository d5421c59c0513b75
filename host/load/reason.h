/* SPDX-License-Identifier: Apache-2.0 */
/* Names of reasons. */
#ifndef LOAD_REASON_H
#define LOAD_REASON_H

#include <stdint.h>

struct str;

/* "name: words" of a reason. */
void reason_print(uint32_t reason, const char *detail, struct str *out);

const char *reason_name(uint32_t reason);
const char *reason_meaning(uint32_t reason);
/* What a person can do about it; "" where the reason's words say all. */
const char *reason_advice(uint32_t reason);
/* FRIT_REASON_NONE for a name that is none. */
uint32_t reason_of_name(const char *name);

#endif
