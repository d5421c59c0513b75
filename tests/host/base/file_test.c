/* SPDX-License-Identifier: Apache-2.0 */
/* What is not a regular file is not waited for; what others could have written is not ours; files
 * are replaced whole; a limit of file sizes sends no signal. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

static char root[32];

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/frit-file-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char path[80];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void make_file(const char *name, mode_t mode)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_true(file_write(fd, "text", 4));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* NULL: it is opened. */
static const char *refusal(const char *name, enum file_trust trust)
{
    struct stat info;
    const char *why;
    int fd = file_open(AT_FDCWD, path_of(name), trust, &info, &why);

    if (fd < 0)
        return why;
    assert_int_equal(info.st_size, 4);
    close(fd);
    return NULL;
}

static void test_open(void **state)
{
    static const enum file_trust all[] = {FILE_NAMED, FILE_INSTALLED, FILE_OURS};

    (void)state;
    make_file("mine", 0600);
    make_file("open", 0666);
    make_file("group", 0620);
    assert_int_equal(symlink("mine", path_of("link")), 0);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    assert_int_equal(mkdir(path_of("folder"), 0700), 0);
    for (int i = 0; i < 3; i++) {
        assert_null(refusal("mine", all[i]));
        assert_string_equal(refusal("pipe", all[i]), "not a regular file");
        assert_string_equal(refusal("folder", all[i]), "not a regular file");
        assert_string_equal(refusal("absent", all[i]), strerror(ENOENT));
    }
    assert_null(refusal("open", FILE_NAMED));
    assert_null(refusal("link", FILE_NAMED));
    assert_string_equal(refusal("open", FILE_OURS), "others may write it");
    assert_string_equal(refusal("group", FILE_OURS), "others may write it");
    assert_string_equal(refusal("link", FILE_OURS), strerror(ELOOP));
    assert_string_equal(refusal("link", FILE_INSTALLED), strerror(ELOOP));
    assert_string_equal(refusal("open", FILE_INSTALLED), "others may write it");
}

/* A file of another user, if this one may make such a file. */
static void test_owner(void **state)
{
    const struct stat foreign = {.st_mode = S_IFREG | 0600, .st_uid = geteuid() + 1},
                      own = {.st_mode = S_IFREG | 0644, .st_uid = geteuid()};

    (void)state;
    assert_string_equal(file_not_ours(&foreign), "it belongs to another user");
    assert_null(file_not_ours(&own));
}

static uint32_t n_warnings;

static void count(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    assert_int_equal(level, FRIT_LOG_WARN);
    assert_string_equal(topic, "file");
    assert_non_null(strstr(text, "chmod go-w"));
    n_warnings++;
}

static void test_folder(void **state)
{
    struct stat info;
    int fd = file_folder(path_of("a/b"), false);

    (void)state;
    assert_true(fd < 0 && errno == ENOENT);
    fd = file_folder(path_of("a/b"), true);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    close(fd);
    assert_int_equal(chmod(path_of("a/b"), 0777), 0);
    log_set_sink(count, NULL);
    for (int i = 0; i < 3; i++)
        assert_true(file_folder(path_of("a/b"), true) < 0 && errno == EPERM);
    log_set_sink(NULL, NULL);
    assert_int_equal(n_warnings, 1);
    make_file("plain", 0600);
    assert_true(file_folder(path_of("plain"), true) < 0 && errno == ENOTDIR);
}

static bool has(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static void test_replace(void **state)
{
    const struct file_part parts[] = {{"te", 2}, {"", 0}, {"xt", 2}};
    const struct timespec long_ago[] = {{1, 0}, {1, 0}};
    int folder = file_folder(root, false);
    struct stat info;

    (void)state;
    assert_true(folder >= 0);
    for (int i = 0; i < 2; i++) {
        make_file(".kept.1-0.draft", 0600);
        assert_int_equal(file_replace(folder, "kept", FILE_PRIVATE, parts, 3), 0);
        assert_null(refusal("kept", FILE_OURS));
        assert_int_equal(stat(path_of("kept"), &info), 0);
        assert_int_equal(info.st_mode & 07777, 0600);
    }
    file_sweep(folder, ".kept.1-0.draft"); /* its writer may be at it */
    assert_true(has(".kept.1-0.draft"));
    assert_int_equal(utimensat(folder, ".kept.1-0.draft", long_ago, 0), 0);
    file_sweep(folder, ".kept.1-0.draft");
    file_sweep(folder, "kept");
    assert_false(has(".kept.1-0.draft"));
    assert_true(has("kept"));
    close(folder);
}

static volatile sig_atomic_t n_signals;

static void on_signal(int number)
{
    (void)number;
    n_signals++;
}

/* In a child: a file that is too large is not written, and no signal comes of it. */
static int write_too_much(void)
{
    static const char bytes[8192];
    const struct file_part part = {bytes, sizeof(bytes)};
    const struct rlimit few = {4096, 4096};
    int folder = file_folder(root, false);
    struct file_limit limit;
    sigset_t mask;

    signal(SIGXFSZ, on_signal);
    if (folder < 0 || setrlimit(RLIMIT_FSIZE, &few))
        return 1;
    if (file_replace(folder, "large", FILE_PRIVATE, &part, 1) != EFBIG || n_signals)
        return 2;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (sigismember(&mask, SIGXFSZ))
        return 3;
    file_limit_begin(&limit); /* the application's own signal is not taken */
    raise(SIGXFSZ);
    if (file_replace(folder, "large", FILE_PRIVATE, &part, 1) != EFBIG || n_signals)
        return 4;
    pthread_sigmask(SIG_SETMASK, &limit.mask, NULL);
    return n_signals == 1 ? 0 : 5;
}

static void test_limit(void **state)
{
    pid_t child = fork();
    int end;

    (void)state;
    if (!child)
        _exit(write_too_much());
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(end, 0);
    assert_false(has("large"));
    assert_false(has(".large.0.draft"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_open, setup, teardown),
        cmocka_unit_test(test_owner),
        cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
