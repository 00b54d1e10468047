# What the scripts that break sources on purpose have in common: to be sourced.

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
