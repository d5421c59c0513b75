/* SPDX-License-Identifier: Apache-2.0 */
/* Text that stays inside the column limit.  A word longer than a line is alone on its line. */
#include "gen.h"

#include <assert.h>
#include <string.h>

void gen_wrap(FILE *out, const char *first, const char *next, const char *text, int room)
{
    int column = (int)strlen(first);
    int blanks = 0;

    fputs(first, out);
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (blanks && column + blanks + length > GEN_COLUMNS - room) {
            fprintf(out, "\n%s", next);
            column = (int)strlen(next);
            blanks = 0;
        }
        fprintf(out, "%*s%.*s", blanks, "", length, text);
        column += blanks + length;
        text += length;
        blanks = (int)strspn(text, " ");
        text += blanks;
    }
}

void gen_add(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);

    assert(length + strlen(more) < size);
    snprintf(text + length, size - length, "%s", more);
}

void gen_list(FILE *out, const char *head, const struct gen_item *items, uint32_t count,
              const char *end, const char *tail)
{
    int column = (int)strlen(head);
    int room = GEN_COLUMNS + 1 - (int)strlen(end);

    fputs(head, out);
    for (uint32_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        int length = (int)strlen(items[i].text) + (last ? (int)strcspn(tail, "\n") : 1);
        if (i > 0 && column + 1 + length > room) {
            fprintf(out, "%s%*s", end, (int)strlen(head), "");
            column = (int)strlen(head);
        } else if (i > 0) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%s%s", items[i].text, last ? "" : ",");
        column += length;
    }
    fputs(tail, out);
}
