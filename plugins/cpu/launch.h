/* SPDX-License-Identifier: Apache-2.0 */
/* Launches. */
#ifndef CPU_LAUNCH_H
#define CPU_LAUNCH_H

struct launcher;

void launcher_fini(struct launcher *launcher);

#endif
