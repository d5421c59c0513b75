/* SPDX-License-Identifier: Apache-2.0 */
/* gen NAME: writes one of the texts that derive from the tables to standard output. */
#include "gen.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool (*write)(FILE *out);
} outputs[] = {
    {"ops.h", gen_ops_h},
    {"ops.c", gen_ops_c},
    {"OPS.md", gen_ops_md},
    {"GRADIENTS.md", gen_gradients_md},
    {"frit.h.3", gen_man},
    {"frit.ini", gen_frit_ini},
    {"ops.py", gen_ops_py},
    {"dtypes.py", gen_dtypes_py},
    {"reference.md", gen_reference_md},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof(outputs) / sizeof(outputs[0]); i++)
        if (!strcmp(argv[1], outputs[i].name)) {
            bool good = outputs[i].write(stdout);
            return !good || fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
        }
    fputs("use: gen OUTPUT, one of:", stderr);
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
        fprintf(stderr, " %s", outputs[i].name);
    fputc('\n', stderr);
    return 2;
}
