/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks of a job meet, and the token by which they know each other: passed on as
 * FRIT_DIST_STORE and FRIT_DIST_TOKEN. */
#ifndef LAUNCH_MEET_H
#define LAUNCH_MEET_H

/* Sets the variables that are not set yet.  `hosts` is the file of hosts, the first of which gets
 * rank 0; NULL: this machine.  NULL, or why it cannot. */
const char *meet_prepare(const char *hosts);

#endif
