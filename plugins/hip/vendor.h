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
    ATTRIBUTE_MAX_THREADS,  /* of a block */
    ATTRIBUTE_SHARED_BYTES, /* of a block */
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
    int desc_op_a, desc_op_b, desc_epilogue, desc_bias; /* attributes of a description */
    int layout_batches, layout_batch_step;              /* and of a layout */
    int max_workspace;                                  /* and of a preference */
    int reductions; /* of a preference: how parts of sums are added up, a mask; 0: none */
    int min_aligns; /* of a preference, the first of four: alignments of operands; 0: none */
    /* Of a heuristic's result: its size, the offset of a size_t, and of an int that is 0 if the
     * algorithm can be used; the algorithm is at its start. */
    uint32_t result_bytes, result_workspace, result_state;
};

/* What is to be restored when a function of the driver returns; see scope.h. */
struct scope {
    bool has_failed; /* nothing is to be restored */
    int previous;
};

struct vendor {
    const char *name;             /* of the driver, the plugin and its messages */
    const char *const *libraries; /* the runtime, NULL after the last; the first that opens */
    const char *const *compilers; /* likewise the run-time compiler; "" is the runtime itself */
    const char *compiler_name;    /* for people */
    const char *hint;             /* what to install where there is no runtime */
    const char *visible_variable; /* environment variable that hides devices */
    const char *device_file;      /* which the user must be able to open */
    int attributes[N_ATTRIBUTES]; /* their numbers in the vendor's enumeration */
    void *launch_end;             /* ends a list of GPU_LAUNCH_* */
    enum ctext_dialect dialect;
    const char *const *options; /* of the run-time compiler, beside the architecture */
    const char *minimal_option; /* which makes compiles faster; NULL: there is none */
    int minimal_since;          /* 100 * major + minor of the compiler that has it */
    const frit_str *formats;    /* of kernels of other plugins */
    uint32_t n_formats;
    const struct product_library *product_libraries; /* best first; `name` is NULL after the last */
    const struct lt_numbers *lt;
    const char *native_stream, *native_context,
        *native_pointer; /* names of native.h; may be NULL */
    /* Sets the architecture as the run-time compiler's option names it, and whether devices of it
     * can be used. */
    bool (*read_arch)(const struct instance *instance, struct adapter *adapter);
    /* Makes the device current for the calling thread until `leave`. */
    gpu_result (*enter)(const struct device *device, struct scope *scope);
    void (*leave)(const struct device *device, const struct scope *scope);
    /* Sets `context` of a device that the application has given none. */
    gpu_result (*open)(struct device *device);
    void (*close)(struct device *device);
    /* Lets `to`, which is current, access the memory of `from`; fails where it may already. */
    gpu_result (*enable_peer)(const struct device *to, const struct device *from);
    /* Copies between them, on a stream of `to`; through the host's memory without such access. */
    gpu_result (*copy_peer)(const struct device *to, gpu_ptr to_address, const struct device *from,
                            gpu_ptr from_address, size_t bytes, gpu_stream stream);
};

extern const struct vendor vendor;

#endif
