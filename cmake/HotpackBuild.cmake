# Definitions for every layer's CMakeLists.txt: flags, dependencies, hotpack_library(), hotpack_test().

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
include(GNUInstallDirs)

add_library(hotpack_flags INTERFACE)
target_compile_options(hotpack_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
# As GCC has it by itself.
target_compile_options(hotpack_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fsized-deallocation -Wno-format-security>)
target_include_directories(hotpack_flags INTERFACE "${PROJECT_SOURCE_DIR}")
if(HOTPACK_SANITIZE STREQUAL "address")
  target_compile_options(hotpack_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  # Calls by pointers: types of interfaces that come from other headers have other names. (GCC does not look at them.)
  target_compile_options(hotpack_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fno-sanitize=function>)
  target_link_options(hotpack_flags INTERFACE -fsanitize=address,undefined)
elseif(HOTPACK_SANITIZE STREQUAL "thread")
  target_compile_options(hotpack_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(hotpack_flags INTERFACE -fsanitize=thread)
endif()

# libFuzzer follows the coverage of everything that is linked into a fuzz target (tests/fuzz/README.md).
if(HOTPACK_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HOTPACK_FUZZ needs clang (-DCMAKE_CXX_COMPILER=clang++), not ${CMAKE_CXX_COMPILER}")
  endif()
  target_compile_options(hotpack_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(HOTPACK_SANITIZE)
  # GCC's analysis does not see through the instrumentation: false alarms inside libstdc++ and Abseil.
  target_compile_options(hotpack_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

# Lets portable programs start on machines with a slightly older glibc. It is named explicitly, because the reference
# is in the C++ library, which comes behind every archive.
if(NOT HOTPACK_SANITIZE)
  add_library(hotpack_older_glibc STATIC "${CMAKE_CURRENT_LIST_DIR}/arc4random.c")
  target_link_libraries(hotpack_flags INTERFACE hotpack_older_glibc)
  target_link_options(hotpack_flags INTERFACE LINKER:--undefined=arc4random)
endif()

# Invariant levels (see packer/check.h users): none < cheap < all.
if(HOTPACK_CHECKS STREQUAL "")
  set(HOTPACK_CHECK_LEVEL "$<IF:$<CONFIG:Debug>,2,0>")
elseif(HOTPACK_CHECKS STREQUAL "none")
  set(HOTPACK_CHECK_LEVEL 0)
elseif(HOTPACK_CHECKS STREQUAL "cheap")
  set(HOTPACK_CHECK_LEVEL 1)
elseif(HOTPACK_CHECKS STREQUAL "all")
  set(HOTPACK_CHECK_LEVEL 2)
else()
  message(FATAL_ERROR "HOTPACK_CHECKS must be none, cheap or all, not '${HOTPACK_CHECKS}'")
endif()
target_compile_definitions(hotpack_flags INTERFACE HOTPACK_CHECK_LEVEL=${HOTPACK_CHECK_LEVEL})

find_package(absl REQUIRED)
find_package(Threads REQUIRED)

# CUDA headers (cuda.h): only the headers are needed to build; nvcc only for the training programs.
find_path(HOTPACK_CUDA_INCLUDE_DIR cuda.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH ENV CUDA_INCLUDE_DIR
  PATHS /usr/local/cuda /opt/cuda /usr/lib/cuda /usr
  PATH_SUFFIXES include targets/x86_64-linux/include)
if(NOT HOTPACK_CUDA_INCLUDE_DIR)
  message(FATAL_ERROR "cuda.h was not found. Install the CUDA toolkit's headers, or say where they are: "
    "CUDA_HOME=/path/to/cuda or -DHOTPACK_CUDA_INCLUDE_DIR=/path/to/cuda/include")
endif()
add_library(hotpack_cuda_headers INTERFACE)
target_include_directories(hotpack_cuda_headers SYSTEM INTERFACE "${HOTPACK_CUDA_INCLUDE_DIR}")

# CUPTI's headers, for the collector of kernel times alone; next to cuda.h, or in the toolkit's extras. Target
# hotpack_cupti_headers, if they exist. Nothing links to libcupti: it is loaded at run time.
find_path(HOTPACK_CUPTI_INCLUDE_DIR cupti.h
  HINTS "${HOTPACK_CUDA_INCLUDE_DIR}" "${HOTPACK_CUDA_INCLUDE_DIR}/../extras/CUPTI/include" ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda /opt/cuda /usr/lib/cuda
  PATH_SUFFIXES extras/CUPTI/include include)
mark_as_advanced(HOTPACK_CUPTI_INCLUDE_DIR)
if(HOTPACK_CUPTI_INCLUDE_DIR)
  add_library(hotpack_cupti_headers INTERFACE)
  target_include_directories(hotpack_cupti_headers SYSTEM INTERFACE "${HOTPACK_CUPTI_INCLUDE_DIR}")
  target_link_libraries(hotpack_cupti_headers INTERFACE hotpack_cuda_headers)
else()
  message(STATUS "cupti.h was not found: the collector of kernel times (libhotpack_cupti.so) is left out")
endif()

# Headers that nearly every file includes, compiled once. -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON reveals missing
# includes.
add_library(hotpack_headers STATIC "${CMAKE_CURRENT_LIST_DIR}/precompiled.cc")
target_link_libraries(hotpack_headers PRIVATE hotpack_flags)
target_precompile_headers(hotpack_headers PRIVATE <absl/container/inlined_vector.h> <absl/status/statusor.h> <algorithm>
  <atomic> <functional> <map> <memory> <mutex> <optional> <set> <string> <vector>)

# hotpack_standard_headers(TARGET): for many sources with options of their own; the standard library's headers alone.
function(hotpack_standard_headers target)
  target_precompile_headers(${target} PRIVATE <algorithm> <atomic> <functional> <map> <memory> <mutex> <optional> <set>
    <string> <unordered_map> <vector>)
endfunction()

# hotpack_library(NAME SOURCES... [LIBS...] [OWN_HEADERS]): one static, position-independent target a layer, named
# hotpack_NAME. OWN_HEADERS: it precompiles other headers than hotpack_headers, and its sources are compiled one by one in
# each build: readers of files use the same names.
function(hotpack_library name)
  cmake_parse_arguments(ARG "OWN_HEADERS" "" "SOURCES;LIBS" ${ARGN})
  add_library(hotpack_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(hotpack_${name} PUBLIC hotpack_flags ${ARG_LIBS})
  if(NOT ARG_OWN_HEADERS)
    target_precompile_headers(hotpack_${name} REUSE_FROM hotpack_headers)
  endif()
  # Instrumented code is neither shipped nor measured, so what several files share is compiled once: with clang in three
  # quarters of the time. (GCC gains little.)
  if(HOTPACK_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND NOT ARG_OWN_HEADERS
      AND NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "/tools(/|$)")
    set_target_properties(hotpack_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 7)
  endif()
  # Of an inline function that several files define, the linker takes the first: the library's, not that of a test, which
  # is compiled without optimization.
  if(HOTPACK_SANITIZE)
    set(whole "LINKER:--whole-archive,$<TARGET_FILE:hotpack_${name}>,--no-whole-archive")
    target_link_options(hotpack_${name} INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${whole}>)
  endif()
endfunction()

# Targets that are compiled often and run little are compiled quickly: -O1 in a Release build, tests with -O0, as all of
# these under AddressSanitizer. (Under ThreadSanitizer they run for longer than that saves.) ARGN: `test`.
function(hotpack_compile_quickly target)
  set(level -O1)
  if("test" IN_LIST ARGN)
    set(level -O0)
  endif()
  set(level $<IF:$<STREQUAL:${HOTPACK_SANITIZE},address>,-O0,$<$<CONFIG:Release>:${level}>>)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${level}>)
endfunction()

# hotpack_by_clang(TARGET): compiled by clang++ where it is there, without optimization in half of GCC's time. For tests'
# own code: what is shipped, measured or instrumented stays with the build's compiler.
option(HOTPACK_CLANG_TESTS "Compile tests by clang++, if there is one" ON)
find_program(HOTPACK_CLANGXX clang++)
mark_as_advanced(HOTPACK_CLANGXX)
function(hotpack_by_clang target)
  if(HOTPACK_CLANG_TESTS AND HOTPACK_CLANGXX AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT HOTPACK_SANITIZE)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/by_clang;${HOTPACK_CLANGXX}")
  endif()
endfunction()

# In-process tests only: a sanitizer's run time cannot be preloaded under foreign programs together with hotpack.
set(HOTPACK_SANITIZED_LAYERS packer profiler remat runtime bench fuzz)
add_custom_target(sanitized_tests)  # builds just those
# Layers whose tests start no thread, so ThreadSanitizer has nothing to find there (layering_test). In some others only
# tests that name threads do.
set(HOTPACK_SINGLE_THREADED_LAYERS remat bench fuzz)
set(HOTPACK_SELDOM_THREADED_LAYERS packer profiler)

# Sets OUT to whether one of the sources names threads.
function(hotpack_names_threads out)
  set(${out} FALSE PARENT_SCOPE)
  foreach(source IN LISTS ARGN)
    if(source MATCHES "TARGET_OBJECTS")
      continue()
    endif()
    file(STRINGS "${source}" lines REGEX "thread")
    if(lines)
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
# What makes the simulated device as strict as it can be (simgpu/README.md).
set(HOTPACK_STRICT_DEVICE "SIMGPU_CONTEXTS=set:strict;SIMGPU_CAPTURES=set:strict")

# Every test gets it, whatever its ENVIRONMENT is: strict_tests_test. A test of other rules sets the property again.
function(add_test)
  _add_test(${ARGV})  # CMake's own
  set_tests_properties(${ARGV1} PROPERTIES ENVIRONMENT_MODIFICATION "${HOTPACK_STRICT_DEVICE}")
endfunction()

# hotpack_test(NAME SOURCES... [LIBS...] [LABELS...] [OPTIMIZED]): one GoogleTest program, registered with ctest as NAME. Its labels
# are the layer it lies in, LABELS, and `sanitize` for the layers whose tests also run under the sanitizer presets. Under
# ThreadSanitizer the single-threaded ones do not. OPTIMIZED: its own code runs for long.
function(hotpack_test name)
  cmake_parse_arguments(ARG "OPTIMIZED" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE hotpack_flags ${ARG_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    HOTPACK_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HOTPACK_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  hotpack_by_clang(${name})
  if(ARG_OPTIMIZED AND HOTPACK_SANITIZE)
    # as the preset says
  elseif(ARG_OPTIMIZED)
    hotpack_compile_quickly(${name})
  else()
    hotpack_compile_quickly(${name} test)
    target_precompile_headers(${name} REUSE_FROM hotpack_test_headers)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  get_filename_component(layer "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  set(labels ${layer} ${ARG_LABELS})
  if(layer IN_LIST HOTPACK_SANITIZED_LAYERS AND NOT "sanitize" IN_LIST labels)
    list(APPEND labels sanitize)
  endif()
  if(HOTPACK_SANITIZE STREQUAL "thread")
    hotpack_names_threads(threads ${ARG_SOURCES})
    foreach(label IN LISTS labels)
      if(label IN_LIST HOTPACK_SINGLE_THREADED_LAYERS OR (label IN_LIST HOTPACK_SELDOM_THREADED_LAYERS AND NOT threads))
        list(REMOVE_ITEM labels sanitize)
      endif()
    endforeach()
  endif()
  if("sanitize" IN_LIST labels)
    add_dependencies(sanitized_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "${labels}")
endfunction()
