// SPDX-License-Identifier: Apache-2.0
// The types of plugins/hip/syms.def held against the headers of HIP 5.2: as many arguments, and
// each passed alike.  HIP_ROWS, which the build writes from syms.def, has a ROW(ours, theirs) for
// each function: its type, and the vendor's name.
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include <type_traits>

extern "C" {
#include "hip/api.h"
}

// C++ has overloads of these.  Only the types are used.
extern const decltype(static_cast<hipError_t (*)(void **, size_t)>(hipMalloc)) c_hipMalloc;
extern const decltype(static_cast<hipError_t (*)(void **, size_t, unsigned)>(hipHostMalloc))
    c_hipHostMalloc;
#define hipMalloc     c_hipMalloc
#define hipHostMalloc c_hipHostMalloc

// Integers, enumerations and pointers of one size are passed alike.
template <class T>
constexpr bool in_register = std::is_integral_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>;
template <class A, class B>
constexpr bool passed_alike = in_register<A> &&in_register<B> && sizeof(A) == sizeof(B);

template <class Ours, class Theirs> struct alike : std::false_type {
};
template <class R, class... A, class S, class... B> struct alike<R(A...), S(B...)> {
    static constexpr bool value = [] {
        if constexpr (sizeof...(A) == sizeof...(B))
            return passed_alike<R, S> && (passed_alike<A, B> && ...);
        return false;
    }();
};

#define ROW(ours, theirs)                                                                    \
    static_assert(alike<ours, std::remove_pointer_t<std::decay_t<decltype(theirs)>>>::value, \
                  #theirs);
#include HIP_ROWS

// The check finds differences.
static_assert(!alike<int(int), int(int, int)>::value && !alike<int(int), int(size_t)>::value &&
              !alike<int(int), int(float)>::value && alike<int(gpu_ptr), int(void *)>::value);
