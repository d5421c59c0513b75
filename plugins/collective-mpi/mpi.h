/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine uses of MPI, opened at run time.  No header of MPI is needed: handles are those
 * of Open MPI 4 and 5, addresses of objects in its library. */
#ifndef MPI_MPI_H
#define MPI_MPI_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mpi_object *mpi_handle; /* of any kind */

enum { MPI_THREAD_MULTIPLE = 3, MPI_ANY_SOURCE = -1, MPI_ERROR_BYTES = 256 };

/* MPI_FUNCTION(name, argument types...): each returns 0 or an error. */
#define MPI_FUNCTIONS(MPI_FUNCTION)                                                        \
    MPI_FUNCTION(Init_thread, int *, char ***, int, int *)                                 \
    MPI_FUNCTION(Initialized, int *)                                                       \
    MPI_FUNCTION(Finalized, int *)                                                         \
    MPI_FUNCTION(Query_thread, int *)                                                      \
    MPI_FUNCTION(Finalize, void)                                                           \
    MPI_FUNCTION(Comm_dup, mpi_handle, mpi_handle *)                                       \
    MPI_FUNCTION(Comm_free, mpi_handle *)                                                  \
    MPI_FUNCTION(Comm_set_errhandler, mpi_handle, mpi_handle)                              \
    MPI_FUNCTION(Comm_rank, mpi_handle, int *)                                             \
    MPI_FUNCTION(Comm_size, mpi_handle, int *)                                             \
    MPI_FUNCTION(Isend, const void *, int, mpi_handle, int, int, mpi_handle, mpi_handle *) \
    MPI_FUNCTION(Irecv, void *, int, mpi_handle, int, int, mpi_handle, mpi_handle *)       \
    MPI_FUNCTION(Testall, int, mpi_handle *, int *, void *)                                \
    MPI_FUNCTION(Cancel, mpi_handle *)                                                     \
    MPI_FUNCTION(Error_string, int, char *, int *)

struct mpi {
#define MPI_MEMBER(name, ...) int (*name)(__VA_ARGS__);
    MPI_FUNCTIONS(MPI_MEMBER)
#undef MPI_MEMBER
    mpi_handle world, byte, errors_return;
};

/* Opens `library`, the system's Open MPI if it is empty, which then stays in the process.  False:
 * `why` says what is missing. */
bool mpi_load(struct mpi *out, const char *library, char *why, size_t why_bytes);

#endif
