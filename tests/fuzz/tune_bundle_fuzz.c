/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a bundle of decisions and compiled code: what comes out, put into a bundle again, is
 * the same bytes. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "tune/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char kind[] = "fingerprint f\n";

static void check(bool good)
{
    if (!good)
        abort();
}

static frit_status take_record(void *ctx, const struct tune_record *record, frit_err *err)
{
    (void)err;
    tune_record_print(record, ctx);
    return FRIT_OK;
}

static frit_status take_artefact(void *ctx, const void *bytes, size_t n_bytes, frit_err *err)
{
    (void)err;
    bundle_add_artefact(bytes, n_bytes, ctx);
    return FRIT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str again = {0};
    const struct bundle_visitor visitor = {take_record, take_artefact, &again};
    frit_err err = ERR_INIT;

    bundle_begin(kind, &again);
    if (bundle_read((const char *)data, size, kind, &visitor, &err)) {
        check(err.text[0] != '\0');
    } else {
        bundle_end(&again);
        check(again.length == size && memcmp(again.text, data, size) == 0);
    }
    str_fini(&again);
    return 0;
}
