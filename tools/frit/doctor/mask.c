/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/mask.h"

#include <ctype.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

/* A shorter word than CERTAIN is masked only where it stands alone: "ann" is part of "annotate". */
enum { SHORTEST = 2, CERTAIN = 5 };

void mask_add(struct mask *mask, const char *word, const char *instead)
{
    size_t length = word ? strlen(word) : 0, at = mask->n;

    while (length > 1 && word[length - 1] == '/')
        length--;
    if (length < SHORTEST || length >= MASK_LENGTH || mask->n == MASK_WORDS)
        return;
    for (; at > 0 && strlen(mask->at[at - 1].word) < length; at--)
        mask->at[at] = mask->at[at - 1];
    memcpy(mask->at[at].word, word, length);
    mask->at[at].word[length] = '\0';
    mask->at[at].instead = instead;
    mask->n++;
}

void mask_of_process(struct mask *out)
{
    const struct passwd *user = getpwuid(geteuid());
    char host[MASK_LENGTH] = "";

    *out = (struct mask){0};
    mask_add(out, getenv("HOME"), "~");
    mask_add(out, getenv("USER"), "<user>");
    mask_add(out, getenv("LOGNAME"), "<user>");
    if (user) {
        mask_add(out, user->pw_dir, "~");
        mask_add(out, user->pw_name, "<user>");
    }
    if (gethostname(host, sizeof(host) - 1))
        return;
    mask_add(out, host, "<host>");
    host[strcspn(host, ".")] = '\0';
    mask_add(out, host, "<host>");
}

static bool is_word(int c)
{
    return isalnum((unsigned char)c);
}

/* The number of the word that stands at `at`; mask->n: none does. */
static size_t find(const struct mask *mask, const char *text, const char *at)
{
    size_t i = 0;

    for (; i < mask->n; i++) {
        const char *word = mask->at[i].word;
        const size_t length = strlen(word);
        bool alone;

        if (strncmp(at, word, length) != 0)
            continue;
        alone = !(at > text && is_word(at[-1]) && is_word(word[0])) &&
                !(is_word(word[length - 1]) && is_word(at[length]));
        if (alone || (length >= CERTAIN && *word != '/'))
            break;
    }
    return i;
}

void mask_apply(const struct mask *mask, const char *text, struct str *out)
{
    for (const char *at = text; *at;) {
        const size_t i = find(mask, text, at);

        if (i < mask->n) {
            str_add(out, mask->at[i].instead, strlen(mask->at[i].instead));
            at += strlen(mask->at[i].word);
        } else {
            str_add(out, at++, 1);
        }
    }
}
