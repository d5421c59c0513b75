/* SPDX-License-Identifier: Apache-2.0 */
#include "load/breadcrumb.h"

#include <stddef.h>

static breadcrumb_sink *listener;
static void *listener_ctx;

void breadcrumb_set_sink(breadcrumb_sink *sink, void *ctx)
{
    listener = sink;
    listener_ctx = ctx;
}

void breadcrumb_enter(const char *path, const char *slot)
{
    if (listener)
        listener(listener_ctx, path, slot, true);
}

void breadcrumb_leave(const char *path, const char *slot)
{
    if (listener)
        listener(listener_ctx, path, slot, false);
}
