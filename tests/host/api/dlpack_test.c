/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack: what is used in place and what is copied, whose memory it is and when it ends. */
#include "plugin_rig.h"

#include <pthread.h>
#include <stdatomic.h>

#include <frit/dlpack.h>

enum { ROWS = 6, COLS = 8, N = ROWS * COLS, THREADS = 4, ROUNDS = 200 };

/* What another library exports. */
struct theirs {
    frit_dl_managed managed;
    int64_t dims[10], strides[10];
    atomic_int deleted;
};

static _Alignas(4096) float floats[N + 1];

static void fill(void)
{
    for (int i = 0; i < N; i++)
        floats[i] = (float)i;
}

static void delete_theirs(frit_dl_managed *self)
{
    atomic_fetch_add(&((struct theirs *)self->owner)->deleted, 1);
}

static void delete_old(frit_dl_managed_old *self)
{
    atomic_fetch_add((atomic_int *)self->owner, 1);
}

/* A matrix of f32 in the memory of the host. */
static void make(struct theirs *out, void *data)
{
    *out = (struct theirs){.dims = {ROWS, COLS}, .strides = {COLS, 1}};
    out->managed = (frit_dl_managed){.major = 1,
                                     .minor = 0,
                                     .owner = out,
                                     .deleter = delete_theirs,
                                     .tensor = {.data = data,
                                                .device = {FRIT_DL_CPU, 0},
                                                .rank = 2,
                                                .dtype = {FRIT_DL_FLOAT, 32, 1},
                                                .dims = out->dims,
                                                .strides = out->strides}};
}

static void open_device(struct plugin_rig *rig, const char *device)
{
    *rig = (struct plugin_rig){0};
    rig_open(rig, device);
    fill();
}

/* The elements are a[i][j] = first + i * row + j * column. */
static void expect(frit_tensor *x, int rows, int columns, float first, float row, float column)
{
    float out[N] = {0};
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_read(x, out, (uint64_t)(rows * columns) * sizeof(float), &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            assert_true(out[i * columns + j] == first + (float)i * row + (float)j * column);
}

/* Releases, and expects the deleter to have been called by now. */
static void end(const struct plugin_rig *rig, frit_tensor *x, struct theirs *theirs)
{
    frit_release(x);
    assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
    assert_int_equal(theirs->deleted, 1);
}

static void expect_refused(const struct plugin_rig *rig, struct theirs *theirs, frit_status status,
                           const char *words)
{
    frit_tensor *x = frit_from_dlpack(rig->dev, &theirs->managed);

    assert_int_equal(theirs->deleted, 1);
    assert_int_equal(frit_tensor_status(x), status);
    if (!strstr(frit_tensor_error(x), words))
        fail_msg("'%s' is not in: %s", words, frit_tensor_error(x));
    frit_release(x);
    assert_int_equal(frit_sync(rig->dev, NULL), status);
}

/* ---- from other libraries ---- */

static void import_in_place(const char *device)
{
    struct plugin_rig rig;
    struct theirs theirs;
    frit_tensor *x, *y;

    open_device(&rig, device);
    for (int skew = 0; skew < 2; skew++) { /* aligned to an element only */
        memmove(floats + skew, floats, N * sizeof(float));
        make(&theirs, floats + skew);
        x = frit_from_dlpack(rig.dev, &theirs.managed);
        assert_int_equal(frit_tensor_status(x), FRIT_OK);
        assert_int_equal(rig_stats(&rig).bytes_in, 0);
        assert_true(rig_stats(&rig).adopted_now >= N * sizeof(float));
        expect(x, ROWS, COLS, 0, COLS, 1);
        y = frit_neg(x);
        expect(y, ROWS, COLS, 0, -COLS, -1);
        frit_release(y);
        assert_int_equal(theirs.deleted, 0);
        end(&rig, x, &theirs);
    }
    rig_close(&rig);
}

static void test_used_in_place(void **state)
{
    (void)state;
    import_in_place("reference:0");
    import_in_place("cpu:0");
}

static void test_strides(void **state)
{
    static const struct {
        int64_t dims[2], strides[2];
        int first;
    } cases[] = {
        {{COLS, ROWS}, {1, COLS}, 0},             /* transposed */
        {{ROWS / 2, COLS / 2}, {2 * COLS, 2}, 1}, /* every second */
        {{ROWS, COLS}, {-COLS, -1}, N - 1},       /* from the end */
        {{ROWS, COLS}, {0, 1}, COLS},             /* one row again and again */
        {{1, COLS}, {123456789, 1}, 3 * COLS},    /* the stride of one means nothing */
    };
    struct plugin_rig rig;
    struct theirs theirs;

    (void)state;
    for (int device = 0; device < 2; device++) {
        open_device(&rig, device ? "cpu:0" : "reference:0");
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            const int64_t *dims = cases[i].dims, *strides = cases[i].strides;
            frit_tensor *x, *y;

            make(&theirs, floats);
            memcpy(theirs.dims, dims, sizeof(cases[i].dims));
            memcpy(theirs.strides, strides, sizeof(cases[i].strides));
            theirs.managed.tensor.byte_offset = (uint64_t)cases[i].first * sizeof(float);
            x = frit_from_dlpack(rig.dev, &theirs.managed);
            expect(x, (int)dims[0], (int)dims[1], (float)cases[i].first, (float)strides[0],
                   (float)strides[1]);
            y = frit_add_f(x, 1);
            expect(y, (int)dims[0], (int)dims[1], (float)cases[i].first + 1, (float)strides[0],
                   (float)strides[1]);
            frit_release(y);
            end(&rig, x, &theirs);
        }
        assert_int_equal(rig_stats(&rig).bytes_in, 0);
        rig_close(&rig);
    }
}

