/* SPDX-License-Identifier: Apache-2.0 */
/* The command itself as another process, so that whatever happens in it ends only that.  One
 * thread. */
#ifndef DOCTOR_SELF_H
#define DOCTOR_SELF_H

enum { SELF_LINE = 512 };

/* Runs "frit WORDS..." (the first word is "frit", NULL ends them) and calls `take` with each line
 * that it writes, to either stream, without the line end; longer ones come in pieces.  Returns 0
 * and sets `*status` as waitpid gives it, or an errno where it could not be started. */
int self_run(const char *const *words, void (*take)(void *ctx, const char *line), void *ctx,
             int *status);

#endif
