/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The commands of a device on host memory. */
#ifndef UTIL_HOSTED_COMMAND_H
#define UTIL_HOSTED_COMMAND_H

#include <stdbool.h>

#include <frit/backend.h>

struct hosted;
struct hosted_queue;

/* FRIT_INVALID with a text for bytes that do not lie in the buffer. */
frit_status hosted_check_range(const struct hosted *hosted, const frit_memory *memory,
                               uint64_t offset, uint64_t bytes, frit_err *err);
/* Negative with a text for a command that hosted_run_command cannot take. */
frit_status hosted_check_command(const struct hosted_queue *queue, const frit_cmd *cmd,
                                 frit_err *err);
/* Runs a command that passed the check, inside a span of its name; `number` is that of the command
 * in the submit of `value`.  A failure goes to the queue's timeline; false: it was the loss of the
 * device. */
bool hosted_run_command(struct hosted_queue *queue, const frit_cmd *cmd, uint64_t value,
                        uint32_t number);
/* The host's clock. */
uint64_t hosted_now_ns(const struct hosted *hosted);

#endif
