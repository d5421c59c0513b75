/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi.h"

#include <dlfcn.h>
#include <stdio.h>

static const char *const libraries[] = {"libmpi.so.40", "libmpi.so", NULL};

static const char hint[] = "install Open MPI (on Debian: openmpi-bin)";

static void *open_first(const char *library, char *why, size_t why_bytes)
{
    const char *const only[] = {library, NULL};
    void *found = NULL;

    why[0] = 0;
    for (const char *const *name = *library ? only : libraries; *name && !found; name++) {
        found = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (!found && !why[0])
            snprintf(why, why_bytes, "%s; %s", dlerror(), hint);
    }
    return found;
}

/* The name of the first symbol that the library lacks; NULL: it has all. */
static const char *find_symbols(struct mpi *out, void *library)
{
    const char *missing = NULL;

#define MPI_FIND(name, ...)                              \
    *(void **)&out->name = dlsym(library, "MPI_" #name); \
    if (!out->name && !missing)                          \
        missing = "MPI_" #name;
    MPI_FUNCTIONS(MPI_FIND)
#undef MPI_FIND
    out->world = dlsym(library, "ompi_mpi_comm_world");
    out->byte = dlsym(library, "ompi_mpi_byte");
    out->errors_return = dlsym(library, "ompi_mpi_errors_return");
    return missing                                         ? missing
           : out->world && out->byte && out->errors_return ? NULL
                                                           : "the objects of Open MPI";
}

bool mpi_load(struct mpi *out, const char *library, char *why, size_t why_bytes)
{
    void *opened = open_first(library, why, why_bytes);
    const char *missing = opened ? find_symbols(out, opened) : NULL;

    if (missing)
        snprintf(why, why_bytes, "%s has no %s: it is not Open MPI; %s",
                 *library ? library : libraries[0], missing, hint);
    return opened && !missing;
}
