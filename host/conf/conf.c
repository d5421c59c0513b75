/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/conf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/conf_sources.h"
#include "conf/env.h"
#include "conf/files.h"

static frit_status put_setting(struct conf *conf, const frit_setting *setting, frit_err *err)
{
    struct conf_item item = {.section = setting->section,
                             .key = setting->key,
                             .value = setting->value,
                             .origin = "program",
                             .layer = conf->layer};

    if (!setting->section || !setting->key || !setting->value)
        return fail(err, FRIT_INVALID,
                    "program: section, key or value of a setting is NULL; give all three");
    return conf_put(conf, &item, err);
}

/* Resolves the path of a store option; NULL: none.  "auto" follows the XDG base directory
 * specification; variables without an absolute path are ignored. */
static frit_status find_store_path(struct conf *conf, const char *const *environment,
                                   const char *option, const char *name, const char **out,
                                   frit_err *err)
{
    const char *cache = env_get(environment, "XDG_CACHE_HOME"),
               *home = env_get(environment, "HOME");
    char here[PATH_MAX], cached[64];

    if (strcmp(option, "none") == 0)
        return FRIT_OK;
    snprintf(cached, sizeof(cached), ".cache/frit/%s", name);
    if (strcmp(option, "auto") != 0) {
        if (option[0] != '/' && !getcwd(here, sizeof(here)))
            return FRIT_OK;
        *out = rule_absolute(&conf->arena, here, str_of(option));
    } else if (cache && cache[0] == '/') {
        *out = rule_absolute(&conf->arena, cache, str_of(cached + strlen(".cache/")));
    } else if (home && home[0] == '/') {
        *out = rule_absolute(&conf->arena, home, str_of(cached));
    } else {
        return FRIT_OK;
    }
    return *out ? FRIT_OK : fail_memory(err, PATH_MAX);
}

static frit_status load(struct conf *conf, const struct conf_sources *sources, frit_err *err)
{
    conf->sections_end = &conf->sections;
    conf->files_end = &conf->files;
    for (uint64_t i = 0; i < sources->n_settings; i++)
        TRY(put_setting(conf, &sources->settings[i], err));
    conf->layer++;
    TRY(env_read(conf, sources->environment, err));
    TRY(files_read(conf, sources, err));
    TRY(conf_complete(conf, err));
    TRY(find_store_path(conf, sources->environment, conf->options.fusion_store, "plans.db",
                        &conf->plan_store, err));
    TRY(find_store_path(conf, sources->environment, conf->options.tune_store, "tune.db",
                        &conf->tune_store, err));
    return find_store_path(conf, sources->environment, conf->options.artefacts, "artefacts",
                           &conf->artefacts, err);
}

frit_status conf_load_from(const struct conf_sources *sources, struct conf **out, frit_err *err)
{
    struct conf *conf = calloc(1, sizeof(*conf));
    frit_status status = conf ? load(conf, sources, err) : fail_memory(err, sizeof(*conf));

    if (status) {
        conf_destroy(conf);
        conf = NULL;
    }
    *out = conf;
    return status;
}

frit_status conf_load(const frit_setting *settings, uint64_t n_settings, struct conf **out,
                      frit_err *err)
{
    struct conf_sources sources = {.settings = settings,
                                   .n_settings = n_settings,
                                   .environment = env_of_process(),
                                   .root = ""};

    return conf_load_from(&sources, out, err);
}

void conf_destroy(struct conf *conf)
{
    if (!conf)
        return;
    map_fini(&conf->slots, NULL);
    arena_fini(&conf->arena);
    free(conf);
}

void conf_warn(const struct conf *conf)
{
    for (const struct conf_unknown *s = conf->unknown_variables; s; s = s->next) {
        if (s->nearest)
            log_write(FRIT_LOG_WARN, "conf",
                      "unknown environment variable %s; did you mean FRIT_%s?", s->name,
                      s->nearest);
        else
            log_write(FRIT_LOG_WARN, "conf", "unknown environment variable %s", s->name);
    }
}

const struct conf_options *conf_options(const struct conf *conf)
{
    return &conf->options;
}

uint32_t conf_n_plugins(const struct conf *conf)
{
    return conf->n_sections;
}

const struct conf_plugin *conf_plugin_at(const struct conf *conf, uint32_t index)
{
    return &conf->section[index]->plugin;
}

const struct conf_plugin *conf_plugin_find(const struct conf *conf, frit_str id)
{
    for (uint32_t i = 0; i < conf->n_sections; i++) {
        if (str_is(id, conf->section[i]->plugin.id))
            return &conf->section[i]->plugin;
    }
    return NULL;
}

uint32_t conf_n_dirs(const struct conf *conf)
{
    return conf->n_dirs;
}

const struct conf_value *conf_dir_at(const struct conf *conf, uint32_t index)
{
    return &conf->dirs[index];
}

bool conf_dirs_replace(const struct conf *conf)
{
    return conf->dirs_replace;
}

const char *conf_file_at(const struct conf *conf, uint32_t index)
{
    const struct conf_file *file = conf->files;

    while (file && index--)
        file = file->next;
    return file ? file->path : NULL;
}

const char *conf_plan_store(const struct conf *conf)
{
    return conf->plan_store;
}

const char *conf_tune_store(const struct conf *conf)
{
    return conf->tune_store;
}

const char *conf_artefacts(const struct conf *conf)
{
    return conf->artefacts;
}

bool conf_at(const struct conf *conf, uint64_t index, frit_config_desc *out)
{
    if (index >= conf->n_values)
        return false;
    out->section = conf->values[index].section;
    out->key = conf->values[index].value->key;
    out->value = conf->values[index].value->value;
    out->origin = conf->values[index].value->origin;
    return true;
}
