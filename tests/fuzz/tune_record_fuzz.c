/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the text of decisions of the tuner: what is accepted is within its limits and is
 * printed as it was read. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tune/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tune_text text = {(const char *)data, size, 0};
    struct tune_record *record;

    while (text.length && !tune_record_parse(&text, &record, NULL)) {
        const size_t used = (size_t)(text.at - (const char *)data);
        struct str printed = {0};

        check(tune_record_verify(record, NULL) == FRIT_OK);
        tune_record_print(record, &printed);
        check(printed.length == used && memcmp(printed.text, data, used) == 0);
        str_fini(&printed);
        tune_record_destroy(record);
        data += used;
        size -= used;
    }
    check(size == text.length || !size);
    return 0;
}
