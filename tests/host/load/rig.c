/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "conf/conf.h"
#include "host/load/rig.h"
#include "load/device.h"

static char search_dir[64];
static struct str log_text;
static pthread_mutex_t log_lock =
    PTHREAD_MUTEX_INITIALIZER; /* what takes long is logged by a thread */

static void collect(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    pthread_mutex_lock(&log_lock);
    str_addf(&log_text, "%u %s: %s\n", (unsigned)level, topic, text);
    pthread_mutex_unlock(&log_lock);
}

bool rig_wait_logged(const char *text, uint32_t limit_ms)
{
    bool is_there = false;

    for (uint32_t ms = 0; ms < limit_ms && !is_there; ms++) {
        usleep(1000);
        pthread_mutex_lock(&log_lock);
        is_there = strstr(rig_log(), text);
        pthread_mutex_unlock(&log_lock);
    }
    return is_there;
}

int rig_setup(void **state)
{
    (void)state;
    snprintf(search_dir, sizeof(search_dir), "/tmp/frit-load-XXXXXX");
    if (!mkdtemp(search_dir))
        return -1;
    log_set_sink(collect, NULL);
    return setenv("FRIT_PLUGIN_PATH", search_dir, 1);
}

int rig_teardown(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    str_fini(&log_text);
    return rmdir(search_dir);
}

const char *rig_dir(void)
{
    return search_dir;
}

const char *rig_fake_dir(void)
{
    static char path[512];
    const char *build = getenv("FRIT_TEST_BUILD");

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, sizeof(path), "%s/tests/fake", build);
    return path;
}

const char *rig_fake(const char *name)
{
    static char path[600];

    snprintf(path, sizeof(path), "%s/%s", rig_fake_dir(), name);
    return path;
}

frit_status rig_open(struct rig *rig, const frit_setting *settings)
{
    uint64_t count = 0;

    *rig = (struct rig){.err = {.struct_size = sizeof(frit_err)}};
    str_fini(&log_text);
    while (settings && settings[count].section)
        count++;
    if (conf_load(settings, count, &rig->conf, &rig->err))
        fail_msg("%s", rig->err.text);
    return registry_open(rig->conf, &rig->registry, &rig->err);
}

void rig_close(struct rig *rig)
{
    registry_close(rig->registry);
    conf_destroy(rig->conf);
    *rig = (struct rig){0};
}

const struct plugin *rig_plugin(const struct rig *rig, const char *name)
{
    const struct plugin *found = NULL;

    for (uint32_t i = 0; i < registry_n_plugins(rig->registry); i++) {
        const struct plugin *plugin = registry_plugin_at(rig->registry, i);
        const char *slash = strrchr(plugin->path, '/');

        if (strcmp(slash ? slash + 1 : plugin->path, name) != 0 && strcmp(plugin->id, name) != 0)
            continue;
        if (found)
            fail_msg("two plugins are called %s", name);
        assert_int_equal(registry_enumerate(rig->registry, i), FRIT_OK);
        found = plugin;
    }
    if (!found)
        fail_msg("no plugin is called %s", name);
    return found;
}

const char *rig_log(void)
{
    return log_text.text ? log_text.text : "";
}

void rig_forget_log(void)
{
    str_fini(&log_text);
}

void rig_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in '%s'", part, text);
}
