# What the scripts that break sources on purpose have in common: to be sourced.

# The sources that read follower.h, and with it every other header of runtime/ in which a line is replaced.
follower_readers=(runtime/{dynamic_blocks,engine,engine_debug,engine_notes,engine_queries,follower,page_manager,plan_scheduler,script_switcher,variants,warm_start}.cc)

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
