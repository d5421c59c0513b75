/* SPDX-License-Identifier: Apache-2.0 */
/* Frit: tensors from and to other libraries of this process by DLPack 1.x
 * (https://dmlc.github.io/dlpack), without a copy where it can be.
 *
 *   x = frit_from_dlpack(device, theirs);           (theirs is not the caller's any more)
 *   frit_to_dlpack(y, NULL, &mine, &err);           (mine->deleter(mine) ends it)
 *
 * The structs have the layout of those of dlpack.h, so a pointer to one may be cast to the other.
 */
#ifndef FRIT_DLPACK_H
#define FRIT_DLPACK_H

#include <frit/frit.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- the structs of DLPack ---- */

enum { FRIT_DL_MAJOR = 1, FRIT_DL_MINOR = 1 }; /* the version of what Frit exports */

/* Where memory is; numbers of DLPack. */
enum {
    FRIT_DL_CPU = 1,
    FRIT_DL_CUDA = 2,
    FRIT_DL_CUDA_HOST = 3, /* of the host, pinned by cudaMallocHost */
    FRIT_DL_OPENCL = 4,
    FRIT_DL_VULKAN = 7,
    FRIT_DL_METAL = 8,
    FRIT_DL_ROCM = 10,
    FRIT_DL_ROCM_HOST = 11,
    FRIT_DL_CUDA_MANAGED = 13,
    FRIT_DL_ONEAPI = 14
};

/* Kinds of element types. */
enum {
    FRIT_DL_INT = 0,
    FRIT_DL_UINT = 1,
    FRIT_DL_FLOAT = 2,
    FRIT_DL_BFLOAT = 4,
    FRIT_DL_COMPLEX = 5,
    FRIT_DL_BOOL = 6,
    FRIT_DL_F8E4M3 = 10, /* "e4m3fn": without infinities */
    FRIT_DL_F8E4M3FNUZ = 11,
    FRIT_DL_F8E5M2 = 12,
    FRIT_DL_F8E5M2FNUZ = 13,
    FRIT_DL_F8E8M0 = 14 /* "e8m0fnu" */
};

/* Of `flags`. */
#define FRIT_DL_READ_ONLY 0x1u
#define FRIT_DL_COPIED    0x2u /* the exporter made a copy, which the importer may change */

typedef struct frit_dl_device {
    int32_t type; /* FRIT_DL_CPU and so on */
    int32_t number;
} frit_dl_device;

typedef struct frit_dl_type {
    uint8_t kind; /* FRIT_DL_INT and so on */
    uint8_t bits;
    uint16_t lanes; /* of a vector; 1 */
} frit_dl_type;

typedef struct frit_dl_tensor {
    void *data;
    frit_dl_device device;
    int32_t rank;
    frit_dl_type dtype;
    int64_t *dims;
    int64_t *strides;     /* in elements; NULL: row-major without gaps */
    uint64_t byte_offset; /* of the first element from `data` */
} frit_dl_tensor;

/* What is exported since version 1.0. */
typedef struct frit_dl_managed {
    uint32_t major, minor;
    void *owner;                                   /* the exporter's */
    void (*deleter)(struct frit_dl_managed *self); /* NULL: nothing to be done */
    uint64_t flags;                                /* FRIT_DL_READ_ONLY, FRIT_DL_COPIED */
    frit_dl_tensor tensor;
} frit_dl_managed;

/* What was exported before, and still is where it is wanted. */
typedef struct frit_dl_managed_old {
    frit_dl_tensor tensor;
    void *owner;
    void (*deleter)(struct frit_dl_managed_old *self);
} frit_dl_managed_old;

/* ---- from other libraries ---- */

/* A tensor on `device` of what another library exported, which is Frit's from then on, also on
 * failure: its deleter is called exactly once, from any thread, and must not call Frit but for
 * deleters of frit_to_dlpack.
 *
 * Memory of the host is used in place, with its strides, where the device computes in such memory
 * (as of frit_wrap_host; no alignment but that of an element is needed), and is copied elsewhere.
 * Memory of a GPU is used in place by the device of `cuda` or `hip` that it belongs to, once the
 * default stream of the vendor's runtime has ended what it has to do: the exporter lets that
 * stream wait.  In place, nobody may change it before the deleter is called; Frit does not
 * change it either.  Memory of another kind is FRIT_UNSUPPORTED, and so are complex numbers,
 * vectors of several lanes and more than 8 dims. */
frit_tensor *frit_from_dlpack(frit_device *device, frit_dl_managed *managed);
frit_tensor *frit_from_dlpack_old(frit_device *device, frit_dl_managed_old *managed);

/* ---- to other libraries ---- */

/* Whether an export is a copy. */
enum {
    FRIT_DL_COPY_IF_NEEDED = 0,
    FRIT_DL_COPY_ALWAYS = 1,
    FRIT_DL_COPY_NEVER = 2 /* FRIT_UNSUPPORTED where it had to be one */
};

typedef struct frit_dl_options {
    uint64_t struct_size; /* sizeof(frit_dl_options) */
    uint64_t copy;        /* FRIT_DL_COPY_* */
    uint64_t on_device;   /* 1: to the memory of the device, where frit_dlpack_place says so */
} frit_dl_options;

/* Where the memory of the tensor's device is for other libraries: {FRIT_DL_CUDA, its number} and so
 * on, of the host ({FRIT_DL_CPU, 0}) where they know no such memory. */
FRIT_NODISCARD frit_status frit_dlpack_place(frit_tensor *tensor, frit_dl_device *out,
                                             frit_err *err);

/* Exports a tensor to the memory of the host, or with `on_device` of its device.  Waits for its
 * elements: they are there for every stream.  `options` NULL: all
 * defaults.  The caller, or who takes it over, calls the deleter once, from any thread; the tensor
 * may be released before.
 *
 * Where the device computes in that memory, the elements are not copied: the export has the
 * strides of the tensor and FRIT_DL_READ_ONLY, because other tensors may share them and Frit
 * computes later with what they are now.  It ends with the device: what is exported may not be used
 * after frit_device_close, though its deleter may still be called.  A copy has FRIT_DL_COPIED, is
 * dense, may be changed, and may outlive the device. */
FRIT_NODISCARD frit_status frit_to_dlpack(frit_tensor *tensor, const frit_dl_options *options,
                                          frit_dl_managed **out, frit_err *err);
/* The old struct cannot say that memory is read-only; so it is a copy unless FRIT_DL_COPY_NEVER is
 * given, with which the importer must not change it. */
FRIT_NODISCARD frit_status frit_to_dlpack_old(frit_tensor *tensor, const frit_dl_options *options,
                                              frit_dl_managed_old **out, frit_err *err);

#ifdef __cplusplus
} /* extern "C" */
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
