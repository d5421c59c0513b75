// SPDX-License-Identifier: Apache-2.0
// An exception that nobody catches: it may not leave a plugin, whose contract is C.
#include <stdexcept>

extern "C" void throw_exception(void);

extern "C" void throw_exception(void)
{
    throw std::runtime_error("thrown on purpose");
}
