/* SPDX-License-Identifier: Apache-2.0 */
/* `frit tune`: the command. */
#include <string.h>

#include "bundle.h"
#include "decisions.h"
#include "invocation.h"
#include "measure.h"
#include "program.h"
#include "session.h"

enum { JSON = 1, ALL = 2, MEASURE = 4 }; /* options that a topic takes, beside --device */

static const struct topic {
    const char *name;
    const char *argument; /* that must follow; NULL: none must */
    unsigned options;
    int (*run)(const struct invocation *in, const struct session *session);
} topics[] = {
    {"show", NULL, JSON, tune_show},
    {"forget", NULL, ALL, tune_forget},
    {"export", "FILE", 0, tune_export},
    {"import", "FILE", 0, tune_import},
};

/* NULL: the word is a program. */
static const struct topic *topic_of(const struct invocation *in)
{
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
        if (strcmp(topics[i].name, in->args[0]) == 0)
            return &topics[i];
    return NULL;
}

static int check_options(const struct invocation *in, unsigned options)
{
    static const struct {
        const char *option, *topics;
        unsigned mask;
    } rows[] = {{"--json", "show", JSON},
                {"--all", "forget", ALL},
                {"--in", "programs", MEASURE},
                {"--budget", "programs", MEASURE},
                {"--patience", "programs", MEASURE},
                {"--here", "programs", MEASURE}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (invocation_has(in, rows[i].option) && !(options & rows[i].mask))
            return fail_usage(in, "%s is only for %s", rows[i].option, rows[i].topics);
    return CLI_FINE;
}

static int run_topic(const struct invocation *in, const struct topic *topic)
{
    struct session session;
    int status;

    if (topic->argument && (in->n_args < 2 || !*in->args[1]))
        return fail_usage(in, "%s is missing: frit tune %s %s", topic->argument, topic->name,
                          topic->argument);
    if (check_options(in, topic->options))
        return CLI_MISUSED;
    status = session_open(&session, in);
    if (status == CLI_FINE)
        status = session_device(&session, in);
    if (status == CLI_FINE)
        status = topic->run(in, &session);
    session_close(&session);
    return status;
}

static int run(const struct invocation *in)
{
    const struct topic *topic = topic_of(in);

    if (topic)
        return run_topic(in, topic);
    if (in->n_args > 1)
        return fail_usage(in, "unexpected argument '%s': frit tune PROGRAM", in->args[1]);
    if (check_options(in, MEASURE))
        return CLI_MISUSED;
    return invocation_has(in, "--here") ? tune_here(in) : tune_program(in);
}

const struct command tune_command = {
    .name = "tune",
    .summary = "find the fastest candidates of a program's launches; show what was found",
    .args = "PROGRAM | show [TEXT] | forget [TEXT] | export FILE | import FILE",
    .details =
        "PROGRAM   runs a text program twice; inputs without --in are zeros.  Where a launch has\n"
        "          several candidates (kernels, functions of libraries) each is compared with the\n"
        "          launch's ops, run one by one, on memory of its own, and those that are right\n"
        "          are timed there.  So are the ops one by one (parts) where a launch covers\n"
        "          several, which run so from then on where that is faster.  That happens in\n"
        "          processes of its own: one that dies, or that says nothing for too long, is\n"
        "          followed by the next, and what two died of is not tried again.  What was\n"
        "          decided before is not measured again\n"
        "show      the decisions for the device: for each launch the candidate that runs, marked\n"
        "          *, and by how much it is faster; the median times of the others, and why some\n"
        "          are not used.  In brackets why it runs: measured; roofline: it is as fast as "
        "the\n"
        "          device can be, whose limits are listed too; budget: the time was up; only: no\n"
        "          other one is right.  With TEXT only those whose first line contains it\n"
        "forget    forgets these, or with --all all, so that they are tuned anew\n"
        "export    writes the decisions, and the compiled kernels of the device's driver, to a\n"
        "          bundle, so that another machine of the same kind starts tuned\n"
        "import    reads a bundle; decisions that are here already stay.  A bundle of a device\n"
        "          with another fingerprint, or of other builds of its plugins, is refused.  It\n"
        "          holds code that will run: take it only from who may run programs here\n"
        "\n"
        "With --json: show: device; decisions {what, clock, reason, candidates {identity,\n"
        "version, class, state, quarantined, best_ns, median_ns, samples, evidence}}.",
    .options =
        (const struct option[]){
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            PROGRAM_IN_OPTION(""),
            {"--budget", "MS", "milliseconds for the candidates of one launch; 2000 without it", 0,
             false},
            {"--patience", "S", "seconds for one trial; 10 without it", 0, false},
            {"--here", NULL, "in this process, which may die of it", 0, false},
            {"--all", NULL, "forget all decisions for the device", 0, false},
            {"--json", NULL, "print JSON", 0, false},
            {0}},
    .examples = (const char *const[]){"tune tools/models/digits-mlp.frit",
                                      "tune model.frit --device cuda:0 --budget 10000",
                                      "tune show matmul -d cpu", "tune export node.bundle",
                                      "tune import node.bundle", NULL},
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
