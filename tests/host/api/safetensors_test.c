/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files that the Python package wrote (tests/data/safetensors, with their script), and
 * files written by us, on the reference driver and on cpu. */
#include "api/rig.h"
#include "failing_alloc.h"

#include <stdio.h>
#include <unistd.h>

#define DATA "tests/data/safetensors/"

static const char *const devices[] = {"reference:0", "cpu:0"};
enum { N_DEVICES = 2 };

static void open_on(struct rig *rig, const char *device)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_host_open(NULL, &rig->host, &err) ||
        frit_device_open(rig->host, device, &rig->dev, &err))
        fail_msg("%s", err.text);
}

static char *scratch(char path[128], const char *name)
{
    snprintf(path, 128, "/tmp/frit-api-safetensors-%ld-%s", (long)getpid(), name);
    return path;
}

static frit_safetensors *load(const char *path)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_safetensors *file;

    if (frit_load_safetensors(path, &file, &err))
        fail_msg("%s", err.text);
    return file;
}

static void save(const frit_named_tensor *tensors, uint64_t count, const frit_metadata *metadata,
                 uint64_t n_metadata, const char *path)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_save_safetensors(tensors, count, metadata, n_metadata, path, &err))
        fail_msg("%s", err.text);
}

/* Reads and releases. */
static void read_all(frit_tensor *tensor, void *data, uint64_t bytes)
{
    if (frit_read(tensor, data, bytes, NULL))
        fail_msg("%s", frit_tensor_error(tensor));
    frit_release(tensor);
}

/* ---- files of others ---- */

/* 0 to 5 as each type has it: the bytes of 1 and of 5. */
static const struct {
    const char *name;
    uint32_t dtype;
    unsigned char one[8], five[8];
} types[] = {
    {"f64", FRIT_F64, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, {0, 0, 0, 0, 0, 0, 0x14, 0x40}},
    {"f32", FRIT_F32, {0, 0, 0x80, 0x3f}, {0, 0, 0xa0, 0x40}},
    {"f16", FRIT_F16, {0, 0x3c}, {0, 0x45}},
    {"bf16", FRIT_BF16, {0x80, 0x3f}, {0xa0, 0x40}},
    {"i64", FRIT_I64, {1}, {5}},
    {"i32", FRIT_I32, {1}, {5}},
    {"i16", FRIT_I16, {1}, {5}},
    {"i8", FRIT_I8, {1}, {5}},
    {"u64", FRIT_U64, {1}, {5}},
    {"u32", FRIT_U32, {1}, {5}},
    {"u16", FRIT_U16, {1}, {5}},
    {"u8", FRIT_U8, {1}, {5}},
    {"bool", FRIT_BOOL, {1}, {1}},
    {"f8e4m3", FRIT_F8E4M3, {0x38}, {0x4a}},
    {"f8e5m2", FRIT_F8E5M2, {0x3c}, {0x45}},
    {"f8e4m3fnuz", FRIT_F8E4M3FNUZ, {0x40}, {0x52}},
    {"f8e5m2fnuz", FRIT_F8E5M2FNUZ, {0x40}, {0x49}},
    {"f8e8m0", FRIT_F8E8M0, {0x7f}, {0x81}},
};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static void expect_types(const struct rig *rig, const frit_safetensors *file)
{
    assert_int_equal(frit_safetensors_count(file), N_TYPES);
    for (size_t i = 0; i < N_TYPES; i++) {
        frit_tensor *x = frit_safetensors_tensor(file, rig->dev, types[i].name);
        const size_t size = frit_dtype_bits(types[i].dtype) / 8;
        unsigned char bytes[48];

        if (frit_tensor_status(x))
            fail_msg("%s", frit_tensor_error(x));
        assert_int_equal(frit_tensor_dtype(x), types[i].dtype);
        assert_int_equal(frit_tensor_dims(x).rank, 2);
        assert_int_equal(frit_tensor_dims(x).dim[1], 3);
        read_all(x, bytes, 6 * size);
        assert_memory_equal(bytes + size, types[i].one, size);
        assert_memory_equal(bytes + 5 * size, types[i].five, size);
    }
}

