// SPDX-License-Identifier: Apache-2.0
// consumer FACTOR: the same as main.c, in C++.
#include <array>
#include <cstdlib>
#include <iostream>

#include <frit/frit.h>

static int run(frit_device *dev, float factor)
{
    const std::array<float, 6> in = {1, -2, 3.5f, 0, 5, -6};
    std::array<float, 6> out{};
    frit_tensor *y =
        frit_neg(frit_take(frit_from_host(dev, FRIT_F32, FRIT_SHAPE(2, 3), in.data(), sizeof(in))));

    const bool failed = frit_read(y, out.data(), sizeof(out), nullptr) != FRIT_OK;
    if (failed)
        std::cerr << frit_tensor_error(y) << "\n";
    frit_release(y);
    if (failed)
        return 1;
    for (std::size_t i = 0; i < in.size(); i++) {
        if (out[i] != factor * in[i])
            return 1;
    }
    std::cout << frit_device_name(dev) << ": neg of " << in[2] << " is " << out[2] << "\n";
    return 0;
}

int main(int argc, char **argv)
{
    frit_host *host = nullptr;
    frit_device *dev = nullptr;
    frit_err err;
    int failed = 1;

    if (frit_host_open(nullptr, &host, &err) || frit_device_open(host, nullptr, &dev, &err))
        std::cerr << err.text << "\n";
    else
        failed = run(dev, argc > 1 ? std::strtof(argv[1], nullptr) : -1);
    frit_device_close(dev);
    frit_host_close(host);
    return failed;
}
