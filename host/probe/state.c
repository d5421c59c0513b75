/* SPDX-License-Identifier: Apache-2.0 */
/* One reading of everything, and one function per aspect that puts a difference into words. */
#include "probe/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "load/guard.h"
#include "probe/environment.h"
#include "probe/report.h"

enum {
    SIGNALS = 32,
    DESCRIPTORS = 64, /* those that are looked at */
    WORDS = 160,
    THREADS_MS = 200 /* how long threads that are left may run on */
};

struct open_file {
    dev_t device;
    ino_t number; /* both 0: closed */
};

static struct state {
    uint64_t floating_point; /* modes, without flags of exceptions */
    sigset_t mask;
    struct sigaction actions[SIGNALS];
    bool has_timer;
    char folder[PATH_MAX];
    char locale[256];
    locale_t thread_locale;
    mode_t file_mask;
    struct rlimit limits[RLIM_NLIMITS];
    cpu_set_t processors;
    int niceness;
    struct open_file files[DESCRIPTORS];
} before;

/* ---- reading ---- */

static void read_process(struct state *out)
{
    const char *locale = setlocale(LC_ALL, NULL);
    struct itimerval timer = {0};

    if (!getcwd(out->folder, sizeof(out->folder)))
        out->folder[0] = '\0';
    snprintf(out->locale, sizeof(out->locale), "%s", locale ? locale : "");
    out->file_mask = umask(0);
    (void)umask(out->file_mask);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)getrlimit((__rlimit_resource_t)i, &out->limits[i]);
    (void)getitimer(ITIMER_REAL, &timer);
    out->has_timer = timer.it_value.tv_sec || timer.it_value.tv_usec;
    out->niceness = getpriority(PRIO_PROCESS, 0);
}

static void read_files(struct state *out)
{
    struct stat info;

    for (int i = 0; i < DESCRIPTORS; i++)
        if (fstat(i, &info) == 0)
            out->files[i] = (struct open_file){info.st_dev, info.st_ino};
}

static void read_state(struct state *out)
{
    fenv_t env;

    memset(out, 0, sizeof(*out));
    if (!fegetenv(&env))
        out->floating_point = guard_modes_of(&env);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &out->mask);
    for (int i = 1; i < SIGNALS; i++)
        (void)sigaction(i, NULL, &out->actions[i]);
    out->thread_locale = uselocale((locale_t)0);
    (void)sched_getaffinity(0, sizeof(out->processors), &out->processors);
    read_process(out);
    read_files(out);
}

void state_note(void)
{
    read_state(&before);
    environment_note();
}

/* ---- comparing: each writes what differs, and returns whether anything does ---- */

static const char *signal_name(int number)
{
    const char *name = sigabbrev_np(number);

    return name ? name : "?";
}

static bool other_modes(const struct state *now, char *words)
{
    snprintf(words, WORDS, "floating-point modes (%#llx to %#llx)",
             (unsigned long long)before.floating_point, (unsigned long long)now->floating_point);
    return now->floating_point != before.floating_point;
}

static bool other_mask(const struct state *now, char *words)
{
    int i = 1;

    while (i < SIGNALS && sigismember(&now->mask, i) == sigismember(&before.mask, i))
        i++;
    snprintf(words, WORDS, "the signal mask (SIG%s)", i < SIGNALS ? signal_name(i) : "?");
    return !guard_same_masks(&now->mask, &before.mask);
}

static bool other_handler(const struct state *now, char *words)
{
    for (int i = 1; i < SIGNALS; i++) {
        if (before.actions[i].sa_sigaction == now->actions[i].sa_sigaction)
            continue;
        snprintf(words, WORDS, "the handler of SIG%s", signal_name(i));
        return true;
    }
    return false;
}

static bool other_timer(const struct state *now, char *words)
{
    snprintf(words, WORDS, "a timer, which sends SIGALRM");
    return now->has_timer && !before.has_timer;
}

static bool other_folder(const struct state *now, char *words)
{
    snprintf(words, WORDS, "the current folder (%.100s)", now->folder);
    return strcmp(now->folder, before.folder) != 0;
}

static bool other_locale(const struct state *now, char *words)
{
    snprintf(words, WORDS, "the locale (%.100s)", now->locale);
    return strcmp(now->locale, before.locale) != 0;
}

