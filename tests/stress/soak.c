/* SPDX-License-Identifier: Apache-2.0 */
/* Everything at random, for a given time:
 *
 *   soak [--seconds N] [--seed N] [--processes N]
 *
 * Processes that share a store of plans and a folder of artefacts open and close hosts and devices,
 * run programs whose results are known, in threads that come and go, with drivers that fail and
 * memory that becomes short.  Two live as long as the run, one of them with a limit of its address
 * space that moves: what they hold must not grow.  The others live for seconds, and many of them
 * are killed; some end as they should.  Plugins that crash lie in the search path, and change.  At
 * the end the stores still serve, and nothing is left of those that were killed.
 *
 * This process itself opens no host, so that what it forks may. */
#include "soak.h"

#include <errno.h>
#include <ftw.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <frit/plugin.h>

#include "census.h"
#include "life.h"

enum { MAX_PROCESSES = 16, LONG_LIVED = 2, PATIENCE = 120, AGE = 3600 };
enum { LEAST_COUNTED = 60 }; /* seconds; in less, not everything has been loaded and grown once */
/* Plans: a megabyte for each device and set of options, of which there are some tens; artefacts, of
 * a kilobyte and more: one. */
enum { MOST_FILES = 2000, MOST_BYTES = 128 << 20 };

static struct soak soak = {.seconds = 3, .processes = 4, .seed = 1};

struct child {
    pid_t pid;
    double kill_at; /* 0: not at all */
    double late_at; /* it hangs */
    bool begun, killed;
};

static struct child children[MAX_PROCESSES];
static unsigned n_started, n_killed;

/* ---- shared ---- */

uint32_t soak_pick(uint64_t *random, uint32_t n)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*random >> 33) % n);
}

double soak_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void soak_complain(const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "soak %d: %s\n", (int)getpid(), text);
}

/* ---- the folder ---- */

