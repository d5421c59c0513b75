/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `frit ops` for ops of plugins. */
#ifndef CLI_OPS_CUSTOM_H
#define CLI_OPS_CUSTOM_H

#include "json.h"
#include "session.h"

bool custom_find(const struct session *session, const char *name, frit_custom_desc *out);
/* Lists all, a line each, with how the session's device, if any, runs them. */
void custom_show_list(const struct session *session);
/* Shows one, with how the session's device, or each usable one, runs it. */
void custom_show(const frit_custom_desc *op, const struct session *session);
/* Writes the list `custom`: all, or the one with this name. */
void custom_print(struct json *json, const struct session *session, const char *only);

#endif
