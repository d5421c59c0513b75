/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `frit ops` about ops that plugins bring. */
#ifndef CLI_OPS_CUSTOM_H
#define CLI_OPS_CUSTOM_H

#include "json.h"
#include "session.h"

bool custom_find(const struct session *session, const char *name, frit_custom_desc *out);
/* All of them, a line each, with how the session's device runs them if there is one. */
void custom_show_list(const struct session *session);
/* One, with how the session's device or each usable one runs it. */
void custom_show(const frit_custom_desc *op, const struct session *session);
/* The list `custom`: all, or the one of this name. */
void custom_print(struct json *json, const struct session *session, const char *only);

#endif
