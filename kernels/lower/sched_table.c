/* SPDX-License-Identifier: Apache-2.0 */
/* All schedules.  A file of its own, so that tests can have others in its place. */
#include "lower/sched.h"

const struct schedule *const schedules[] = {
    &sched_map,      &sched_foreach,   &sched_row,
    &sched_scan,     &sched_pool,      &sched_scatter,
    &sched_contract, &sched_attention, &sched_attention_backward,
    &sched_fft,      &sched_sort,      &sched_quantize,
    &sched_ctc};
const uint32_t n_schedules = sizeof(schedules) / sizeof(schedules[0]);
