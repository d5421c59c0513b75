# SPDX-License-Identifier: Apache-2.0
# cmake -D READELF=... -D FILES=... -D OUT=... -P trusted.cmake: the build ids of the files, one per line.
set(ids "")
foreach(file IN LISTS FILES)
  execute_process(COMMAND ${READELF} -n ${file} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
  if(notes MATCHES "Build ID: ([0-9a-f]+)")
    string(APPEND ids "${CMAKE_MATCH_1}\n")
  endif()
endforeach()
file(WRITE ${OUT} "${ids}")
# Others must not write it, or it is not believed.
file(CHMOD ${OUT} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
