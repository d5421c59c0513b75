/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fail.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

frit_status fail_v(frit_err *err, frit_status status, const char *format, va_list args)
{
    if (!err)
        return status;
    err->struct_size = sizeof(*err);
    err->status = status;
    err->native_code = 0;
    vsnprintf(err->text, sizeof(err->text), format, args);
    return status;
}

frit_status(fail)(frit_err *err, frit_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_v(err, status, format, args);
    va_end(args);
    return status;
}

frit_status(fail_memory)(frit_err *err, size_t bytes)
{
    return fail(err, FRIT_NO_HOST_MEMORY, "no host memory for %zu bytes", bytes);
}

bool status_is_listed(frit_status status)
{
    switch (status) {
#define FRIT_STATUS(value, NAME, name, meaning) \
    case value:                                 \
        return true;
#include <frit/status.def>
    default:
        return false;
    }
}

frit_status fail_from(frit_err *err, frit_status status, const char *slot)
{
    if (!status)
        return FRIT_OK;
    if (err) {
        err->text[sizeof(err->text) - 1] = '\0';
        text_clean(err->text, strlen(err->text), err->text, sizeof(err->text));
    }
    if (!status_is_listed(status)) {
        if (err && err->text[0]) {
            err->status = FRIT_INTERNAL;
            return fail_context(err, "%s returned %d, which is not a status", slot, status);
        }
        return fail(err, FRIT_INTERNAL, "%s returned %d, which is not a status", slot, status);
    }
    if (err && err->status != status)
        fail(err, status, "%s failed and gave no reason (%s)", slot, status_name(status));
    return status;
}

frit_status fail_context(frit_err *err, const char *format, ...)
{
    char text[sizeof(((frit_err *)0)->text)];
    size_t used;
    va_list args;

    if (!err)
        return FRIT_INTERNAL;
    memcpy(text, err->text, sizeof(text));
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s", text);
    return err->status;
}

void fail_append(frit_err *err, const char *format, ...)
{
    size_t used;
    va_list args;

    if (!err)
        return;
    used = strlen(err->text);
    va_start(args, format);
    vsnprintf(err->text + used, sizeof(err->text) - used, format, args);
    va_end(args);
}

const char *status_name(frit_status status)
{
    switch (status) {
#define FRIT_STATUS(value, NAME, name, meaning) \
    case value:                                 \
        return name;
#include <frit/status.def>
    default:
        return status < 0 ? "internal" : "ok";
    }
}
