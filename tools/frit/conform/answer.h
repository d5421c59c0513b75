/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of prepare. */
#ifndef CLI_CONFORM_ANSWER_H
#define CLI_CONFORM_ANSWER_H

#include "conform/bare.h"

/* Whether two answers to one question are the same, else FRIT_INTERNAL after the words "WHEN
 * prepare ...".  The driver's own words may differ, and the code of an equal program may have been
 * compiled meanwhile. */
frit_status answer_same(struct bare *bare, const struct bare_answer *a, const struct bare_answer *b,
                        const char *when);

#endif
