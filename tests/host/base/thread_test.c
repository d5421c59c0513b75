/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that leave signals to the program, and calls that a cancelled thread finishes. */
#include "unit.h"

#include <signal.h>
#include <stdbool.h>

#include <frit/plugin.h>

#include "base/thread.h"

static void *read_mask(void *ctx)
{
    pthread_sigmask(SIG_BLOCK, NULL, ctx);
    return NULL;
}

static void test_signals(void **state)
{
    static const int others[] = {SIGINT,  SIGTERM, SIGPIPE, SIGCHLD,
                                 SIGPROF, SIGALRM, SIGUSR1, SIGXFSZ};
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t mask, mine, before;
    pthread_t thread;

    (void)state;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(thread_start(&thread, read_mask, &mask), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(sigismember(&mask, others[i]), 1);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        assert_int_equal(sigismember(&mask, own[i]), 0);
    pthread_sigmask(SIG_BLOCK, NULL, &mine);
    for (int i = 1; i < SIGRTMIN; i++)
        assert_int_equal(sigismember(&mine, i), sigismember(&before, i));
}

struct steps {
    bool inner, outer, after;
};

static void inner(struct steps *steps)
{
    HOLD_CANCEL;

    pthread_testcancel();
    steps->inner = true;
}

static void outer(struct steps *steps)
{
    HOLD_CANCEL;

    inner(steps);
    pthread_testcancel(); /* the inner call gave back what it found */
    steps->outer = true;
}

static void *cancel_oneself(void *ctx)
{
    struct steps *steps = ctx;

    pthread_cancel(pthread_self());
    outer(steps);
    pthread_testcancel();
    steps->after = true;
    return NULL;
}

static void test_cancel(void **state)
{
    struct steps steps = {0};
    pthread_t thread;
    void *result;

    (void)state;
    if (FRIT_SANITIZER == FRIT_SANITIZER_ADDRESS)
        skip(); /* it takes the unwound stack for overrun */
    assert_int_equal(pthread_create(&thread, NULL, cancel_oneself, &steps), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(steps.inner && steps.outer);
    assert_false(steps.after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_cancel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
