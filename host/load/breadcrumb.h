/* SPDX-License-Identifier: Apache-2.0 */
/* Which plugin's code the process is in, for whoever finds it dead or waiting.
 *
 * Calls under way are kept in memory, and those of kind BREADCRUMB_BLAMED in a mapped file of the
 * process too, whose lock the system releases when the process ends: what such a file then names,
 * the process died in.  A thread warns of calls that do not return.
 *
 * Threads: any, but for breadcrumb_set_sink. */
#ifndef LOAD_BREADCRUMB_H
#define LOAD_BREADCRUMB_H

#include <stdbool.h>
#include <stdint.h>

enum breadcrumb_kind {
    BREADCRUMB_BLAMED,  /* a process that dies here may have died of it */
    BREADCRUMB_LAUNCH,  /* likewise within its first second: later it is the user who ends it */
    BREADCRUMB_WATCHED, /* only: it has to return */
};

/* Instead of all that: each call.  `entered`: the plugin of file `path` is about to be called; else
 * it has returned. */
typedef void breadcrumb_sink(void *ctx, const char *path, const char *slot, bool entered);

/* Before the first registry is opened.  NULL: as usual. */
void breadcrumb_set_sink(breadcrumb_sink *sink, void *ctx);

/* For each registry.  The first one's `folder` is the place of the file, which is made; NULL, or
 * where it cannot be made: there is none. */
void breadcrumb_start(const char *folder);
void breadcrumb_stop(void);

/* No call's place. */
#define BREADCRUMB_NONE (~0u)

/* The slot's name of a device's first launches. */
#define BREADCRUMB_SUBMIT "submit"

/* The call's place for breadcrumb_leave.  Texts outlive the call. */
unsigned breadcrumb_enter(const char *path, const char *slot, enum breadcrumb_kind kind);
void breadcrumb_leave(unsigned place);

/* Calls `died` for each call of kind BLAMED or LAUNCH that processes which are gone had begun, and
 * removes their files from the folder; once for each, whichever process comes first. */
void breadcrumb_collect(const char *folder,
                        void (*died)(void *ctx, const char *path, const char *slot), void *ctx);

/* How long a call may take before there is a warning; 0, for tests: as usual. */
void breadcrumb_set_patience(double seconds);
uint64_t breadcrumb_patience_ns(void);

#endif
