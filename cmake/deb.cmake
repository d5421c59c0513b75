# SPDX-License-Identifier: Apache-2.0
# What Debian wants in each package beside the files that are installed anywhere; CPack runs it before it packs the folders of the
# components.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, where that is set

function(compress file)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} key)
  set(name ${CPACK_DEBIAN_${key}_PACKAGE_NAME})
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr)
  set(doc ${root}/share/doc/${name})
  file(REMOVE ${doc}/LICENSE ${doc}/LICENSE-MIT) # they are in `copyright`
  file(COPY ${CPACK_FRIT_SOURCE}/cmake/deb/copyright DESTINATION ${doc})
  file(COPY ${CPACK_FRIT_SOURCE}/CHANGELOG.md DESTINATION ${doc})
  file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
  file(WRITE ${doc}/changelog.Debian "frit (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * Built from the source; changelog.gz says what is new.\n\n -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}\n")
  compress(${doc}/changelog)
  compress(${doc}/changelog.Debian)
  file(GLOB pages ${root}/share/man/man*/*.[0-9])
  foreach(page IN LISTS pages)
    compress(${page})
  endforeach()
  if(EXISTS ${root}/share/zsh/site-functions) # Debian's zsh looks elsewhere
    file(RENAME ${root}/share/zsh/site-functions ${root}/share/zsh/vendor-completions)
  endif()
endforeach()
