# Sourced by tools/demo, tools/test and tools/lint: prepares a machine for building hotpack. Silent about parts that exist already.
#
#   setup_build PRESET INSTALL(yes|no) WHAT(tests|demo) [COMMAND...]
#       leaves a finished build in build_directory PRESET: of all, or of the targets of tools/demo; either continues the
#       other's. COMMAND runs meanwhile, once the packages are installed.
#
# Exit code 2 if something is missing that only the user can provide, 1 if the build fails.

source_directory=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

build_packages=(g++ cmake ninja-build libabsl-dev libcli11-dev nlohmann-json3-dev libzstd-dev libbenchmark-dev
  libeigen3-dev)
# Targets that are not built until tools/test needs them.
test_packages=(clang lld libgtest-dev libgmock-dev librapidcheck-dev pkgconf valgrind coinor-cbc python3-venv groff-base)
# What tools/lint runs.
lint_packages=(clang-format python3-venv)

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

build_directory() {
  if [ "$1" = release ]; then echo "$source_directory/build"; else echo "$source_directory/build-$1"; fi
}

# Prints those of the named Debian packages that are not installed, one per line.
missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

# Runs a command as root: directly, or through sudo. Returns false if neither is possible.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    return 1
  fi
}

install_packages() {
  local install=$1 log
  shift
  command -v dpkg-query >/dev/null || return 0  # no Debian: the configuration names what it lacks
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$install" = no ]; then
    say "these packages are missing: ${missing[*]}"
    exit 2
  fi
  say "installing ${missing[*]}"
  log=$(mktemp)
  local -a get=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends)
  if ! command -v apt-get >/dev/null ||
      ! { as_root "${get[@]}" install "${missing[@]}" || { as_root "${get[@]}" update && as_root "${get[@]}" install "${missing[@]}"; }; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    say "these packages could not be installed; install them and try again: ${missing[*]}"
    exit 2
  fi
  rm -f "$log"
}

