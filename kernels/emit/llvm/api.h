/* SPDX-License-Identifier: Apache-2.0 */
/* The part of LLVM's C API that is used, as function pointers: handles, numbers, and `syms.def`.
 * The numbers are the same from LLVM 15 on. */
#ifndef EMIT_LLVM_API_H
#define EMIT_LLVM_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct ll_context_ *ll_context;
typedef struct ll_module_ *ll_module;
typedef struct ll_builder_ *ll_builder;
typedef struct ll_type_ *ll_type;
typedef struct ll_value_ *ll_value;
typedef struct ll_block_ *ll_block;
typedef struct ll_attr_ *ll_attr;
typedef struct ll_meta_ *ll_meta;
typedef struct ll_target_ *ll_target;
typedef struct ll_machine_ *ll_machine;
typedef struct ll_layout_ *ll_layout;
typedef struct ll_buffer_ *ll_buffer;

enum ll_int_predicate {
    LL_EQ = 32,
    LL_NE,
    LL_UGT,
    LL_UGE,
    LL_ULT,
    LL_ULE,
    LL_SGT,
    LL_SGE,
    LL_SLT,
    LL_SLE
};
enum ll_real_predicate {
    LL_OEQ = 1,
    LL_OGT,
    LL_OGE,
    LL_OLT,
    LL_OLE,
    LL_ORD = 7,
    LL_UNO = 8,
    LL_UNE = 14
};
enum { LL_RMW_ADD = 1, LL_RMW_FADD = 11 };
enum { LL_MONOTONIC = 2 };     /* ordering */
enum { LL_RETURN_STATUS = 2 }; /* verifier */
enum { LL_RELOC_PIC = 2 };     /* relocation */
enum { LL_MODEL_SMALL = 3 };   /* code model */
enum { LL_OBJECT_FILE = 1 };   /* kind of output */
#define LL_FUNCTION UINT32_MAX /* index of attributes */

struct ll_api {
/* Parentheses around parts of a declaration would not compile:
 * NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define LL_SYM(result, name, arguments) result(*name) arguments;
#include "emit/llvm/syms.def"
#undef LL_SYM
};

#endif
