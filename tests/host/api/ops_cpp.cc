// SPDX-License-Identifier: Apache-2.0
// The inline overloads and list macros of frit.h in C++17.
#include "host/api/ops_cpp.h"

frit_tensor *cpp_conv(frit_tensor *x, frit_tensor *w, frit_tensor *bias)
{
    frit_conv_attrs attrs{};

    attrs.stride[0] = 2;
    attrs.groups = 4;
    return frit_conv(x, w, bias, attrs);
}

frit_tensor *cpp_sum(frit_tensor *x)
{
    frit_sum_attrs attrs{};

    attrs.axes = FRIT_AXES(0, 2);
    return frit_sum(x, attrs);
}

frit_tensor *cpp_sum_all(frit_tensor *x)
{
    return frit_sum(x);
}

frit_tensor *cpp_slice(frit_tensor *x)
{
    return frit_slice(x, FRIT_SLICES({1, FRIT_SLICE_END, 2}, {0, 0, 0}));
}
