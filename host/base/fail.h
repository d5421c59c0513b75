/* SPDX-License-Identifier: Apache-2.0 */
/* Failing: a status with a text, written once where the reason is known. */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include <stdarg.h>
#include <stdbool.h>

#include <frit/status.h>

/* Writes `err` (NULL: nothing) and returns `status`, so that callers say `return fail(...)`. */
frit_status fail(frit_err *err, frit_status status, const char *format, ...) FRIT_PRINTF(3, 4);
frit_status fail_v(frit_err *err, frit_status status, const char *format, va_list args)
    FRIT_PRINTF(3, 0);

/* fail(FRIT_NO_HOST_MEMORY) with a standard text. */
frit_status fail_memory(frit_err *err, size_t bytes);

/* Passes on what a slot of a plugin returned.  Its text is ended and cleaned (text_clean).  A
 * failure whose reason the plugin did not write gets one that names the slot; what is no status, as
 * all above 0, is FRIT_INTERNAL. */
FRIT_NODISCARD frit_status fail_from(frit_err *err, frit_status status, const char *slot);

/* Puts "context: " in front of a text that is already there; returns err's status. */
frit_status fail_context(frit_err *err, const char *format, ...) FRIT_PRINTF(2, 3);

/* Appends to the text that is there already; what does not fit is cut off. */
void fail_append(frit_err *err, const char *format, ...) FRIT_PRINTF(2, 3);

/* Whether it is one of status.def. */
bool status_is_listed(frit_status status);
/* "invalid" and so on; never NULL. */
const char *status_name(frit_status status);

/* An empty slot. */
#define ERR_INIT                        \
    {                                   \
        .struct_size = sizeof(frit_err) \
    }

/* The analyzer reads one file at a time and does not see that fail never returns FRIT_OK. */
#ifdef __clang_analyzer__
#define fail(err, status, ...)  (fail(err, status, __VA_ARGS__), status)
#define fail_memory(err, bytes) (fail_memory(err, bytes), FRIT_NO_HOST_MEMORY)
#endif

#define TRY(expression)                        \
    do {                                       \
        frit_status try_status = (expression); \
        if (try_status)                        \
            return try_status;                 \
    } while (0)

#endif
