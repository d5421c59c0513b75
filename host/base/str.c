/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct str *str, size_t more)
{
    size_t capacity = str->capacity ? str->capacity : 64;
    char *text;

    if (str->failed || more >= SIZE_MAX / 2 - str->length)
        return false;
    while (capacity < str->length + more + 1)
        capacity *= 2;
    if (capacity == str->capacity)
        return true;
    text = realloc(str->text, capacity);
    if (!text)
        return false;
    str->text = text;
    str->capacity = capacity;
    return true;
}

void str_add(struct str *str, const char *text, size_t length)
{
    if (!reserve(str, length)) {
        str->failed = true;
        return;
    }
    if (length)
        memcpy(str->text + str->length, text, length);
    str->length += length;
    str->text[str->length] = '\0';
}

void str_addf(struct str *str, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !reserve(str, (size_t)length)) {
        str->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(str->text + str->length, (size_t)length + 1, format, args);
    va_end(args);
    str->length += (size_t)length;
}

void str_fini(struct str *str)
{
    free(str->text);
    *str = (struct str){0};
}

frit_str str_of(const char *text)
{
    return (frit_str){text, text ? strlen(text) : 0};
}

bool str_is(frit_str text, const char *word)
{
    size_t length = strlen(word);

    return text.len == length && (length == 0 || memcmp(text.ptr, word, length) == 0);
}

/* Levenshtein distance of words of at most 47 characters (longer ones are far from everything). */
static size_t distance(const char *a, const char *b)
{
    size_t row[48];
    size_t n = strlen(b);

    if (n >= sizeof(row) / sizeof(row[0]))
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

const char *str_nearest(const char *text, const char *const *words, size_t count)
{
    size_t least = strlen(text) / 3 + 1; /* one slip per three letters still counts as meant */
    const char *nearest = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t d = distance(text, words[i]);

        if (d < least || (d == least && !nearest)) {
            least = d;
            nearest = words[i];
        }
    }
    return nearest;
}
