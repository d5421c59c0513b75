/* SPDX-License-Identifier: Apache-2.0 */
#include "host/grad/forms.h"

#include <string.h>

form_fn form_of(const char *row)
{
    static const struct form *const all[] = {forms_map,    forms_shape,    forms_index,
                                             forms_reduce, forms_contract, forms_pool};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        for (const struct form *form = all[i]; form->row; form++) {
            if (strcmp(form->row, row) == 0)
                return form->fn;
        }
    }
    return NULL;
}
