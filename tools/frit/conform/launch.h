/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, tensors and launches on a bare plugin. */
#ifndef CONFORM_LAUNCH_H
#define CONFORM_LAUNCH_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/program.h>
#include <frit/status.h>
#include <frit/types.h>

struct bare;
struct bare_answer;
struct bare_bound;
struct bare_derived;
struct bare_launch;
struct bare_tensor;

/* On failure sets the reason, and `memory` is NULL. */
frit_status bare_alloc(struct bare *bare, uint64_t bytes, uint64_t align, frit_allocation *out);
/* Frees memory when all that was submitted has ended; if that never happens the memory is leaked.
 */
void bare_free(struct bare *bare, frit_memory *memory);
/* Sets the value of the last accepted write, read or submit, for which bare_free waits. */
void bare_set_last(struct bare *bare, uint64_t value);
frit_status bare_write(struct bare *bare, frit_memory *memory, uint64_t offset, const void *from,
                       uint64_t bytes);
/* Waits. */
frit_status bare_read(struct bare *bare, frit_memory *memory, uint64_t offset, void *into,
                      uint64_t bytes);
/* In words that the queue gave no answer in time. */
frit_status bare_late(struct bare *bare);
/* Waits for a value, half the time that a case may take; after a timeout no wait is tried again.  A
 * failed command is a failure. */
frit_status bare_wait(struct bare *bare, uint64_t value);
/* `rank` dims; holds NaN, or the numbers. */
frit_status bare_tensor(struct bare *bare, const int64_t *dims, uint32_t rank, const float *numbers,
                        struct bare_tensor *out);
/* The numbers; fails if something beside them was written. */
frit_status bare_numbers(struct bare *bare, const struct bare_tensor *tensor, float *out);
void bare_tensor_free(struct bare *bare, struct bare_tensor *tensor);
void bare_derived_free(struct bare *bare, struct bare_derived *derived);
void bare_prepare(struct bare *bare, const struct bare_launch *launch, struct bare_answer *out);
/* What its slot `priority` returns; 0 without one. */
int32_t bare_priority(struct bare *bare, const struct bare_launch *launch);
/* Ends it: the program may forget. */
void bare_release(const frit_program *program, struct bare_answer *answer);
/* What it says of an output. */
const frit_output_spec *bare_output(const struct bare_answer *answer, uint32_t output);
/* Compiles if prepare requires it; on failure sets the reason. */
frit_status bare_compile(struct bare *bare, const struct bare_launch *launch,
                         struct bare_answer *answer);
frit_status bare_bind(struct bare *bare, const struct bare_launch *launch,
                      const struct bare_answer *answer, struct bare_bound *out);
void bare_unbind(struct bare *bare, struct bare_bound *bound);
/* Prepares, compiles, runs and waits.  FRIT_UNSUPPORTED where prepare says so or wants other
 * strides. */
frit_status bare_run(struct bare *bare, const struct bare_launch *launch);
/* The same with an answer that prepare gave for such a launch. */
frit_status bare_run_prepared(struct bare *bare, const struct bare_launch *launch,
                              const struct bare_answer *answer);

#endif
