/* SPDX-License-Identifier: Apache-2.0 */
#include "host/conf/world.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 16, TEXT_BYTES = 1024 };

static char root[64];
static char entries[MOST][TEXT_BYTES];
static const char *environment[MOST + 1];
static frit_setting settings[MOST];
static size_t n_entries;
static uint64_t n_settings;

/* `text` with the root in place of each "%s". */
static const char *rooted(const char *text, char out[TEXT_BYTES])
{
    size_t used = 0;

    for (; *text && used < TEXT_BYTES - sizeof(root); text++) {
        if (text[0] == '%' && text[1] == 's') {
            used += (size_t)snprintf(out + used, TEXT_BYTES - used, "%s", root);
            text++;
        } else {
            out[used++] = *text;
        }
    }
    out[used] = '\0';
    return out;
}

int world_setup(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/frit-conf-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    world_reset();
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

int world_teardown(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *world_root(void)
{
    return root;
}

void world_reset(void)
{
    n_settings = 0;
    n_entries = 0;
    environment[0] = NULL;
    world_setenv("HOME=%s/home");
}

void world_setenv(const char *entry)
{
    assert_true(n_entries < MOST);
    environment[n_entries] = rooted(entry, entries[n_entries]);
    environment[++n_entries] = NULL;
}

void world_set(const char *section, const char *key, const char *value)
{
    assert_true(n_settings < MOST);
    settings[n_settings++] = (frit_setting){section, key, value};
}

void world_write_bytes(const char *path, const char *bytes, size_t length)
{
    char full[TEXT_BYTES];
    FILE *file;

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    file = fopen(full, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

void world_write(const char *path, const char *text)
{
    world_write_bytes(path, text, strlen(text));
}

void world_remove(const char *path)
{
    char full[TEXT_BYTES];

    snprintf(full, sizeof(full), "%s%s", root, path);
    assert_int_equal(remove(full), 0);
}

frit_status world_try(struct conf **out, frit_err *err)
{
    struct conf_sources sources = {
        .settings = settings, .n_settings = n_settings, .environment = environment, .root = root};

    return conf_load_from(&sources, out, err);
}

struct conf *world_load(void)
{
    frit_err err = ERR_INIT;
    struct conf *conf;

    if (world_try(&conf, &err))
        fail_msg("%s", err.text);
    return conf;
}

void world_refuses(frit_status status, const char *text)
{
    char wanted[TEXT_BYTES];
    frit_err err = ERR_INIT;
    struct conf *conf = (struct conf *)root;
    frit_status got = world_try(&conf, &err);

    assert_string_equal(err.text, rooted(text, wanted));
    assert_int_equal(got, status);
    assert_null(conf);
}

void world_shows(const struct conf *conf, const char *section, const char *key, const char *value,
                 const char *origin)
{
    char wanted[TEXT_BYTES];
    frit_config_desc desc = {.struct_size = sizeof(desc)};
    unsigned found = 0;

    for (uint64_t i = 0; conf_at(conf, i, &desc); i++) {
        if (strcmp(desc.section, section) != 0 || strcmp(desc.key, key) != 0)
            continue;
        found++;
        if (!value)
            fail_msg("[%s] %s = %s is shown", section, key, desc.value);
        assert_string_equal(desc.value, value);
        assert_string_equal(desc.origin, rooted(origin, wanted));
    }
    assert_int_equal(found, value != NULL);
}
