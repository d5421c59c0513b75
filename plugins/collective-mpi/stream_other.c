/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <string.h>

void stream_copy(void *into, const void *from, size_t bytes)
{
    memcpy(into, from, bytes);
}
