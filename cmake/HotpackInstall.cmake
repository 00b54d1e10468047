# Install rules, the CMake package and the pkg-config file.
#
#   bin/hotpack                        the command; bin/hotpack-remat, which `hotpack plan` starts
#   share/man/man1/hotpack.1           its man page; share/bash-completion/completions/hotpack,
#                                      share/zsh/site-functions/_hotpack, share/fish/vendor_completions.d/hotpack.fish
#   lib/libhotpack_preload.so.0        preloaded by it, or by hand
#   lib/libhotpack.so.0                the C interface (include/hotpack.h)
#   lib/libhotpack_torch.so.0          PyTorch's pluggable allocator (python/hotpack registers it)
#   lib/libhotpack_cupti.so.0          kernel times (hotpack run --cupti), where CUPTI's headers were found
#   lib/libhotpack_nvtx.so.0           loaded by NVTX under `hotpack run` (docs/collectors.md)
#   lib/hotpack/simgpu/                the simulated device
#   share/hotpack/python/              the Python package, for `hotpack run` (pip install . is for programs)
#   lib/cmake/hotpack, lib/pkgconfig   hotpack::hotpack, hotpack.pc
include(CMakePackageConfigHelpers)

# Builds what is installed and nothing else; pyproject.toml names it.
add_custom_target(hotpack_package)

if(TARGET hotpack_command)
  add_dependencies(hotpack_package hotpack_command hotpack_remat_command hotpack_man)
  install(TARGETS hotpack_command hotpack_remat_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  get_target_property(man_page hotpack_command HOTPACK_MAN_PAGE)
  get_target_property(completion hotpack_command HOTPACK_COMPLETION)
  install(FILES "${man_page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${completion}.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME hotpack)
  install(FILES "${completion}.zsh" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" RENAME _hotpack)
  install(FILES "${completion}.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
          RENAME hotpack.fish)
endif()

foreach(library hotpack_preload hotpack_torch hotpack_cupti hotpack_nvtx)
  if(TARGET ${library})
    add_dependencies(hotpack_package ${library})
    install(TARGETS ${library} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
endforeach()

if(TARGET hotpack)
  add_dependencies(hotpack_package hotpack)
  install(TARGETS hotpack EXPORT hotpackTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(FILES "${PROJECT_SOURCE_DIR}/runtime/include/hotpack.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

  set(package_directory "${CMAKE_INSTALL_LIBDIR}/cmake/hotpack")
  install(EXPORT hotpackTargets NAMESPACE hotpack:: DESTINATION "${package_directory}")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/hotpackConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/hotpackConfig.cmake" INSTALL_DESTINATION "${package_directory}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/hotpackConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/hotpackConfig.cmake" "${PROJECT_BINARY_DIR}/hotpackConfigVersion.cmake"
    DESTINATION "${package_directory}")

  # The prefix is taken from where the file lies, so that an installed tree can be moved.
  file(RELATIVE_PATH HOTPACK_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/hotpack.pc.in" "${PROJECT_BINARY_DIR}/hotpack.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/hotpack.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

# A wheel has the package as its own part.
if(NOT DEFINED SKBUILD)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/hotpack" DESTINATION "${CMAKE_INSTALL_DATADIR}/hotpack/python"
    PATTERN "__pycache__" EXCLUDE)
endif()

# The libraries of simgpu/ name one another by $ORIGIN or not at all, so the directory is installed as it was built.
if(EXISTS "${PROJECT_SOURCE_DIR}/simgpu/driver")
  get_property(simulated DIRECTORY "${PROJECT_SOURCE_DIR}/simgpu" PROPERTY BUILDSYSTEM_TARGETS)
  add_dependencies(hotpack_package ${simulated})
  install(DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/simgpu/" DESTINATION "${CMAKE_INSTALL_LIBDIR}/hotpack/simgpu"
    USE_SOURCE_PERMISSIONS FILES_MATCHING PATTERN "*.so*" PATTERN "*.a")
  # libzstd is in libcuda.so.1, and its licence wants its notice to go with it.
  find_file(HOTPACK_ZSTD_NOTICE copyright PATHS /usr/share/doc/libzstd-dev /usr/share/doc/libzstd1 NO_DEFAULT_PATH)
  mark_as_advanced(HOTPACK_ZSTD_NOTICE)
  if(HOTPACK_ZSTD_NOTICE)
    install(FILES "${HOTPACK_ZSTD_NOTICE}" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/hotpack" RENAME libzstd-notice)
  endif()
endif()
