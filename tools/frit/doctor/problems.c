/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/problems.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "term.h"

void problems_add(struct problems *problems, const char *advice, const char *format, ...)
{
    va_list args;
    char text[1024];

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (problems->n == problems->capacity) {
        size_t capacity = problems->capacity ? 2 * problems->capacity : 16;
        struct problem *more = realloc(problems->at, capacity * sizeof(*more));

        problems->at = more ? more : problems->at;
        problems->capacity = more ? capacity : problems->capacity;
    }
    if (problems->n < problems->capacity) {
        struct problem *problem = &problems->at[problems->n];
        size_t size = strlen(text) + 1;

        problem->advice = advice;
        problem->text = malloc(size);
        if (problem->text) {
            memcpy(problem->text, text, size);
            problems->n++;
            return;
        }
    }
    problems->no_memory = true;
}

void problems_fini(struct problems *problems)
{
    for (size_t i = 0; i < problems->n; i++)
        free(problems->at[i].text);
    free(problems->at);
    *problems = (struct problems){0};
}

void problems_print(const struct problems *problems, const char *noun, FILE *out)
{
    char head[48];

    if (problems->n == 0 && !problems->no_memory) {
        snprintf(head, sizeof(head), "No %ss found.", noun);
        term_paint(out, PAINT_GOOD, 0, head);
        fputc('\n', out);
        return;
    }
    snprintf(head, sizeof(head), "%zu %s%s found:", problems->n, noun, problems->n == 1 ? "" : "s");
    term_paint(out, PAINT_BAD, 0, head);
    fputc('\n', out);
    for (size_t i = 0; i < problems->n; i++) {
        fprintf(out, "  %zu. %s\n", i + 1, problems->at[i].text);
        if (*problems->at[i].advice)
            fprintf(out, "     -> %s\n", problems->at[i].advice);
    }
    if (problems->no_memory)
        fputs("  There was no memory for more.\n", out);
}

void problems_json(const struct problems *problems, const char *key, struct json *json)
{
    json_list(json, key);
    for (size_t i = 0; i < problems->n; i++) {
        json_object(json, NULL);
        json_text(json, "text", problems->at[i].text);
        json_text(json, "advice", problems->at[i].advice);
        json_close(json);
    }
    json_close(json);
}
