/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the thread or the process that a plugin may not leave behind. */
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "acts.h"

static void round_down(void)
{
    (void)fesetround(FE_TOWARDZERO);
}

static void flush_denormals(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#else
    round_down();
#endif
}

static void trap_floats(void)
{
    (void)feenableexcept(FE_DIVBYZERO);
}

static void block(int number)
{
    sigset_t set;

    sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void block_all(void)
{
    sigset_t set;

    sigfillset(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void block_one(void)
{
    block(SIGUSR1);
}

static void on_signal(int number)
{
    (void)number;
}

static void handle_term(void)
{
    (void)signal(SIGTERM, on_signal);
}

static void handle_segv(void)
{
    (void)signal(SIGSEGV, on_signal);
}

static void ignore_children(void)
{
    (void)signal(SIGCHLD, SIG_IGN);
}

static void set_timer(void)
{
    const struct itimerval hour = {.it_value = {.tv_sec = 3600}};

    (void)setitimer(ITIMER_REAL, &hour, NULL);
}

static void change_folder(void)
{
    (void)!chdir("/");
}

static void change_umask(void)
{
    (void)umask(0);
}

static void change_locale(void)
{
    (void)setlocale(LC_ALL, "C.UTF-8");
}

static void change_thread_locale(void)
{
    (void)uselocale(newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0));
}

static void limit(__rlimit_resource_t which)
{
    struct rlimit now;

    (void)getrlimit(which, &now);
    now.rlim_cur = now.rlim_cur == RLIM_INFINITY ? 1 << 30 : now.rlim_cur / 2;
    (void)setrlimit(which, &now);
}

static void limit_files(void)
{
    limit(RLIMIT_NOFILE);
}

static void limit_stack(void)
{
    limit(RLIMIT_STACK);
}

static void be_nice(void)
{
    (void)!nice(1);
}

/* Off the first processor that the thread may use; nothing where that is the only one. */
static void leave_processor(void)
{
    cpu_set_t set;
    size_t first = 0;

    (void)sched_getaffinity(0, sizeof(set), &set);
    while (first < CPU_SETSIZE && !CPU_ISSET(first, &set))
        first++;
    CPU_CLR(first, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

static void close_input(void)
{
    (void)close(0);
}

static void close_output(void)
{
    (void)close(1);
    (void)close(2);
}

static void replace_output(void)
{
    const int file = open("/dev/null", O_WRONLY);

    (void)dup2(file, 1);
    (void)close(file);
}

/* That of the host, which holds one open around each call. */
static void close_another(void)
{
    (void)close(4);
}

static void set_variable(void)
{
    (void)setenv("FRIT_TEST_SIN", "yes", 1);
}

static void change_variable(void)
{
    (void)setenv("PATH", "/nowhere", 1);
}

static void remove_variable(void)
{
    (void)unsetenv("PATH");
}

static void remove_variables(void)
{
    (void)clearenv();
}

static void *sleep_on(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

static void leave_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, sleep_on, NULL) == 0)
        (void)pthread_detach(thread);
}

const struct act changes[] = {
    {"round", round_down},
    {"flush", flush_denormals},
    {"unmask", trap_floats},
    {"mask", block_all},
    {"usr1", block_one},
    {"handler", handle_term},
    {"segv", handle_segv},
    {"sigchld", ignore_children},
    {"timer", set_timer},
    {"folder", change_folder},
    {"umask", change_umask},
    {"locale", change_locale},
    {"uselocale", change_thread_locale},
    {"nofile", limit_files},
    {"rlimit", limit_stack},
    {"nice", be_nice},
    {"affinity", leave_processor},
    {"stdin", close_input},
    {"stdout", close_output},
    {"dup", replace_output},
    {"close", close_another},
    {"setenv", set_variable},
    {"path", change_variable},
    {"unsetenv", remove_variable},
    {"clearenv", remove_variables},
    {"thread", leave_thread},
    {NULL, NULL},
};
