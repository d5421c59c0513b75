/* SPDX-License-Identifier: Apache-2.0 */
/* Takes out of a text who made it and where: the home folder, the user's and the host's names.
 * One thread. */
#ifndef DOCTOR_MASK_H
#define DOCTOR_MASK_H

#include <stddef.h>

struct str;

enum { MASK_WORDS = 10, MASK_LENGTH = 256 };

struct mask {
    struct {
        char word[MASK_LENGTH];
        const char *instead;
    } at[MASK_WORDS]; /* longest first */
    size_t n;
};

/* Those of this process: by its environment, and by what the system says of it. */
void mask_of_process(struct mask *out);
/* Another word; short or empty ones are left out.  Case counts. */
void mask_add(struct mask *mask, const char *word, const char *instead);
void mask_apply(const struct mask *mask, const char *text, struct str *out);

#endif