/* A device whose memory is its own. */
static void test_copied_elsewhere(void **state)
{
    struct plugin_rig rig = {0};
    struct theirs theirs;
    frit_tensor *x;

    (void)state;
    rig_plugin(&rig, "plugin.null", RIG_NULL);
    rig_set(&rig, "plugin.null", "option.opaque", "yes");
    rig_open(&rig, "null:0");
    fill();
    make(&theirs, floats);
    theirs.dims[0] = COLS, theirs.dims[1] = ROWS;
    theirs.strides[0] = 1, theirs.strides[1] = COLS;
    x = frit_from_dlpack(rig.dev, &theirs.managed);
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    assert_int_equal(theirs.deleted, 1);
    memset(floats, 0, sizeof(floats));
    expect(x, COLS, ROWS, 0, 1, COLS);
    frit_release(x);
    rig_close(&rig);
}

static void test_the_old_struct(void **state)
{
    struct plugin_rig rig;
    struct theirs theirs;
    atomic_int deleted = 0;
    frit_dl_managed_old old;
    frit_tensor *x;

    (void)state;
    open_device(&rig, "reference:0");
    make(&theirs, floats);
    old = (frit_dl_managed_old){theirs.managed.tensor, &deleted, delete_old};
    old.tensor.strides = NULL;
    x = frit_from_dlpack_old(rig.dev, &old);
    expect(x, ROWS, COLS, 0, COLS, 1);
    assert_int_equal(deleted, 0);
    frit_release(x);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(deleted, 1);
    old.deleter = NULL;
    x = frit_from_dlpack_old(rig.dev, &old);
    expect(x, ROWS, COLS, 0, COLS, 1);
    frit_release(x);
    rig_close(&rig);
}

