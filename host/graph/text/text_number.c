/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, independent of the locale: parsing uses the C locale; printing replaces the
 * locale's decimal point. */
#include "graph/text/text_number.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/scalar.h"
#include "graph/text/text_script.h"

enum { MAX_NUMBER = 127 };

#define PLAIN_BELOW 1e15 /* whole numbers below are printed without an exponent */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* 1: an integer, 0: none, perhaps a float, -1: too large. */
static int parse_integer(const char *text, bool negative, frit_scalar *out)
{
    uint64_t value = 0, base = 10;

    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
    }
    for (const char *c = text; *c; c++) {
        if ((uint64_t)digit_of(*c) >= base)
            return 0;
    }
    for (const char *c = text; *c; c++) {
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit_of(*c), &value))
            return -1;
    }
    if (negative && value > (uint64_t)INT64_MAX + 1)
        return -1;
    if (negative)
        *out = scalar_i((int64_t)(0 - value));
    else
        *out = value > INT64_MAX ? scalar_u(value) : scalar_i((int64_t)value);
    return *text != '\0';
}

static const char *parse_float(const char *text, bool negative, frit_scalar *out)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *end;
    double value;

    if (!c_locale)
        return "cannot be read: out of memory";
    value = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    if (*end)
        return "is not a number";
    if (isinf(value))
        return "is beyond the largest float; write inf";
    *out = scalar_f(negative ? -value : value);
    return NULL;
}

bool number_parse_word(frit_str word, frit_scalar *out)
{
    if (str_is(word, "inf"))
        *out = scalar_f((double)INFINITY);
    else if (str_is(word, "nan"))
        *out = scalar_f((double)NAN);
    else
        return false;
    return true;
}

const char *number_parse(frit_str text, frit_scalar *out)
{
    bool negative = text.len && text.ptr[0] == '-';
    uint64_t sign = negative || (text.len && text.ptr[0] == '+');
    frit_str digits = {text.ptr + sign, text.len - sign};
    char copy[MAX_NUMBER + 1];
    int integer;

    if (number_parse_word(digits, out)) {
        *out = scalar_f(negative ? -scalar_number(out) : scalar_number(out));
        return NULL;
    }
    if (digits.len > MAX_NUMBER)
        return "is longer than 127 characters";
    if (digits.len == 0 || (digit_of(digits.ptr[0]) > 9 && digits.ptr[0] != '.'))
        return "is not a number";
    memcpy(copy, digits.ptr, digits.len);
    copy[digits.len] = '\0';
    integer = parse_integer(copy, negative, out);
    if (integer < 0)
        return "does not fit in 64 bits; with a point it is a float";
    return integer ? NULL : parse_float(copy, negative, out);
}

/* What is between the digits is the decimal point of the locale. */
static void add_with_point(struct str *out, const char *text)
{
    static const char plain[] = "0123456789+-e";
    size_t whole = strspn(text, plain), point = strcspn(text + whole, plain);

    str_add(out, text, whole);
    if (point)
        str_addf(out, ".%s", text + whole + point);
    else if (!strchr(text, 'e'))
        str_add(out, ".0", 2);
}

/* Whether the digits, read again and rounded to the dtype, give the value. */
static bool is_same(const char *text, double value, uint32_t dtype)
{
    double read = strtod(text, NULL);

    return read == value || scalar_round(read, dtype) == value;
}

static void print_float(struct str *out, double value, uint32_t dtype)
{
    char text[64];

    if (isnan(value)) {
        str_add(out, "nan", 3);
        return;
    }
    if (isinf(value)) {
        str_addf(out, "%sinf", value < 0 ? "-" : "");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (is_same(text, value, dtype))
            break;
    }
    if (strchr(text, 'e') && fabs(value) >= 1 && fabs(value) < PLAIN_BELOW)
        snprintf(text, sizeof(text), "%.0f", value);
    add_with_point(out, text);
}

void number_print(struct str *out, const frit_scalar *scalar, uint32_t dtype)
{
    if (dtype == FRIT_BOOL)
        str_addf(out, "%s", scalar->bits ? "true" : "false");
    else if (scalar->kind == FRIT_SCALAR_F64)
        print_float(out, scalar_number(scalar), dtype);
    else if (scalar->kind == FRIT_SCALAR_U64)
        str_addf(out, "%" PRIu64, scalar->bits);
    else
        str_addf(out, "%" PRId64, (int64_t)scalar->bits);
}
