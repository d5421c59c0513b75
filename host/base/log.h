/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one sink per process, lines of "frit level topic: text" on standard error unless
 * redirected.  Topics are words such as load, conf, stream, memory; level and topics come from
 * FRIT_LOG ("warn" or "info,load=debug") through the configuration.  Threads: any. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include <frit/host.h>

typedef void (*log_sink)(void *ctx, uint32_t level, const char *topic, const char *text);

/* NULL: standard error. */
void log_set_sink(log_sink sink, void *ctx);
/* Whether log_configure would take the text. */
frit_status log_check(const char *text, frit_err *err);
/* Takes "LEVEL[,TOPIC=LEVEL]..."; FRIT_INVALID with the allowed words otherwise, and nothing
 * changes. */
frit_status log_configure(const char *text, frit_err *err);

bool log_enabled(uint32_t level, const char *topic);
void log_write(uint32_t level, const char *topic, const char *format, ...) FRIT_PRINTF(3, 4);

#endif