static void test_bools_are_made_clean(void **state)
{
    uint8_t given[4] = {0, 1, 7, 255}, out[4];
    struct plugin_rig rig;
    struct theirs theirs;
    frit_tensor *x;

    (void)state;
    open_device(&rig, "reference:0");
    make(&theirs, given);
    theirs.dims[0] = 4;
    theirs.strides[0] = 1;
    theirs.managed.tensor.rank = 1;
    theirs.managed.tensor.dtype = (frit_dl_type){FRIT_DL_BOOL, 8, 1};
    x = frit_from_dlpack(rig.dev, &theirs.managed);
    assert_int_equal(theirs.deleted, 1);
    assert_int_equal(frit_read(x, out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, ((uint8_t[]){0, 1, 1, 1}), 4);
    frit_release(x);
    rig_close(&rig);
}

static void test_types(void **state)
{
    static const struct {
        uint32_t dtype;
        frit_dl_type type;
    } cases[] = {
        {FRIT_F64, {FRIT_DL_FLOAT, 64, 1}},
        {FRIT_F16, {FRIT_DL_FLOAT, 16, 1}},
        {FRIT_BF16, {FRIT_DL_BFLOAT, 16, 1}},
        {FRIT_I8, {FRIT_DL_INT, 8, 1}},
        {FRIT_I64, {FRIT_DL_INT, 64, 1}},
        {FRIT_U16, {FRIT_DL_UINT, 16, 1}},
        {FRIT_BOOL, {FRIT_DL_BOOL, 8, 1}},
        {FRIT_F8E4M3, {FRIT_DL_F8E4M3, 8, 1}},
        {FRIT_F8E5M2, {FRIT_DL_F8E5M2, 8, 1}},
        {FRIT_F8E4M3FNUZ, {FRIT_DL_F8E4M3FNUZ, 8, 1}},
        {FRIT_F8E5M2FNUZ, {FRIT_DL_F8E5M2FNUZ, 8, 1}},
        {FRIT_F8E8M0, {FRIT_DL_F8E8M0, 8, 1}},
    };
    static _Alignas(64) uint8_t zeros[64];
    struct plugin_rig rig;

    (void)state;
    open_device(&rig, "reference:0");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct theirs theirs;
        frit_dl_managed *mine;
        frit_tensor *x;

        make(&theirs, zeros);
        theirs.dims[0] = 2, theirs.dims[1] = 3, theirs.strides[0] = 3;
        theirs.managed.tensor.dtype = cases[i].type;
        x = frit_from_dlpack(rig.dev, &theirs.managed);
        assert_int_equal(frit_tensor_dtype(x), cases[i].dtype);
        assert_int_equal(frit_to_dlpack(x, NULL, &mine, NULL), FRIT_OK);
        assert_memory_equal(&mine->tensor.dtype, &cases[i].type, sizeof(cases[i].type));
        mine->deleter(mine);
        end(&rig, x, &theirs);
    }
    rig_close(&rig);
}

static void test_what_is_refused(void **state)
{
    struct plugin_rig rig;
    struct theirs t;
    frit_tensor *x;

    (void)state;
    open_device(&rig, "reference:0");
    make(&t, floats);
    t.managed.major = 2;
    expect_refused(&rig, &t, FRIT_UNSUPPORTED, "version 2.0");
    make(&t, floats);
    t.managed.tensor.device.type = FRIT_DL_CUDA;
    expect_refused(&rig, &t, FRIT_UNSUPPORTED,
                   "memory of a CUDA device (number 0), which reference:0");
    make(&t, floats);
    t.managed.tensor.device.type = 99;
    expect_refused(&rig, &t, FRIT_UNSUPPORTED, "an unknown device");
    make(&t, floats);
    t.managed.tensor.dtype.lanes = 4;
    expect_refused(&rig, &t, FRIT_UNSUPPORTED, "vectors of 4 lanes");
    make(&t, floats);
    t.managed.tensor.dtype = (frit_dl_type){FRIT_DL_COMPLEX, 64, 1};
    expect_refused(&rig, &t, FRIT_UNSUPPORTED, "complex numbers");
    make(&t, floats);
    t.managed.tensor.rank = 9;
    expect_refused(&rig, &t, FRIT_UNSUPPORTED, "9 dims; Frit has at most 8");
    make(&t, floats);
    t.managed.tensor.rank = -1;
    expect_refused(&rig, &t, FRIT_INVALID, "rank -1");
    make(&t, floats);
    t.managed.tensor.dims = NULL;
    expect_refused(&rig, &t, FRIT_INVALID, "dims at NULL");
    make(&t, NULL);
    expect_refused(&rig, &t, FRIT_INVALID, "the data is NULL");
    make(&t, floats);
    t.dims[1] = -3;
    expect_refused(&rig, &t, FRIT_INVALID, "-3");
    make(&t, floats);
    t.strides[0] = INT64_MAX / 8;
    expect_refused(&rig, &t, FRIT_INVALID, "too large");
    make(&t, floats);
    t.strides[1] = INT64_MIN;
    expect_refused(&rig, &t, FRIT_INVALID, "too large");
    make(&t, floats);
    x = frit_from_dlpack(NULL, &t.managed);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    assert_int_equal(t.deleted, 1);
    frit_release(x);
    rig_close(&rig);
}

