# nvcc, for the training programs alone: HOTPACK_HAVE_NVCC says whether it was found. The libraries need only cuda.h.
#
# One real architecture and a PTX fallback keep the build short; -DCMAKE_CUDA_ARCHITECTURES=... overrides.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "75-virtual;90-real" CACHE STRING "CUDA architectures of the training programs")
endif()
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(HOTPACK_NVCC nvcc
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda /opt/cuda /usr/lib/cuda PATH_SUFFIXES bin)
  mark_as_advanced(HOTPACK_NVCC)
  if(HOTPACK_NVCC)
    set(CMAKE_CUDA_COMPILER "${HOTPACK_NVCC}" CACHE FILEPATH "nvcc")
  endif()
endif()
include(CheckLanguage)
check_language(CUDA)
set(HOTPACK_HAVE_NVCC OFF)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  set(HOTPACK_HAVE_NVCC ON)
endif()

# The runtime libraries of that toolkit: HOTPACK_CUDART and HOTPACK_CUDART_STATIC, false if missing. Not by
# FindCUDAToolkit: CMake 3.25's stops with an error at CUDA 13, which has no nvToolsExt any more.
if(HOTPACK_HAVE_NVCC)
  get_filename_component(HOTPACK_TOOLKIT "${CMAKE_CUDA_COMPILER}" REALPATH)
  get_filename_component(HOTPACK_TOOLKIT "${HOTPACK_TOOLKIT}/../.." ABSOLUTE)
  foreach(library CUDART CUDART_STATIC)
    string(TOLOWER "${library}" name)
    find_library(HOTPACK_${library} ${name}
      HINTS "${HOTPACK_TOOLKIT}" ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib)
    mark_as_advanced(HOTPACK_${library})
  endforeach()
endif()
