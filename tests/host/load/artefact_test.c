/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept between processes: found again whole, by nobody else, and never when damaged. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/artefact.h"

#include <cmocka.h>

static char root[] = "/tmp/frit-artefact-XXXXXX", folder[64], file[320];

enum { LIMIT = 1 << 20 };

static void each_file(void (*fn)(const char *path))
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name);
        fn(file);
    }
    if (dir)
        closedir(dir);
}

static void remove_file(const char *path)
{
    unlink(path);
}

static int setup(void **state)
{
    (void)state;
    memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(root));
    snprintf(folder, sizeof(folder), "%s/a/b", root);
    return 0;
}

static int teardown(void **state)
{
    char path[80];

    (void)state;
    each_file(remove_file);
    rmdir(folder);
    snprintf(path, sizeof(path), "%s/moved", root);
    unlink(path);
    snprintf(path, sizeof(path), "%s/a", root);
    rmdir(path);
    return rmdir(root);
}

static struct artefact_name name_of(const char *space, const char *subspace, const char *key)
{
    return (struct artefact_name){space, {subspace, strlen(subspace)}, key, strlen(key)};
}

static void put(const struct artefact_name *name, const void *bytes, uint64_t n_bytes)
{
    frit_err err = {.struct_size = sizeof(frit_err)};

    assert_int_equal(artefact_put(folder, LIMIT, name, bytes, n_bytes, &err), FRIT_OK);
}

/* Whether it is there, and then as given. */
static bool is_there(const struct artefact_name *name, const void *bytes, uint64_t n_bytes)
{
    frit_err err = {.struct_size = sizeof(frit_err)};
    void *found;
    uint64_t n_found;

    assert_int_equal(artefact_get(folder, name, &found, &n_found, &err), FRIT_OK);
    if (!found)
        return false;
    assert_int_equal(n_found, n_bytes);
    assert_memory_equal(found, bytes, n_bytes);
    free(found);
    return true;
}

static void test_names(void **state)
{
    const struct artefact_name name = name_of("plugin 1", "gpu", "kernel"),
                               others[] = {name_of("plugin 2", "gpu", "kernel"),
                                           name_of("plugin 1", "gpv", "kernel"),
                                           name_of("plugin 1", "gpu", "kernem"),
                                           name_of("plugin 1g", "pu", "kernel"),
                                           name_of("plugin 1", "gpuk", "ernel")};

    (void)state;
    assert_false(is_there(&name, "code", 4));
    put(&name, "code", 4);
    assert_true(is_there(&name, "code", 4));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(is_there(&others[i], "code", 4));
    put(&name, "better", 6);
    assert_true(is_there(&name, "better", 6));
    put(&others[0], "", 0);
    assert_true(is_there(&others[0], "", 0));
    assert_true(is_there(&name, "better", 6));
}

static long size_of(FILE *f)
{
    fseek(f, 0, SEEK_END);
    return ftell(f);
}

static void flip_each(const char *path)
{
    const struct artefact_name name = name_of("plugin", "gpu", "kernel");
    FILE *f = fopen(path, "r+b");
    long size;

    assert_non_null(f);
    size = size_of(f);
    for (long at = 0; at < size; at++) {
        int byte;

        fseek(f, at, SEEK_SET);
        byte = fgetc(f);
        for (int again = 0; again < 2; again++) {
            byte ^= 0x20;
            fseek(f, at, SEEK_SET);
            fputc(byte, f);
            fflush(f);
            assert_int_equal(is_there(&name, "some code", 9), again);
        }
    }
    fclose(f);
}

static void cut_each(const char *path)
{
    const struct artefact_name name = name_of("plugin", "gpu", "kernel");
    FILE *f = fopen(path, "r+b");
    long size;

    assert_non_null(f);
    size = size_of(f);
    fputc('x', f);
    fflush(f);
    assert_false(is_there(&name, "some code", 9));
    while (size-- > 0) {
        assert_int_equal(ftruncate(fileno(f), size), 0);
        assert_false(is_there(&name, "some code", 9));
    }
    fclose(f);
}

static void test_damage(void **state)
{
    const struct artefact_name name = name_of("plugin", "gpu", "kernel");

    (void)state;
    put(&name, "some code", 9);
    each_file(flip_each);
    each_file(cut_each);
    put(&name, "some code", 9);
    assert_true(is_there(&name, "some code", 9));
}

static void open_to_all(const char *path)
{
    chmod(path, 0666);
}

static void link_to_itself(const char *path)
{
    char moved[sizeof(file) + 8];

    snprintf(moved, sizeof(moved), "%s/moved", root);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
}

