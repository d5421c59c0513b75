/* SPDX-License-Identifier: Apache-2.0 */
/* Which program this process runs. */
#ifndef JOB_PROGRAM_H
#define JOB_PROGRAM_H

enum { PROGRAM_TEXT = 128 };

/* "train (build 0f3a...)": the name of the file and its build id; without one its size. */
void program_text(char out[PROGRAM_TEXT]);

#endif
