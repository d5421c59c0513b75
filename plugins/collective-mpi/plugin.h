/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MPI_PLUGIN_H
#define MPI_PLUGIN_H

#include "util/plug.h"

struct instance {
    struct plug plug; /* first: util/plug.h */
    char library[256];
    bool shares_memory; /* with ranks on the same host */
};

#endif
