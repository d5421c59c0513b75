/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that NumPy wrote (tests/data/npz, with their script), damaged ones, and ones written by
 * us. */
#include "unit.h"

#include "file/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "failing_alloc.h"

#define DATA "tests/data/npz/"

enum { FILE_MAX = 4096 };

static char *scratch(char path[64], const char *name)
{
    snprintf(path, 64, "/tmp/frit-npz-%ld-%s", (long)getpid(), name);
    return path;
}

static size_t read_whole(const char *path, unsigned char bytes[FILE_MAX])
{
    FILE *file = fopen(path, "rb");
    size_t count;

    assert_non_null(file);
    count = fread(bytes, 1, FILE_MAX, file);
    assert_true(count > 0 && count < FILE_MAX);
    fclose(file);
    return count;
}

static void write_whole(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static const struct npz_entry *find(const struct npz_file *npz, const char *name)
{
    for (uint32_t i = 0; i < npz->n_entries; i++)
        if (strcmp(npz->entries[i].name, name) == 0)
            return &npz->entries[i];
    return NULL;
}

static void expect(const struct npz_file *npz, const char *name, const char *type,
                   const void *bytes)
{
    const struct npz_entry *entry = find(npz, name);
    frit_err err = ERR_INIT;
    void *data;
    char text[128];

    assert_non_null(entry);
    assert_string_equal(op_type_text(&entry->npy.type, text, sizeof(text)), type);
    if (npz_read(npz, entry, &data, &err))
        fail_msg("%s", err.text);
    assert_memory_equal(data, bytes, entry->npy.bytes);
    free(data);
}

static void reads_archives(void **state)
{
    static const char *const files[] = {DATA "stored.npz", DATA "deflated.npz"};
    static const unsigned char zeros[40000];

    (void)state;
    for (int i = 0; i < 2; i++) {
        frit_err err = ERR_INIT;
        struct npz_file npz;

        if (npz_open(files[i], &npz, &err))
            fail_msg("%s", err.text);
        assert_int_equal(npz.n_entries, 4 + i);
        expect(&npz, "floats", "f32[2, 3]", (float[]){0, 1, 2, 3, 4, 5});
        expect(&npz, "columns", "i32[2, 3]", (int32_t[]){0, 1, 2, 3, 4, 5});
        expect(&npz, "none", "f64[0, 2]", "");
        expect(&npz, "flags", "bool[2]", "\1\0");
        if (i)
            expect(&npz, "zeros", "u8[40000]", zeros);
        npz_close(&npz);
    }
}

/* Opens and reads all; the first failure. */
static frit_status try_all(const char *path, frit_err *err)
{
    struct npz_file npz;
    frit_status st = npz_open(path, &npz, err);

    if (st)
        return st;
    for (uint32_t i = 0; i < npz.n_entries && !st; i++) {
        void *data = NULL;

        st = npz_read(&npz, &npz.entries[i], &data, err);
        assert_true(!data == !!st);
        free(data);
    }
    npz_close(&npz);
    return st;
}

/* A byte in 23 is changed, and the file cut there.  Dates, versions and attributes of entries mean
 * nothing; checksums find the rest. */
static void finds_damage(void **state)
{
    static const char *const files[] = {DATA "stored.npz", DATA "deflated.npz"};
    unsigned char bytes[FILE_MAX];
    char path[64];

    (void)state;
    scratch(path, "damaged");
    for (int f = 0; f < 2; f++) {
        size_t count = read_whole(files[f], bytes), failed = 0;

        for (size_t n = 0; n < count; n += 23) {
            frit_err err = ERR_INIT;
            frit_status st;

            write_whole(path, bytes, n);
            st = try_all(path, &err);
            assert_true(st == FRIT_INVALID);
            bytes[n] ^= 0xff;
            write_whole(path, bytes, count);
            st = try_all(path, &err);
            assert_true(st == FRIT_OK || st == FRIT_INVALID || st == FRIT_UNSUPPORTED);
            assert_true(!st || strncmp(err.text, path, strlen(path)) == 0 || *err.text);
            failed += st != FRIT_OK;
            bytes[n] ^= 0xff;
        }
        assert_true(failed > count / 23 / 2);
    }
    unlink(path);
}

static void expect_refused(const void *bytes, size_t count, frit_status status, const char *words)
{
    frit_err err = ERR_INIT;
    char path[64];

    write_whole(scratch(path, "refused"), bytes, count);
    assert_int_equal(try_all(path, &err), status);
    if (!strstr(err.text, words))
        fail_msg("'%s' is not in: %s", words, err.text);
    unlink(path);
}

static void refuses(void **state)
{
    unsigned char bytes[FILE_MAX], *first;
    size_t count = read_whole(DATA "deflated.npz", bytes);
    static const unsigned char sign[] = {'P', 'K', 1, 2};
    const float five = 5;

    (void)state;
    first = memmem(bytes, count, sign, sizeof(sign)); /* in the directory */
    assert_non_null(first);
    first[8] |= 1;
    expect_refused(bytes, count, FRIT_UNSUPPORTED, "an encrypted entry");
    first[8] ^= 1;
    first[10] = 14;
    expect_refused(bytes, count, FRIT_UNSUPPORTED, "method 14");
    first[10] = 8;
    memset(first + 24, 0xfe, 4); /* 4 GB */
    expect_refused(bytes, count, FRIT_INVALID, "packed bytes cannot hold 4278124286");
    count = read_whole(DATA "stored.npz", bytes);
    first = memmem(bytes, count, &five, sizeof(five));
    assert_non_null(first);
    first[0] ^= 1;
    expect_refused(bytes, count, FRIT_INVALID, "its checksum is another one");
    expect_refused("no zip", 6, FRIT_INVALID, "not a zip file");
    expect_refused("", 0, FRIT_INVALID, "not a zip file");
}

static void writes(void **state)
{
    const struct op_type type = {.dtype = FRIT_F32, .rank = 2, .dims = {1, 2}};
    const struct op_type packed = {.dtype = FRIT_Q4, .rank = 1, .dims = {2}};
    const float floats[] = {1, 2};
    frit_err err = ERR_INIT;
    struct npz_draft *draft;
    struct npz_file npz;
    char path[64];

    (void)state;
    scratch(path, "written");
    assert_int_equal(npz_begin(path, &draft, &err), FRIT_OK);
    assert_int_equal(npz_add(draft, "a", &type, floats, &err), FRIT_OK);
    assert_int_equal(npz_add(draft, "a/b c", &type, floats, &err), FRIT_OK);
    assert_int_equal(npz_add(draft, "q", &packed, floats, &err), FRIT_UNSUPPORTED);
    assert_int_equal(npz_add(draft, "", &type, floats, &err), FRIT_INVALID);
    assert_int_equal(npz_end(draft, true, &err), FRIT_OK);
    assert_int_equal(npz_open(path, &npz, &err), FRIT_OK);
    assert_int_equal(npz.n_entries, 2);
    expect(&npz, "a", "f32[1, 2]", floats);
    expect(&npz, "a/b c", "f32[1, 2]", floats);
    npz_close(&npz);

    assert_int_equal(npz_begin(path, &draft, &err), FRIT_OK); /* given up: stays as it was */
    assert_int_equal(npz_end(draft, false, &err), FRIT_OK);
    assert_int_equal(try_all(path, &err), FRIT_OK);
    unlink(path);
    assert_int_equal(npz_begin("/dev/null/x.npz", &draft, &err), FRIT_OK);
    assert_int_equal(npz_end(draft, true, &err), FRIT_IO);
    assert_int_equal(npz_begin("/tmp", &draft, &err), FRIT_IO);
}

/* Headers of entries beyond 4 GiB, which no test can write. */
static void large_numbers(void **state)
{
    const uint64_t large = 5ull << 30;
    const struct zip_entry entry = {
        .name = "x.npy", .name_length = 5, .bytes = large, .packed = large, .local = 2 * large};
    const struct zip_directory directory = {.offset = 3 * large, .bytes = 200, .count = 3};
    unsigned char bytes[4 * ZIP_FORMAT_MAX], head[ZIP_FORMAT_MAX];
    struct zip_directory found;
    struct zip_entry parsed;
    frit_err err = ERR_INIT;
    uint64_t at = 0;
    size_t split, length = zip_format_entry(&entry, head, &split), count;

    (void)state;
    memcpy(bytes, head, split);
    memcpy(bytes + split, entry.name, entry.name_length);
    memcpy(bytes + split + 5, head + split, length - split);
    assert_int_equal(zip_next(bytes, length + 5, 4 * large, &at, &parsed, &err), FRIT_OK);
    assert_int_equal(at, length + 5);
    assert_true(parsed.bytes == large && parsed.packed == large && parsed.local == 2 * large);
    at = 0;
    assert_int_equal(zip_next(bytes, length + 5, 3 * large - 1, &at, &parsed, &err), FRIT_INVALID);

    memset(bytes, 0, 100);
    count = 100 + zip_format_end(&directory, bytes + 100);
    assert_int_equal(zip_find(bytes, count, 3 * large + 200 + count - 100, &found, &err), FRIT_OK);
    assert_memory_equal(&found, &directory, sizeof(found));
}

static void survives_short_memory(void **state)
{
    (void)state;
    for (long n = 0, hit = 1; hit; n++) {
        frit_err err = ERR_INIT;
        frit_status st;

        failing_alloc_arm(n);
        st = try_all(DATA "deflated.npz", &err);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_archives), cmocka_unit_test(finds_damage),
        cmocka_unit_test(refuses),        cmocka_unit_test(writes),
        cmocka_unit_test(large_numbers),  cmocka_unit_test(survives_short_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
