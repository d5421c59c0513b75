/* SPDX-License-Identifier: Apache-2.0 */
/* Names of model files, for builds with and without ONNX. */
#include <string.h>

#include "onnx/onnx.h"

bool onnx_is_model(const char *path)
{
    static const char ending[] = ".onnx";
    size_t length = strlen(path);

    return length > sizeof(ending) - 1 && strcmp(path + length - (sizeof(ending) - 1), ending) == 0;
}
