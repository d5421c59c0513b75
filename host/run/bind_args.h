/* SPDX-License-Identifier: Apache-2.0 */
/* Where the arguments of a launch lie. */
#ifndef RUN_BIND_ARGS_H
#define RUN_BIND_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

struct extent;
struct buffer;
struct launch;
struct value;

struct extent launch_extent(const struct value *value);
/* Binds the operands; gives outputs, workspace and derived operands their memory. */
frit_status launch_bind_args(struct launch *l, frit_err *err);
/* For these: the launch touches bytes; memory that is free when it has ended. */
void launch_touch(struct launch *l, const void *memory, uint64_t begin, uint64_t bytes, bool write);
frit_status launch_workspace(struct launch *l, uint64_t bytes, bool zeroed, struct buffer **out,
                             frit_err *err);

#endif
