/* SPDX-License-Identifier: Apache-2.0 */
/* `frit tune show` and `frit tune forget`. */
#include "decisions.h"

#include <inttypes.h>
#include <string.h>

#include <frit/tune.h>

#include "invocation.h"
#include "json.h"
#include "session.h"
#include "term.h"

enum { NAME_WIDTH = 28 };

static bool decision_at(const frit_decisions *list, uint64_t index, frit_decision_desc *out)
{
    *out = (frit_decision_desc){.struct_size = sizeof(*out)};
    return frit_decision_at(list, index, out) == FRIT_OK;
}

static bool candidate_at(const frit_decisions *list, uint64_t index, uint64_t candidate,
                         frit_tried_desc *out)
{
    *out = (frit_tried_desc){.struct_size = sizeof(*out)};
    return frit_decision_candidate_at(list, index, candidate, out) == FRIT_OK;
}

static bool is_meant(const struct invocation *in, const frit_decision_desc *decision)
{
    return in->n_args < 2 || strstr(decision->what, in->args[1]);
}

/* ---- show ---- */

/* By how much the first candidate is faster than the fastest of the others; 0: nothing to compare.
 */
static double gain_of(const frit_decisions *list, uint64_t index)
{
    frit_tried_desc first, other;
    uint64_t best_ns = 0;

    if (!candidate_at(list, index, 0, &first) || !first.median_ns)
        return 0;
    for (uint64_t i = 1; candidate_at(list, index, i, &other); i++) {
        if (other.median_ns && !other.is_quarantined && (!best_ns || other.median_ns < best_ns))
            best_ns = other.median_ns;
    }
    return (double)best_ns / (double)first.median_ns;
}

static void show_candidate(const frit_tried_desc *candidate, bool runs)
{
    const bool right = strcmp(candidate->state, "right") == 0;
    char time[16] = "";

    printf("  %c ", runs ? '*' : ' ');
    if (runs)
        term_paint(stdout, PAINT_GOOD, NAME_WIDTH, candidate->identity);
    else
        printf("%-*s", NAME_WIDTH, candidate->identity);
    if (candidate->median_ns)
        term_seconds((double)candidate->median_ns / 1e9, time);
    printf(" %10s  %s", time, candidate->numeric_class);
    if (!right) {
        fputs(", ", stdout);
        term_paint(stdout, candidate->is_quarantined ? PAINT_BAD : PAINT_DIM, 0, candidate->state);
    }
    printf("%s%s\n", *candidate->evidence ? ": " : "", candidate->evidence);
}

/* The first candidate runs, unless the decision is only that some do not. */
static void show_decision(const frit_decisions *list, uint64_t index,
                          const frit_decision_desc *decision)
{
    const double gain = gain_of(list, index);
    frit_tried_desc candidate;
    const bool runs = candidate_at(list, index, 0, &candidate) && !candidate.is_quarantined;

    term_paint(stdout, PAINT_HEAD, 0, *decision->what ? decision->what : "(no label)");
    printf("  (%s", runs ? decision->reason : "quarantined");
    if (gain > 0)
        printf(", %.2fx the next by the clock of the %s", gain, decision->clock);
    puts(")");
    for (uint64_t i = 0; candidate_at(list, index, i, &candidate); i++)
        show_candidate(&candidate, i == 0 && runs);
}

static void show_all(const struct invocation *in, const frit_decisions *list, const char *device)
{
    frit_decision_desc decision;
    uint64_t n = 0;

    for (uint64_t i = 0; decision_at(list, i, &decision); i++) {
        if (!is_meant(in, &decision))
            continue;
        show_decision(list, i, &decision);
        n++;
    }
    printf("%s%" PRIu64 " decision%s for %s\n", n ? "\n" : "", n, n == 1 ? "" : "s", device);
}

static void print_candidate(struct json *json, const frit_tried_desc *candidate)
{
    json_object(json, NULL);
    json_text(json, "identity", candidate->identity);
    json_uint(json, "version", candidate->version);
    json_text(json, "class", candidate->numeric_class);
    json_text(json, "state", candidate->state);
    json_bool(json, "quarantined", candidate->is_quarantined != 0);
    json_uint(json, "best_ns", candidate->best_ns);
    json_uint(json, "median_ns", candidate->median_ns);
    json_list(json, "samples");
    for (uint64_t i = 0; i < candidate->n_samples; i++)
        json_uint(json, NULL, candidate->samples_ns[i]);
    json_close(json);
    json_text(json, "evidence", candidate->evidence);
    json_close(json);
}

static void print_json(const struct invocation *in, const frit_decisions *list, const char *device)
{
    frit_decision_desc decision;
    frit_tried_desc candidate;
    struct json json;

    json_begin(&json, stdout);
    json_text(&json, "device", device);
    json_list(&json, "decisions");
    for (uint64_t i = 0; decision_at(list, i, &decision); i++) {
        if (!is_meant(in, &decision))
            continue;
        json_object(&json, NULL);
        json_text(&json, "what", decision.what);
        json_text(&json, "clock", decision.clock);
        json_text(&json, "reason", decision.reason);
        json_list(&json, "candidates");
        for (uint64_t c = 0; candidate_at(list, i, c, &candidate); c++)
            print_candidate(&json, &candidate);
        json_close(&json);
        json_close(&json);
    }
    json_close(&json);
    json_end(&json);
}

int tune_show(const struct invocation *in, const struct session *session)
{
    const char *device = frit_device_name(session->device);
    frit_err err = {.struct_size = sizeof(err)};
    frit_decisions *list;

    if (frit_decisions_read(session->device, &list, &err))
        return fail_command(in, "%s", err.text);
    if (invocation_has(in, "--json"))
        print_json(in, list, device);
    else
        show_all(in, list, device);
    frit_decisions_free(list);
    return CLI_FINE;
}

/* ---- forget ---- */

int tune_forget(const struct invocation *in, const struct session *session)
{
    const char *what = in->n_args < 2 ? NULL : in->args[1];
    frit_err err = {.struct_size = sizeof(err)};
    uint64_t n;

    if (!what == !invocation_has(in, "--all"))
        return fail_usage(in, "forget takes either TEXT or --all");
    if (frit_decisions_forget(session->device, what, &n, &err))
        return fail_command(in, "%s", err.text);
    printf("%" PRIu64 " decision%s for %s forgotten\n", n, n == 1 ? "" : "s",
           frit_device_name(session->device));
    return CLI_FINE;
}
