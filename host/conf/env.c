/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment; no other file does. */
#include "conf/env.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/str.h"
#include "conf/conf_sources.h"

static const char prefix[] = "FRIT_";
static const char test_prefix[] = "FRIT_TEST_"; /* reserved for tests */

/* Variables that are not options. */
static const char path_variable[] = "FRIT_PLUGIN_PATH";
static const char *const others[] = {"FRIT_CONFIG", path_variable};

enum { N_OTHERS = sizeof(others) / sizeof(others[0]), N_NAMES = RULE_N_OPTIONS + N_OTHERS };

const char *const *env_of_process(void)
{
    static const char *const empty[] = {NULL};

    return getauxval(AT_SECURE) ? empty : (const char *const *)environ;
}

const char *env_get(const char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return (*environment)[length + 1] ? *environment + length + 1 : NULL;
    }
    return NULL;
}

static frit_status put_variable(struct conf *conf, const char *const *environment, const char *name,
                                const struct rule *rule, frit_err *err)
{
    char origin[RULE_ENV_NAME_BYTES + 16];
    struct conf_item item = {.section = rule->section,
                             .key = rule->key,
                             .value = env_get(environment, name),
                             .origin = origin,
                             .layer = conf->layer};

    snprintf(origin, sizeof(origin), "environment %s", name);
    return item.value ? conf_put(conf, &item, err) : FRIT_OK;
}

/* ---- unknown variables ---- */

static frit_status add_unknown(struct conf *conf, const char *name, size_t length,
                               const char *const *names, frit_err *err)
{
    struct conf_unknown *unknown = arena_alloc(&conf->arena, sizeof(*unknown));
    const char *nearest;

    if (!unknown)
        return fail_memory(err, sizeof(*unknown));
    unknown->name = arena_text(&conf->arena, name, length);
    if (!unknown->name)
        return fail_memory(err, length + 1);
    nearest = str_nearest(unknown->name + sizeof(prefix) - 1, names, N_NAMES);
    if (nearest) {
        unknown->nearest = arena_text(&conf->arena, nearest, strlen(nearest));
        if (!unknown->nearest)
            return fail_memory(err, strlen(nearest) + 1);
    }
    unknown->next = conf->unknown_variables;
    conf->unknown_variables = unknown;
    return FRIT_OK;
}

static bool is_name(const char *name, size_t length, const char *const *names)
{
    for (size_t i = 0; i < N_NAMES; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    }
    return false;
}

static frit_status find_unknown(struct conf *conf, const char *const *environment, frit_err *err)
{
    char variable[RULE_N_OPTIONS][RULE_ENV_NAME_BYTES];
    const char *names[N_NAMES]; /* without the prefix, which would make all names similar */
    size_t skip = sizeof(prefix) - 1;

    for (size_t i = 0; i < RULE_N_OPTIONS; i++) {
        rule_env_name(&rule_options[i], variable[i]);
        names[i] = variable[i] + skip;
    }
    for (size_t i = 0; i < N_OTHERS; i++)
        names[RULE_N_OPTIONS + i] = others[i] + skip;
    for (; *environment; environment++) {
        const char *name = *environment;
        size_t length = strcspn(name, "=");

        if (strncmp(name, prefix, skip) != 0 ||
            strncmp(name, test_prefix, sizeof(test_prefix) - 1) == 0)
            continue;
        if (!is_name(name + skip, length - skip, names))
            TRY(add_unknown(conf, name, length, names, err));
    }
    return FRIT_OK;
}

frit_status env_read(struct conf *conf, const char *const *environment, frit_err *err)
{
    TRY(put_variable(conf, environment, path_variable, &rule_options[RULE_search_dirs], err));
    conf->layer++;
    for (size_t i = 0; i < RULE_N_OPTIONS; i++) {
        char name[RULE_ENV_NAME_BYTES];

        rule_env_name(&rule_options[i], name);
        TRY(put_variable(conf, environment, name, &rule_options[i], err));
    }
    conf->layer++;
    return find_unknown(conf, environment, err);
}
