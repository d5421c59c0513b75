# SPDX-License-Identifier: Apache-2.0
# The functions that define targets: frit_library frit_plugin frit_tool frit_test frit_kernels_test.
# The build tree is laid out as installed, so that everything is found relative to libfrit.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(FRIT_PLUGIN_DIR ${CMAKE_BINARY_DIR}/lib/frit/plugins)

include(${CMAKE_CURRENT_LIST_DIR}/FritPlugin.cmake)

# What everything of ours is compiled with.
add_library(frit_flags INTERFACE)
target_compile_definitions(frit_flags INTERFACE _GNU_SOURCE)
target_compile_options(frit_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:C>:-Wconversion -Wstrict-prototypes -Wmissing-prototypes>
  $<$<BOOL:${FRIT_WERROR}>:-Werror>
  -ffp-contract=off)
# FRIT_BEHAVED: code whose own undefined behaviour is not looked for.
define_property(TARGET PROPERTY FRIT_BEHAVED INHERITED)
if(FRIT_SANITIZE)
  target_compile_options(frit_flags INTERFACE -fsanitize=${FRIT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<BOOL:$<TARGET_PROPERTY:FRIT_BEHAVED>>:-fno-sanitize=undefined>)
  target_link_options(frit_flags INTERFACE -fsanitize=${FRIT_SANITIZE})
  # Bad pointers that are used are the address sanitizer's to see, and these checks are a quarter of its objects; fuzz targets have them.
  if(FRIT_SANITIZE MATCHES "address,undefined" AND NOT FRIT_FUZZ)
    target_compile_options(frit_flags INTERFACE -fno-sanitize=null,object-size,pointer-overflow)
  endif()
endif()

# frit_library(NAME SOURCES...): a static library of ours.
function(frit_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PRIVATE frit_flags)
endfunction()

# frit_tool(NAME SOURCES...): a program in bin/ that uses libfrit as any user would.
function(frit_tool name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE frit_flags frit)
  set_target_properties(${name} PROPERTIES BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endfunction()

# frit_test(NAME SOURCES...): a cmocka program that sees the host's hidden symbols (the twin library).
# It runs in the source folder with FRIT_TEST_BUILD set to the build folder, FRIT_TEST_SANITIZE to its sanitizers, no configuration of the user's, and `reference` for who names no device.
function(frit_test name)
  frit_test_of(frit_twin ${name} ${ARGN})
endfunction()

# frit_kernels_test(NAME SOURCES...): one that sees the kernel compiler instead, and no host.
function(frit_kernels_test name)
  frit_test_of(frit_kernels ${name} ${ARGN})
endfunction()

# Programs that have the whole host in them are many: gold, where it is, links them in two thirds of the time.
find_program(GOLD ld.gold)
function(frit_test_of library name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE frit_flags ${library} cmocka)
  if(GOLD)
    target_link_options(${name} PRIVATE -fuse-ld=gold)
  endif()
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bin)
  frit_test_case(${name} ${CMAKE_BINARY_DIR}/tests/bin/${name})
endfunction()

# frit_test_objects(LIBRARY NAME SOURCES...): what several tests of frit_twin or frit_kernels link, compiled once.
function(frit_test_objects library name)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE frit_flags ${library} cmocka)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
endfunction()

# frit_test_case(NAME COMMAND...): any command as a test, in the same surroundings.
function(frit_test_case name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  list(FIND FRIT_TEST_COSTS ${name} at)
  if(at GREATER_EQUAL 0)
    math(EXPR at "${at} + 1")
    list(GET FRIT_TEST_COSTS ${at} cost)
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
  set(memory) # the address sanitizer writes an eighth of each chunk's size when it is made: tests make thousands
  if(FRIT_SANITIZE)
    set(memory FRIT_MEMORY_CHUNK_BYTES=4194304)
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT
    "${memory};FRIT_TEST_BUILD=${CMAKE_BINARY_DIR};FRIT_TEST_SANITIZE=${FRIT_SANITIZE};FRIT_CONFIG=/dev/null;FRIT_DEVICE=reference;FRIT_FUSION_STORE=none;FRIT_TUNE_STORE=none;FRIT_FUSION_STORE_WAIT=60000;FRIT_ARTEFACTS=none;FRIT_SEARCH_PROBE=never;FRIT_PLUGIN_PATH=${FRIT_PLUGIN_DIR}" TIMEOUT 600)
endfunction()

# frit_test_timed(TEST...): tests that compare times, which have one other beside them on two cores, not three (tools/test).  They begin
# first, beside long ones: at the end there would be nothing to run beside them.
function(frit_test_timed)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 3 COST 50)
endfunction()

# frit_test_with_vendor(TEST...): tests with a vendor's driver in their process.  What it keeps at the end is its own, and the leak checker
# crashes now and then in threads that are its.
function(frit_test_with_vendor)
  set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
endfunction()
