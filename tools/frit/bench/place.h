/* SPDX-License-Identifier: Apache-2.0 */
/* A fresh host with a device, without known plans, for programs that are measured from their first
 * step; and a folder for compiled code that such hosts may share. */
#ifndef CLI_BENCH_PLACE_H
#define CLI_BENCH_PLACE_H

#include <frit/frit.h>
#include <frit/inspect.h>

struct bench;

struct place {
    const struct bench *bench;
    frit_host *host;
    frit_device *device;
    frit_status status; /* the first failure of place_sync */
    frit_err err;       /* with its text */
};

struct cache {
    char path[64]; /* "": there is none */
};

/* CLI_FAILED after a message.  The device is that of --device, cpu without; `cache` NULL: compiled
 * code is not kept. */
int place_open(struct place *place, const struct bench *bench, const struct cache *cache);
/* CLI_FAILED after a message if something failed since it was opened. */
int place_close(struct place *place);
/* Waits for the calling thread's ops. */
void place_sync(struct place *place);
frit_stats place_stats(const struct place *place);
/* Of the device: "cpu:0"; lives until the next call. */
const char *place_name(const struct place *place);

/* An empty folder; CLI_FAILED after a message. */
int cache_create(struct cache *cache, const struct bench *bench);
void cache_remove(struct cache *cache);

#endif
