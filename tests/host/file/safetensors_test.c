/* SPDX-License-Identifier: Apache-2.0 */
/* Headers that break one rule each, placing and formatting, and files that are cut, odd or cannot
 * be written.  tests/host/api/safetensors_test.c reads what others wrote. */
#include "unit.h"

#include "file/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/str.h"
#include "failing_alloc.h"

#define TYPES "tests/data/safetensors/types.safetensors"
#define RANKS "tests/data/safetensors/ranks.safetensors"

/* A path of this process's own; the test that uses it removes the file. */
static char *scratch(char path[128], const char *name)
{
    snprintf(path, 128, "/tmp/frit-safetensors-%ld-%s", (long)getpid(), name);
    return path;
}

/* ---- headers ---- */

/* Parses from memory of exactly its size, so that a sanitizer sees a read beyond; `header` gets it.
 */
static frit_status parse(const char *text, size_t length, uint64_t bytes, char **header,
                         struct safetensors *out, frit_err *err)
{
    *header = malloc(length + 1);
    assert_non_null(*header);
    /* At the end of the piece, so that one byte further is outside. */
    memcpy(*header + 1, text, length);
    return safetensors_parse(*header + 1, length, bytes, out, err);
}

#define ENTRY(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define A ENTRY("a", "F32", "[2]", "[0,8]")

struct header_case {
    const char *header;
    const char *text; /* of the message */
};

