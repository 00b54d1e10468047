#!/usr/bin/env bash
# Breaks the engine on purpose, one check at a time, and sees the property test fail each time.
#   mutation_test.sh SOURCE_DIR BUILD_DIR CXX [NAME]
# The engine is compiled again from the changed copy (tests/mutants.sh). Exit code 0 when every mutant is caught, 2 when a
# mutant no longer fits the source.
set -euo pipefail
. "$1/tests/mutants.sh"
copy_sources packer profiler runtime tests

flags=(-std=c++20 -O1 -I"$work" -DHOTPACK_CHECK_LEVEL=0)
libraries=(hotpack_runtime hotpack_profiler)
archives=("$build_dir"/lib/lib{hotpack_runtime,hotpack_profiler,hotpack_packer}.a -lgtest -lgtest_main -lpthread -ldl)
compile tests/runtime/engine_property_test.cc "$work/test.o"

# What is compiled from a changed copy comes before the archives: an archive's member is not taken if its names are there already.
link_test() { "$cxx" "${linker[@]}" "$work/test.o" "$objects"/*.o "${archives[@]}" -o "$work/mutant"; }
against_model() { HOTPACK_TEST_SEQUENCES=1500 timeout 300 "$work/mutant" --gtest_filter=*AgainstModel; }
what_the_test_says() {
  grep -m1 -oE 'Which is: ".*"|recovered \* 100.*|Segmentation.*|[0-9]+ of [0-9]+ jobs.*' "$work/log" || echo 'it ended by a signal'
}
of_other_iterations() { HOTPACK_TEST_SEQUENCES=600 timeout 300 "$work/mutant" --gtest_filter=*IterationsDiffer; }
that_park() { HOTPACK_TEST_SEQUENCES=600 timeout 300 "$work/mutant" --gtest_filter=*ThatPark*; }
in_large_handles() { timeout 300 "$work/mutant" --gtest_filter=*InLargeHandles; }
# Headers with the sources that have code of the lines below.
follower="runtime/script/follower.h runtime/engine/engine.cc runtime/engine/engine_requests.cc runtime/script/follower.cc"
zone_blocks="runtime/engine/zone_blocks.h runtime/engine/dynamic_blocks.cc runtime/engine/engine.cc"
zone_blocks+=" runtime/engine/envelope_server.cc runtime/engine/envelope_zone.cc"

link=link_test check=against_model report=what_the_test_says

mutant "predecessor counters" "$follower" "cell.pending += cell.predecessors;" ""
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
  "if (!envelope_.open()) follower_->SetUnmapped(OffsetOf(range.begin), OffsetOf(range.begin + range.bytes));" ""
mutant "a place of the script in which something lives" runtime/engine/page_manager.cc \
  "if (live.begin < begin + request.units && live.end > begin) return UINT64_MAX;" ""
mutant "pages moved under unfinished work" runtime/memory/page_mover.cc "if (wait != DeviceWait::kDone) {" \
  "if (wait == DeviceWait::kNotNow) {"
check=in_large_handles
mutant "a handle of which the end is live" runtime/memory/arena_growth.cc \
  "if (extent.begin + extent.bytes <= end) function(extent);" "function(extent);"
mutant "a handle of which the beginning is live" runtime/memory/arena_growth.cc "if (extent.begin < begin) break;" ""
mutant "a part of a handle of the zone" runtime/engine/page_manager.cc "begin = extent.begin;" "begin = end - chunk;"
check=that_park
unbroken "a zone taken back, unchanged" runtime/engine/script_zone.cc "retaken_ = true;" "retaken_ = true;  "
mutant "blocks in a zone that is taken back" runtime/engine/script_zone.cc \
  "if (std::exchange(retaken_, false)) MakeForeign(zone_);" "retaken_ = false;"
check=of_other_iterations
unbroken "an envelope, unchanged" runtime/engine/envelope_zone.cc "claimed->block = {};" "claimed->block = {};  "
mutant "a place of an envelope, and the block above it" "$zone_blocks" \
  "if (below->above->begin < end) return nullptr;" ""
mutant "a place of an envelope, and the block below it" "$zone_blocks" \
  "if (below->end > begin) return nullptr;" ""
mutant "pages taken from under an envelope" runtime/engine/envelope_zone.cc \
  "const bool used = below->end > begin;" "const bool used = false;"
mutant "a place whose pages were taken since it was ready" runtime/engine/page_manager.cc \
  "if (envelope_.open()) ready_.Set(range, false);" ""
mutant "a place across the end of a fragment" runtime/engine/envelope_pages.cc \
  "if (address % arena_.AlignmentOf(bytes) != 0 || !IsPlanned(place)) return PlaceStatus::kInUse;" ""
mutant "a block that lay in a fragment before" runtime/engine/script_zone.cc "for (const AddressRange& block : met) AddForeign(block);" ""
mutant "a place of an envelope without pages" runtime/engine/envelope_pages.cc \
  "if (HasPages(place) && !(page_work_ && InZone(place))) return PlaceStatus::kPlaced;" "return PlaceStatus::kPlaced;"
mutant "blocks of an envelope that has ended" runtime/engine/envelope_pages.cc \
  "const std::vector<AddressRange> in_zone = envelope_.Live(true), outside = envelope_.Live(false);" \
  "const std::vector<AddressRange> in_zone, outside = envelope_.Live(false);"
end_of_mutants
