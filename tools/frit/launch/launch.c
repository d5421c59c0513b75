/* SPDX-License-Identifier: Apache-2.0 */
/* `frit launch`: starts the ranks of a job.  mpirun starts this command once per rank, with --rank,
 * which starts the program: so that what happens to a rank is seen where it runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "invocation.h"
#include "launch/meet.h"
#include "launch/supervise.h"

enum { MAX_RANKS = 65536, MAX_WORDS = 64 };

static int parse_count(const struct invocation *in, uint32_t *out)
{
    const char *text = invocation_value(in, "--ranks");
    char *end;
    unsigned long n;

    if (!text)
        return fail_usage(in, "-n N is missing");
    n = strtoul(text, &end, 10);
    if (*end || end == text || *text == '-' || n < 1 || n > MAX_RANKS)
        return fail_usage(in, "-n %s: must be a number from 1 to %d", text, MAX_RANKS);
    *out = (uint32_t)n;
    return CLI_FINE;
}

/* ---- by mpirun ---- */

struct words {
    const char **at;
    size_t n;
};

static void add(struct words *words, const char *word)
{
    words->at[words->n++] = word;
}

/* Ranks on other hosts see the configuration of this process.  By names alone: a command line can
 * be read by all users. */
static void add_variables(struct words *words, char *names)
{
    for (char **variable = environ; *variable; variable++) {
        const size_t n = strcspn(*variable, "=");

        if (strncmp(*variable, "FRIT_", 5) != 0)
            continue;
        memcpy(names, *variable, n);
        names[n] = '\0';
        add(words, "-x");
        add(words, names);
        names += n + 1;
    }
}

static size_t count_variables(size_t *n_bytes)
{
    size_t n = 0;

    for (*n_bytes = 0; environ[n]; n++)
        *n_bytes += strlen(environ[n]) + 1;
    return n;
}

/* Ranks may outnumber the processors, and so must neither spin nor be bound to one of them. */
static void fill_words(const struct invocation *in, const char *self, struct words *words,
                       char *names)
{
    static const char *const fixed[] = {
        "--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", NULL};
    const char *hosts = invocation_value(in, "--hosts");

    add(words, "mpirun");
    add(words, "-n");
    add(words, invocation_value(in, "--ranks"));
    for (const char *const *word = fixed; *word; word++)
        add(words, *word);
    if (geteuid() == 0)
        add(words, "--allow-run-as-root");
    if (hosts) {
        add(words, "--hostfile");
        add(words, hosts);
        add_variables(words, names);
    }
    add(words, self);
    add(words, "launch");
    add(words, "--rank");
    for (int i = 0; i < in->n_args; i++)
        add(words, in->args[i]);
}

/* Returns only after a failure. */
static int exec_mpirun(const struct invocation *in)
{
    size_t n_bytes;
    const size_t n = MAX_WORDS + (size_t)in->n_args + 2 * count_variables(&n_bytes);
    struct words words = {.at = calloc(n, sizeof(*words.at))};
    char *names = malloc(n_bytes + 1);
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int error;

    if (!words.at || !names || length < 0) {
        free(words.at);
        free(names);
        return fail_command(in, "%s", strerror(errno));
    }
    self[length] = '\0';
    fill_words(in, self, &words, names);
    execvp(words.at[0], (char *const *)words.at);
    error = errno;
    free(words.at);
    free(names);
    if (error == ENOENT)
        return fail_command(in, "mpirun is not installed (Debian: openmpi-bin); --plain does "
                                "without it, on this machine and without an engine of MPI");
    return fail_command(in, "mpirun: %s", strerror(error));
}

/* ---- the command ---- */

/* Of those that mpirun starts. */
static int run_rank(const struct invocation *in)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const struct ranks ranks = {
        .first = rank ? (uint32_t)strtoul(rank, NULL, 10) : 0, .n = 1, .words = in->args};

    return rank ? supervise(&ranks) : fail_usage(in, "--rank is for mpirun");
}

static int run(const struct invocation *in)
{
    struct ranks ranks = {.words = in->args};
    const char *why;
    int status;

    if (invocation_has(in, "--rank"))
        return run_rank(in);
    status = parse_count(in, &ranks.size);
    if (status)
        return status;
    if (invocation_has(in, "--plain") && invocation_has(in, "--hosts"))
        return fail_usage(in, "--plain starts ranks on this machine alone");
    why = meet_prepare(invocation_value(in, "--hosts"));
    if (why)
        return fail_command(in, "%s", why);
    if (!invocation_has(in, "--plain"))
        return exec_mpirun(in);
    ranks.n = ranks.size;
    return supervise(&ranks);
}

const struct command launch_command = {
    .name = "launch",
    .summary = "start a program as several ranks",
    .args = "PROGRAM [ARGUMENTS]",
    .details =
        "Starts the program N times by mpirun of Open MPI, on this machine or on those of a file\n"
        "(a host a line, as mpirun takes it).  Each line that a rank prints has its number in\n"
        "front.  When a rank fails it is named, with its host, process and exit code or signal,\n"
        "and all others end.  The exit code is then not 0.\n"
        "A program finds its rank by frit_job_info; `frit doctor config` shows it as [dist], with\n"
        "the store where the ranks meet, unless it is set already: a free port of this machine, "
        "or\n"
        "one of the first host of the file.\n"
        "Options after PROGRAM are the program's.",
    .options =
        (const struct option[]){
            {"--ranks", "N", "number of ranks", 'n', false},
            {"--hosts", "FILE", "hosts to start them on; default: this one", 0, false},
            {"--plain", NULL, "without mpirun; sets RANK and WORLD_SIZE", 0, false},
            {"--rank", NULL, "run one rank (what mpirun starts)", 0, false},
            {0}},
    .examples = (const char *const[]){"launch -n 2 ./train",
                                      "launch -n 8 --hosts hosts ./train --epochs 3", NULL},
    .min_args = 1,
    .max_args = 1 << 20,
    .passes_on = true,
    .run = run,
};