# Prints the directory of cuda.h; nothing if there is none in the usual places.
find_cuda_headers() {
  local directory
  local -a candidates=()
  [ -n "${CUDA_INCLUDE_DIR:-}" ] && candidates+=("$CUDA_INCLUDE_DIR")
  [ -n "${CUDA_HOME:-}" ] && candidates+=("$CUDA_HOME/include" "$CUDA_HOME/targets/x86_64-linux/include")
  [ -n "${CUDA_PATH:-}" ] && candidates+=("$CUDA_PATH/include" "$CUDA_PATH/targets/x86_64-linux/include")
  candidates+=(/usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include)
  local versions  # newest first
  mapfile -t versions < <(compgen -G '/usr/local/cuda-*' | sort -rV)
  for directory in ${versions[@]+"${versions[@]}"}; do candidates+=("$directory/include"); done
  candidates+=(/opt/cuda/include /usr/lib/cuda/include /usr/include)
  local python_packages
  for python_packages in "${VIRTUAL_ENV:-/nonexistent}"/lib/python3*/site-packages \
      "${HOME:-/nonexistent}"/.local/lib/python3*/site-packages \
      /usr/local/lib/python3*/{dist,site}-packages /usr/lib/python3*/{dist,site}-packages; do
    for directory in "$python_packages"/nvidia/*/include; do candidates+=("$directory"); done
  done
  for directory in "${candidates[@]}"; do
    if [ -f "$directory/cuda.h" ]; then
      echo "$directory"
      return
    fi
  done
}

# Runs a command with its output in a log. On failure shows the log's tail and exits.
quietly() {
  local what=$1 log=$2
  shift 2
  if ! "$@" >>"$log" 2>&1; then
    tail -n 40 "$log" >&2
    say "$what failed; the whole log is $log"
    exit 1
  fi
}

# Installs Python packages for a build, in their own environment, at the pinned versions (docs/dependencies.md).
# Never fails: without them the tests that need them are skipped.
#   setup_packages ENVIRONMENT(of tools/pins) BUILD_DIRECTORY WHAT
setup_packages() {
  local name=$1 environment=$2/$1 log=$2/setup.log what=$3 pins=$source_directory/tools/pins
  if "$pins" --matches "$name" "$environment/bin/python3" >/dev/null; then return 0; fi
  say "installing $what in $environment"
  if "$pins" --install "$name" "$environment" >>"$log" 2>&1; then return 0; fi
  if [ -d "$environment" ]; then
    say "$what could not be brought to the pinned versions, tests use what is there; see $log"
  else
    say "$what could not be installed, tests with it are skipped; see $log"
  fi
}

# The solver HiGHS as the Python package highspy: no Debian package has it.
#   setup_highs INSTALL(yes|no) BUILD_DIRECTORY
setup_highs() {
  [ "$1" = yes ] && [ -z "${HOTPACK_HIGHS_PYTHON:-}" ] || return 0
  if "$source_directory/tools/pins" --matches solvers python3 >/dev/null; then return 0; fi
  setup_packages solvers "$2" highspy
}

# Installs Chromium for the test of the report page (some 100 MB to fetch, less than a minute). Never fails: without it
# that test is skipped.
#   setup_browser INSTALL(yes|no)
setup_browser() {
  command -v dpkg-query >/dev/null && [ "$1" = yes ] || return 0
  local -a missing
  mapfile -t missing < <(missing_packages chromium chromium-driver)
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! (install_packages yes "${missing[@]}"); then say "the report page is not tested in a browser"; fi
}

# Spares the tests half of PyTorch's start, in the environment $1: tests/support/lean_torch.py.
lean_torch() {
  local packages
  packages=$("$1/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return 0
  cp "$source_directory/tests/support/lean_torch.py" "$packages/hotpack_lean_torch.py"
  echo "import hotpack_lean_torch" >"$packages/hotpack_lean_torch.pth"
}

# PyTorch for the tests and examples that use it: some gigabytes, since it includes its CUDA libraries. Installs nothing
# if HOTPACK_TORCH_PYTHON names a Python.
#   setup_torch INSTALL(yes|no) BUILD_DIRECTORY
setup_torch() {
  local differences
  [ "$1" = yes ] || return 0
  if [ -z "${HOTPACK_TORCH_PYTHON:-}" ]; then
    setup_packages torch-venv "$2" PyTorch
    if [ -d "$2/torch-venv" ]; then lean_torch "$2/torch-venv"; fi
  elif ! differences=$("$source_directory/tools/pins" --matches torch-venv "$HOTPACK_TORCH_PYTHON"); then
    say "HOTPACK_TORCH_PYTHON has other packages than the pinned ones: $differences"
  fi
}

# Prints what makes CMake compile a sanitizer's preset by clang++, in half of GCC's time; one argument a line. Nothing for
# other presets, if CXX names a compiler, or if clang++ lacks the sanitizer's run time. At -O1 clang++ inlines little: -O2
# takes a tenth longer to compile, and a sixth less to run.
#   sanitizer_compiler PRESET INSTALL(yes|no)
sanitizer_compiler() {
  local sanitizer
  case $1 in
    asan) sanitizer=address,undefined ;;
    tsan) sanitizer=thread ;;
    *) return 0 ;;
  esac
  if [ -n "${CXX:-}" ] || ! command -v clang >/dev/null; then return 0; fi
  # Some releases have the run time in a package of its own, which clang only recommends.
  if ! compiles_with "$sanitizer" && [ "$2" = yes ]; then
    (install_packages yes libclang-rt-dev) || say "the sanitizers are compiled by GCC, which takes longer"
  fi
  if compiles_with "$sanitizer"; then
    printf '%s\n' -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1"
  fi
}
compiles_with() { echo 'int main() {}' | clang++ -x c++ "-fsanitize=$1" - -o /dev/null 2>/dev/null; }

# The targets of tools/demo, with or without nvcc.
demo_targets=(hotpack_command hotpack_preload hotpack simgpu_cuda simgpu_cudart simgpu_witness)

setup_build() {
  local preset=$1 install=$2 what=$3 headers build log meanwhile='' tests=OFF
  shift 3
  local -a packages=("${build_packages[@]}") targets=() compiler=()
  if [ "$what" = tests ]; then
    tests=ON
    packages+=("${test_packages[@]}")
  fi
  install_packages "$install" "${packages[@]}"
  build=$(build_directory "$preset")
  log=$build/setup.log
  mkdir -p "$build"
  : >"$log"
  # ninja configures again by itself when a CMakeLists.txt has changed.
  if [ ! -f "$build/build.ninja" ]; then
    headers=$(find_cuda_headers)
    if [ -z "$headers" ]; then
      say "cuda.h was not found in the usual places (CUDA_HOME, /usr/local/cuda*, /opt/cuda, /usr/include, Python's" \
        "nvidia packages). Install the CUDA toolkit, or its headers alone, or set CUDA_HOME."
      exit 2
    fi
    say "building in $build (the first time takes some minutes)"
    mapfile -t compiler < <(sanitizer_compiler "$preset" "$install")
    # An unfinished earlier configuration would keep what it did not find.
    quietly "the configuration" "$log" cmake --preset "$preset" --fresh -S "$source_directory" \
      -DHOTPACK_CUDA_INCLUDE_DIR="$headers" -DHOTPACK_BUILD_TESTS="$tests" ${compiler[@]+"${compiler[@]}"}
  elif [ "$what" = tests ] && grep -q '^HOTPACK_BUILD_TESTS:BOOL=OFF' "$build/CMakeCache.txt"; then
    say "building the tests in $build"
    quietly "the configuration" "$log" cmake -S "$source_directory" -B "$build" -DHOTPACK_BUILD_TESTS=ON
  fi
  case $what-$preset in
    demo-*)
      targets=("${demo_targets[@]}")
      if grep -q '^build train_mlp: phony' "$build/build.ninja"; then targets+=(train_mlp); fi
      ;;
    tests-asan | tests-tsan) targets=(sanitized_tests) ;;  # the presets run no others
  esac
  if [ $# -gt 0 ]; then
    "$@" &
    meanwhile=$!
  fi
  quietly "the build" "$log" cmake --build "$build" --parallel "${HOTPACK_BUILD_JOBS:-$(nproc)}" \
    ${targets[@]+--target "${targets[@]}"}
  [ -z "$meanwhile" ] || wait "$meanwhile"
}
