/* SPDX-License-Identifier: Apache-2.0 */
/* Ways in which the process ends, or does not go on, or disturbs the process that listens. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acts.h"

static int *volatile nowhere = (int *)8;

static void say(int fd, const char *text)
{
    (void)!write(fd, text, strlen(text));
}

/* ---- signals ---- */

static void crash(void)
{
    *nowhere = 1;
}

static void call_nowhere(void)
{
    void (*volatile function)(void);

    *(void *volatile *)&function = (void *)nowhere;
    function();
}

static void write_code(void)
{
    void (*volatile function)(void) = crash;
    char *volatile code;

    memcpy((void *)&code, (void *)&function, sizeof(code));
    *code = 0;
}

static void no_instruction(void)
{
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#else
    (void)raise(SIGILL);
#endif
}

static void divide(void)
{
#if defined(__x86_64__)
    __asm__ volatile("xor %%edx, %%edx; mov $1, %%eax; xor %%ecx, %%ecx; idiv %%ecx" ::
                         : "eax", "ecx", "edx", "cc");
#else
    (void)raise(SIGFPE);
#endif
}

static void read_beyond_file(void)
{
    const int file = memfd_create("empty", 0);
    const volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);

    (void)page[0];
}

static void trap(void)
{
    (void)raise(SIGTRAP);
}

static void system_call(void)
{
    (void)raise(SIGSYS);
}

static void kill_self(void)
{
    (void)raise(SIGKILL);
}

static void terminate(void)
{
    (void)raise(SIGTERM);
}

static void stop(void)
{
    (void)raise(SIGSTOP);
}

static int dive(volatile int depth)
{
    volatile char frame[4096];

    frame[0] = (char)depth;
    return depth < 1 << 24 ? dive(depth + 1) + frame[0] : 0;
}

static void overflow_stack(void)
{
    (void)dive(0);
}

/* ---- leaving ---- */

static void leave(void)
{
    _exit(0);
}

static void leave_with(void)
{
    _exit(3);
}

static void leave_orderly(void)
{
    exit(0);
}

static void become(void)
{
    (void)execl("/bin/true", "true", (char *)NULL);
    abort();
}

static void crash_at_exit(void)
{
    (void)atexit(crash);
}

/* ---- waiting ---- */

static void hang(void)
{
    for (;;)
        pause();
}

static void spin(void)
{
    for (;;)
        (void)*(int *volatile *)&nowhere;
}

static void lock_twice(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    (void)pthread_mutex_lock(&mutex);
    (void)pthread_mutex_lock(&mutex);
}

static void wait_for_child(void)
{
    const pid_t child = fork();

    if (child == 0)
        hang();
    (void)waitpid(child, NULL, 0);
}

static void read_nothing(void)
{
    int ends_of_pipe[2];
    char byte;

    if (pipe(ends_of_pipe) == 0)
        (void)!read(ends_of_pipe[0], &byte, 1);
}

static void hang_at_exit(void)
{
    (void)atexit(hang);
}

/* ---- disturbing ---- */

static void pretend(void)
{
    say(3, "done\ndone 0\nfrit-probe 1\nat 99 open\ncrash 11 \033[31mnothing\nend\n");
    _exit(0);
}

static void talk(void)
{
    say(1, "output and more output\n");
    say(3, "neither done nor anything else\n");
}

static void flood(void)
{
    for (unsigned i = 0; i < 100000; i++)
        talk();
}

static void spill(void)
{
    for (;;)
        talk();
}

/* Holds the pipes. */
static void leave_child(void)
{
    if (fork() == 0)
        hang();
}

static void close_all(void)
{
    for (int i = 0; i < 256; i++)
        (void)close(i);
}

static void replace_report(void)
{
    (void)dup2(1, 3);
}

/* Works alone, and ends the process where another such plugin was before it. */
static void clash(void)
{
    if (getenv("FRIT_TEST_CLASH"))
        abort();
    (void)setenv("FRIT_TEST_CLASH", "yes", 1);
}

const struct act ends[] = {
    {"crash", crash},
    {"jump", call_nowhere},
    {"code", write_code},
    {"abort", abort},
    {"illegal", no_instruction},
    {"divide", divide},
    {"bus", read_beyond_file},
    {"trap", trap},
    {"syscall", system_call},
    {"kill", kill_self},
    {"term", terminate},
    {"stop", stop},
    {"stack", overflow_stack},
    {"throw", throw_exception},
    {"exit", leave},
    {"exit3", leave_with},
    {"quit", leave_orderly},
    {"exec", become},
    {"atexit", crash_at_exit},
    {"hang", hang},
    {"spin", spin},
    {"lock", lock_twice},
    {"waitpid", wait_for_child},
    {"pipe", read_nothing},
    {"athang", hang_at_exit},
    {"lie", pretend},
    {"flood", flood},
    {"spill", spill},
    {"child", leave_child},
    {"closeall", close_all},
    {"replace", replace_report},
    {"clash", clash},
    {NULL, NULL},
};
