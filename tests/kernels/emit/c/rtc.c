/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/emit/c/rtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

/* A pointer to a function in the place of one to an object, as POSIX has it. */
static bool find(const struct rtc *rtc, const char *prefix, const char *name, void *at)
{
    char symbol[64];
    void *found;

    snprintf(symbol, sizeof(symbol), "%s%s", prefix, name);
    found = dlsym(rtc->library, symbol);
    memcpy(at, &found, sizeof(found));
    return found != NULL;
}

bool rtc_open(struct rtc *rtc, const char *library, const char *prefix)
{
    *rtc = (struct rtc){.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (!rtc->library)
        return false;
    if (find(rtc, prefix, "CreateProgram", &rtc->create) &&
        find(rtc, prefix, "CompileProgram", &rtc->compile) &&
        find(rtc, prefix, "GetProgramLogSize", &rtc->log_size) &&
        find(rtc, prefix, "GetProgramLog", &rtc->log) &&
        find(rtc, prefix, "DestroyProgram", &rtc->destroy))
        return true;
    rtc_close(rtc);
    return false;
}

void rtc_close(struct rtc *rtc)
{
    if (rtc->library)
        dlclose(rtc->library);
    *rtc = (struct rtc){0};
}

static void print_log(const struct rtc *rtc, void *program)
{
    size_t bytes = 0;
    char *log;

    if (rtc->log_size(program, &bytes) || !(log = calloc(1, bytes + 1)))
        return;
    rtc->log(program, log);
    fputs(log, stderr); /* print_error cuts */
    free(log);
}

void rtc_compile(const struct rtc *rtc, const char *name, const char *text, int n_options,
                 const char *const *options)
{
    void *program = NULL;
    int status;

    assert_int_equal(rtc->create(&program, text, "kernel", 0, NULL, NULL), 0);
    status = rtc->compile(program, n_options, options);
    if (status) {
        fputs(text, stderr);
        print_log(rtc, program);
        fail_msg("%s for %s: error %d", name, options[0], status);
    }
    rtc->destroy(&program);
}
