/* SPDX-License-Identifier: Apache-2.0 */
/* page.html is compiled in (page_html.h); @NAME@ and the like are replaced while it is written. */
#include "page.h"

#include <stdbool.h>
#include <string.h>

static const unsigned char page_html[] = {
#include "page_html.h"
    , 0};

/* A text between tags. */
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
}

/* JSON in a script element, which "</script" in a name must not end: '<' is in texts only. */
static void put_json(FILE *out, const char *json)
{
    for (; *json; json++)
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
}

/* Writes what stands at `at` if it is a place; returns its length, 0 if it is none. */
static size_t put_place(const struct page *page, const char *at, FILE *out)
{
    const struct {
        const char *place, *value;
        void (*put)(FILE *out, const char *text);
    } places[] = {{"@NAME@", page->name, put_text},
                  {"@TEXT@", page->text, put_text},
                  {"@JSON@", page->json, put_json},
                  {"@TIMELINE@", page->timeline, put_json}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        size_t length = strlen(places[i].place);

        if (strncmp(at, places[i].place, length) == 0) {
            places[i].put(out, places[i].value);
            return length;
        }
    }
    return 0;
}

void page_write(const struct page *page, FILE *out)
{
    const char *at = (const char *)page_html;

    while (*at) {
        size_t length = *at == '@' ? put_place(page, at, out) : 0;

        if (length == 0)
            fputc(*at, out);
        at += length ? length : 1;
    }
}