static void test_empty(void **state)
{
    struct plugin_rig rig;
    struct theirs theirs;
    frit_dl_managed *mine;
    frit_tensor *x;

    (void)state;
    open_device(&rig, "reference:0");
    make(&theirs, NULL);
    theirs.dims[0] = 0;
    theirs.strides[0] = INT64_MAX;
    x = frit_from_dlpack(rig.dev, &theirs.managed);
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    assert_int_equal(frit_to_dlpack(x, NULL, &mine, NULL), FRIT_OK);
    assert_int_equal(mine->tensor.dims[0], 0);
    mine->deleter(mine);
    end(&rig, x, &theirs);
    rig_close(&rig);
}

/* ---- to other libraries ---- */

static frit_tensor *make_mine(const struct plugin_rig *rig)
{
    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(ROWS, COLS), floats, N * sizeof(float));
}

static void export_in_place(const char *device)
{
    struct plugin_rig rig;
    frit_tensor *x, *y;
    frit_dl_managed *mine;
    const float *data;

    open_device(&rig, device);
    x = make_mine(&rig);
    y = frit_transpose(frit_take(frit_add_f(x, 1)), 0, 1);
    assert_int_equal(frit_to_dlpack(frit_take(y), NULL, &mine, NULL), FRIT_OK);
    assert_int_equal(mine->flags, FRIT_DL_READ_ONLY);
    assert_int_equal(mine->major, 1);
    assert_int_equal(mine->tensor.device.type, FRIT_DL_CPU);
    assert_int_equal(mine->tensor.dims[0], COLS);
    assert_int_equal(mine->tensor.strides[0], 1);
    assert_int_equal(mine->tensor.strides[1], COLS);
    assert_int_equal(rig_stats(&rig).bytes_out, 0);
    /* Nothing else gets the memory, or is written there. */
    for (int i = 0; i < 8; i++) {
        x = frit_neg(frit_take(x));
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    }
    data = (const float *)((const char *)mine->tensor.data + mine->tensor.byte_offset);
    for (int i = 0; i < N; i++)
        assert_true(data[i] == (float)i + 1);
    frit_release(x);
    mine->deleter(mine);
    rig_close(&rig); /* nothing is left */
}

static void test_exported_in_place(void **state)
{
    (void)state;
    export_in_place("reference:0");
    export_in_place("cpu:0");
}

