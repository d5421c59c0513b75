/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of two devices of one driver: tensors that move between them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <frit/inspect.h>

#include "conform/lab.h"
#include "conform/play.h"

/* Another usable device of the plugin; NULL: there is none. */
static const char *other_device(const struct lab *lab)
{
    const char *own = frit_device_name(lab->device), *plugin = NULL, *other = NULL;
    frit_device_desc desc = {.struct_size = sizeof(desc)};

    for (uint64_t i = 0; !plugin && !frit_device_info_at(lab->host, i, &desc); i++)
        if (strcmp(desc.name, own) == 0)
            plugin = desc.plugin;
    for (uint64_t i = 0; plugin && !other && !frit_device_info_at(lab->host, i, &desc); i++)
        if (!desc.reason && strcmp(desc.plugin, plugin) == 0 && strcmp(desc.name, own) != 0)
            other = desc.name;
    return other;
}

/* ---- one tensor ---- */

enum { N_VIEWS = 4 };

/* The tensor itself, a result that is not there yet, and views: a part, and one that is not dense.
 */
static frit_tensor *view_of(frit_tensor *x, int64_t rows, uint32_t number)
{
    switch (number) {
    case 1:
        return frit_neg(x);
    case 2:
        return frit_slice(x, FRIT_SLICES({rows / 2, rows, 1}, {0}));
    case 3:
        return frit_transpose(x, 0, 1);
    default:
        return frit_slice(x, FRIT_SLICES({0}, {0}));
    }
}

static bool is_equal(frit_tensor *moved, frit_tensor *view, float *got, float *want, uint64_t bytes)
{
    return !frit_read(moved, got, bytes, NULL) && !frit_read(view, want, bytes, NULL) &&
           memcmp(got, want, bytes) == 0;
}

static frit_status move(frit_tensor *view, frit_device *to, char reason[CONFORM_REASON])
{
    const uint64_t bytes = frit_tensor_bytes(view);
    float *got = calloc(2, (size_t)bytes), *want = got ? got + bytes / sizeof(*got) : NULL;
    frit_tensor *moved = frit_to_device(view, to);
    frit_status status = frit_tensor_status(moved);

    if (!got)
        status = lab_fail(FRIT_NO_HOST_MEMORY, "no memory", reason);
    else if (status)
        lab_fail(status, frit_tensor_error(moved), reason);
    else if (!is_equal(moved, view, got, want, bytes)) {
        snprintf(reason, CONFORM_REASON,
                 "%" PRIu64 " bytes that were moved to %s are not those of %s", bytes,
                 frit_device_name(to), frit_device_name(frit_tensor_device(view)));
        status = FRIT_INTERNAL;
    }
    frit_release(moved);
    free(got);
    return status;
}

static frit_status move_views(frit_device *from, frit_device *to, int64_t rows, int64_t columns,
                              char reason[CONFORM_REASON])
{
    const uint64_t count = (uint64_t)(rows * columns);
    float *data = calloc((size_t)count, sizeof(*data));
    frit_status status = FRIT_OK;
    frit_tensor *x;

    if (!data)
        return lab_fail(FRIT_NO_HOST_MEMORY, "no memory", reason);
    for (uint64_t i = 0; i < count; i++)
        data[i] = (float)(i + 1);
    x = frit_from_host(from, FRIT_F32, FRIT_SHAPE(rows, columns), data, count * sizeof(*data));
    for (uint32_t i = 0; i < N_VIEWS && !status; i++) {
        frit_tensor *view = view_of(x, rows, i);

        status = move(view, to, reason);
        frit_release(view);
    }
    frit_release(x);
    free(data);
    return status;
}

/* ---- the check ---- */

static uint64_t moved_directly(frit_device *device)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(device, &stats);
    return stats.bytes_direct;
}

static frit_status move_both_ways(frit_device *a, frit_device *b, char reason[CONFORM_REASON])
{
    static const int64_t dims[][2] = {{1, 1}, {3, 5}, {64, 65}, {1023, 1025}};
    frit_status status = FRIT_OK;

    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]) && !status; i++) {
        status = move_views(a, b, dims[i][0], dims[i][1], reason);
        if (!status)
            status = move_views(b, a, dims[i][0], dims[i][1], reason);
    }
    if (!status && (!moved_directly(a) || !moved_directly(b))) {
        snprintf(reason, CONFORM_REASON, "%s and %s copy through the host's memory",
                 frit_device_name(a), frit_device_name(b));
        status = FRIT_UNSUPPORTED;
    }
    return status;
}

static frit_status peers(const struct conform_options *options, const struct lab *lab,
                         char reason[CONFORM_REASON])
{
    frit_err err = {.struct_size = sizeof(err)};
    const char *name = other_device(lab);
    frit_device *other = NULL;
    frit_status status;

    (void)options;
    if (!name) {
        snprintf(reason, CONFORM_REASON, "the driver has one usable device");
        return FRIT_UNSUPPORTED;
    }
    status = frit_device_open(lab->host, name, &other, &err);
    status =
        status ? lab_fail(status, err.text, reason) : move_both_ways(lab->device, other, reason);
    frit_device_close(other);
    return status;
}

const struct conform_check peer_checks[] = {
    {"device", "peers", "tensors move between two devices of the driver, not through the host",
     peers},
    {0},
};
