# SPDX-License-Identifier: Apache-2.0
# Debian packages of the components that install.cmake names: cmake --preset deb && cmake --build build-deb && cpack --config
# build-deb/CPackConfig.cmake -B FOLDER.  A plugin says in its folder what its package is for and wants at run time: the target
# properties FRIT_SUMMARY (without it it is in the library's package), FRIT_DEPENDS, FRIT_RECOMMENDS, FRIT_SUGGESTS.  What is linked
# (SHLIBDEPS) needs no word.
set(FRIT_DEB_MAINTAINER "Frit authors <frit@packages.invalid>" CACHE STRING "who maintains the Debian packages")

# The Python package is no part of a plain installation, which may have any prefix.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/frit DESTINATION lib/python3/dist-packages COMPONENT python EXCLUDE_FROM_ALL
  FILES_MATCHING PATTERN "*.py")
file(WRITE ${CMAKE_BINARY_DIR}/package/INSTALLER "debian\n") # so that pip lists the package and leaves it alone
install(FILES ${CMAKE_BINARY_DIR}/python/METADATA ${CMAKE_BINARY_DIR}/package/INSTALLER COMPONENT python EXCLUDE_FROM_ALL
  DESTINATION lib/python3/dist-packages/frit-${PROJECT_VERSION}.dist-info)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME frit)
set(CPACK_PACKAGE_VENDOR "the Frit authors")
set(CPACK_PACKAGE_CONTACT ${FRIT_DEB_MAINTAINER})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/deb.cmake)
set(CPACK_FRIT_SOURCE ${CMAKE_SOURCE_DIR}) # for the script
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${FRIT_DEB_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(frit_version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(frit_about "Frit records tensor operations op by op, finds groups that run better together,\nand hands them to drivers that are loaded at run time.")

# frit_package(COMPONENT NAME SECTION SUMMARY TEXT DEPENDS): TEXT follows what Frit is.
function(frit_package component name section summary text depends)
  string(TOUPPER ${component} key)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${frit_about}\n.\n${text}" PARENT_SCOPE)
endfunction()

set(CPACK_COMPONENTS_ALL)
frit_package(library libfrit0 libs "tensor runtime whose drivers are plugins (library)"
  "This package has the library, the reference driver, which is slow and\nalways right, and collective operations inside a process." "")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE ${CMAKE_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/package/triggers)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "frit-plugin-cpu (= ${frit_version})")
frit_package(dev libfrit-dev libdevel "tensor runtime whose drivers are plugins (development files)"
  "This package has headers, manual pages, files for CMake and pkg-config, and\nthe sources of a driver to begin with." "libfrit0 (= ${frit_version})")
frit_package(tools frit science "run, explain, tune and test tensor programs"
  "This package has the command frit, documentation and two trained networks." "libfrit0 (= ${frit_version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "frit-plugin-cpu (= ${frit_version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "libfrit-dev (= ${frit_version}), frit-plugin-vulkan (= ${frit_version})")
frit_package(python python3-frit python "tensor runtime whose drivers are plugins (Python)"
  "This package has the Python package frit." "libfrit0 (= ${frit_version}), python3:any")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-numpy, frit-plugin-cpu (= ${frit_version})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/deb/postinst;${CMAKE_CURRENT_LIST_DIR}/deb/prerm")

foreach(module IN LISTS modules)
  get_target_property(summary ${module} FRIT_SUMMARY)
  if(summary)
    string(REGEX REPLACE "^frit-" "plugin-" component ${module})
    string(TOUPPER ${component} key)
    set(depends "libfrit0 (= ${frit_version})")
    get_target_property(more ${module} FRIT_DEPENDS)
    if(more)
      string(APPEND depends ", ${more}")
    endif()
    frit_package(${component} frit-${component} libs "plugin of Frit: ${summary}"
      "This package has one plugin:\n${summary}." "${depends}")
    set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS ON)
    foreach(kind RECOMMENDS SUGGESTS)
      get_target_property(wanted ${module} FRIT_${kind})
      if(wanted)
        set(CPACK_DEBIAN_${key}_PACKAGE_${kind} "${wanted}")
      endif()
    endforeach()
  endif()
endforeach()
include(CPack)
