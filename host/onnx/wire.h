/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a message, checked before they are unpacked. */
#ifndef ONNX_WIRE_H
#define ONNX_WIRE_H

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include <frit/status.h>

/* FRIT_INVALID, with the path of the field and its byte, unless the bytes are a message of this
 * type: every length fits, messages are nested at most 100 deep and there are at most 4 million. */
frit_status wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n_bytes,
                       frit_err *err);

#endif
