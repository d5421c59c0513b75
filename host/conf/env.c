/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment; no other file does. */
#include "conf/env.h"

#include <stdio.h>
#include <stdlib.h>
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

/* ---- launchers ---- */

/* The variables by which launchers say which process this is.  All of a row are set, or it is not
 * that launcher; the first row counts. */
static const struct launcher {
    const char *rank, *size;
    const char *address, *port; /* NULL: it has none */
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL}, /* mpirun of Open MPI */
    {"PMI_RANK", "PMI_SIZE", NULL, NULL},                         /* of MPICH */
    {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},         /* torchrun */
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL, NULL},         /* srun */
};

/* Other programs may use such names for something else. */
static bool is_number(const char *text)
{
    return text && strlen(text) < 6 && text[strspn(text, "0123456789")] == '\0';
}

static bool is_launched_by(const char *const *environment, const struct launcher *launcher)
{
    const char *rank = env_get(environment, launcher->rank);
    const char *size = env_get(environment, launcher->size);

    return is_number(rank) && is_number(size) && atoi(rank) < atoi(size);
}

/* torchrun's own store may have the port. */
static int port_of(const char *const *environment, const char *port)
{
    const char *is_taken = env_get(environment, "TORCHELASTIC_USE_AGENT_STORE");

    return atoi(port) + (is_taken && strcmp(is_taken, "True") == 0);
}

static frit_status put_store(struct conf *conf, const char *const *environment,
                             const struct launcher *launcher, frit_err *err)
{
    const struct rule *rule = &rule_options[RULE_dist_store];
    const char *address = launcher->address ? env_get(environment, launcher->address) : NULL;
    const char *port = launcher->port ? env_get(environment, launcher->port) : NULL;
    char store[320], origin[RULE_ENV_NAME_BYTES + 16];
    const struct conf_item item = {.section = rule->section,
                                   .key = rule->key,
                                   .value = store,
                                   .origin = origin,
                                   .layer = conf->layer};

    if (!address || !is_number(port))
        return FRIT_OK;
    snprintf(store, sizeof(store), "tcp://%.255s:%d", address, port_of(environment, port));
    snprintf(origin, sizeof(origin), "environment %s", launcher->address);
    return conf_put(conf, &item, err);
}

static frit_status put_launcher(struct conf *conf, const char *const *environment, frit_err *err)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        const struct launcher *launcher = &launchers[i];

        if (!is_launched_by(environment, launcher))
            continue;
        TRY(put_variable(conf, environment, launcher->rank, &rule_options[RULE_dist_rank], err));
        TRY(put_variable(conf, environment, launcher->size, &rule_options[RULE_dist_size], err));
        return put_store(conf, environment, launcher, err);
    }
    return FRIT_OK;
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
    TRY(put_launcher(conf, environment, err));
    conf->layer++;
    return find_unknown(conf, environment, err);
}
