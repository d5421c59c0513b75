/* SPDX-License-Identifier: Apache-2.0 */
/* Open MPI 4 and 5: handles are addresses of objects, some of them in its library. */
#include "mpi.h"

#include <dlfcn.h>

typedef void *handle;

enum { ANY_SOURCE = -1 };

#define HANDLE        address
#define STATUS_IGNORE NULL

#include "mpi_calls.h"

static bool find_objects(struct mpi *mpi, void *library)
{
    mpi->world.address = dlsym(library, "ompi_mpi_comm_world");
    mpi->byte.address = dlsym(library, "ompi_mpi_byte");
    mpi->errors_return.address = dlsym(library, "ompi_mpi_errors_return");
    mpi->no_request.address = dlsym(library, "ompi_request_null");
    return mpi->world.address && mpi->byte.address && mpi->errors_return.address &&
           mpi->no_request.address;
}

static const char *const libraries[] = {"libmpi.so.40", NULL};

const struct mpi_abi mpi_openmpi = {.name = "Open MPI",
                                    .package = "openmpi-bin",
                                    .libraries = libraries,
                                    .find_objects = find_objects,
                                    MPI_CALLS};
