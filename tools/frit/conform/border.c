/* SPDX-License-Identifier: Apache-2.0 */
#include "conform/border.h"

#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool flushes_now(void)
{
    volatile double least = DBL_MIN;

    return least / 2 == 0;
}

void border_read(struct border *out)
{
    memset(out, 0, sizeof(*out));
    out->rounding = fegetround();
    out->flushes = flushes_now();
    (void)pthread_sigmask(SIG_SETMASK, NULL, &out->mask);
    for (int i = 1; i < BORDER_SIGNALS; i++)
        (void)sigaction(i, NULL, &out->actions[i]);
    out->umask = umask(0);
    (void)umask(out->umask);
    snprintf(out->locale, sizeof(out->locale), "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(out->folder, sizeof(out->folder)))
        out->folder[0] = '\0';
}

static bool same_masks(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < BORDER_SIGNALS; i++)
        if (sigismember(a, i) != sigismember(b, i))
            return false;
    return true;
}

static bool same_actions(const struct sigaction *a, const struct sigaction *b)
{
    for (int i = 1; i < BORDER_SIGNALS; i++)
        if (a[i].sa_handler != b[i].sa_handler)
            return false;
    return true;
}

const char *border_differs(const struct border *before)
{
    static struct border now;
    const char *what = NULL;

    border_read(&now);
    if (now.rounding != before->rounding)
        what = "the rounding mode";
    else if (now.flushes != before->flushes)
        what = "whether denormals are zero";
    else if (!same_masks(&now.mask, &before->mask))
        what = "the signal mask";
    else if (!same_actions(now.actions, before->actions))
        what = "what a signal does";
    else if (now.umask != before->umask)
        what = "the umask";
    else if (strcmp(now.locale, before->locale) != 0)
        what = "the locale";
    else if (strcmp(now.folder, before->folder) != 0)
        what = "the current folder";
    (void)fesetround(before->rounding);
    (void)pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    return what;
}
