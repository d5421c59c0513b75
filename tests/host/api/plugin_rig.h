/* SPDX-License-Identifier: Apache-2.0 */
/* A device in a host of its own with plugins of the tests, which no search finds. */
#ifndef TESTS_API_PLUGIN_RIG_H
#define TESTS_API_PLUGIN_RIG_H

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frit/frit.h>
#include <frit/inspect.h>

#define RIG_NULL   "fake/null/libfrit-null.so"
#define RIG_BLOCKS "outside/libfrit-blocks.so"

enum { RIG_SETTINGS = 16, RIG_PATH = 4096 };

/* Zeroed, then filled by rig_set before rig_open. */
struct plugin_rig {
    frit_setting settings[RIG_SETTINGS];
    uint64_t n_settings;
    char paths[2][RIG_PATH]; /* of libraries */
    uint32_t n_paths;
    void (*log)(void *ctx, uint32_t level, const char *topic, const char *text);
    void *log_ctx;
    frit_host *host;
    frit_device *dev;
};

/* Three borrowed texts. */
static inline void rig_set(struct plugin_rig *rig, const char *section, const char *key,
                           const char *value)
{
    assert_true(rig->n_settings < RIG_SETTINGS);
    rig->settings[rig->n_settings++] = (frit_setting){section, key, value};
}

/* `file` is RIG_NULL or RIG_BLOCKS. */
static inline void rig_plugin(struct plugin_rig *rig, const char *section, const char *file)
{
    const char *build = getenv("FRIT_TEST_BUILD");

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(rig->paths[rig->n_paths], RIG_PATH, "%s/tests/%s", build, file);
    rig_set(rig, section, "library", rig->paths[rig->n_paths++]);
}

static inline void rig_host(struct plugin_rig *rig)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_host_params params = {.struct_size = sizeof(params),
                               .settings = rig->settings,
                               .n_settings = rig->n_settings,
                               .log = rig->log,
                               .log_ctx = rig->log_ctx};

    if (frit_host_open(&params, &rig->host, &err))
        fail_msg("%s", err.text);
}

static inline void rig_open(struct plugin_rig *rig, const char *device)
{
    frit_err err = {.struct_size = sizeof(err)};
    rig_host(rig);
    if (frit_device_open(rig->host, device, &rig->dev, &err))
        fail_msg("%s", err.text);
}

static inline frit_stats rig_stats(const struct plugin_rig *rig)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(rig->dev, &stats);
    return stats;
}

/* Every test ends with nothing left over. */
static inline void rig_close(struct plugin_rig *rig)
{
    char *left = NULL;

    frit_sync_all(rig->dev, NULL);
    if (frit_leaks(rig->dev, &left))
        fail_msg("%s", left);
    frit_device_close(rig->dev);
    frit_host_close(rig->host);
}

#endif