static void make_pipe(const char *path)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void test_others_could_write(void **state)
{
    const struct artefact_name name = name_of("plugin", "gpu", "kernel");
    frit_err err = {.struct_size = sizeof(frit_err)};

    (void)state;
    put(&name, "some code", 9);
    each_file(open_to_all);
    assert_false(is_there(&name, "some code", 9));
    put(&name, "some code", 9);
    assert_true(is_there(&name, "some code", 9));
    each_file(link_to_itself);
    assert_false(is_there(&name, "some code", 9));
    put(&name, "some code", 9); /* in the place of the link */
    each_file(make_pipe);
    assert_false(is_there(&name, "some code", 9));
    put(&name, "some code", 9);
    assert_true(is_there(&name, "some code", 9));
    assert_int_equal(chmod(folder, 0777), 0);
    assert_false(is_there(&name, "some code", 9));
    assert_int_equal(artefact_put(folder, LIMIT, &name, "some code", 9, &err), FRIT_IO);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_true(is_there(&name, "some code", 9));
}

static uint64_t kept_bytes;

static void add_bytes(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    kept_bytes += (uint64_t)st.st_size;
}

/* The folder stays near its limit, and what was put last is in it; a draft of long ago is not. */
static void test_limit(void **state)
{
    const struct timespec long_ago[] = {{1, 0}, {1, 0}};
    static char bytes[LIMIT / 8];
    char key[16] = "0", draft[96];
    struct artefact_name name = name_of("plugin", "gpu", key);
    frit_err err = {.struct_size = sizeof(frit_err)};

    (void)state;
    put(&name, bytes, sizeof(bytes));
    snprintf(draft, sizeof(draft), "%s/.some.1-0.draft", folder);
    close(open(draft, O_WRONLY | O_CREAT, 0600));
    assert_int_equal(utimensat(AT_FDCWD, draft, long_ago, 0), 0);
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "%d", i);
        name.n_key = strlen(key);
        put(&name, bytes, sizeof(bytes));
    }
    assert_int_equal(access(draft, F_OK), -1);
    assert_true(is_there(&name, bytes, sizeof(bytes)));
    kept_bytes = 0;
    each_file(add_bytes);
    assert_in_range(kept_bytes, sizeof(bytes), 8 * LIMIT);
    assert_int_equal(artefact_put(folder, LIMIT, &name, bytes, LIMIT, &err), FRIT_UNSUPPORTED);
}

static void test_no_folder(void **state)
{
    const struct artefact_name name = name_of("plugin", "gpu", "kernel");
    frit_err err = {.struct_size = sizeof(frit_err)};

    (void)state;
    assert_int_equal(artefact_put("/proc/self/nothing", LIMIT, &name, "code", 4, &err), FRIT_IO);
    assert_non_null(strstr(err.text, "/proc/self/nothing"));
}

/* ---- whole files ---- */

struct copies {
    unsigned char bytes[4][512];
    size_t n_bytes[4];
    int n;
};

static frit_status copy_file(void *ctx, const void *bytes, size_t n_bytes, frit_err *err)
{
    struct copies *copies = ctx;

    (void)err;
    assert_true(copies->n < 4 && n_bytes <= sizeof(copies->bytes[0]));
    memcpy(copies->bytes[copies->n], bytes, n_bytes);
    copies->n_bytes[copies->n++] = n_bytes;
    return FRIT_OK;
}

static void list(const char *space, struct copies *out)
{
    out->n = 0;
    assert_int_equal(artefact_each(folder, space, copy_file, out, NULL), FRIT_OK);
}

/* Files of a space go to another folder and are found there; changed ones do not. */
static void test_files_travel(void **state)
{
    const struct artefact_name a = name_of("p", "s", "a"), b = name_of("p", "s", "b"),
                               other = name_of("q", "s", "a");
    struct copies copies;

    (void)state;
    list("p", &copies);
    assert_int_equal(copies.n, 0);
    put(&a, "one", 3);
    put(&b, "two", 3);
    put(&other, "three", 5);
    list("p", &copies);
    assert_int_equal(copies.n, 2);
    each_file(remove_file);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            artefact_put_file(folder, LIMIT, "p", copies.bytes[i], copies.n_bytes[i], NULL),
            FRIT_OK);
    assert_true(is_there(&a, "one", 3));
    assert_true(is_there(&b, "two", 3));
    each_file(remove_file);
    assert_int_equal(
        artefact_put_file(folder, LIMIT, "q", copies.bytes[0], copies.n_bytes[0], NULL),
        FRIT_INVALID);
    for (size_t i = 0; i < copies.n_bytes[0]; i++) {
        assert_int_equal(artefact_put_file(folder, LIMIT, "p", copies.bytes[0], i, NULL),
                         FRIT_INVALID);
        copies.bytes[0][i] ^= 1;
        assert_int_equal(
            artefact_put_file(folder, LIMIT, "p", copies.bytes[0], copies.n_bytes[0], NULL),
            FRIT_INVALID);
        copies.bytes[0][i] ^= 1;
    }
    list("p", &copies);
    assert_int_equal(copies.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files_travel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_could_write, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
        cmocka_unit_test(test_no_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
