# What the scripts that break sources on purpose have in common: to be sourced, with SOURCE_DIR BUILD_DIR CXX [NAME].
#
# A mutant is a line of a source file that is replaced. What includes the file is compiled again from the changed copy, and
# linked with the rest as built. The mutant is caught if the check then fails with a report. Without NAME all mutants are
# tried, else those whose name contains it.
#
# FILE may be a header with the sources to compile behind it, "HEADER SOURCE...": those that have code of the line. The objects
# of its other readers would be the same.
#
# The script sets:
#   flags      for the compiler
#   libraries  whose sources are compiled again
#   link       a function that links "$objects"/*.o with the rest
#   check      a function that fails if it notices the mutant
#   report     a function that prints what the check has reported in "$work/log"; fails if there is nothing
source_dir=$1 build_dir=$2 cxx=$3 only=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects=$work/objects
mkdir "$objects"
survivors=0 mutants=0
# GCC's link-time optimization would take as long as the compilation of a mutant. LLVM's linker leaves it out.
linker=()
if command -v ld.lld >/dev/null; then linker=(-fuse-ld=lld); fi

# copy_sources FOLDER...: the sources to break.
copy_sources() { cp -r "${@/#/$source_dir/}" "$work/"; }

# compile SOURCE OBJECT: SOURCE is the project's path. What nearly every source includes (cmake/HotpackBuild.cmake) is
# compiled once.
compile() {
  local headers=$work/precompiled.h
  if [ ! -e "$headers.gch" ]; then
    grep -v "^#pragma" "$build_dir/CMakeFiles/hotpack_headers.dir/cmake_pch.hxx" >"$headers"
    "$cxx" "${flags[@]}" -x c++-header "$headers" -o "$headers.gch"
  fi
  "$cxx" "${flags[@]}" -include "$headers" -I"$build_dir/generated" -c "$work/$1" -o "$2"
}

wanted() { [ -z "$only" ] || [[ "$1" == *"$only"* ]]; }

# build_mutant FILE LINE REPLACEMENT: LINE is the text of exactly one line, without its indentation. Leaves the file as it was.
build_mutant() {
  local file sources source
  read -r file sources <<<"$1"
  mutants=$((mutants + 1))
  cp "$work/$file" "$work/original"
  replace_line "$work/$file" "$2" "$3"
  rm -f "$objects"/*.o
  sources=$(sources_of "$file" $sources) || exit 2
  for source in $sources; do compile "$source" "$objects/${source//\//_}.o"; done
  cp "$work/original" "$work/$file"
  "$link"
}

# sources_of FILE [SOURCE...]: FILE's readers, or those that are named. A source that does not read it is a mistake.
sources_of() {
  local file=$1 all source
  shift
  all=$(readers "$file" "${libraries[@]}") || return
  [ $# -gt 0 ] || { echo "$all"; return; }
  for source in "$@"; do
    grep -qxF "$source" <<<"$all" || { say "$source does not read $file" >&2; return 2; }
    echo "$source"
  done
}

# mutant NAME FILE LINE REPLACEMENT: must be caught.
mutant() {
  local name=$1 found
  wanted "$name" || return 0
  build_mutant "${@:2}"
  if "$check" >"$work/log" 2>&1; then
    echo "SURVIVED  $name"
    survivors=$((survivors + 1))
  elif found=$("$report"); then
    echo "caught    $name: $found"
  else
    echo "SURVIVED  $name: the test fails, but without a report"
    tail -n 20 "$work/log"
    survivors=$((survivors + 1))
  fi
}

# unbroken NAME FILE LINE REPLACEMENT: a change that breaks nothing. The check must pass, or to be caught says nothing.
unbroken() {
  wanted "$1" || return 0
  build_mutant "${@:2}"
  "$check" >"$work/log" 2>&1 || { cat "$work/log"; say "what is not broken fails: $1"; exit 1; }
  echo "passes    $1"
}

# At the end of the script: exit code 0 if every mutant was caught, 2 if none has the name.
end_of_mutants() {
  [ "$mutants" != 0 ] || { say "no mutant is called '$only'"; exit 2; }
  [ "$survivors" = 0 ]
}

say() { echo "$(basename "$0"): $*"; }

# readers FILE TARGET...: the sources of those libraries whose objects depend on FILE, as ninja knows them; of a source, itself.
# Paths are the project's.
readers() {
  local file=$1 found
  shift
  case $file in *.cc) echo "$file"; return ;; esac
  found=$(ninja -C "$build_dir" -t deps | TARGETS="$*" FILE="/$file" awk '
    BEGIN {count = split(ENVIRON["TARGETS"], names, " "); for (i = 1; i <= count; i++) wanted[names[i]] = 1}
    /^[^ ]/ {
      object = $1
      sub(/\.o:$/, "", object)
      split(object, part, "/CMakeFiles/")
      target = part[2]
      sub(/\.dir\/.*/, "", target)
      source = part[2]
      sub(/^[^\/]*\.dir/, "", source)
      printed = !(target in wanted)
      next
    }
    !printed && length($1) >= length(ENVIRON["FILE"]) && substr("/" $1, length("/" $1) - length(ENVIRON["FILE"]) + 1) == ENVIRON["FILE"] {
      print part[1] source
      printed = 1
    }')
  if [ -z "$found" ]; then
    say "nothing in $* reads $file" >&2
    exit 2
  fi
  sort -u <<<"$found"
}

# replace_line FILE LINE REPLACEMENT: LINE is the text of exactly one line of the file, without its indentation; else exit code 2.
replace_line() {
  local file=$1 line=$2 replacement=$3 original changed
  original=$(mktemp)
  cp "$file" "$original"
  changed=$(LINE=$line NEW=$replacement awk '{t = $0; sub(/^ +/, "", t); if (t == ENVIRON["LINE"]) {print ENVIRON["NEW"]; n++} else print}
    END {print n + 0 > "/dev/stderr"}' "$original" 2>&1 >"$file")
  rm -f "$original"
  if [ "$changed" != 1 ]; then
    say "the line is there $changed times in $file: $line"
    exit 2
  fi
}
