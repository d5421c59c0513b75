# SPDX-License-Identifier: Apache-2.0 OR MIT
# frit_plugin(NAME SOURCES...): the shared object libfrit-NAME.so with one exported symbol and the link flags
# that keep plugins out of each other's way.  Used by Frit's own build and by find_package(frit).

set(FRIT_PLUGIN_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(frit_plugin name)
  add_library(frit-${name} MODULE ${ARGN})
  set_target_properties(frit-${name} PROPERTIES
    PREFIX "lib" C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(frit-${name} PRIVATE frit::abi)
  if(TARGET frit_flags) # Frit's own plugins
    target_link_libraries(frit-${name} PRIVATE frit_flags)
    set_target_properties(frit-${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${FRIT_PLUGIN_DIR})
  endif()
  target_link_options(frit-${name} PRIVATE
    -Wl,--version-script=${FRIT_PLUGIN_CMAKE_DIR}/plugin.map
    -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-z,noexecstack
    -Wl,-Bsymbolic-functions -Wl,--build-id -Wl,-soname,libfrit-${name}.so)
  if(NOT FRIT_SANITIZE) # a sanitizer's symbols come from the program
    target_link_options(frit-${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()
