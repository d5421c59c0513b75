/* SPDX-License-Identifier: Apache-2.0 */
#include "grad/completion.h"

#include <stdlib.h>

#include "base/fail.h"

static bool is_reached(const struct history_node *node, const bool *reached)
{
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (reached[node->out[k].value])
            return true;
    }
    return false;
}

/* Goes through the nodes as the pass will.  A rule may give an operand no gradient, so this reaches
 * what the pass does, and perhaps more. */
static void find_last(struct completion *c, const struct history *history, bool *reached)
{
    for (uint32_t v = 1; v < history->n_values; v++)
        reached[v] = history->values[v].grad;
    for (uint32_t k = history->n_nodes; k-- > 0;) {
        const struct history_node *node = &history->nodes[k];

        if (!is_reached(node, reached))
            continue;
        for (uint32_t i = 0; i < node->n_in; i++) {
            reached[node->in[i].value] = node->in[i].value != HISTORY_NONE;
            c->last[node->in[i].value] = k + 1;
        }
    }
}

static frit_status report_complete(struct completion *c, uint32_t value, frit_err *err)
{
    const uint32_t i = c->index[value] - 1;

    c->index[value] = 0;
    return c->watch->complete(c->watch->ctx, i, err);
}

frit_status completion_begin(struct completion *completion, const struct completion_watch *watch,
                             const struct history *history, frit_err *err)
{
    bool *reached;

    *completion = (struct completion){.watch = watch};
    if (!watch)
        return FRIT_OK;
    reached = calloc(history->n_values, sizeof(*reached));
    completion->index = calloc(history->n_values, sizeof(*completion->index));
    completion->last = calloc(history->n_values, sizeof(*completion->last));
    if (!reached || !completion->index || !completion->last) {
        free(reached);
        return fail_memory(err, history->n_values * sizeof(*completion->index));
    }
    find_last(completion, history, reached);
    free(reached);
    for (uint32_t i = 0; i < watch->n; i++)
        completion->index[watch->values[i]] = i + 1;
    for (uint32_t i = watch->n; i-- > 0;) {
        if (!completion->last[watch->values[i]])
            TRY(report_complete(completion, watch->values[i], err));
    }
    return FRIT_OK;
}

frit_status completion_passed(struct completion *completion, const struct history *history,
                              uint32_t number, frit_err *err)
{
    const struct history_node *node = &history->nodes[number];

    if (!completion->watch)
        return FRIT_OK;
    for (uint32_t i = 0; i < node->n_in; i++) {
        const uint32_t value = node->in[i].value;

        if (completion->index[value] && completion->last[value] == number + 1)
            TRY(report_complete(completion, value, err));
    }
    return FRIT_OK;
}

void completion_end(struct completion *completion)
{
    free(completion->index);
    free(completion->last);
}
