/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi.h"

#include <dlfcn.h>
#include <stdio.h>

static void *open_library(const struct mpi_abi *abi, int mode)
{
    void *found = NULL;

    for (const char *const *name = abi->libraries; *name && !found; name++)
        found = dlopen(*name, mode | RTLD_NOW | RTLD_LOCAL);
    return found;
}

/* One that the program itself uses, else the first, else the other one. */
static void *open_any(const struct mpi_abi *first, const struct mpi_abi **abi, char *why,
                      size_t why_bytes)
{
    const struct mpi_abi *const order[2] = {first, first == &mpi_mpich ? &mpi_openmpi : &mpi_mpich};
    const int modes[2] = {RTLD_NOLOAD, 0};
    void *found = NULL;

    for (int i = 0; i < 4 && !found; i++) {
        *abi = order[i % 2];
        found = open_library(*abi, modes[i / 2]);
    }
    if (!found)
        snprintf(why, why_bytes, "%s is not there; install %s (on Debian: %s)", first->libraries[0],
                 first->name, first->package);
    return found;
}

static void *open_named(const char *library, const struct mpi_abi **abi, char *why,
                        size_t why_bytes)
{
    void *found = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (!found)
        snprintf(why, why_bytes, "%s; install Open MPI (on Debian: openmpi-bin)", dlerror());
    *abi = found && dlsym(found, "ompi_mpi_comm_world") ? &mpi_openmpi : &mpi_mpich;
    return found;
}

/* The name of the first symbol that the library lacks; NULL: it has all. */
static const char *find_symbols(struct mpi *out, void *library)
{
    static const char *const names[] = {
#define MPI_NAME(name) "MPI_" #name,
        MPI_FUNCTIONS(MPI_NAME)
#undef MPI_NAME
    };
    const char *missing = NULL;

    for (int i = 0; i < N_MPI_FUNCTIONS && !missing; i++) {
        *(void **)&out->functions[i] = dlsym(library, names[i]);
        if (!out->functions[i])
            missing = names[i];
    }
    return !missing && !out->abi->find_objects(out, library) ? "the objects of its name" : missing;
}

bool mpi_load(struct mpi *out, const char *library, const struct mpi_abi *first, char *why,
              size_t why_bytes)
{
    void *opened = *library ? open_named(library, &out->abi, why, why_bytes)
                            : open_any(first, &out->abi, why, why_bytes);
    const char *missing = opened ? find_symbols(out, opened) : NULL;

    if (missing)
        snprintf(why, why_bytes, "%s has no %s: it is neither Open MPI nor MPICH",
                 *library ? library : out->abi->libraries[0], missing);
    return opened && !missing;
}
