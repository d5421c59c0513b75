/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of the plugin, of which each host opens one, and what every file uses of it: error
 * messages and host memory. */
#ifndef HIP_PLUGIN_H
#define HIP_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/host.h>
#include <frit/status.h>
#include <frit/types.h>

#include "util/plug.h"

#include "api.h"

struct adapter;

/* Values of the plugin's options. */
struct options {
    frit_str library;    /* file name of the runtime; empty: the usual ones */
    frit_str compiler;   /* likewise of the run-time compiler */
    frit_str products;   /* name or file name of the library for products; "none": none is used */
    int64_t min_product; /* multiplications from which on products go to that library */
    frit_str dump;       /* folder to which the texts of kernels are written; empty: none */
};

/* Constant after the first enumerate that succeeded, except `n_openings`. */
struct instance {
    struct plug plug;
    const frit_host_cache *cache; /* disk cache of the host; NULL: the host has none */
    const frit_host_exec *exec;   /* the host's threads; NULL: it has none for tasks */
    struct options options;
    struct api api;
    bool is_loaded;          /* the functions of `api` */
    int runtime_version;     /* as DriverGetVersion gives it */
    int compiler_version[2]; /* major, minor */
    char library_path[256], compiler_path[256];
    char compiler_text[48];      /* name and version of the run-time compiler, for people */
    char versions[64];           /* of runtime and compiler, for people */
    char unavailable_text[384];  /* why there are no adapters; "" if there are some */
    uint32_t unavailable_reason; /* FRIT_REASON_* of that text; 0 without it */
    uint32_t n_found;            /* devices of the runtime */
    uint32_t n_adapters;         /* those of them that are read */
    struct adapter *adapters;    /* NULL before the first successful enumerate; owned */
    _Atomic uint64_t n_openings; /* device_open calls so far */
};

/* Writes an error message "NAME: TEXT: MEANING (error N)" and returns the status that corresponds
 * to `result`, which must be an error of the runtime. */
frit_status hip_fail(const struct instance *instance, frit_err *err, gpu_result result,
                     const char *format, ...) FRIT_PRINTF(4, 5);
/* Whether the error leaves the device unusable: every later call on it fails. */
bool hip_is_fatal(gpu_result result);
/* The meaning of an error of the runtime. */
const char *hip_error_text(gpu_result result);

/* Zeroed host memory; NULL: there is none. */
static inline void *hip_alloc(const struct instance *instance, uint64_t bytes)
{
    return plug_zalloc(&instance->plug, bytes);
}
static inline void hip_free(const struct instance *instance, void *memory) /* NULL does nothing */
{
    plug_free(&instance->plug, memory);
}

uint64_t hip_checksum(const void *bytes, uint64_t n);

#endif
