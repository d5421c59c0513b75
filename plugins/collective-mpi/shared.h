/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes of one host share, by a number that one of them sends to the others. */
#ifndef MPI_SHARED_H
#define MPI_SHARED_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed; private memory with the number 0 if it cannot be shared, or need not.  NULL: none. */
void *shared_create(uint64_t bytes, bool wanted, uint64_t *number);
/* NULL: its maker is on another host, or it cannot be opened.  The size must be the same. */
void *shared_open(uint64_t number, uint64_t bytes);
/* Nobody opens it any more: nothing is left when the processes end. */
void shared_unlink(uint64_t number);
void shared_close(void *memory, uint64_t bytes); /* NULL does nothing */

#endif