/* Loads a file, saves all of it, and loads that. */
static void test_every_type(void **state)
{
    char path[128];

    (void)state;
    scratch(path, "types");
    for (int d = 0; d < N_DEVICES; d++) {
        frit_safetensors *file = load(DATA "types.safetensors"), *again;
        frit_named_tensor named[N_TYPES];
        struct rig rig;

        open_on(&rig, devices[d]);
        expect_types(&rig, file);
        for (size_t i = 0; i < N_TYPES; i++)
            named[i] = (frit_named_tensor){
                frit_take(frit_safetensors_tensor(file, rig.dev, types[i].name)), types[i].name};
        save(named, N_TYPES, NULL, 0, path);
        again = load(path);
        expect_types(&rig, again);
        for (size_t i = 0; i < N_TYPES; i++) {
            frit_safetensor_desc desc = {.struct_size = sizeof(desc)};

            assert_int_equal(frit_safetensors_at(again, i, &desc), FRIT_OK);
            assert_string_equal(desc.name, types[i].name); /* in the order of the array */
        }
        frit_safetensors_free(again);
        frit_safetensors_free(file);
        rig_close(&rig);
    }
    unlink(path);
}

static void expect_ranks(const struct rig *rig, const frit_safetensors *file)
{
    frit_tensor *odd = frit_safetensors_tensor(file, rig->dev, "na\xc3\xafve \"\xe5\x90\x8d\n\\");
    frit_tensor *empty = frit_safetensors_tensor(file, rig->dev, "empty");
    unsigned char byte;

    read_all(odd, &byte, 1);
    assert_int_equal(byte, 1);
    assert_int_equal(frit_tensor_bytes(empty), 0);
    assert_int_equal(frit_tensor_dims(empty).dim[1], 3);
    frit_release(empty);
    for (int rank = 0; rank <= FRIT_MAX_RANK; rank++) {
        char name[16];
        float out[2];

        snprintf(name, sizeof(name), "rank %d", rank);
        frit_tensor *x = frit_safetensors_tensor(file, rig->dev, name);
        assert_int_equal(frit_tensor_dims(x).rank, rank);
        read_all(x, out, rank ? 8 : 4);
        assert_true(rank ? out[1] == 1 : out[0] == 7);
    }
    assert_string_equal(frit_safetensors_metadata(file, "note"),
                        "a \"text\"\twith \xc3\xa9, \xf0\x9f\x98\x80 and \x01");
    assert_string_equal(frit_safetensors_metadata(file, "step"), "17");
    assert_null(frit_safetensors_metadata(file, "steps"));
}

static void test_ranks_names_and_metadata(void **state)
{
    char path[128];

    (void)state;
    scratch(path, "ranks");
    for (int d = 0; d < N_DEVICES; d++) {
        frit_safetensors *file = load(DATA "ranks.safetensors"), *again;
        frit_safetensor_desc desc = {.struct_size = sizeof(desc)};
        frit_named_tensor named[16];
        frit_metadata metadata[4];
        uint64_t n = 0, n_metadata = 0;
        struct rig rig;

        open_on(&rig, devices[d]);
        expect_ranks(&rig, file);
        for (; frit_safetensors_at(file, n, &desc) == FRIT_OK; n++)
            named[n] = (frit_named_tensor){
                frit_take(frit_safetensors_tensor(file, rig.dev, desc.name)), desc.name};
        while (frit_safetensors_metadata_at(file, n_metadata, &metadata[n_metadata]) == FRIT_OK)
            n_metadata++;
        assert_int_equal(n, 11);
        assert_int_equal(n_metadata, 3);
        save(named, n, metadata, n_metadata, path);
        frit_safetensors_free(file);
        again = load(path);
        expect_ranks(&rig, again);
        frit_safetensors_free(again);
        rig_close(&rig);
    }
    unlink(path);
}

static void test_what_frit_does_not_have(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_safetensors *file;

    (void)state;
    assert_int_equal(frit_load_safetensors(DATA "complex.safetensors", &file, &err),
                     FRIT_UNSUPPORTED);
    assert_string_equal(err.text, DATA "complex.safetensors: tensor 'wave': element type 'C64' is "
                                       "not supported; cast the tensor before it is saved");
    assert_null(file);
    assert_int_equal(frit_load_safetensors(DATA "rank-9.safetensors", &file, &err),
                     FRIT_UNSUPPORTED);
    assert_string_equal(err.text, DATA "rank-9.safetensors: tensor 'deep': more than 8 dims; "
                                       "reshape the tensor before it is saved");
}

/* ---- memory ---- */

enum { N = 4096 };

/* Where the device adopts memory the tensor lies in the map, which outlives the file and its name;
 * a new file in its place changes nothing. */
