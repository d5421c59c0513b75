/* SPDX-License-Identifier: Apache-2.0 */
#include "load/guard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "load/breadcrumb.h"
#include "load/quarantine.h"
#include "load/registry.h"

enum { SIGNALS = 32 /* those that plugins could know */ };

uint64_t guard_modes_of(const fenv_t *env)
{
#if defined(__x86_64__)
    return (uint64_t)env->__control_word << 32 | (env->__mxcsr & ~0x3fu);
#elif defined(__aarch64__)
    return env->__fpcr;
#else
    (void)env;
    return (uint64_t)fegetround();
#endif
}

bool guard_same_masks(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < SIGNALS; i++)
        if (sigismember(a, i) != sigismember(b, i))
            return false;
    return true;
}

static void enter(struct guard *guard)
{
    (void)fegetenv(&guard->floating_point);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &guard->mask);
}

void guard_enter(struct guard *guard, const struct plugin *plugin, const char *slot)
{
    *guard = (struct guard){.who = plugin->path, .slot = slot, .suspect = plugin->suspect};
    enter(guard);
    guard->folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    guard->place = breadcrumb_enter(guard->who, slot, BREADCRUMB_BLAMED);
}

void guard_enter_beside(struct guard *guard, const char *who, const char *slot)
{
    *guard = (struct guard){.who = who, .slot = slot, .folder = -1};
    enter(guard);
    guard->place = breadcrumb_enter(who, slot, BREADCRUMB_WATCHED);
}

static void warn(const struct guard *guard, const char *what)
{
    log_write(FRIT_LOG_WARN, "load", "plugin %s: %s changed %s; it is restored", guard->who,
              guard->slot, what);
}

static void check_floating_point(const struct guard *guard)
{
    fenv_t now;

    if (fegetenv(&now) || guard_modes_of(&now) == guard_modes_of(&guard->floating_point))
        return;
    (void)fesetenv(&guard->floating_point);
    warn(guard, "the floating-point modes");
}

static void check_mask(const struct guard *guard)
{
    sigset_t now;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    if (guard_same_masks(&now, &guard->mask))
        return;
    (void)pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
    warn(guard, "the signal mask");
}

static void check_folder(const struct guard *guard)
{
    struct stat was, now;

    if (guard->folder < 0 || fstat(guard->folder, &was) || stat(".", &now) ||
        (was.st_dev == now.st_dev && was.st_ino == now.st_ino))
        return;
    if (fchdir(guard->folder) == 0)
        warn(guard, "the current folder");
}

void guard_leave(struct guard *guard)
{
    breadcrumb_leave(guard->place);
    quarantine_clear(guard->suspect, guard->slot);
    check_floating_point(guard);
    check_mask(guard);
    check_folder(guard);
    if (guard->folder >= 0)
        close(guard->folder);
}
