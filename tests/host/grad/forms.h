/* SPDX-License-Identifier: Apache-2.0 */
/* Random scripts of a row of ops.def. */
#ifndef GRAD_FORMS_H
#define GRAD_FORMS_H

#include "host/grad/script.h"

typedef void (*form_fn)(struct script *s);

struct form {
    const char *row;
    form_fn fn;
};

/* NULL: there is none. */
form_fn form_of(const char *row);

/* The forms of a file, ended by an entry without a row. */
extern const struct form forms_map[], forms_shape[], forms_index[], forms_reduce[],
    forms_contract[], forms_pool[];

#endif