static void test_what_is_exported_is_not_overwritten(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x;
    frit_dl_managed *mine;
    float twos[N];

    (void)state;
    open_device(&rig, "reference:0");
    x = make_mine(&rig);
    assert_int_equal(frit_to_dlpack(x, NULL, &mine, NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        twos[i] = 2;
    assert_int_equal(frit_write(x, twos, sizeof(twos), NULL), FRIT_OK);
    x = frit_neg(frit_take(x)); /* in place, if it could */
    expect(x, ROWS, COLS, -2, 0, 0);
    for (int i = 0; i < N; i++)
        assert_true(((const float *)mine->tensor.data)[i] == (float)i);
    mine->deleter(mine);
    frit_release(x);
    rig_close(&rig);
}

static void test_copies(void **state)
{
    const frit_dl_options always = {.struct_size = sizeof(always), .copy = FRIT_DL_COPY_ALWAYS};
    const frit_dl_options never = {.struct_size = sizeof(never), .copy = FRIT_DL_COPY_NEVER};
    struct plugin_rig rig;
    frit_tensor *x, *y;
    frit_dl_managed *mine;
    frit_dl_managed_old *old, *shared;

    (void)state;
    open_device(&rig, "reference:0");
    x = make_mine(&rig);
    y = frit_transpose(x, 0, 1);
    assert_int_equal(frit_to_dlpack(y, &always, &mine, NULL), FRIT_OK);
    assert_int_equal(mine->flags, FRIT_DL_COPIED);
    assert_int_equal(mine->tensor.strides[0], ROWS); /* dense */
    assert_int_equal((uintptr_t)mine->tensor.data % 64, 0);
    assert_int_equal(frit_to_dlpack_old(x, NULL, &old, NULL), FRIT_OK);
    assert_int_equal(frit_to_dlpack_old(x, &never, &shared, NULL), FRIT_OK);
    assert_ptr_not_equal(old->tensor.data, shared->tensor.data);
    ((float *)old->tensor.data)[0] = 77; /* theirs to change */
    assert_true(((const float *)shared->tensor.data)[0] == 0);
    expect(x, ROWS, COLS, 0, COLS, 1);
    shared->deleter(shared);
    frit_release(x);
    frit_release(y);
    rig_close(&rig);
    assert_true(((const float *)mine->tensor.data)[1] == COLS); /* outlives the device */
    mine->deleter(mine);
    old->deleter(old);
}

static void test_what_cannot_be_exported(void **state)
{
    frit_dl_options options = {.struct_size = sizeof(options), .copy = FRIT_DL_COPY_NEVER};
    struct plugin_rig rig = {0};
    frit_dl_managed *mine;
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *x, *bad;

    (void)state;
    rig_plugin(&rig, "plugin.null", RIG_NULL);
    rig_set(&rig, "plugin.null", "option.opaque", "yes");
    rig_open(&rig, "null:0");
    fill();
    x = make_mine(&rig);
    assert_int_equal(frit_to_dlpack(x, &options, &mine, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "null:0 has no address"));
    assert_null(mine);
    options.copy = 9;
    assert_int_equal(frit_to_dlpack(x, &options, &mine, &err), FRIT_INVALID);
    options.struct_size = 4;
    assert_int_equal(frit_to_dlpack(x, &options, &mine, &err), FRIT_INVALID);
    assert_int_equal(frit_to_dlpack(x, NULL, NULL, &err), FRIT_INVALID);
    assert_int_equal(frit_to_dlpack(x, NULL, &mine, NULL), FRIT_OK);
    assert_int_equal(mine->flags, FRIT_DL_COPIED);
    mine->deleter(mine);
    bad = frit_reshape(x, FRIT_SHAPE(7));
    assert_int_equal(frit_to_dlpack(frit_take(bad), NULL, &mine, &err), FRIT_INVALID);
    bad = frit_as_packed(frit_take(frit_zeros(rig.dev, FRIT_U8, FRIT_SHAPE(2))), FRIT_Q4,
                         FRIT_SHAPE(4));
    assert_int_equal(frit_to_dlpack(frit_take(bad), NULL, &mine, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no type q4"));
    frit_release(x);
    frit_sync(rig.dev, NULL);
    rig_close(&rig);
}

/* ---- memory of a device: null:0 says that its is that of the CUDA device number 7 ---- */

static void open_null(struct plugin_rig *rig)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "plugin.null", "option.memory", "device");
    rig_open(rig, "null:0");
    fill();
}

static void test_memory_of_the_device_in_place(void **state)
{
    struct plugin_rig rig;
    struct theirs theirs;
    frit_tensor *x;

    (void)state;
    open_null(&rig);
    make(&theirs, floats);
    theirs.managed.tensor.device = (frit_dl_device){FRIT_DL_CUDA, 6};
    expect_refused(&rig, &theirs, FRIT_UNSUPPORTED, "a CUDA device (number 6), which null:0 does");
    make(&theirs, floats);
    theirs.managed.tensor.device = (frit_dl_device){FRIT_DL_CUDA, 7};
    theirs.managed.tensor.byte_offset = sizeof(float);
    theirs.dims[0] = ROWS - 1;
    x = frit_from_dlpack(rig.dev, &theirs.managed);
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    assert_int_equal(rig_stats(&rig).bytes_in, 0);
    assert_true(rig_stats(&rig).adopted_now >= (N - COLS) * sizeof(float));
    expect(x, ROWS - 1, COLS, 1, COLS, 1);
    assert_int_equal(theirs.deleted, 0);
    end(&rig, x, &theirs);
    rig_close(&rig);
}

static void test_exported_on_the_device(void **state)
{
    frit_dl_options options = {.struct_size = sizeof(options), .on_device = 1};
    struct plugin_rig rig;
    frit_tensor *x, *y;
    frit_dl_managed *mine;
    frit_dl_device place;

    (void)state;
    open_null(&rig);
    x = make_mine(&rig);
    y = frit_transpose(x, 0, 1);
    assert_int_equal(frit_dlpack_place(y, &place, NULL), FRIT_OK);
    assert_int_equal(place.type, FRIT_DL_CUDA);
    assert_int_equal(place.number, 7);
    assert_int_equal(frit_to_dlpack(y, &options, &mine, NULL), FRIT_OK);
    assert_memory_equal(&mine->tensor.device, &place, sizeof(place));
    assert_int_equal(mine->flags, FRIT_DL_READ_ONLY);
    assert_int_equal(mine->tensor.strides[0], 1);
    assert_true(((const float *)mine->tensor.data)[N - 1] == N - 1);
    mine->deleter(mine);
    options.copy = FRIT_DL_COPY_ALWAYS;
    assert_int_equal(frit_to_dlpack(frit_take(x), &options, &mine, NULL), FRIT_OK);
    assert_int_equal(mine->flags, FRIT_DL_COPIED);
    assert_memory_equal(&mine->tensor.device, &place, sizeof(place));
    mine->deleter(mine);
    options.on_device = 0; /* to the host */
    assert_int_equal(frit_to_dlpack(y, &options, &mine, NULL), FRIT_OK);
    assert_int_equal(mine->tensor.device.type, FRIT_DL_CPU);
    mine->deleter(mine);
    options.on_device = 2;
    assert_int_equal(frit_to_dlpack(y, &options, &mine, NULL), FRIT_INVALID);
    frit_release(y);
    rig_close(&rig);
}

/* ---- lifetimes ---- */

/* Out and in again: the deleter of the import ends the export, inside of the library. */
static void test_there_and_back(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x, *y;
    frit_dl_managed *mine;

    (void)state;
    open_device(&rig, "cpu:0");
    x = make_mine(&rig);
    assert_int_equal(frit_to_dlpack(frit_take(x), NULL, &mine, NULL), FRIT_OK);
    for (int i = 0; i < 8; i++) {
        y = frit_from_dlpack(rig.dev, mine);
        assert_int_equal(frit_to_dlpack(frit_take(y), NULL, &mine, NULL), FRIT_OK);
    }
    y = frit_from_dlpack(rig.dev, mine);
    expect(y, ROWS, COLS, 0, COLS, 1);
    assert_int_equal(rig_stats(&rig).bytes_in, N * sizeof(float)); /* once */
    frit_release(y);
    frit_trim(rig.dev);
    frit_sync_all(rig.dev, NULL);
    rig_close(&rig);
}

static void test_the_device_ends_first(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x;
    frit_dl_managed *mine[3];

    (void)state;
    open_device(&rig, "reference:0");
    x = make_mine(&rig);
    for (int i = 0; i < 3; i++)
        assert_int_equal(frit_to_dlpack(x, NULL, &mine[i], NULL), FRIT_OK);
    frit_release(x);
    mine[1]->deleter(mine[1]);
    frit_device_close(rig.dev);
    mine[0]->deleter(mine[0]);
    frit_host_close(rig.host);
    mine[2]->deleter(mine[2]);
}

static void *exchange(void *arg)
{
    const struct plugin_rig *rig = arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct theirs theirs;
        frit_dl_managed *mine, *again;
        frit_tensor *x, *y;

        make(&theirs, floats);
        x = frit_from_dlpack(rig->dev, &theirs.managed);
        y = frit_add_f(frit_take(x), (double)i);
        if (frit_to_dlpack(y, NULL, &mine, NULL) || frit_to_dlpack(y, NULL, &again, NULL) ||
            ((const float *)mine->tensor.data)[1] != (float)i + 1)
            return arg;
        mine->deleter(mine);
        frit_release(y);
        again->deleter(again);
        if (frit_sync_all(rig->dev, NULL))
            return arg;
        while (!atomic_load(&theirs.deleted))
            frit_sync_all(rig->dev, NULL);
        if (theirs.deleted != 1)
            return arg;
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct plugin_rig rig;
    pthread_t threads[THREADS];

    (void)state;
    open_device(&rig, "reference:0");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, exchange, &rig), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_used_in_place),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_copied_elsewhere),
        cmocka_unit_test(test_the_old_struct),
        cmocka_unit_test(test_bools_are_made_clean),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_exported_in_place),
        cmocka_unit_test(test_what_is_exported_is_not_overwritten),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_what_cannot_be_exported),
        cmocka_unit_test(test_memory_of_the_device_in_place),
        cmocka_unit_test(test_exported_on_the_device),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_the_device_ends_first),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
