/* SPDX-License-Identifier: Apache-2.0 */
/* MPICH and those of its ABI: handles are numbers, some of them fixed. */
#include "mpi.h"

#include <dlfcn.h>

typedef int handle;

enum {
    ANY_SOURCE = -2,
    WORLD = 0x44000000,
    BYTE = 0x4c00010d,
    ERRORS_RETURN = 0x54000001,
    REQUEST_NULL = 0x2c000000
};

#define HANDLE        number
#define STATUS_IGNORE ((void *)1)

#include "mpi_calls.h"

/* Version 12 of the ABI, which has these numbers, is all that the names of its libraries allow. */
static bool find_objects(struct mpi *mpi, void *library)
{
    mpi->world.number = WORLD;
    mpi->byte.number = BYTE;
    mpi->errors_return.number = ERRORS_RETURN;
    mpi->no_request.number = REQUEST_NULL;
    return !dlsym(library, "ompi_mpi_comm_world");
}

static const char *const libraries[] = {"libmpich.so.12", "libmpi.so.12", NULL};

const struct mpi_abi mpi_mpich = {.name = "MPICH",
                                  .package = "mpich",
                                  .libraries = libraries,
                                  .find_objects = find_objects,
                                  MPI_CALLS};
