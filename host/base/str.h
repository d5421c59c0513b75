/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows.  After a failed append the text stays as it was and `failed` is set, so that a
 * printer appends freely and its caller looks once. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

#include <frit/types.h>

/* All zero is the empty text. */
struct str {
    char *text; /* terminated; NULL while empty */
    size_t length;
    size_t capacity;
    bool failed; /* an append found no memory */
};

void str_add(struct str *str, const char *text, size_t length);
void str_addf(struct str *str, const char *format, ...) FRIT_PRINTF(2, 3);
void str_fini(struct str *str);

/* The borrowed text of a terminated string; NULL gives the empty one. */
frit_str str_of(const char *text);
/* Whether a borrowed text is exactly this word. */
bool str_is(frit_str text, const char *word);
/* The word nearest to `text` among `count` at `words`, for "did you mean"; NULL if none is near. */
const char *str_nearest(const char *text, const char *const *words, size_t count);

#endif