static void test_tensors_lie_in_the_map(void **state)
{
    static float numbers[N], other[N], out[N];
    char path[128];

    (void)state;
    scratch(path, "map");
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;
    for (int d = 0; d < N_DEVICES; d++) {
        struct rig rig;
        frit_tensor *x, *y;
        frit_safetensors *file;

        open_on(&rig, devices[d]);
        x = rig_f32(&rig, FRIT_SHAPE(N), numbers);
        y = rig_f32(&rig, FRIT_SHAPE(N), other);
        save((frit_named_tensor[]){{frit_take(x), "x"}}, 1, NULL, 0, path);
        file = load(path);
        x = frit_safetensors_tensor(file, rig.dev, "x");
        save((frit_named_tensor[]){{frit_take(y), "x"}}, 1, NULL, 0, path);
        frit_safetensors_free(file);
        unlink(path);
        assert_int_equal(rig_stats(&rig).bytes_adopted, sizeof(numbers));
        y = frit_reshape(x, FRIT_SHAPE(2, N / 2));
        frit_release(x);
        read_all(frit_take(frit_neg(frit_take(y))), out, sizeof(out));
        for (int i = 0; i < N; i++)
            assert_true(out[i] == -numbers[i]);
        frit_sync(rig.dev, NULL);
        assert_int_equal(rig_stats(&rig).adopted_now, 0);
        rig_close(&rig);
    }
}

/* Bytes of bools are 0 or 1, whatever the file has. */
static void test_bools(void **state)
{
    static const char header[] =
        "{\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}   ";
    frit_safetensors *loaded;
    unsigned char out[3];
    struct rig rig;
    char path[128];
    FILE *file;

    (void)state;
    file = fopen(scratch(path, "bools"), "wb");
    assert_non_null(file);
    fprintf(file, "%c%c%c%c%c%c%c%c%s%c%c%c", (int)sizeof(header) - 1, 0, 0, 0, 0, 0, 0, 0, header,
            0, 2, 255);
    fclose(file);
    rig_open(&rig, NULL, 0);
    loaded = load(path);
    read_all(frit_safetensors_tensor(loaded, rig.dev, "b"), out, 3);
    assert_memory_equal(out, "\x00\x01\x01", 3);
    frit_safetensors_free(loaded);
    rig_close(&rig);
    unlink(path);
}

static void test_f8_is_dequantized(void **state)
{
    static const float two = 2, want[6] = {0, 2, 4, 6, 8, 10};

    (void)state;
    for (int d = 0; d < N_DEVICES; d++) {
        frit_safetensors *file = load(DATA "types.safetensors");
        struct rig rig;
        float out[6];

        open_on(&rig, devices[d]);
        frit_tensor *q = frit_safetensors_tensor(file, rig.dev, "f8e4m3");
        frit_tensor *scale = rig_f32(&rig, FRIT_RANK0, &two);
        read_all(frit_dequantize(frit_take(q), frit_take(scale), NULL), out, sizeof(out));
        assert_memory_equal(out, want, sizeof(want));
        frit_safetensors_free(file);
        rig_close(&rig);
    }
}

/* ---- saving ---- */

/* What is not computed yet, a view, and one tensor under two names, taken twice. */
static void test_values_are_awaited(void **state)
{
    static const float numbers[6] = {1, 2, 3, 4, 5, 6};
    frit_safetensors *file;
    struct rig rig;
    float out[6];
    char path[128];

    (void)state;
    scratch(path, "values");
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), numbers), *y = frit_neg(x);
    frit_tensor *t = frit_transpose(x, 0, 1);
    const frit_named_tensor named[] = {
        {x, "x"}, {frit_take(y), "y"}, {frit_take(y), "tied"}, {frit_take(t), "t"}};
    save(named, 4, NULL, 0, path);
    frit_release(x);
    file = load(path);
    read_all(frit_safetensors_tensor(file, rig.dev, "y"), out, sizeof(out));
    assert_true(out[5] == -6);
    read_all(frit_safetensors_tensor(file, rig.dev, "tied"), out, sizeof(out));
    assert_true(out[5] == -6);
    frit_tensor *u = frit_safetensors_tensor(file, rig.dev, "t");
    assert_int_equal(frit_tensor_dims(u).dim[0], 3);
    read_all(u, out, sizeof(out));
    assert_true(out[1] == 4);
    frit_safetensors_free(file);
    rig_close(&rig);
    unlink(path);
}

