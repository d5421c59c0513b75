/* SPDX-License-Identifier: Apache-2.0 */
/* Progress messages where standard error is not a terminal. */
#include <stdio.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_now_and_then),
        cmocka_unit_test(nothing_without_topic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
