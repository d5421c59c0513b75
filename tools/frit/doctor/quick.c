/* SPDX-License-Identifier: Apache-2.0 */
/* `frit conform` writes a line per failure, and a line of counts at the end. */
#include "doctor/quick.h"

#include <stdio.h>
#include <string.h>

#include "doctor/self.h"

static const char failed[] = "failed ";

static void take_line(void *ctx, const char *line)
{
    struct quick *quick = ctx;

    if (strncmp(line, failed, sizeof(failed) - 1) == 0) {
        if (quick->n_failed < QUICK_FAILURES)
            snprintf(quick->failures[quick->n_failed], QUICK_LINE, "%s", line + sizeof(failed) - 1);
        quick->n_failed++;
    } else if (strstr(line, " cases in ")) {
        quick->ran = true;
        snprintf(quick->summary, sizeof(quick->summary), "%s", line);
    } else if (!quick->ran && *line) {
        snprintf(quick->summary, sizeof(quick->summary), "%s", line);
    }
}

void quick_run(const char *path, struct quick *out)
{
    const char *const words[] = {"frit",     "conform",  path,       "--quick",   "--timeout",
                                 "20",       "--filter", "device/*", "--filter",  "memory/*",
                                 "--filter", "queue/*",  "--filter", "program/*", "--filter",
                                 "fuser/*",  "--filter", "spec/*",   "--filter",  "*/f32/odd/dense",
                                 NULL};
    int status = 0, error;

    *out = (struct quick){0};
    error = self_run(words, take_line, out, &status);
    if (error)
        snprintf(out->summary, sizeof(out->summary), "it cannot be started: %s", strerror(error));
    out->passed = !error && out->ran && status == 0;
}
