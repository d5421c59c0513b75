/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that misbehaves as ACT_<act> in PLACE_<place>. */
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../driver.h"

enum place { PLACE_load, PLACE_entry, PLACE_open, PLACE_enumerate, PLACE_close, PLACE_exit };
enum act {
    ACT_crash,
    ACT_abort,
    ACT_exit,
    ACT_kill,
    ACT_hang,
    ACT_stack,
    ACT_throw,
    ACT_clash,
    ACT_flood,
    ACT_spill,
    ACT_lie,
    ACT_child,
    ACT_round,
    ACT_mask,
    ACT_folder,
    ACT_umask,
    ACT_locale,
    ACT_handler,
    ACT_streams
};

void throw_out(void); /* throw.cc */

static int *volatile nowhere = (int *)8;

static void say(int fd, const char *text)
{
    (void)!write(fd, text, strlen(text));
}

static int dive(volatile int depth)
{
    volatile char frame[4096];

    frame[0] = (char)depth;
    return depth < 1 << 24 ? dive(depth + 1) + frame[0] : 0;
}

static void on_signal(int number)
{
    (void)number;
}

static void hang(void)
{
    for (;;)
        pause();
}

/* Ends the process, or keeps it from going on. */
static void end_process(enum act act)
{
    if (act == ACT_crash)
        *nowhere = 1;
    else if (act == ACT_abort)
        abort();
    else if (act == ACT_exit)
        _exit(0);
    else if (act == ACT_kill)
        (void)raise(SIGKILL);
    else if (act == ACT_hang)
        hang();
    else if (act == ACT_stack)
        (void)dive(0);
#ifdef SIN_THROWS
    else if (act == ACT_throw)
        throw_out();
#endif
}

/* Disturbs the one who listens, and ends early. */
static void disturb(enum act act)
{
    if (act == ACT_lie) {
        say(3, "done\ndone 0\nfrit-probe 1\nat 99 open\ncrash 11 \033[31mnothing\nend\n");
        _exit(0);
    }
    for (unsigned i = 0; act == ACT_spill || (act == ACT_flood && i < 100000); i++) {
        say(1, "output and more output\n");
        say(3, "neither done nor anything else\n");
    }
    if (act == ACT_child && fork() == 0) /* holds the pipes */
        hang();
}

/* Works alone, and ends the process where another such plugin was before it. */
static void clash(void)
{
    if (getenv("FRIT_TEST_CLASH"))
        abort();
    (void)setenv("FRIT_TEST_CLASH", "yes", 1);
}

static void change_state(enum act act)
{
    sigset_t set;

    sigfillset(&set);
    if (act == ACT_round)
        (void)fesetround(FE_TOWARDZERO);
    else if (act == ACT_mask)
        (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    else if (act == ACT_folder)
        (void)!chdir("/");
    else if (act == ACT_umask)
        (void)umask(0);
    else if (act == ACT_locale)
        (void)setlocale(LC_ALL, "C.UTF-8");
    else if (act == ACT_handler)
        (void)signal(SIGTERM, on_signal);
    else if (act == ACT_streams)
        (void)close(0);
}

static void misbehave(enum place place)
{
    if (place != PLACE)
        return;
    if (ACT == ACT_clash)
        clash();
    change_state(ACT);
    disturb(ACT);
    end_process(ACT);
}

__attribute__((constructor)) static void constructor(void)
{
    misbehave(PLACE_load);
}

__attribute__((destructor)) static void destructor(void)
{
    misbehave(PLACE_exit);
}

static frit_status enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err)
{
    misbehave(PLACE_enumerate);
    return fake_enumerate(instance, out, stride, capacity, count, driver, err);
}

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    struct fake *fake = NULL;
    frit_status status = fake_open(host, SIN_NAME, &fake, err);

    if (status)
        return status;
    fake->backend.enumerate = enumerate;
    misbehave(PLACE_open);
    *instance = fake;
    return FRIT_OK;
}

static void plugin_close(void *instance)
{
    misbehave(PLACE_close);
    fake_close(instance);
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .id = {"sin-" SIN_NAME, sizeof("sin-" SIN_NAME) - 1},
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = fake_get_interface,
};

static const frit_note_section note
    __attribute__((section(".note.frit"), used, aligned(4))) = {sizeof("FRIT"),
                                                                sizeof(frit_note),
                                                                1,
                                                                "FRIT",
                                                                {sizeof(frit_note),
                                                                 FRIT_ABI_MIN,
                                                                 FRIT_ABI_MAX,
                                                                 FRIT_SANITIZER,
                                                                 {0},
                                                                 "sin-" SIN_NAME,
                                                                 "1.0",
                                                                 ""}};

__attribute__((visibility("default"))) int32_t frit_plugin_entry_v1(const frit_hello *hello,
                                                                    frit_welcome *welcome);

int32_t frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome)
{
    misbehave(PLACE_entry);
    return frit_negotiate(hello, welcome, &plugin);
}