static bool other_thread_locale(const struct state *now, char *words)
{
    snprintf(words, WORDS, "the locale of the thread");
    return now->thread_locale != before.thread_locale;
}

static bool other_umask(const struct state *now, char *words)
{
    snprintf(words, WORDS, "the umask (%03o to %03o)", (unsigned)before.file_mask,
             (unsigned)now->file_mask);
    return now->file_mask != before.file_mask;
}

static bool other_limit(const struct state *now, char *words)
{
    static const char *const names[RLIM_NLIMITS] = {
        [RLIMIT_AS] = "AS",       [RLIMIT_CORE] = "CORE",     [RLIMIT_CPU] = "CPU",
        [RLIMIT_DATA] = "DATA",   [RLIMIT_FSIZE] = "FSIZE",   [RLIMIT_MEMLOCK] = "MEMLOCK",
        [RLIMIT_NPROC] = "NPROC", [RLIMIT_NOFILE] = "NOFILE", [RLIMIT_STACK] = "STACK"};

    for (int i = 0; i < RLIM_NLIMITS; i++) {
        if (memcmp(&now->limits[i], &before.limits[i], sizeof(now->limits[i])) == 0)
            continue;
        snprintf(words, WORDS, "the limit RLIMIT_%s", names[i] ? names[i] : "?");
        return true;
    }
    return false;
}

static bool other_processors(const struct state *now, char *words)
{
    snprintf(words, WORDS, "the processors of the thread (%d to %d)", CPU_COUNT(&before.processors),
             CPU_COUNT(&now->processors));
    return !CPU_EQUAL(&now->processors, &before.processors);
}

static bool other_niceness(const struct state *now, char *words)
{
    snprintf(words, WORDS, "the niceness (%d to %d)", before.niceness, now->niceness);
    return now->niceness != before.niceness;
}

/* What was open must be open still, and the same. */
static bool other_descriptor(const struct state *now, char *words)
{
    for (int i = 0; i < DESCRIPTORS; i++) {
        const struct open_file *was = &before.files[i], *is = &now->files[i];

        if ((!was->device && !was->number) ||
            (was->device == is->device && was->number == is->number))
            continue;
        snprintf(words, WORDS, "descriptor %d (%s)", i,
                 is->device || is->number ? "another file" : "closed");
        return true;
    }
    return false;
}

static bool other_environment(const struct state *now, char *words)
{
    char name[100];

    (void)now;
    if (!environment_changed(name, sizeof(name)))
        return false;
    snprintf(words, WORDS, "the environment (%s)", name);
    return true;
}

void state_compare(size_t file, const char *slot)
{
    static bool (*const aspects[])(const struct state *now, char *words) = {
        other_modes,      other_mask,          other_handler,    other_timer, other_folder,
        other_locale,     other_thread_locale, other_umask,      other_limit, other_niceness,
        other_processors, other_descriptor,    other_environment};
    static struct state now;
    char words[WORDS];

    read_state(&now);
    for (size_t i = 0; i < sizeof(aspects) / sizeof(aspects[0]); i++)
        if (aspects[i](&now, words))
            report_line("changed %zu %s: %s", file, slot, words);
    before = now;
    environment_note();
}

/* ---- threads ---- */

/* Of a thread of the process; empty if it has ended. */
static void read_name(const char *thread, char name[32])
{
    char path[300];
    ssize_t n;
    int file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", thread);
    file = open(path, O_RDONLY | O_CLOEXEC);
    n = file >= 0 ? read(file, name, 31) : 0;
    name[n > 0 ? n - 1 : 0] = '\0';
    if (file >= 0)
        close(file);
}

/* Beside the first one; writes the name of one of them. */
static unsigned count_threads(char name[32])
{
    const long first = getpid();
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    unsigned n = 0;

    while (tasks && (entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == first)
            continue;
        read_name(entry->d_name, name);
        n++;
    }
    if (tasks)
        closedir(tasks);
    return n;
}

void state_compare_threads(size_t file)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    char name[32] = "";
    unsigned n = count_threads(name);

    for (int i = 0; n && i < THREADS_MS; i++) {
        (void)nanosleep(&moment, NULL);
        n = count_threads(name);
    }
    if (n)
        report_line("changed %zu close: threads, of which %u run on (%s)", file, n, name);
}
