/* SPDX-License-Identifier: Apache-2.0 */
/* Progress on standard error, a terminal or not. */
#include <fcntl.h>
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

/* What `done` of `total` after so many seconds shows on a terminal, and what hides it. */
static void show(uint64_t done, uint64_t total, double seconds, char *text, size_t room)
{
    struct progress progress;
    const int master = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    int terminal = -1;
    ssize_t n;

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
    n = read(master, text, room - 1);
    assert_in_range(n, 0, room - 1);
    text[n] = '\0';
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

        show(rows[i].done, rows[i].total, rows[i].seconds, text, sizeof(text));
        snprintf(expected, sizeof(expected), "\r%s\r%78s\r", rows[i].text, "");
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
