/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/guard.h"
#include "probe/report.h"

enum { SIGNALS = 32, STANDARD_FDS = 3 };

static struct state {
    uint64_t floating_point; /* modes, without flags of exceptions */
    sigset_t mask;
    struct sigaction actions[SIGNALS];
    char folder[PATH_MAX];
    char locale[256];
    mode_t file_mask;
    ino_t standard[STANDARD_FDS]; /* 0: closed */
} before;

static void read_state(struct state *out)
{
    const char *locale = setlocale(LC_ALL, NULL);
    struct stat info;
    fenv_t env;

    memset(out, 0, sizeof(*out));
    if (!fegetenv(&env))
        out->floating_point = guard_modes_of(&env);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &out->mask);
    for (int i = 1; i < SIGNALS; i++)
        (void)sigaction(i, NULL, &out->actions[i]);
    if (!getcwd(out->folder, sizeof(out->folder)))
        out->folder[0] = '\0';
    snprintf(out->locale, sizeof(out->locale), "%s", locale ? locale : "");
    out->file_mask = umask(0);
    (void)umask(out->file_mask);
    for (int i = 0; i < STANDARD_FDS; i++)
        out->standard[i] = fstat(i, &info) == 0 ? info.st_ino : 0;
}

void state_note(void)
{
    read_state(&before);
}

static int changed_signal(const struct state *now)
{
    for (int i = 1; i < SIGNALS; i++)
        if (before.actions[i].sa_sigaction != now->actions[i].sa_sigaction)
            return i;
    return 0;
}

static void report_change(size_t file, const char *slot, bool changed, const char *what)
{
    if (changed)
        report_line("changed %zu %s: %s", file, slot, what);
}

void state_compare(size_t file, const char *slot)
{
    static struct state now;
    int number;

    read_state(&now);
    number = changed_signal(&now);
    report_change(file, slot, now.floating_point != before.floating_point, "floating-point modes");
    report_change(file, slot, !guard_same_masks(&now.mask, &before.mask), "the signal mask");
    if (number)
        report_line("changed %zu %s: the handler of SIG%s", file, slot,
                    sigabbrev_np(number) ? sigabbrev_np(number) : "?");
    report_change(file, slot, strcmp(now.folder, before.folder) != 0, "the current folder");
    report_change(file, slot, strcmp(now.locale, before.locale) != 0, "the locale");
    report_change(file, slot, now.file_mask != before.file_mask, "the umask");
    report_change(file, slot, memcmp(now.standard, before.standard, sizeof(now.standard)) != 0,
                  "the standard streams");
    before = now;
}
