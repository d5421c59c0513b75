/* SPDX-License-Identifier: Apache-2.0 */
/* Files that NumPy wrote (tests/data/npy, with their script), headers made here that break one rule
 * each, and files written by us. */
#include "unit.h"

#include "file/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "failing_alloc.h"

#define DATA "tests/data/npy/"

/* A path of this process's own; the test that uses it removes the file. */
static char *scratch(char *path, size_t capacity, const char *name)
{
    snprintf(path, capacity, "/tmp/frit-npy-%ld-%s", (long)getpid(), name);
    return path;
}

static void give_up(const char *what, const char *got)
{
    print_error("%s: got: %s\n", what, got);
    assert_true(false);
}

static void *read_good(const char *path, struct op_type *type)
{
    frit_err err = ERR_INIT;
    void *data = NULL;

    if (npy_read_file(path, type, &data, &err))
        give_up("the message", err.text);
    return data;
}

static void assert_type(const struct op_type *type, const char *text)
{
    char got[128];

    assert_string_equal(op_type_text(type, got, sizeof(got)), text);
}

static void reads_every_type(void **state)
{
    static const struct {
        const char *file;
        const char *type;
        unsigned char second[8]; /* bytes of the element that is 1 */
    } cases[] = {
        {"f8", "f64[2, 3]", {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
        {"f4", "f32[2, 3]", {0, 0, 0x80, 0x3f}},
        {"f2", "f16[2, 3]", {0, 0x3c}},
        {"i8", "i64[2, 3]", {1}},
        {"i4", "i32[2, 3]", {1}},
        {"i2", "i16[2, 3]", {1}},
        {"i1", "i8[2, 3]", {1}},
        {"u8", "u64[2, 3]", {1}},
        {"u4", "u32[2, 3]", {1}},
        {"u2", "u16[2, 3]", {1}},
        {"u1", "u8[2, 3]", {1}},
        {"b1", "bool[2, 3]", {1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[128];
        struct op_type type;
        unsigned char *data;
        size_t size;

        snprintf(path, sizeof(path), DATA "good-%s.npy", cases[i].file);
        data = read_good(path, &type);
        assert_type(&type, cases[i].type);
        size = frit_dtype_bits(type.dtype) / 8;
        assert_memory_equal(data + size, cases[i].second, size);
        free(data);
    }
}

static void reads_versions_and_orders(void **state)
{
    static const char *const files[] = {DATA "good-fortran.npy", DATA "good-version-2.npy",
                                        DATA "good-version-3.npy"};
    struct op_type type;
    unsigned char *bytes;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        float *data = read_good(files[i], &type);

        assert_type(&type, "f32[2, 3, 4]");
        for (int n = 0; n < 24; n++)
            assert_float_equal(data[n], (float)n, 0);
        free(data);
    }
    bytes = read_good(DATA "good-fortran-bytes.npy", &type);
    for (int n = 0; n < 6; n++)
        assert_int_equal(bytes[n], n);
    free(bytes);
}

static void reads_odd_shapes(void **state)
{
    struct op_type type;
    double *one = read_good(DATA "good-rank-0.npy", &type);
    unsigned short *half;
    void *none;

    (void)state;
    assert_int_equal(type.rank, 0);
    assert_true(*one == 2.5);
    free(one);
    none = read_good(DATA "good-empty.npy", &type);
    assert_type(&type, "i32[0, 3]");
    assert_non_null(none);
    free(none);
    free(read_good(DATA "good-rank-8.npy", &type));
    assert_type(&type, "i16[1, 1, 1, 2, 1, 1, 1, 1]");
    half = read_good(DATA "good-bf16.npy", &type);
    assert_type(&type, "bf16[3]");
    assert_int_equal(half[1], 0xc000);
    free(half);
}

static void refuses_what_numpy_can(void **state)
{
    static const struct {
        const char *file;
        const char *text; /* of the message */
    } cases[] = {
        {"big-endian", "element type '>f4' is big-endian"},
        {"object", "'|O' (Python objects)"},
        {"text", "'<U3' (text)"},
        {"bytes", "'|S3' (byte text)"},
        {"complex", "'<c8' (complex numbers)"},
        {"date", "'<M8[D]' (dates)"},
        {"struct", "structured element type [('a', '<i4'), ('b', '<f4')]"},
        {"raw", "'|V4' (raw or structured)"},
        {"long-double", "'<f16' (not an element type"},
        {"rank-9", "more than 8 dims"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[128];
        struct op_type type;
        frit_err err = ERR_INIT;
        void *data = &type;

        snprintf(path, sizeof(path), DATA "bad-%s.npy", cases[i].file);
        assert_int_equal(npy_read_file(path, &type, &data, &err), FRIT_UNSUPPORTED);
        assert_null(data);
        if (strncmp(err.text, path, strlen(path)) != 0 || !strstr(err.text, cases[i].text))
            give_up("the message", err.text);
    }
}

/* A version 1 file of one dict and `bytes` zero bytes, parsed from memory of exactly its size, so
 * that a sanitizer sees a read beyond. */
static frit_status parse_dict_text(const char *dict, size_t bytes, struct npy *out, frit_err *err)
{
    size_t length = strlen(dict), total = 10 + length + bytes;
    unsigned char *file = calloc(1, total);
    frit_status status;

    assert_non_null(file);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (unsigned char)(length & 255);
    file[9] = (unsigned char)(length >> 8);
    memcpy(file + 10, dict, length);
    status = npy_parse(file, total, total, out, err);
    free(file);
    return status;
}

#define DICT(descr, order, shape) \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static void takes_other_spellings(void **state)
{
    static const char *const dicts[] = {
        "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"f4\"}\n",
        "{'fortran_order': False, 'descr': '=f4', 'shape': (2, 3,)}",
        "{'descr': '|f4', 'fortran_order': False, 'shape': (2L, 3L), }   \n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(dicts) / sizeof(dicts[0]); i++) {
        struct npy npy;

        assert_int_equal(parse_dict_text(dicts[i], 24, &npy, NULL), FRIT_OK);
        assert_type(&npy.type, "f32[2, 3]");
        assert_int_equal(npy.bytes, 24);
        assert_int_equal(npy.offset, 10 + strlen(dicts[i]));
    }
}

static void refuses_broken_headers(void **state)
{
    static const struct {
        const char *dict;
        const char *text;
    } cases[] = {
        {"", "header is not a dict"},
        {"[]", "header is not a dict"},
        {"{", "header is not a dict"},
        {"{'descr", "header is not a dict"},
        {"{'descr' '<f4'}", "header is not a dict"},
        {"{'descr': '<f4' 'fortran_order': False}", "header is not a dict"},
        {"{}", "header has no 'descr'"},
        {"{'descr': '<f4', 'shape': (1,)}", "header has no 'fortran_order'"},
        {"{'descr': '<f4', 'descr': '<f4'}", "key 'descr' of its header is there twice"},
        {"{'des\ncr': '<f4'}", "key 'des?cr' of its header is unknown"},
        {DICT("'<f4'", "False", "(1,)") "x", "something follows"},
        {DICT("'<f4'", "None", "(1,)"), "neither True nor False"},
        {DICT("7", "False", "(1,)"), "'descr' is not a text"},
        {DICT("''", "False", "(1,)"), "'descr' is not a text"},
        {DICT("'<f4'", "False", "(1)"), "'shape' is not a tuple"},
        {DICT("'<f4'", "False", "1"), "'shape' is not a tuple"},
        {DICT("'<f4'", "False", "(1 2)"), "'shape' is not a tuple"},
        {DICT("'<f4'", "False", "(,)"), "dim 0 of its 'shape' is not a number"},
        {DICT("'<f4'", "False", "(1, -1)"), "dim 1 of its 'shape' is not a number"},
        {DICT("'<f4'", "False", "(9223372036854775808,)"), "dim 0 of its 'shape'"},
        {DICT("'<f4'", "False", "(9223372036854775807,)"), "shape overflow"},
        {DICT("'|u1'", "False", "(4294967296, 4294967296)"), "shape overflow"},
        {DICT("'|u1'", "False", "(0, 4294967296, 4294967296)"), "shape overflow"},
        {DICT("'<f4'", "False", "(5,)"), "promises 20 bytes of elements, the file holds 16"},
        {DICT("'<f4'", "False", "(1000000000000,)"), "promises 4000000000000 bytes"},
        {DICT("'q4'", "False", "(4,)"), "'q4'"},
        {DICT("'<'", "False", "(4,)"), "element type '<'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        frit_err err = ERR_INIT;
        struct npy npy;

        if (!parse_dict_text(cases[i].dict, 16, &npy, &err) || !strstr(err.text, cases[i].text))
            give_up(cases[i].dict, err.text);
    }
}

static void refuses_broken_frames(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *text;
    } cases[] = {
        {"", 0, "not a NumPy file"},
        {"\x93NUMP", 5, "not a NumPy file"},
        {"PK\x03\x04 a zip of arrays", 20, "not a NumPy file"},
        {"\x93NUMPY\x01\x00", 8, "truncated: the file ends in its header"},
        {"\x93NUMPY\x01\x00\x40\x00{'descr", 17, "truncated: the file ends in its header"},
        {"\x93NUMPY\x00\x00\x02\x00{}", 12, "format version 0.0"},
        {"\x93NUMPY\x04\x00\x02\x00\x00\x00{}", 14, "format version 4.0"},
        {"\x93NUMPY\x01\x01\x02\x00\x00\x00{}", 14, "format version 1.1"},
        {"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14, "a header of 4294967295 bytes is too long"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char *file = malloc(cases[i].count + 1);
        frit_err err = ERR_INIT;
        struct npy npy;

        assert_non_null(file);
        /* At the end of the piece, so that one byte further is outside. */
        memcpy(file + 1, cases[i].bytes, cases[i].count);
        assert_true(npy_parse(file + 1, cases[i].count, cases[i].count, &npy, &err) < 0);
        if (!strstr(err.text, cases[i].text))
            give_up(cases[i].text, err.text);
        free(file);
    }
}

/* Every shorter piece of a good file is refused. */
static void refuses_every_prefix(void **state)
{
    char path[128];
    unsigned char whole[224];
    FILE *file = fopen(DATA "good-version-2.npy", "rb");

    (void)state;
    assert_non_null(file);
    assert_int_equal(fread(whole, 1, sizeof(whole), file), sizeof(whole));
    fclose(file);
    scratch(path, sizeof(path), "prefix.npy");
    for (size_t length = 0; length < sizeof(whole); length++) {
        struct op_type type;
        void *data;

        file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(whole, 1, length, file), length);
        fclose(file);
        assert_int_equal(npy_read_file(path, &type, &data, NULL), FRIT_INVALID);
    }
    unlink(path);
}

static void refuses_what_is_no_file(void **state)
{
    char fifo[128];
    const char *paths[] = {"/", "/dev/null", scratch(fifo, sizeof(fifo), "fifo"), "no/such.npy"};
    const char *const texts[] = {"not a regular file", "not a regular file", "not a regular file",
                                 "No such file"};

    (void)state;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    for (size_t i = 0; i < 4; i++) {
        frit_err err = ERR_INIT;
        struct op_type type;
        void *data;

        assert_int_equal(npy_read_file(paths[i], &type, &data, &err), FRIT_IO);
        assert_non_null(strstr(err.text, texts[i]));
    }
    assert_int_equal(npy_write_file(fifo, &(struct op_type){.dtype = FRIT_U8}, "x", NULL), FRIT_IO);
    unlink(fifo);
}

/* What we write is, byte for byte up to the padding, what NumPy wrote. */
static void writes_what_numpy_writes(void **state)
{
    static const char *const files[] = {"f8", "f2", "b1", "u1", "rank-0", "empty", "rank-8"};
    char path[128];

    (void)state;
    scratch(path, sizeof(path), "out.npy");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char theirs[128], dict[2][128] = {{0}};
        const char *names[2] = {theirs, path};
        struct op_type type, again;
        void *data, *copy;

        snprintf(theirs, sizeof(theirs), DATA "good-%s.npy", files[i]);
        data = read_good(theirs, &type);
        assert_int_equal(npy_write_file(path, &type, data, NULL), FRIT_OK);
        copy = read_good(path, &again);
        assert_true(op_type_equal(&type, &again));
        assert_memory_equal(copy, data, frit_storage_bytes(type.dtype, op_elements(&type)));
        for (int k = 0; k < 2; k++) {
            FILE *file = fopen(names[k], "rb");

            assert_non_null(file);
            assert_int_equal(fseek(file, 10, SEEK_SET), 0);
            assert_non_null(fgets(dict[k], sizeof(dict[k]), file));
            dict[k][strcspn(dict[k], "}")] = '\0';
            fclose(file);
        }
        assert_string_equal(dict[0], dict[1]);
        free(data);
        free(copy);
    }
    unlink(path);
}

static void headers_are_aligned(void **state)
{
    struct op_type type = {.dtype = FRIT_BF16, .rank = 8};
    char head[NPY_HEAD_OUT];
    struct npy npy;

    (void)state;
    for (int64_t dim = 1; dim < INT64_MAX / 100; dim *= 9) {
        for (int i = 0; i < 8; i++)
            type.dims[i] = i ? 1 : dim;
        for (type.rank = 0; type.rank <= 8; type.rank++) {
            size_t length = npy_format(&type, head);

            assert_int_equal(length % 64, 0);
            assert_int_equal(head[length - 1], '\n');
            assert_int_equal(npy_parse(head, length, INT64_MAX, &npy, NULL), FRIT_OK);
            assert_true(op_type_equal(&type, &npy.type));
            assert_int_equal(npy.offset, length);
        }
    }
    type.rank = 8;
    for (int i = 0; i < 8; i++)
        type.dims[i] = INT64_MAX; /* the longest text, though no tensor */
    assert_in_range(npy_format(&type, head), 64, NPY_HEAD_OUT);
    type.dtype = FRIT_Q4;
    assert_int_equal(npy_format(&type, head), 0);
}

static void a_failed_write_leaves_the_old_file(void **state)
{
    static const char many[1000];
    struct op_type type = {.dtype = FRIT_U8, .rank = 1, .dims = {3}};
    char path[128], draft[192], *slash;
    frit_err err = ERR_INIT;
    void *data;

    (void)state;
    scratch(path, sizeof(path), "old.npy");
    assert_int_equal(npy_write_file(path, &type, "abc", NULL), FRIT_OK);
    /* The header fits, the elements do not; SIGXFSZ, which would end the process, does not come. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){128, RLIM_INFINITY}), 0);
    type.dims[0] = sizeof(many);
    assert_int_equal(npy_write_file(path, &type, many, &err), FRIT_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    assert_non_null(strstr(err.text, "File too large"));
    data = read_good(path, &type);
    assert_type(&type, "u8[3]");
    assert_memory_equal(data, "abc", 3);
    free(data);
    slash = strrchr(path, '/');
    snprintf(draft, sizeof(draft), "%.*s/.%s.%ld-0.draft", (int)(slash - path), path, slash + 1,
             (long)getpid());
    assert_int_equal(access(draft, F_OK), -1);
    unlink(path);
    assert_int_equal(npy_write_file("/no/such/folder/x.npy", &type, "abc", &err), FRIT_IO);
    assert_string_equal(err.text, "/no/such/folder/x.npy: No such file or directory");
    type.dtype = FRIT_Q8;
    assert_int_equal(npy_write_file("x.npy", &type, "abc", &err), FRIT_UNSUPPORTED);
    assert_string_equal(err.text, "x.npy: NumPy has no element type for q8; cast first");
}

static void bools_become_0_or_1(void **state)
{
    struct op_type type = {.dtype = FRIT_BOOL, .rank = 1, .dims = {3}};
    char path[128];
    unsigned char *data;

    (void)state;
    scratch(path, sizeof(path), "bool.npy");
    assert_int_equal(npy_write_file(path, &type, "\x00\x02\x01", NULL), FRIT_OK);
    data = read_good(path, &type);
    assert_memory_equal(data, "\x00\x01\x01", 3);
    free(data);
    unlink(path);
}

/* Each allocation fails once: a status, and no memory. */
static void survives_no_memory(void **state)
{
    struct op_type type;
    bool hit = true;
    long n = 0;

    (void)state;
    for (; hit; n++) {
        frit_status status;
        void *data;

        failing_alloc_arm(n);
        status = npy_read_file(DATA "good-fortran.npy", &type, &data, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        assert_true((data == NULL) == hit);
        free(data);
    }
    assert_true(n > 3); /* head, file order, row-major order */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_type),
        cmocka_unit_test(reads_versions_and_orders),
        cmocka_unit_test(reads_odd_shapes),
        cmocka_unit_test(refuses_what_numpy_can),
        cmocka_unit_test(takes_other_spellings),
        cmocka_unit_test(refuses_broken_headers),
        cmocka_unit_test(refuses_broken_frames),
        cmocka_unit_test(refuses_every_prefix),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(writes_what_numpy_writes),
        cmocka_unit_test(headers_are_aligned),
        cmocka_unit_test(a_failed_write_leaves_the_old_file),
        cmocka_unit_test(bools_become_0_or_1),
        cmocka_unit_test(survives_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
