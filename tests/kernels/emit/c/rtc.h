/* SPDX-License-Identifier: Apache-2.0 */
/* A compiler of devices, opened at run time: HIPRTC or NVRTC, whose interfaces differ in names. */
#ifndef TESTS_EMIT_C_RTC_H
#define TESTS_EMIT_C_RTC_H

#include <stdbool.h>
#include <stddef.h>

struct rtc {
    void *library;
    int (*create)(void **program, const char *text, const char *name, int n_headers,
                  const char *const *headers, const char *const *names);
    int (*compile)(void *program, int n, const char *const *options);
    int (*log_size)(void *program, size_t *bytes);
    int (*log)(void *program, char *text);
    int (*destroy)(void **program);
};

/* `prefix`: hiprtc or nvrtc.  False: there is no such library, or a function is missing. */
bool rtc_open(struct rtc *rtc, const char *library, const char *prefix);
void rtc_close(struct rtc *rtc);
/* Fails the test with the compiler's log, which is also on standard error with the text. */
void rtc_compile(const struct rtc *rtc, const char *name, const char *text, int n_options,
                 const char *const *options);

#endif
