/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the plugin's two builds: vendor_hip.c is linked into `hip`, vendor_cuda.c
 * into `cuda`. */
#ifndef HIP_VENDOR_H
#define HIP_VENDOR_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>
#include <frit/types.h>

#include "emit/c/ctext.h"

#include "api.h"

struct adapter;
struct device;
struct instance;
struct product_library;

/* Device attributes that the driver reads. */
enum attribute {
    ATTRIBUTE_MAX_THREADS,       /* of a block */
    ATTRIBUTE_SHARED_BYTES,      /* of a block */
    ATTRIBUTE_MOST_SHARED_BYTES, /* likewise, for kernels that request it */
    ATTRIBUTE_WARP_SIZE,
    ATTRIBUTE_MULTIPROCESSORS,
    ATTRIBUTE_INTEGRATED, /* shares the host's memory */
    ATTRIBUTE_COMPUTE_MODE,
    ATTRIBUTE_CACHE_BYTES, /* of the last level of cache */
    ATTRIBUTE_MAJOR,       /* of the architecture */
    ATTRIBUTE_MINOR,
    N_ATTRIBUTES
};

/* Numbers of cuBLASLt or hipBLASLt: attributes, types and layouts of structs. */
struct lt_numbers {
    int compute_f32, compute_tf32, compute_f64; /* kinds of arithmetic */
    int op_n, op_t;
    int desc_op_a, desc_op_b, desc_epilogue, desc_bias; /* attributes of a matmul description */
    int layout_batches, layout_batch_step;              /* attributes of a layout */
    int max_workspace;                                  /* attribute of a preference */
    int reductions; /* attribute of a preference: mask of the allowed split-k reductions; 0: none */
    int min_aligns; /* the first of four attributes of a preference, the alignments of operands; 0:
                       none */
    /* The struct of a heuristic's result, which begins with the algorithm: its size, the offset of
     * the workspace size (size_t), and that of the state (int; 0: the algorithm can be used). */
    uint32_t result_bytes, result_workspace, result_state;
};

/* An option of the run-time compiler, for faster compiles, that old versions do not know. */
struct newer_option {
    const char *option;
    int since;     /* the first version that gets it: 100 * major + minor */
    bool of_folds; /* for kernels alone that fold rows of fragments */
};

/* What `leave` restores when a function of the driver returns; see scope.h. */
struct scope {
    bool has_failed; /* `enter` failed: nothing to restore */
    int previous;
};

struct vendor {
    const char *name;             /* of the driver, the plugin and its messages */
    const char *const *libraries; /* of the runtime, NULL after the last; the first one that can be
                                     opened is used */
    const char *const
        *compilers; /* the same for the run-time compiler; "": it is part of the runtime */
    const char *compiler_name;    /* in messages */
    const char *hint;             /* what to install where there is no runtime */
    const char *visible_variable; /* environment variable that hides devices */
    const char *device_file;      /* which the user needs permission to read and write */
    const char *other_file; /* without it and `device_file` there is no device, and the runtime
                               is not opened; NULL: only the runtime knows */
    int attributes[N_ATTRIBUTES]; /* their numbers in the vendor's enumeration */
    void *launch_end;             /* ends a list of GPU_LAUNCH_* */
    enum ctext_dialect dialect;
    const char *const *options; /* of the run-time compiler, besides the architecture */
    const struct newer_option *newer_options; /* `option` is NULL after the last; may be NULL */
    const frit_str *formats;                  /* of kernels of other plugins */
    uint32_t n_formats;
    const struct product_library *product_libraries; /* best first; `name` is NULL after the last */
    const struct lt_numbers *lt;
    const char *native_stream, *native_context,
        *native_pointer; /* names of native.h; may be NULL */
    int32_t extmem_kind; /* of the devices' memory, see frit/extmem.h */
    /* Sets the name of the architecture, as the run-time compiler's option takes it.  Returns
     * whether devices of this architecture can be used. */
    bool (*read_arch)(const struct instance *instance, struct adapter *adapter);
    /* Makes the device current for the calling thread until `leave`. */
    gpu_result (*enter)(const struct device *device, struct scope *scope);
    void (*leave)(const struct device *device, const struct scope *scope);
    /* Sets `context` of a device for which the application supplied none. */
    gpu_result (*open)(struct device *device);
    void (*close)(struct device *device);
    /* Lets `to`, which is current, access the memory of `from`; fails if access is enabled already.
     */
    gpu_result (*enable_peer)(const struct device *to, const struct device *from);
    /* Copies between two devices, on a stream of `to`; without peer access the runtime copies
     * through the host's memory. */
    gpu_result (*copy_peer)(const struct device *to, gpu_ptr to_address, const struct device *from,
                            gpu_ptr from_address, size_t bytes, gpu_stream stream);
};

extern const struct vendor vendor;

#endif
