/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong, with what to do about it: a list that grows.  One thread. */
#ifndef DOCTOR_PROBLEMS_H
#define DOCTOR_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct json;

struct problem {
    char *text;
    const char *advice; /* outlives the list */
};

struct problems {
    struct problem *at;
    size_t n, capacity;
    bool no_memory; /* a problem was lost */
};

void problems_add(struct problems *problems, const char *advice, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void problems_fini(struct problems *problems);

/* A numbered list of what `noun` names ("problem"), or that there are none. */
void problems_print(const struct problems *problems, const char *noun, FILE *out);
/* A list {text, advice} of this key. */
void problems_json(const struct problems *problems, const char *key, struct json *json);

#endif
