# SPDX-License-Identifier: Apache-2.0 OR MIT
# frit_plugin(NAME SOURCES...): the shared object libfrit-NAME.so with one exported symbol and the link flags
# that keep plugins out of each other's way.  The target is frit-NAME.  Used by Frit's own build and by
# find_package(frit).
#
#   version script, exclude-libs   one exported symbol, also with static libraries inside
#   z defs                         nothing is wanted of the host; a missing symbol is found now
#   z now, z relro                 all symbols are bound while loading
#   z nodelete                     never unmapped, whoever calls dlclose
#   Bsymbolic-functions            its own functions, even if the program has others of the same name
#   no-gnu-unique                  no symbol that the loader makes common to all plugins

set(FRIT_PLUGIN_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(frit_plugin name)
  add_library(frit-${name} MODULE ${ARGN})
  set_target_properties(frit-${name} PROPERTIES
    PREFIX "lib" POSITION_INDEPENDENT_CODE ON LINK_DEPENDS ${FRIT_PLUGIN_CMAKE_DIR}/plugin.map
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(frit-${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_libraries(frit-${name} PRIVATE frit::abi)
  if(TARGET frit_flags) # Frit's own plugins
    target_link_libraries(frit-${name} PRIVATE frit_flags)
    set_target_properties(frit-${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${FRIT_PLUGIN_DIR})
  endif()
  target_link_options(frit-${name} PRIVATE
    -Wl,--version-script=${FRIT_PLUGIN_CMAKE_DIR}/plugin.map
    -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-z,noexecstack
    -Wl,-Bsymbolic-functions -Wl,--build-id -Wl,-soname,libfrit-${name}.so)
  if(NOT FRIT_SANITIZE AND NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize") # its symbols come from the program
    target_link_options(frit-${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()