static bool make_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[300];

    snprintf(soak.folder, sizeof(soak.folder), "%.200s/frit-soak-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(soak.folder))
        return false;
    snprintf(path, sizeof(path), "%s/bad", soak.folder);
    return !mkdir(path, 0755);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static void remove_folder(void)
{
    (void)nftw(soak.folder, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

/* Another file, so that it is tried again. */
static void copy_file(const char *from, const char *to)
{
    char draft[400], bytes[8192];
    FILE *in = fopen(from, "rb"), *out;
    size_t n;

    snprintf(draft, sizeof(draft), "%s.new", to);
    out = in ? fopen(draft, "wb") : NULL;
    while (out && (n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        (void)fwrite(bytes, 1, n, out);
    if (in)
        (void)fclose(in);
    if (out)
        (void)fclose(out);
    (void)rename(draft, to);
}

/* Two of them at a time; what one does depends on its name. */
static void renew_bad_plugin(uint64_t *random)
{
    static const char *const sins[] = {"open-crash",  "open-exit",       "entry-abort",
                                       "close-crash", "enumerate-crash", "entry-exit",
                                       "open-throw"};
    static const char *now[2];
    const char **at = &now[soak_pick(random, 2)];
    char from[400], to[400];

    if (*at) {
        snprintf(to, sizeof(to), "%s/bad/libfrit-sin-%s.so", soak.folder, *at);
        (void)remove(to);
    }
    *at = sins[soak_pick(random, sizeof(sins) / sizeof(sins[0]))];
    snprintf(from, sizeof(from), "%s/tests/probe/libfrit-sin-%s.so", soak.build, *at);
    snprintf(to, sizeof(to), "%s/bad/libfrit-sin-%s.so", soak.folder, *at);
    copy_file(from, to);
}

/* ---- processes ---- */

static void start(uint32_t at, uint64_t *random, double end)
{
    struct child *child = &children[at];
    struct life life = {.soak = &soak,
                        .random = *random,
                        .seconds = end - soak_now(),
                        .is_counted = at < LONG_LIVED && soak.seconds >= LEAST_COUNTED,
                        .is_scarce = at == 1};

    *child = (struct child){.begun = true};
    if (at >= LONG_LIVED) {
        double lives = 0.05 * soak_pick(random, 120);

        life.seconds = lives < life.seconds ? lives : life.seconds;
        if (soak_pick(random, 3)) /* now and then while it loads plugins */
            child->kill_at =
                soak_now() + (soak_pick(random, 3) ? 0.04 : 0.001) * soak_pick(random, 120);
    }
    child->late_at = soak_now() + life.seconds + PATIENCE;
    child->pid = fork();
    n_started++;
    if (child->pid == 0)
        exit(life_lead(&life));
}

static bool check_end(struct child *child, int status)
{
    child->pid = 0;
    if (status == 0 || (child->killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
        return true;
    soak_complain("a process ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

/* Whether it goes on well, or has ended well. */
static bool look_after(struct child *child)
{
    int status;

    if (!child->pid)
        return true;
    if (waitpid(child->pid, &status, WNOHANG) == child->pid)
        return check_end(child, status);
    if (child->kill_at > 0 && soak_now() > child->kill_at && !child->killed) {
        child->killed = true;
        n_killed++;
        (void)kill(child->pid, SIGKILL);
    }
    if (soak_now() < child->late_at)
        return true;
    soak_complain("process %d hangs", (int)child->pid);
    (void)kill(child->pid, SIGABRT);
    child->late_at += PATIENCE;
    return false;
}

static bool may_start(uint32_t at)
{
    return !children[at].pid && (at >= LONG_LIVED || !children[at].begun);
}

static void kill_all(void)
{
    for (uint32_t i = 0; i < soak.processes; i++) {
        children[i].killed = true;
        if (children[i].pid)
            (void)kill(children[i].pid, SIGKILL);
    }
}

static bool run(uint64_t *random)
{
    double end = soak_now() + soak.seconds, renew_at = 0;
    bool good = true, any = true;

    while (any) {
        any = false;
        for (uint32_t i = 0; i < soak.processes; i++) {
            good = look_after(&children[i]) && good;
            if (may_start(i) && good && soak_now() < end)
                start(i, random, end);
            any |= children[i].pid != 0;
        }
        if (soak_now() > renew_at) {
            renew_bad_plugin(random);
            renew_at = soak_now() + soak_pick(random, 10);
        }
        usleep(5000);
        if (!good && soak_now() < end) {
            end = 0;
            kill_all();
        }
    }
    return good;
}

/* A last process finds the stores in order, and sweeps what others left when it writes: it has to
 * compile. */
static bool check_rest(uint64_t *random)
{
    struct folder_census before, after;
    int status = -1;
    pid_t child;

    census_age(soak.folder, AGE);
    census_folder(soak.folder, &before);
    census_remove(soak.folder, ".art");
    child = fork();
    if (child == 0)
        exit(life_lead(&(struct life){.soak = &soak, .random = *random, .seconds = 2}));
    if (child < 0 || waitpid(child, &status, 0) != child || status) {
        soak_complain("the last process ended with 0x%x", (unsigned)status);
        return false;
    }
    census_folder(soak.folder, &after);
    fprintf(stderr,
            "soak: %u processes, %u killed; %u files with %llu KiB, %u drafts (%u before), %u of "
            "processes (%u before)\n",
            n_started, n_killed, after.files, (unsigned long long)after.bytes >> 10, after.drafts,
            before.drafts, after.running, before.running);
    if (after.drafts || after.running)
        soak_complain("files of processes that are gone are left in %s", soak.folder);
    if (after.files > MOST_FILES || after.bytes > MOST_BYTES)
        soak_complain("the stores grow beyond their limits in %s", soak.folder);
    return !after.drafts && !after.running && after.files <= MOST_FILES &&
           after.bytes <= MOST_BYTES;
}

/* ---- the program ---- */

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        unsigned long long value;
        char *rest;

        if (i + 1 == argc)
            return false;
        value = strtoull(argv[i + 1], &rest, 10);
        if (*rest)
            return false;
        if (strcmp(argv[i], "--seconds") == 0)
            soak.seconds = (unsigned)value;
        else if (strcmp(argv[i], "--seed") == 0)
            soak.seed = value;
        else if (strcmp(argv[i], "--processes") == 0 && value > LONG_LIVED &&
                 value <= MAX_PROCESSES)
            soak.processes = (unsigned)value;
        else
            return false;
    }
    return true;
}

/* The build tree that this program lies in: BUILD/tests/bin/soak. */
static bool find_build(void)
{
    ssize_t n = readlink("/proc/self/exe", soak.build, sizeof(soak.build) - 1);

    for (int i = 0; i < 3 && n > 0; i++) {
        soak.build[n] = '\0';
        char *slash = strrchr(soak.build, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return n > 0;
}

int main(int argc, char **argv)
{
    uint64_t random;
    bool good;

    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: soak [--seconds N] [--seed N] [--processes 3..%d]\n",
                MAX_PROCESSES);
        return 2;
    }
    if (!find_build() || !make_folder()) {
        fprintf(stderr, "soak: %s\n", strerror(errno));
        return 2;
    }
    soak.sanitized = FRIT_SANITIZER != FRIT_SANITIZER_NONE;
    /* Resident memory is compared, and malloc keeps what threads that are gone have freed. */
    (void)mallopt(M_ARENA_MAX, 2);
    setenv("FRIT_CONFIG", "/dev/null", 1);
    unsetenv("FRIT_PLUGIN_PATH");
    random = soak.seed;
    good = run(&random);
    good = good && check_rest(&random);
    if (good)
        remove_folder();
    else
        soak_complain("seed %llu; see %s", (unsigned long long)soak.seed, soak.folder);
    return good ? 0 : 1;
}
