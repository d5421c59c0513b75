/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as in table 3-7 of the Unicode standard: neither overlong forms nor surrogates. */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The character at `at`; `bytes` is its length, 0 where it is not UTF-8. */
static uint32_t decode(const unsigned char *at, size_t left, size_t *bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = at[0] < 0x80   ? 1
                     : at[0] < 0xc2 ? 0
                     : at[0] < 0xe0 ? 2
                     : at[0] < 0xf0 ? 3
                     : at[0] < 0xf5 ? 4
                                    : 0;
    uint32_t code = n < 2 ? at[0] : at[0] & (0x7fu >> n);

    *bytes = 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    if (code >= least[n] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff))
        *bytes = n;
    return code;
}

static bool is_control(uint32_t code)
{
    return code < ' ' || (code >= 0x7f && code < 0xa0) /* DEL, C1 */
           || code == 0x2028 || code == 0x2029         /* separators of lines and paragraphs */
           || code == 0x061c || code == 0x200e || code == 0x200f || /* writing direction */
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void text_clean(const char *from, size_t length, char *out, size_t size)
{
    const unsigned char *at = (const unsigned char *)from;
    size_t used = 0, bytes;

    for (size_t i = 0; i < length; i += bytes ? bytes : 1) {
        const uint32_t code = decode(at + i, length - i, &bytes);
        const bool plain = bytes && !is_control(code);

        if (used + (plain ? bytes : 1) >= size)
            break;
        if (plain)
            memmove(out + used, from + i, bytes);
        else
            out[used] = bytes ? ' ' : '?';
        used += plain ? bytes : 1;
    }
    out[used] = '\0';
}

size_t text_char_bytes(const char *at, size_t left)
{
    size_t bytes;

    decode((const unsigned char *)at, left, &bytes);
    return bytes;
}
