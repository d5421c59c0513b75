/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/place.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frit/inspect.h>

#include "bench/bench.h"
#include "invocation.h"

int place_open(struct place *place, const struct bench *bench, const struct cache *cache)
{
    frit_err err = {.struct_size = sizeof(err)};
    const char *name = invocation_value(bench->in, "--device");
    const frit_setting settings[] = {
        {"fusion", "store", "none"},
        {"frit", "artefacts", cache ? cache->path : "none"},
        {"plugin.null", "option.check", "no"},
        {"plugin.null", "library", bench->null_path},
    };
    bool is_null = name && strncmp(name, "null", 4) == 0;
    frit_host_params params = {.struct_size = sizeof(params),
                               .settings = settings,
                               .n_settings = is_null ? (*bench->null_path ? 4 : 3) : 2};

    *place = (struct place){.bench = bench};
    if (frit_host_open(&params, &place->host, &err) ||
        frit_device_open(place->host, name ? name : "cpu", &place->device, &err)) {
        int status = fail_command(bench->in, "%s", err.text);

        frit_host_close(place->host);
        return status;
    }
    return CLI_FINE;
}

int place_close(struct place *place)
{
    int status = CLI_FINE;

    place_sync(place);
    if (place->status)
        status = fail_command(place->bench->in, "the ops failed: %s", place->err.text);
    frit_device_close(place->device);
    frit_host_close(place->host);
    return status;
}

void place_sync(struct place *place)
{
    frit_err err;
    frit_status status = frit_sync(place->device, &err);

    if (!status || place->status)
        return;
    place->status = status;
    place->err = err;
}

frit_stats place_stats(const struct place *place)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(place->device, &stats);
    return stats;
}

const char *place_name(const struct place *place)
{
    static char name[64];

    snprintf(name, sizeof(name), "%s", frit_device_name(place->device));
    return name;
}

int cache_create(struct cache *cache, const struct bench *bench)
{
    snprintf(cache->path, sizeof(cache->path), "/tmp/frit-bench-XXXXXX");
    if (mkdtemp(cache->path))
        return CLI_FINE;
    cache->path[0] = 0;
    return fail_command(bench->in, "no folder for compiled code: %s", strerror(errno));
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

void cache_remove(struct cache *cache)
{
    if (cache->path[0])
        (void)nftw(cache->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
