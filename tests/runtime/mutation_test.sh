#!/usr/bin/env bash
# Breaks the engine on purpose, one check at a time, and sees the property test fail each time.
#   mutation_test.sh SOURCE_DIR BUILD_DIR CXX [NAME]
# Each mutation is a line of a source file that is replaced. The engine is compiled again from the changed copy and
# linked with the rest as built. Exit code 0 when every mutant is caught.
set -euo pipefail
source_dir=$1 build_dir=$2 cxx=$3 only=${4:-}
. "$source_dir/tests/mutants.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source_dir"/{packer,profiler,runtime,tests} "$work/"

flags=(-std=c++20 -O1 -I"$work" -DHOTPACK_CHECK_LEVEL=0)
libraries=("$build_dir"/lib/lib{hotpack_runtime,hotpack_profiler,hotpack_packer}.a -lgtest -lgtest_main -lpthread -ldl)
survivors=0

# What is compiled from a changed copy comes before the libraries: an archive's member is not taken if its names are there already.
compile() { "$cxx" "${flags[@]}" -c "$work/$1" -o "$work/${1//\//_}.o"; }
compile tests/runtime/engine_property_test.cc

# mutant NAME FILE LINE REPLACEMENT: LINE is the text of exactly one line, without its indentation.
mutant() {
  local name=$1 file=$2 line=$3 replacement=$4 source changed
  [ -z "$only" ] || [ "$only" = "$name" ] || return 0
  cp "$work/$file" "$work/original"
  replace_line "$work/$file" "$line" "$replacement"
  changed=$(readers "$file" hotpack_runtime hotpack_profiler)
  for source in $changed; do compile "$source"; done
  "$cxx" "$work"/*.cc.o "${libraries[@]}" -o "$work/mutant"
  if HOTPACK_TEST_SEQUENCES=1500 timeout 300 "$work/mutant" --gtest_filter=*AgainstModel >"$work/log" 2>&1; then
    echo "SURVIVED  $name"
    survivors=$((survivors + 1))
  else
    echo "caught    $name: $(grep -m1 -oE 'Which is: ".*"|recovered \* 100.*|Segmentation.*|[0-9]+ of [0-9]+ jobs.*' "$work/log" || echo 'it ended by a signal')"
  fi
  cp "$work/original" "$work/$file"
  rm -f "$work"/runtime_*.o "$work"/profiler_*.o
}

mutant "predecessor counters" runtime/script/follower.h "cell.pending += cell.predecessors;" ""
mutant "overlap check of holes" runtime/script/follower.cc "std::vector<Range> busy = LiveRanges();" "std::vector<Range> busy;"
mutant "blocks beside the script" runtime/script/follower.cc "cells_[i].pending |= kForeignBit;" ""
mutant "blocks carried over a change of script" runtime/engine/script_switcher.cc "follower_.AddForeign(foreign);" ""
mutant "blocks of a script taken up again" runtime/script/follower.cc "live_.Clear();" ""
mutant "blocks carried out of an old plan" runtime/engine/script_switcher.cc "(pages_->InZone(place) ? in_zone : in_fragments).push_back(place);" ""
mutant "residency of carried blocks" profiler/profile.cc "if (end > n) block.residency.push_back({0, end - n});" ""
mutant "pages taken from under the script" runtime/script/follower.cc \
  "if (!Overlaps(i, begin, end) || (cells_[i].pending & kUnmappedBit) != 0) continue;" "continue;"
mutant "pages given back under live blocks" runtime/engine/page_manager.cc \
  "const bool used = below != live.rend() && below->end > OffsetOf(begin);" "const bool used = false;"
mutant "pages given back behind the script" runtime/engine/page_manager.cc \
  "follower_->SetUnmapped(OffsetOf(range.begin), OffsetOf(range.begin + range.bytes));" ""
mutant "a place of the script in which something lives" runtime/engine/page_manager.cc \
  "if (live.begin < begin + request.units && live.end > begin) return UINT64_MAX;" ""
[ "$survivors" = 0 ]