static void expect_save_error(const frit_named_tensor *tensors, uint64_t count,
                              const frit_metadata *metadata, uint64_t n_metadata, frit_status want,
                              const char *text)
{
    frit_err err = {.struct_size = sizeof(err)};
    char path[128];
    const frit_status st =
        frit_save_safetensors(tensors, count, metadata, n_metadata, scratch(path, "never"), &err);

    if (st != want || !strstr(err.text, text))
        fail_msg("%s: %d %s", text, st, err.text);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_what_cannot_be_saved(void **state)
{
    static const float numbers[32] = {1};
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(32), numbers);
    frit_tensor *bad = frit_reshape(x, FRIT_SHAPE(5));
    const frit_named_tensor failed[] = {{x, "x"}, {bad, "bad"}}, nameless[] = {{x, NULL}},
                            twice[] = {{x, "x"}, {x, "x"}}, none[] = {{NULL, "none"}};
    const frit_metadata keyless[] = {{"k", NULL}}, pairs[] = {{"k", "1"}, {"k", "2"}};

    expect_save_error(failed, 2, NULL, 0, FRIT_INVALID, "tensor 'bad': ");
    expect_save_error(nameless, 1, NULL, 0, FRIT_INVALID, "the name of a tensor is NULL");
    expect_save_error(none, 1, NULL, 0, FRIT_INVALID, "tensor 'none': ");
    expect_save_error(twice, 2, NULL, 0, FRIT_INVALID, "tensor 'x' is there twice");
    expect_save_error(twice, 1, keyless, 1, FRIT_INVALID, "a text of the metadata is NULL");
    expect_save_error(twice, 1, pairs, 2, FRIT_INVALID, "key 'k' of __metadata__ is there twice");
    expect_save_error(twice, 1, NULL, 2, FRIT_INVALID, "`metadata` is NULL");
    expect_save_error(NULL, 1, NULL, 0, FRIT_INVALID, "`tensors` is NULL");
    frit_release(bad);
    /* It is taken on failure too. */
    expect_save_error((frit_named_tensor[]){{frit_take(x), "__metadata__"}}, 1, NULL, 0,
                      FRIT_INVALID, "choose another name");
    rig_close(&rig);
}

static void test_what_is_not_there(void **state)
{
    frit_safetensors *file = load(DATA "types.safetensors");
    frit_safetensor_desc desc = {.struct_size = sizeof(desc)};
    frit_metadata pair;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    rig_expect_error(frit_safetensors_tensor(file, rig.dev, "boole"), FRIT_INVALID,
                     "safetensors_tensor: " DATA
                     "types.safetensors has no tensor 'boole'; did you mean 'bool'?");
    rig_expect_error(frit_safetensors_tensor(file, NULL, "bool"), FRIT_INVALID,
                     "safetensors_tensor: the device is NULL");
    rig_expect_error(frit_safetensors_tensor(file, rig.dev, NULL), FRIT_INVALID,
                     "safetensors_tensor: the name is NULL");
    assert_int_equal(frit_safetensors_at(file, N_TYPES, &desc), FRIT_INVALID);
    assert_int_equal(frit_safetensors_metadata_at(file, 0, &pair), FRIT_INVALID);
    desc.struct_size = 0;
    assert_int_equal(frit_safetensors_at(file, 0, &desc), FRIT_INVALID);
    desc.struct_size = FRIT_END_OF(frit_safetensor_desc, bytes);
    assert_int_equal(frit_safetensors_at(file, 0, &desc), FRIT_OK);
    assert_int_equal(desc.dtype, 0); /* beyond what the caller has */
    assert_true(desc.bytes > 0);
    frit_safetensors_free(file);
    rig_close(&rig);
}

/* Each allocation fails once: an error that says so, and a file that is whole or not there. */
static void test_no_memory(void **state)
{
    char path[128];
    bool hit = true;
    struct rig rig;
    long n = 0;

    (void)state;
    scratch(path, "memory");
    rig_open(&rig, NULL, 0);
    for (; hit; n++) {
        frit_safetensors *file;
        frit_status st;

        failing_alloc_arm(n);
        st = frit_load_safetensors(DATA "ranks.safetensors", &file, NULL);
        if (!st) {
            frit_tensor *x = frit_safetensors_tensor(file, rig.dev, "rank 3");
            const frit_named_tensor named[] = {{x, "x"}, {frit_take(x), "y"}};

            st = frit_save_safetensors(named, 2, NULL, 0, path, NULL);
        }
        hit = failing_alloc_disarm();
        if (st != FRIT_OK && (st != FRIT_NO_HOST_MEMORY || !hit))
            fail_msg("allocation %ld: %d", n, st);
        frit_safetensors_free(file);
        if (!st)
            frit_safetensors_free(load(path));
        unlink(path);
    }
    assert_true(n > 10);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_ranks_names_and_metadata),
        cmocka_unit_test(test_what_frit_does_not_have),
        cmocka_unit_test(test_tensors_lie_in_the_map),
        cmocka_unit_test(test_bools),
        cmocka_unit_test(test_f8_is_dequantized),
        cmocka_unit_test(test_values_are_awaited),
        cmocka_unit_test(test_what_cannot_be_saved),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
