/* SPDX-License-Identifier: Apache-2.0 */
/* Any lines as the report of a probe process: what is taken from them is terminated and printable,
 * and no report is done without its token. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "load/probe_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_text(const char *text, size_t size)
{
    const char *end = memchr(text, '\0', size);

    check(end != NULL);
    for (; text < end; text++)
        check(*text >= ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct probe_report report = {.token = "0123456789abcdef"};
    bool has_token = memmem(data, size, report.token, strlen(report.token)) != NULL;
    char line[PROBE_LINE];

    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end - data) : size, kept = n < PROBE_LINE ? n : PROBE_LINE - 1;

        for (size_t i = 0; i < kept; i++)
            line[i] = data[i] ? (char)data[i] : '?';
        line[kept] = '\0';
        probe_report_take(&report, line);
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    check(report.file < PROBE_FILES && report.signal >= 0 && report.signal <= 64);
    check(!report.done || has_token);
    check_text(report.slot, sizeof(report.slot));
    check_text(report.crash, sizeof(report.crash));
    check_text(report.changes, sizeof(report.changes));
    return 0;
}
