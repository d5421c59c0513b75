/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/count.h"

#include <stdlib.h>
#include <string.h>

#include "tune/rows.h"

enum { NS_PER_MS = 1000000 };

struct choice {
    const struct tune_count_params *params;
    char *space; /* NULL: none fits */
    size_t fit;
};

static void consider(void *ctx, const char *space)
{
    struct choice *choice = ctx;
    const size_t fit = choice->params->fit(choice->params->ctx, space);
    char *copy = fit > choice->fit ? strdup(space) : NULL;

    if (!copy)
        return;
    free(choice->space);
    choice->space = copy;
    choice->fit = fit;
}

uint64_t tune_count(const struct tune_count_params *params)
{
    const struct database_patience patience = {.wait_ns = (int64_t)params->wait_ms * NS_PER_MS};
    struct choice choice = {.params = params};
    struct database *database;
    uint64_t count = 0;

    if (database_open(&tune_database, params->path, false, &patience, &database, NULL) || !database)
        return 0;
    database_each_space(database, consider, &choice);
    if (choice.space && database_space(database, choice.space)->number)
        count = tune_row_count_keys(database);
    free(choice.space);
    database_close(database);
    return count;
}
