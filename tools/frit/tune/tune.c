/* SPDX-License-Identifier: Apache-2.0 */
/* `frit tune`: the command. */
#include "command.h"
#include "invocation.h"
#include "measure.h"

static int run(const struct invocation *in)
{
    return invocation_has(in, "--here") ? tune_here(in) : tune_program(in);
}

const struct command tune_command = {
    .name = "tune",
    .summary = "find the fastest candidates of a program's launches",
    .args = "FILE",
    .details =
        "Runs a text program twice; inputs without --in are zeros.  Where a launch has several\n"
        "candidates (kernels, functions of libraries) each is compared with the launch's ops, run\n"
        "one by one, on memory of its own, and those that are right are timed there.  That\n"
        "happens in processes of its own: one that dies, or that says nothing for too long, is\n"
        "followed by the next, and what two died of is not tried again.\n"
        "What was decided before is not measured again.",
    .options =
        (const struct option[]){
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            {"--in", "NAME=VALUE", "value of an input: FILE.npy, random or zeros", 0, true},
            {"--budget", "MS", "milliseconds for the candidates of one launch; 2000 without it", 0,
             false},
            {"--patience", "S", "seconds for one trial; 10 without it", 0, false},
            {"--here", NULL, "in this process, which may die of it", 0, false},
            {0}},
    .examples = (const char *const[]){"tune tools/models/digits-mlp.frit",
                                      "tune model.frit --device cuda:0 --budget 10000", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
