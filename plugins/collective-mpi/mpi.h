/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine uses of MPI, opened at run time.  No header of MPI is needed.
 *
 * Implementations differ in what a handle is: an address with Open MPI 4 and 5, a number with MPICH
 * and those of its ABI.  Calls are written once (mpi_calls.h) and compiled for both. */
#ifndef MPI_MPI_H
#define MPI_MPI_H

#include <stdbool.h>
#include <stddef.h>

union mpi_handle {
    void *address;
    int number;
};

#define MPI_FUNCTIONS(MPI_FUNCTION)   \
    MPI_FUNCTION(Init_thread)         \
    MPI_FUNCTION(Initialized)         \
    MPI_FUNCTION(Query_thread)        \
    MPI_FUNCTION(Finalize)            \
    MPI_FUNCTION(Comm_dup)            \
    MPI_FUNCTION(Comm_set_errhandler) \
    MPI_FUNCTION(Comm_rank)           \
    MPI_FUNCTION(Comm_size)           \
    MPI_FUNCTION(Isend)               \
    MPI_FUNCTION(Irecv)               \
    MPI_FUNCTION(Test)                \
    MPI_FUNCTION(Cancel)              \
    MPI_FUNCTION(Error_string)

enum {
#define MPI_INDEX(name) MPI_##name,
    MPI_FUNCTIONS(MPI_INDEX)
#undef MPI_INDEX
        N_MPI_FUNCTIONS
};

struct mpi {
    const struct mpi_abi *abi;
    void (*functions[N_MPI_FUNCTIONS])(void);
    union mpi_handle world, byte, errors_return, no_request;
    union mpi_handle comm; /* the engine's own */
};

/* Calls return 0 or an error of MPI. */
struct mpi_abi {
    const char *name, *package; /* in texts */
    const char *const *libraries;
    /* False: the library has not the objects of this implementation. */
    bool (*find_objects)(struct mpi *mpi, void *library);
    /* Starts MPI if it has not started, and makes `comm`.  False: `why` is set. */
    bool (*start)(struct mpi *mpi, int *rank, int *size, char *why, size_t why_bytes);
    void (*finish)(struct mpi *mpi);
    int (*send)(struct mpi *mpi, const void *from, int bytes, int to, int tag,
                union mpi_handle *request);
    int (*receive)(struct mpi *mpi, void *into, int bytes, int from, int tag,
                   union mpi_handle *request);
    int (*receive_from_any)(struct mpi *mpi, void *into, int bytes, int tag,
                            union mpi_handle *request);
    /* Of all requests; those that are done may be tested again. */
    int (*test)(struct mpi *mpi, union mpi_handle *requests, int n, bool *done);
    void (*cancel)(struct mpi *mpi, union mpi_handle *request); /* one that is done: nothing */
};

extern const struct mpi_abi mpi_openmpi, mpi_mpich;

/* Opens `library`, which then stays in the process; if it is empty, the one that the program itself
 * uses, else that of `first`, else the other one.  False: `why` says what is missing. */
bool mpi_load(struct mpi *out, const char *library, const struct mpi_abi *first, char *why,
              size_t why_bytes);

#endif
