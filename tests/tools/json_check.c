/* SPDX-License-Identifier: Apache-2.0 */
/* Ends with 0 if standard input is one JSON text (RFC 8259) and nothing else; for tests of
 * `--json`. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *at;

static void blanks(void)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
        at++;
}

static bool take(char wanted)
{
    blanks();
    if (*at != wanted)
        return false;
    at++;
    return true;
}

static bool escape(void)
{
    at++;
    if (*at != 'u')
        return *at && strchr("\"\\/bfnrt", *at++);
    at++;
    for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)*at++))
            return false;
    return true;
}

static bool text(void)
{
    if (!take('"'))
        return false;
    while (*at != '"') {
        if ((unsigned char)*at < 0x20)
            return false;
        if (*at != '\\')
            at++;
        else if (!escape())
            return false;
    }
    at++;
    return true;
}

static bool digits(void)
{
    const char *start = at;

    while (isdigit((unsigned char)*at))
        at++;
    return at > start;
}

static bool number(void)
{
    if (*at == '-')
        at++;
    if (*at == '0')
        at++;
    else if (!digits())
        return false;
    if (*at == '.' && (at++, !digits()))
        return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-')
            at++;
        return digits();
    }
    return true;
}

static bool word(const char *wanted)
{
    size_t length = strlen(wanted);

    if (strncmp(at, wanted, length) != 0)
        return false;
    at += length;
    return true;
}

static bool value(int depth);

static bool members(char close, bool named, int depth)
{
    at++;
    if (take(close))
        return true;
    do {
        if (named && !(text() && take(':')))
            return false;
        if (!value(depth + 1))
            return false;
    } while (take(','));
    return take(close);
}

static bool value(int depth)
{
    blanks();
    if (depth > 32)
        return false;
    if (*at == '{')
        return members('}', true, depth);
    if (*at == '[')
        return members(']', false, depth);
    if (*at == '"')
        return text();
    return word("true") || word("false") || word("null") || number();
}

int main(void)
{
    static char input[1 << 20];
    size_t length = fread(input, 1, sizeof(input) - 1, stdin);
    bool good;

    input[length] = '\0';
    at = input;
    good = value(0);
    blanks();
    good = good && at == input + length;
    if (!good)
        fprintf(stderr, "not JSON at byte %td of %zu\n", at - input, length);
    return good ? 0 : 1;
}