static const struct header_case syntax[] = {
    {"", "header does not begin with {"},
    {" {}", "header does not begin with {"},
    {"[]", "header does not begin with {"},
    {"{", "the name of a tensor in quotes"},
    {"{,}", "the name of a tensor in quotes"},
    {"{" A, "a comma or } is expected"},
    {"{" A ",}", "the name of a tensor in quotes"},
    {"{" A " " A "}", "a comma or } is expected"},
    {"{" A "}x", "something follows the object"},
    {"{" A "}{}", "something follows the object"},
    {"{\"a\" {}}", "a colon is expected"},
    {"{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}",
     "tensor 'a': byte 5 of the header: the object of"},
    {"{\"a\":null}", "tensor 'a': byte 5 of the header: the object of a tensor"},
    {"{\"a\":{\"a\":{\"a\":{}}}}", "tensor 'a': key 'a' is unknown"},
    {"{\"a\":{}}", "tensor 'a': key 'dtype' is missing"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "tensor 'a': key 'data_offsets' is missing"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "tensor 'a': key 'dtype' is there twice"},
    {"{\"a\":{\"dtype\":7}}", "the text of 'dtype' is expected"},
    {"{\"a\":{\"dtype\":\"F32\"]}", "a comma or } is expected"},
    {"{\"a\":{\"shape\":7}}", "the list of 'shape' is expected"},
    {"{\"a\":{\"shape\":[1 2]}}", "a comma or ] is expected"},
    {"{\"a\":{\"shape\":[1,]}}", "a whole number"},
    {"{\"a\":{\"data_offsets\":{}}}", "the list of 'data_offsets' is expected"},
    {"{\"a\":{\"data_offsets\":[]}}", "data_offsets has 0 numbers"},
    {"{\"a\":{\"data_offsets\":[8]}}", "data_offsets has 1 numbers"},
    {"{\"a\":{\"data_offsets\":[0,4,8]}}", "] after the two numbers"},
    {"{\"__metadata__\":[]}", "the object of __metadata__ is expected"},
    {"{\"__metadata__\":{1:2}}", "a key of __metadata__ in quotes"},
    {"{\"__metadata__\":{\"k\" \"v\"}}", "a colon is expected"},
    {"{\"__metadata__\":{\"k\":1}}", "values of __metadata__ are texts"},
    {"{\"__metadata__\":{\"k\":{}}}", "values of __metadata__ are texts"},
    {"{\"__metadata__\":{\"k\":\"v\"", "a comma or } is expected"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", "__metadata__ is there twice"},
    {"{\"__metadata__\":{\"k\":\"1\",\"l\":\"2\",\"k\":\"3\"}," A "}", "key 'k' of __metadata__"},
};

static const struct header_case texts[] = {
    {"{\"a", "a text without its end"},
    {"{\"a\\", "the escape ends early"},
    {"{\"a\\u12", "the escape ends early"},
    {"{\"a\\u12x4\":1}", "\\u needs four hexadecimal digits"},
    {"{\"a\\x\":1}", "an unknown escape"},
    {"{\"a\\U0041\":1}", "an unknown escape"},
    {"{\"a\\u0000\":1}", "a zero character"},
    {"{\"\\ud800\":1}", "half of a surrogate pair"},
    {"{\"\\ud800\\n\":1}", "half of a surrogate pair"},
    {"{\"\\ud800\\u0041\":1}", "half of a surrogate pair"},
    {"{\"\\udc00\\ud800\":1}", "half of a surrogate pair"},
    {"{\"a\nb\":1}", "a control character in a text"},
    {"{\"\xff\":1}", "not UTF-8"},
    {"{\"\xc3\":1}", "not UTF-8"},
    {"{\"\xc0\x80\":1}", "not UTF-8"},
    {"{\"\xed\xa0\x80\":1}", "not UTF-8"},
    {"{\"\xf4\x90\x80\x80\":1}", "not UTF-8"},
};

static const struct header_case values[] = {
    {"{" ENTRY("a", "F32", "[-2]", "[0,8]") "}", "tensor 'a': byte 29 of the header: a whole"},
    {"{" ENTRY("a", "F32", "[2.0]", "[0,8]") "}", "a whole number"},
    {"{" ENTRY("a", "F32", "[2e0]", "[0,8]") "}", "a whole number"},
    {"{" ENTRY("a", "F32", "[02]", "[0,8]") "}", "a whole number"},
    {"{" ENTRY("a", "F32", "[\"2\"]", "[0,8]") "}", "a whole number"},
    {"{" ENTRY("a", "F32", "[9223372036854775808]", "[0,8]") "}", "a whole number"},
    {"{" ENTRY("a", "F32", "[9223372036854775807]", "[0,8]") "}", "tensor 'a': shape overflow"},
    {"{" ENTRY("a", "U8", "[4294967296,4294967296]", "[0,8]") "}", "tensor 'a': shape overflow"},
    {"{" ENTRY("a", "U8", "[0,4294967296,4294967296]", "[0,0]") "}", "tensor 'a': shape overflow"},
    {"{" ENTRY("a", "F32", "[2]", "[0,18446744073709551624]") "}", "a whole number"},
    {"{" ENTRY("a", "F32", "[2]", "[8,0]") "}", "data_offsets [8, 0] end before they begin"},
    {"{" ENTRY("a", "F32", "[3]", "[0,8]") "}", "data_offsets hold 8 bytes, f32[3] has 12"},
    {"{" ENTRY("a", "F64", "[]", "[0,4]") "}", "data_offsets hold 4 bytes, f64[] has 8"},
    {"{" ENTRY("a", "F32", "[4]", "[0,16]") "}", "truncated: it ends at byte 16 of the elements"},
    {"{" ENTRY("a", "F32", "[1]", "[0,4]") "}", "4 bytes follow the last tensor"},
    {"{" ENTRY("a", "F32", "[1]", "[4,8]") "}", "bytes 0 to 4 of the elements, before tensor 'a'"},
    {"{" ENTRY("b", "U8", "[2]", "[6,8]") "," ENTRY("a", "U8", "[4]", "[0,4]") "}",
     "bytes 4 to 6 of the elements, before tensor 'b'"},
    {"{" A "," ENTRY("b", "U8", "[2]", "[6,8]") "}", "tensors 'a' and 'b' overlap"},
    {"{" A "," ENTRY("b", "F32", "[2]", "[0,8]") "}", "overlap"},
    {"{" A "," ENTRY("a", "U8", "[0]", "[8,8]") "}", "tensor 'a' is there twice"},
    {"{" A "," ENTRY("\\u0061", "U8", "[0]", "[8,8]") "}", "tensor 'a' is there twice"},
    {"{}", "8 bytes follow the last tensor"},
    {"{" ENTRY("a\\u0007b", "F32", "[3]", "[0,8]") "}", "tensor 'a b': data_offsets"},
};

static const struct header_case unsupported[] = {
    {"{" ENTRY("a", "C64", "[1]", "[0,8]") "}", "tensor 'a': element type 'C64' is not supported"},
    {"{" ENTRY("a", "F4", "[16]", "[0,8]") "}", "tensor 'a': element type 'F4' is not supported"},
    {"{" ENTRY("a", "f32", "[2]", "[0,8]") "}", "tensor 'a': element type 'f32'"},
    {"{" ENTRY("a", "U8", "[1,1,1,1,1,1,1,1,8]", "[0,8]") "}", "tensor 'a': more than 8 dims"},
};

/* Each with 8 bytes of elements. */
static void expect_refused(const struct header_case *cases, size_t count, frit_status want)
{
    for (size_t i = 0; i < count; i++) {
        frit_err err = ERR_INIT;
        struct safetensors parsed;
        char *header;
        const frit_status st =
            parse(cases[i].header, strlen(cases[i].header), 8, &header, &parsed, &err);

        if (st != want || !strstr(err.text, cases[i].text))
            fail_msg("%s: got %d: %s", cases[i].header, st, err.text);
        assert_null(parsed.entries);
        assert_int_equal(parsed.n_entries, 0);
        free(header);
    }
}

#define EXPECT_REFUSED(cases, want) expect_refused(cases, sizeof(cases) / sizeof((cases)[0]), want)

static void refuses_broken_headers(void **state)
{
    (void)state;
    EXPECT_REFUSED(syntax, FRIT_INVALID);
    EXPECT_REFUSED(texts, FRIT_INVALID);
    EXPECT_REFUSED(values, FRIT_INVALID);
    EXPECT_REFUSED(unsupported, FRIT_UNSUPPORTED);
}

static void refuses_every_prefix_of_a_header(void **state)
{
    static const char whole[] =
        "{\"__metadata__\":{\"k\":\"v\\n\"}," A "," ENTRY("\\u00e9", "U8", "[0,3]", "[8,8]") "}";

    (void)state;
    for (size_t length = 0; length < sizeof(whole); length++) {
        struct safetensors parsed;
        char *header;
        const frit_status st = parse(whole, length, 8, &header, &parsed, NULL);

        assert_int_equal(st, length == sizeof(whole) - 1 ? FRIT_OK : FRIT_INVALID);
        safetensors_fini(&parsed);
        free(header);
    }
}

static void reads_what_is_unusual(void **state)
{
    static const char text[] =
        "{ \"\" : {\"data_offsets\":[ 4 , 8 ]\t,\r\n\"shape\": [ ] , \"dtype\":\"F32\"},"
        "\"\\ud83d\\ude00\\u00e9\\u540d\\/\\b\\f\\n\\r\\t\\\"\\\\\":" /* in another order */
        "{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
        "\"__metadata__\":{\"\":\"\",\"k\":\"\\u0041\"}," ENTRY("e", "F64", "[3,0]",
                                                                "[4,4]") "} \n";
    static const char odd[] = "\xf0\x9f\x98\x80\xc3\xa9\xe5\x90\x8d/\b\f\n\r\t\"\\";
    struct safetensors parsed;
    frit_err err = ERR_INIT;
    char *header;

    (void)state;
    if (parse(text, sizeof(text) - 1, 8, &header, &parsed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(parsed.n_entries, 3);
    assert_string_equal(parsed.entries[1].name, odd);
    assert_ptr_equal(safetensors_find(&parsed, ""), &parsed.entries[0]);
    assert_ptr_equal(safetensors_find(&parsed, odd), &parsed.entries[1]);
    assert_ptr_equal(safetensors_find(&parsed, "e"), &parsed.entries[2]);
    assert_null(safetensors_find(&parsed, "f"));
    assert_int_equal(parsed.entries[0].begin, 4);
    assert_int_equal(parsed.entries[2].type.rank, 2);
    assert_int_equal(parsed.n_metadata, 2);
    assert_string_equal(parsed.metadata[1].value, "A");
    safetensors_fini(&parsed);
    free(header);
}

/* ---- placing and formatting ---- */

static struct safetensors_entry entry(const char *name, uint32_t dtype, int64_t dim)
{
    return (struct safetensors_entry){.name = name,
                                      .type = {.dtype = dtype, .rank = 1, .dims = {dim}}};
}

static void places_by_alignment(void **state)
{
    struct safetensors_entry entries[] = {
        entry("u8", FRIT_U8, 3),     entry("f32", FRIT_F32, 5), entry("whole", FRIT_F32, 16),
        entry("empty", FRIT_F64, 0), entry("f64", FRIT_F64, 1), entry("bytes", FRIT_I8, 128)};
    static const uint32_t want[] = {2, 3, 5, 4, 1, 0};
    const frit_metadata metadata[] = {{"k", "\x01\"\\\x7f\xc3\xa9"}};
    struct safetensors parsed;
    struct str out = {0};
    frit_err err = ERR_INIT;
    uint32_t order[6];

    (void)state;
    assert_int_equal(safetensors_place(entries, 6, metadata, 1, order, &err), FRIT_OK);
    assert_memory_equal(order, want, sizeof(want));
    assert_int_equal(entries[0].end, 64 + 128 + 8 + 20 + 3);
    assert_int_equal(safetensors_format(entries, 6, metadata, 1, &out, &err), FRIT_OK);
    assert_int_equal(out.length % SAFETENSORS_ALIGN, 0);
    if (safetensors_parse(out.text + 8, out.length - 8, entries[0].end, &parsed, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(parsed.entries[i].name, entries[i].name);
        assert_true(op_type_equal(&parsed.entries[i].type, &entries[i].type));
        assert_int_equal(parsed.entries[i].begin, entries[i].begin);
        assert_int_equal(parsed.entries[i].end, entries[i].end);
    }
    assert_string_equal(parsed.metadata[0].value, metadata[0].value);
    safetensors_fini(&parsed);
    str_fini(&out);
}

static void refuses_what_cannot_be_written(void **state)
{
    static const struct {
        struct safetensors_entry entries[2];
        frit_metadata metadata[2];
        const char *text;
    } cases[] = {
        {{{.name = "a"}, {.name = "a"}}, {{"k", "v"}, {"l", ""}}, "tensor 'a' is there twice"},
        {{{.name = "a"}, {.name = "\xff"}}, {{"k", "v"}, {"l", ""}}, "tensor '?' is not UTF-8"},
        {{{.name = "a"}, {.name = "__metadata__"}}, {{"k", "v"}, {"l", ""}}, "another name"},
        {{{.name = "a"}, {.name = "b"}}, {{"k", "v"}, {"k", ""}}, "key 'k' of __metadata__"},
        {{{.name = "a"}, {.name = "b"}}, {{"k", "v"}, {"l", "\x80"}}, "text of metadata 'l'"},
        {{{.name = "a"}, {.name = "b"}}, {{"\xc3", "v"}, {"l", ""}}, "key of metadata '?'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct safetensors_entry entries[2] = {cases[i].entries[0], cases[i].entries[1]};
        frit_err err = ERR_INIT;
        uint32_t order[2];

        entries[0].type.dtype = entries[1].type.dtype = FRIT_U8;
        assert_int_equal(safetensors_place(entries, 2, cases[i].metadata, 2, order, &err),
                         FRIT_INVALID);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s: got %s", cases[i].text, err.text);
    }
}

/* ---- files ---- */

static void put_file(const char *path, const void *bytes, size_t n_bytes)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n_bytes, file), n_bytes);
    fclose(file);
}

static void refuses_broken_frames(void **state)
{
    static const struct {
        const char *bytes;
        size_t n_bytes;
        const char *text;
    } cases[] = {
        {"", 0, "it has 0 bytes"},
        {"\x02\0\0\0\0\0\0", 7, "it has 7 bytes"},
        {"\0\0\0\0\0\0\0\0", 8, "header does not begin with {"},
        {"\x03\0\0\0\0\0\0\0{}", 10, "truncated: a header of 3 bytes, of which the file holds 2"},
        {"\x01\xe1\xf5\x05\0\0\0\0{}", 10, "a header of 100000001 bytes, the format's limit is"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551615 bytes"},
        {"PK\x03\x04 a zip of arrays", 20, "not a safetensors file"},
        {"\x02\0\0\0\0\0\0\0{}x", 11, "1 bytes follow the last tensor; copy the file again"},
    };
    char path[128];

    (void)state;
    scratch(path, "frame");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct safetensors_file file;
        frit_err err = ERR_INIT;

        put_file(path, cases[i].bytes, cases[i].n_bytes);
        assert_int_equal(safetensors_open_file(path, &file, &err), FRIT_INVALID);
        if (strncmp(err.text, path, strlen(path)) != 0 || !strstr(err.text, cases[i].text))
            fail_msg("%s: got %s", cases[i].text, err.text);
        assert_null(file.map);
    }
    put_file(path, "\x02\0\0\0\0\0\0\0{}", 10);
    struct safetensors_file file;
    assert_int_equal(safetensors_open_file(path, &file, NULL), FRIT_OK);
    assert_int_equal(file.parsed.n_entries, 0);
    safetensors_close_file(&file);
    unlink(path);
}

/* Every shorter piece of a good file is refused. */
static void refuses_every_prefix(void **state)
{
    char path[128];
    unsigned char whole[4096];
    size_t length;
    FILE *good = fopen(RANKS, "rb");

    (void)state;
    assert_non_null(good);
    length = fread(whole, 1, sizeof(whole), good);
    fclose(good);
    assert_in_range(length, 500, sizeof(whole) - 1);
    scratch(path, "prefix");
    for (size_t n = 0; n < length; n += n < 600 ? 7 : 1) {
        struct safetensors_file file;

        put_file(path, whole, n);
        assert_int_equal(safetensors_open_file(path, &file, NULL), FRIT_INVALID);
    }
    unlink(path);
}

static frit_status copy_elements(void *ctx, const uint32_t *which, uint32_t count, void *data,
                                 frit_err *err)
{
    const struct safetensors_file *from = ctx;
    char *at = data;

    (void)err;
    for (uint32_t i = 0; i < count; i++) {
        const struct safetensors_entry *entry = &from->parsed.entries[which[i]];

        memcpy(at, from->data + entry->begin, entry->end - entry->begin);
        at += entry->end - entry->begin;
    }
    return FRIT_OK;
}

/* Writes what a file holds; `entries` has room for it. */
static frit_status copy_file(const struct safetensors_file *from, const char *path, frit_err *err)
{
    const struct safetensors_source source = {copy_elements, (void *)(uintptr_t)from};
    struct safetensors_entry entries[32];

    assert_in_range(from->parsed.n_entries, 1, 32);
    memcpy(entries, from->parsed.entries, from->parsed.n_entries * sizeof(entries[0]));
    return safetensors_write_file(path, entries, from->parsed.n_entries, from->parsed.metadata,
                                  from->parsed.n_metadata, &source, err);
}

static void expect_same(const struct safetensors_file *a, const struct safetensors_file *b)
{
    assert_int_equal(a->parsed.n_entries, b->parsed.n_entries);
    assert_int_equal(a->parsed.n_metadata, b->parsed.n_metadata);
    for (uint32_t i = 0; i < a->parsed.n_entries; i++) {
        const struct safetensors_entry *x = &a->parsed.entries[i], *y = &b->parsed.entries[i];

        assert_string_equal(x->name, y->name);
        assert_true(op_type_equal(&x->type, &y->type));
        assert_memory_equal(a->data + x->begin, b->data + y->begin, x->end - x->begin);
    }
    for (uint32_t i = 0; i < a->parsed.n_metadata; i++)
        assert_string_equal(a->parsed.metadata[i].value, b->parsed.metadata[i].value);
}

static void copies_files(void **state)
{
    static const char *const files[] = {TYPES, RANKS};
    char path[128];

    (void)state;
    scratch(path, "copy");
    for (int i = 0; i < 2; i++) {
        struct safetensors_file file, copy;
        frit_err err = ERR_INIT;

        if (safetensors_open_file(files[i], &file, &err) || copy_file(&file, path, &err) ||
            safetensors_open_file(path, &copy, &err))
            fail_msg("%s", err.text);
        expect_same(&file, &copy);
        assert_int_equal((uintptr_t)copy.data % SAFETENSORS_ALIGN, 0);
        safetensors_close_file(&copy);
        safetensors_close_file(&file);
    }
    unlink(path);
}

static void refuses_what_is_no_file(void **state)
{
    char fifo[128];
    const char *paths[] = {"/", "/dev/null", scratch(fifo, "fifo"), "no/such.safetensors"};
    const char *const texts_of[] = {"not a regular file", "not a regular file",
                                    "not a regular file", "No such file"};
    struct safetensors_file good;
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    for (size_t i = 0; i < 4; i++) {
        struct safetensors_file file;

        assert_int_equal(safetensors_open_file(paths[i], &file, &err), FRIT_IO);
        assert_non_null(strstr(err.text, texts_of[i]));
    }
    assert_int_equal(safetensors_open_file(TYPES, &good, NULL), FRIT_OK);
    assert_int_equal(copy_file(&good, fifo, &err), FRIT_IO);
    assert_int_equal(copy_file(&good, "/no/such/folder/x", &err), FRIT_IO);
    assert_string_equal(err.text, "/no/such/folder/x: No such file or directory");
    safetensors_close_file(&good);
    unlink(fifo);
}

static frit_status read_nothing(void *ctx, const uint32_t *which, uint32_t count, void *data,
                                frit_err *err)
{
    (void)ctx;
    (void)which;
    (void)count;
    (void)data;
    return fail(err, FRIT_DEVICE_LOST, "the device is lost");
}

static void a_failed_write_leaves_the_old_file(void **state)
{
    static const struct safetensors_source lost = {read_nothing, NULL};
    struct safetensors_entry large = entry("large", FRIT_U8, 1);
    struct safetensors_file good, old;
    char path[128], draft[256];
    frit_err err = ERR_INIT;
    struct rlimit limit;
    struct stat info;

    (void)state;
    scratch(path, "old");
    assert_int_equal(safetensors_open_file(TYPES, &good, NULL), FRIT_OK);
    assert_int_equal(copy_file(&good, path, NULL), FRIT_OK);
    assert_int_equal(stat(path, &info), 0);
    limit = (struct rlimit){(rlim_t)info.st_size - 1, RLIM_INFINITY};
    /* The header fits, the elements do not; SIGXFSZ, which would end the process, does not come. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(copy_file(&good, path, &err), FRIT_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    assert_non_null(strstr(err.text, "File too large"));
    assert_int_equal(safetensors_write_file(path, &large, 1, NULL, 0, &lost, &err),
                     FRIT_DEVICE_LOST);
    assert_non_null(strstr(err.text, "the device is lost"));
    assert_int_equal(safetensors_open_file(path, &old, &err), FRIT_OK);
    expect_same(&good, &old);
    snprintf(draft, sizeof(draft), "/tmp/.%s.%ld-0.draft", strrchr(path, '/') + 1, (long)getpid());
    assert_int_equal(access(draft, F_OK), -1);
    safetensors_close_file(&good);
    safetensors_close_file(&old);
    unlink(path);
}

/* Each allocation fails once: a status, and no memory is lost. */
static void survives_no_memory(void **state)
{
    char path[128];
    bool hit = true;
    long n = 0;

    (void)state;
    scratch(path, "memory");
    for (; hit; n++) {
        struct safetensors_file file;
        frit_status st;

        failing_alloc_arm(n);
        st = safetensors_open_file(RANKS, &file, NULL);
        if (!st)
            st = copy_file(&file, path, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        safetensors_close_file(&file);
    }
    assert_true(n > 10);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_broken_headers),
        cmocka_unit_test(refuses_every_prefix_of_a_header),
        cmocka_unit_test(reads_what_is_unusual),
        cmocka_unit_test(places_by_alignment),
        cmocka_unit_test(refuses_what_cannot_be_written),
        cmocka_unit_test(refuses_broken_frames),
        cmocka_unit_test(refuses_every_prefix),
        cmocka_unit_test(copies_files),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(a_failed_write_leaves_the_old_file),
        cmocka_unit_test(survives_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
