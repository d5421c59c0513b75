# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where.  The result may be moved as a whole: everything is found relative to
# libfrit, to the command, or to the package files themselves.  The components become packages of their own (package.cmake).
include(CMakePackageConfigHelpers)

set(FRIT_INSTALLED_PLUGINS ${CMAKE_INSTALL_LIBDIR}/frit/plugins)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/frit)

# Headers and the library.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/abi/frit ${CMAKE_SOURCE_DIR}/host/include/frit
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(TARGETS frit frit_abi frit_kit EXPORT fritTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)

# The plugins: every module that plugins/ builds.
get_property(rooms DIRECTORY ${CMAKE_SOURCE_DIR}/plugins PROPERTY SUBDIRECTORIES)
foreach(room IN LISTS rooms)
  get_property(targets DIRECTORY ${room} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL MODULE_LIBRARY)
      get_target_property(summary ${target} FRIT_SUMMARY) # of those that are a package
      string(REGEX REPLACE "^frit-" "plugin-" component ${target})
      if(NOT summary)
        set(component library)
      endif()
      install(TARGETS ${target} LIBRARY DESTINATION ${FRIT_INSTALLED_PLUGINS} COMPONENT ${component})
      list(APPEND modules ${target})
      list(APPEND module_files $<TARGET_FILE:${target}>)
    endif()
  endforeach()
endforeach()

# Those plugins are vouched for by their build ids; others are tried by frit-probe before they are loaded.
set(trusted ${CMAKE_BINARY_DIR}/lib/frit/trusted-plugins)
add_custom_command(OUTPUT ${trusted} DEPENDS ${modules} ${CMAKE_CURRENT_LIST_DIR}/trusted.cmake VERBATIM
  COMMAND ${CMAKE_COMMAND} -D READELF=${CMAKE_READELF} "-DFILES=${module_files}" -D OUT=${trusted} -P ${CMAKE_CURRENT_LIST_DIR}/trusted.cmake)
add_custom_target(trusted-plugins ALL DEPENDS ${trusted})
install(FILES ${trusted} DESTINATION ${CMAKE_INSTALL_LIBDIR}/frit COMPONENT library)
install(TARGETS frit-probe RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/frit COMPONENT library)

# The kit, as source, the driver that `frit new-plugin` copies, and the example of a device in another process.
set(data_dir ${CMAKE_INSTALL_DATADIR}/frit)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/plugins/kit ${CMAKE_SOURCE_DIR}/plugins/util DESTINATION ${data_dir}/kit COMPONENT dev
  FILES_MATCHING PATTERN "*.[ch]" PATTERN "README.md")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/plugins/template ${CMAKE_SOURCE_DIR}/plugins/remote DESTINATION ${data_dir} COMPONENT dev)

# The command, its manual and completions, the configuration with every option's default, and how plugins are written.
install(TARGETS frit-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
set(completions ${CMAKE_BINARY_DIR}/completions)
set(installed_completions bash:bash-completion/completions/frit zsh:zsh/site-functions/_frit fish:fish/vendor_completions.d/frit.fish)
foreach(entry IN LISTS installed_completions)
  string(REGEX MATCH "^[a-z]+" shell ${entry})
  string(REGEX REPLACE "^[a-z]+:" "" file ${entry})
  get_filename_component(folder ${file} DIRECTORY)
  add_custom_command(OUTPUT ${completions}/${file} DEPENDS frit-cli VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}/${folder}
    COMMAND frit-cli completion ${shell} > ${completions}/${file})
  list(APPEND completion_files ${completions}/${file})
  install(FILES ${completions}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT tools)
endforeach()
add_custom_target(completions ALL DEPENDS ${completion_files})
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.[0-9])
foreach(page IN LISTS pages)
  string(REGEX MATCH "[0-9]$" section ${page})
  if(section EQUAL 1)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT tools)
  else()
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT dev)
  endif()
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/conf/frit.ini ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/LICENSE-MIT
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(FILES ${CMAKE_SOURCE_DIR}/abi/README.md ${CMAKE_SOURCE_DIR}/abi/OPS.md ${CMAKE_SOURCE_DIR}/abi/GRADIENTS.md ${CMAKE_SOURCE_DIR}/abi/MAPPING.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/abi COMPONENT tools)

install(FILES ${CMAKE_SOURCE_DIR}/docs/README.md ${CMAKE_SOURCE_DIR}/docs/text.md ${CMAKE_SOURCE_DIR}/docs/onnx.md ${CMAKE_SOURCE_DIR}/docs/python.md ${CMAKE_SOURCE_DIR}/docs/reference.md ${CMAKE_SOURCE_DIR}/docs/asynchronous.md
  ${CMAKE_SOURCE_DIR}/docs/sanitizers.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)

# The models, with their data beside them.
foreach(name digits-mlp digits-cnn)
  set(model ${CMAKE_SOURCE_DIR}/tools/models/${name}.frit)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${model})
  file(READ ${model} program)
  string(REPLACE "../../tests/data/digits/" "digits/" program "${program}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/models/${name}.frit CONTENT "${program}" @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/models/${name}.frit DESTINATION ${data_dir}/models COMPONENT tools)
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tests/data/digits DESTINATION ${data_dir}/models COMPONENT tools)

# pkg-config and find_package.
file(RELATIVE_PATH FRIT_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" FRIT_PC_UP ${FRIT_PC_UP})
configure_file(${CMAKE_CURRENT_LIST_DIR}/frit.pc.in ${CMAKE_BINARY_DIR}/frit.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/frit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fritConfig.cmake.in ${CMAKE_BINARY_DIR}/package/fritConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS FRIT_INSTALLED_PLUGINS)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/fritConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT fritTargets NAMESPACE frit:: DESTINATION ${package_dir} COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/package/fritConfig.cmake ${CMAKE_BINARY_DIR}/package/fritConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FritPlugin.cmake ${CMAKE_CURRENT_LIST_DIR}/plugin.map DESTINATION ${package_dir} COMPONENT dev)

# The build folder is such a package too, for plugins that are tried against it.
set(FRIT_INSTALLED_PLUGINS lib/frit/plugins)
set(built_package ${CMAKE_BINARY_DIR}/lib/cmake/frit)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fritConfig.cmake.in ${built_package}/fritConfig.cmake
  INSTALL_DESTINATION lib/cmake/frit INSTALL_PREFIX ${CMAKE_BINARY_DIR} PATH_VARS FRIT_INSTALLED_PLUGINS)
export(EXPORT fritTargets NAMESPACE frit:: FILE ${built_package}/fritTargets.cmake)
foreach(file ${CMAKE_BINARY_DIR}/package/fritConfigVersion.cmake ${CMAKE_CURRENT_LIST_DIR}/FritPlugin.cmake ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
  configure_file(${file} ${built_package} COPYONLY)
endforeach()
file(GLOB template CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugins/template/*)
foreach(file IN LISTS template)
  get_filename_component(name ${file} NAME)
  configure_file(${file} ${CMAKE_BINARY_DIR}/share/frit/template/${name} COPYONLY)
endforeach()
