# What the scripts that break sources on purpose have in common: to be sourced.

# readers FILE TARGET...: the sources of those libraries whose objects depend on FILE, as ninja knows them; of a source, itself.
# Needs $build_dir. Paths are the project's.
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
    echo "$(basename "$0"): nothing in $* reads $file" >&2
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
    echo "$(basename "$0"): the line is there $changed times in $file: $line"
    exit 2
  fi
}
