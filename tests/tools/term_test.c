/* SPDX-License-Identifier: Apache-2.0 */
/* Progress on standard error, a terminal or not. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "term.h"
#include "unit.h"

/* Standard error goes to a file. */
static FILE *catch (int *saved)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    fflush(stderr);
    *saved = dup(STDERR_FILENO);
    assert_int_not_equal(dup2(fileno(file), STDERR_FILENO), -1);
    return file;
}

static void caught(FILE *file, int saved, char *text, size_t room)
{
    size_t length;

    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    length = fread(text, 1, room - 1, file);
    text[length] = '\0';
    fclose(file);
}

static void a_line_now_and_then(void **state)
{
    struct progress progress;
    char text[256];
    int saved;
    FILE *file = catch (&saved);

    (void)state;
    progress_begin(&progress, "bake", 90);
    progress_step(&progress, 1); /* too early */
    progress.start -= PROGRESS_SECONDS;
    progress_step(&progress, 20);
    progress_hide(&progress);
    progress_step(&progress, 21); /* too early again, whatever was hidden */
    progress.start -= PROGRESS_SECONDS;
    progress.shown -= PROGRESS_SECONDS;
    progress.failed = 3;
    progress_step(&progress, 40);
    caught(file, saved, text, sizeof(text));
    assert_string_equal(text, "frit bake: 20 of 90, 2.0/s\nfrit bake: 40 of 90, 3 failed, 2.0/s\n");
}

static void nothing_without_topic(void **state)
{
    struct progress progress;
    char text[256];
    int saved;
    FILE *file = catch (&saved);

    (void)state;
    progress_begin(&progress, NULL, 90);
    progress.start -= 2 * PROGRESS_SECONDS;
    progress_step(&progress, 20);
    progress_hide(&progress);
    caught(file, saved, text, sizeof(text));
    assert_string_equal(text, "");
}

/* What was written to a terminal arrives at its other end in parts, and a little later. */
static void receive(int master, char *text, size_t length)
{
    struct pollfd ready = {.fd = master, .events = POLLIN};
    size_t n = 0;

    while (n < length && poll(&ready, 1, 10000) > 0) {
        const ssize_t part = read(master, text + n, length - n);

        assert_true(part > 0);
        n += (size_t)part;
    }
    text[n] = '\0';
}

/* The first `length` bytes that `done` of `total` after so many seconds shows on a terminal, and
 * that hide it again. */
static void show(uint64_t done, uint64_t total, double seconds, char *text, size_t length)
{
    struct progress progress;
    const int master = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    int terminal = -1;

    assert_int_not_equal(master, -1);
    if (!grantpt(master) && !unlockpt(master))
        terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_int_not_equal(dup2(terminal, STDERR_FILENO), -1);
    progress_begin(&progress, NULL, total);
    progress_step(&progress, done); /* too early */
    progress.start -= seconds;
    progress_step(&progress, done);
    progress_hide(&progress);
    progress_hide(&progress);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    receive(master, text, length);
    close(terminal);
    close(master);
    close(saved);
}

static void a_bar_on_a_terminal(void **state)
{
    static const struct {
        uint64_t done, total;
        double seconds;
        const char *text;
    } rows[] = {
        {2000, 2700, 200, "[######################        ] 2000/2700  10.0/s  70 s left  "},
        {2, 62, 20, "[                              ] 2/62  0.1/s  10 min left  "},
        {0, 31, 2, "[                              ] 0/31  0.0/s  "},
        {1, 999, 200, "[                              ] 1/999  0.0/s  "},
        {700, 700, 700, "[##############################] 700/700  1.0/s  0 s left  "}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[512], expected[512];

        snprintf(expected, sizeof(expected), "\r%s\r%78s\r", rows[i].text, "");
        show(rows[i].done, rows[i].total, rows[i].seconds, text, strlen(expected));
        assert_string_equal(text, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_now_and_then),
        cmocka_unit_test(nothing_without_topic),
        cmocka_unit_test(a_bar_on_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
