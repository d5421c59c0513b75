/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the configuration file: either a failure that begins with the file's name, or values
 * that written down as a file give the same values. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/str.h"
#include "conf/conf_sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static struct conf *load(const void *data, size_t size)
{
    int fd = memfd_create("ini", 0);
    char variable[64];
    const char *environment[] = {variable, NULL};
    struct conf_sources sources = {.environment = environment, .root = ""};
    const char *name;
    frit_err err = ERR_INIT;
    struct conf *conf;

    check(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
    snprintf(variable, sizeof(variable), "FRIT_CONFIG=/proc/self/fd/%d", fd);
    name = strchr(variable, '=') + 1;
    if (conf_load_from(&sources, &conf, &err)) {
        check(conf == NULL && err.status == FRIT_INVALID);
        check(strncmp(err.text, name, strlen(name)) == 0 && err.text[strlen(name)] == ':');
    }
    close(fd);
    return conf;
}

static void print(const struct conf *conf, struct str *out)
{
    frit_config_desc desc = {.struct_size = sizeof(desc)};

    for (uint64_t i = 0; conf_at(conf, i, &desc); i++)
        str_addf(out, "[%s]\n%s=%s\n", desc.section, desc.key, desc.value);
    check(out->text && !out->failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str first = {0}, second = {0};
    struct conf *conf = load(data, size);
    struct conf *again;

    if (!conf)
        return 0;
    print(conf, &first);
    again = load(first.text, first.length);
    check(again != NULL);
    print(again, &second);
    check(strcmp(first.text, second.text) == 0);
    str_fini(&first);
    str_fini(&second);
    conf_destroy(conf);
    conf_destroy(again);
    return 0;
}
