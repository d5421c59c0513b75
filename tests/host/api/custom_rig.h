/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of custom ops share: the plugins that bring them, calls, and what effects logged.
 */
#ifndef TESTS_API_CUSTOM_RIG_H
#define TESTS_API_CUSTOM_RIG_H

#include <stdbool.h>

#include <frit/host.h>

#include "api/plugin_rig.h"

#define RIG_CUSTOM "fake/custom/libfrit-fake-custom.so"
#define RIG_OPS    "fake/custom/libfrit-fake-ops.so"
#define RIG_BAD    "fake/custom/libfrit-fake-badops.so"

#define AXPBY "org.frit.test.axpby/1"
#define TICK  "org.frit.test.tick/1"
#define NOTE  "org.frit.test.note/1"

enum { N = 6 };

/* What ops with effects logged, "tick 3\n" each, and warnings of the loader; of the whole program.
 */
struct logged {
    char effects[8192];
    char load[16384];
};

static inline void custom_log(void *ctx, uint32_t level, const char *topic, const char *text)
{
    struct logged *logged = ctx;
    bool effect = strcmp(topic, "effect") == 0;
    char *to = effect ? logged->effects : logged->load;
    size_t capacity = effect ? sizeof(logged->effects) : sizeof(logged->load), used = strlen(to);

    if (effect && strchr(text, ' '))
        text = strchr(text, ' ') + 1; /* after the plugin's id */
    if (effect || (level <= FRIT_LOG_WARN && strcmp(topic, "load") == 0))
        snprintf(to + used, capacity - used, "%s\n", text);
}

/* A device with fake-custom loaded; `logged` may be NULL. */
static inline void custom_open(struct plugin_rig *rig, const char *device, struct logged *logged)
{
    rig_plugin(rig, "plugin.fake-custom", RIG_CUSTOM);
    if (logged) {
        rig->log = custom_log;
        rig->log_ctx = logged;
    }
    rig_open(rig, device);
}

static inline frit_tensor *filled(frit_device *device, float value)
{
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = value;
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data));
}

static inline void expect_filled(frit_tensor *tensor, float value)
{
    float out[N] = {0};

    if (frit_read(tensor, out, sizeof(out), NULL))
        fail_msg("%s", frit_tensor_error(tensor));
    for (int i = 0; i < N; i++)
        assert_float_equal(out[i], value, 0);
    frit_release(tensor);
}

/* An op of one result; operands are the caller's to end. */
static inline frit_tensor *call_op(frit_device *device, const char *name, frit_tensor *x,
                                   frit_tensor *y, const frit_attr *attrs, uint64_t n_attrs)
{
    const frit_input in[2] = {{.tensor = x}, {.tensor = y}};
    const frit_named_call call = {.struct_size = sizeof(call),
                                  .name = name,
                                  .in = in,
                                  .n_in = (uint64_t)(x != NULL) + (y != NULL),
                                  .attrs = attrs,
                                  .n_attrs = n_attrs};
    frit_tensor *out = NULL;

    frit_op_named(device, &call, &out, 1);
    assert_non_null(out);
    return out;
}

static inline frit_attr real_attr(const char *name, double value)
{
    return (frit_attr){.name = name, .value = frit_scalar_f(value)};
}

static inline frit_tensor *axpby(frit_device *device, double alpha, frit_tensor *x, double beta,
                                 frit_tensor *y)
{
    const frit_attr attrs[] = {real_attr("alpha", alpha), real_attr("beta", beta)};

    return call_op(device, AXPBY, x, y, attrs, 2);
}

static inline frit_tensor *tick(frit_tensor *x)
{
    return call_op(NULL, TICK, x, NULL, NULL, 0);
}

static inline void note(frit_tensor *x)
{
    const frit_input in = {.tensor = x};
    const frit_named_call call = {.struct_size = sizeof(call), .name = NOTE, .in = &in, .n_in = 1};

    frit_op_named(NULL, &call, NULL, 0);
}

static inline void expect_error(frit_tensor *tensor, frit_status status, const char *part)
{
    assert_int_equal(frit_tensor_status(tensor), status);
    if (!strstr(frit_tensor_error(tensor), part))
        fail_msg("'%s' does not contain '%s'", frit_tensor_error(tensor), part);
    frit_release(tensor);
}

#endif
