#!/usr/bin/env bash
# Breaks the preloaded library on purpose, one safeguard at a time, and sees the property test fail each time.
#   broken_builds.sh SOURCE_DIR BUILD_DIR CXX [NAME]
# The library is linked from what tests/mutants.sh compiles again and the rest as built. Exit code 0 when every mutant is
# caught, 2 when a mutant no longer fits the source.
set -euo pipefail
. "$1/tests/mutants.sh"
copy_sources packer profiler runtime preload

flags=(-std=c++20 -O1 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -I"$work" -DHOTPACK_CHECK_LEVEL=0)
[ -z "${HOTPACK_TEST_CUDA_INCLUDE:-}" ] || flags+=(-isystem "$HOTPACK_TEST_CUDA_INCLUDE")
libraries=(hotpack_runtime hotpack_profiler hotpack_options hotpack_preload_core hotpack_preload_hooks hotpack_preload)
archives=("$build_dir"/lib/lib{hotpack_runtime,hotpack_profiler,hotpack_packer,hotpack_older_glibc}.a)

# unchanged LIBRARY: its objects but for those that $objects/*.o stand for, as ninja links them.
unchanged() {
  local object name
  ninja -C "$build_dir" -t inputs "$1" | grep -E '^preload/CMakeFiles/.*\.cc\.o$' | while read -r object; do
    name=${object#preload/CMakeFiles/*.dir/}
    [ -e "$objects/preload_${name//\//_}" ] || echo "$build_dir/$object"
  done
}

# link_library LIBRARY OUTPUT [OPTION...]: the whole library with $objects/*.o in the place of what they were compiled from: an
# archive's member is not taken if its names are there already.
link_library() {
  local library=$1 output=$2
  local -a others
  shift 2
  mapfile -t others < <(unchanged "$library")
  "$cxx" "${linker[@]}" -shared -o "$output" "$objects"/*.o "${others[@]}" "${archives[@]}" "$@" \
    -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,--no-undefined \
    -Wl,--undefined=hotpack_version -Wl,--undefined=arc4random -static-libgcc -static-libstdc++ -lpthread -ldl
}
link_mutant() {
  link_library lib/libhotpack_preload.so "$work/libmutant.so" -Wl,--version-script="$build_dir/preload/hotpack_preload.map"
}

random_programs() {
  HOTPACK_TEST_PRELOAD="$work/libmutant.so" HOTPACK_TEST_OPERATIONS=3000000 timeout 300 \
    "$build_dir/tests/property_test" --gtest_filter='*AreServedRight*' --gtest_fail_fast
}
failing_calls() {
  LD_LIBRARY_PATH="$build_dir/lib/simgpu" LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
    timeout 300 "$build_dir/tests/every_call" -x "$failing_seeds" 900 any@libmutant 1
}
# Each of hotpack's calls of $refused, which changes the context, refused in turn.
refused_contexts() {
  local call
  for call in 1 2 3 4 5 6; do
    LD_LIBRARY_PATH="$build_dir/lib/simgpu" SIMGPU_FAIL="$refused@libmutant:$call" \
      LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
      timeout 300 "$build_dir/tests/preload/contexts_client" other_work || return
  done
}
refused_end() {
  LD_LIBRARY_PATH="$build_dir/lib/simgpu" SIMGPU_FAIL=cuCtxDestroy:1 \
    LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
    timeout 300 "$build_dir/tests/preload/contexts_client" refused_end
}
# Where the random programs need luck: threads have to meet as they seldom do on a busy machine.
streams_that_go() {
  LD_LIBRARY_PATH="$build_dir/lib/simgpu" LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
    timeout 300 "$build_dir/tests/preload/simulate_streams_client" streams_come_and_go
}
# The driver takes what its pools have idle.
a_device_without_memory() {
  LD_LIBRARY_PATH="$build_dir/lib/simgpu:$build_dir/lib" SIMGPU_MEMORY=64M HOTPACK=0 \
    LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
    timeout 300 "$build_dir/tests/preload/torch_contract_client" reclaimed
}
# In virtual time: the job of MODE takes at most 1 ms for pages in each steady step.
steady_steps() {
  SIMGPU_TIME=1 SIMGPU_MEMORY=80G HOTPACK_WAIT_PLAN=1 LD_LIBRARY_PATH="$build_dir/lib/simgpu:$build_dir/lib" \
    LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
    timeout 300 "$build_dir/tests/preload/page_time_client" "${steady_mode[@]}" |
    awk '$1 == "longest" {print "REPORT pages-take-time, ms:", $3; long = $3 <= 1} END {exit !long}'
}
# In virtual time: a side stream's work ends after 1000 s. The host must not wait for it.
posted_receive() {
  SIMGPU_TIME=call=0,memory=1,cuMemset=0,cuMemCreate=0,cuMemMap=0,cuMemSetAccess=0,cuMemUnmap=0 HOTPACK_WAIT_PLAN=1 \
    HOTPACK_PAGE_WAIT=10 LD_LIBRARY_PATH="$build_dir/lib/simgpu:$build_dir/lib" \
    LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
    timeout 300 "$build_dir/tests/preload/torch_time_client" posted |
    awk '$1 == "ms" {print "REPORT host-waits, ms:", $2; short = $2 < 1000} END {exit !short}'
}
green_contexts() {
  local scenario
  for scenario in memory own_streams default_streams last; do
    LD_LIBRARY_PATH="$build_dir/lib/simgpu" SIMGPU_MEMORY=1G \
      LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
      timeout 300 "$build_dir/tests/preload/green_client" "$scenario" || return
  done
}
# Devices that cannot access each other's memory.
copies_between_devices() {
  LD_LIBRARY_PATH="$build_dir/lib/simgpu" SIMGPU_DEVICES=2 SIMGPU_PEERS=0 SIMGPU_VALUES=keep \
    LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
    timeout 300 "$build_dir/tests/preload/peer_client" arena arena
}
copies_without_hooks() {
  LD_LIBRARY_PATH="$work/lib:$build_dir/lib/simgpu:$build_dir/lib" SIMGPU_DEVICES=2 SIMGPU_PEERS=0 SIMGPU_MEMORY=1G \
    timeout 300 "$build_dir/tests/preload/context_client" copies
}
# Runs a check whose threads have to meet: on a busy machine they may not, the first time.
five_times() {
  local round
  for round in 1 2 3 4 5; do "$@" || return 1; done
}
# One thread begins a capture on a stream that another thread's release gives an event.
capture_and_release() {
  local code=0
  rm -f "$work/reports"
  LD_LIBRARY_PATH="$build_dir/lib/simgpu:$build_dir/lib" SIMGPU_DELAY=200 SIMGPU_REPORT_FILE="$work/reports" HOTPACK=0 \
    LD_PRELOAD="$build_dir/lib/simgpu/libsimgpu_witness.so:$work/libmutant.so" \
    timeout 300 "$build_dir/tests/preload/torch_contract_client" captured_meanwhile || code=$?
  cat "$work/reports" 2>/dev/null || true
  [ "$code" = 0 ] && ! grep -q REPORT "$work/reports"
}
captured_meanwhile() { five_times capture_and_release; }
all_programs() { random_programs && streams_that_go; }
checker_report() {
  local found
  found=$(grep -m1 -oE 'REPORT [a-z-]+|it ended by a signal|CHECK\(.*\) failed|from device .*: (refused|wrong bytes)' "$work/log") || return 1
  echo "$found, seed $(grep -m1 -oE '(random_program|seed) [0-9]+' "$work/log" | cut -d' ' -f2 || true)"
}
link=link_mutant report=checker_report

# The library without hooks, under PyTorch's allocator, which relies on the contract of pools (docs/correctness.md, Pooled releases).
link_without_hooks() {
  mkdir -p "$work/lib"
  link_library lib/libhotpack.so "$work/lib/libhotpack.so.0" -Wl,-soname,libhotpack.so.0 \
    -Wl,--version-script="$build_dir/preload/hotpack.map"
}
# pool_program MODE [NAME=VALUE...]
pool_program() {
  local mode=$1 code=0
  shift
  rm -f "$work/reports"
  env LD_LIBRARY_PATH="$work/lib:$build_dir/lib/simgpu:$build_dir/lib" SIMGPU_DEVICES=2 SIMGPU_REPORT_FILE="$work/reports" "$@" \
    timeout 60 "$build_dir/tests/preload/torch_contract_client" "$mode" || code=$?
  cat "$work/reports" 2>/dev/null || true
  [ "$code" = 0 ] && ! grep -q REPORT "$work/reports"
}
pool_programs() {
  pool_program pool && pool_program unseen && pool_program late && pool_program ended && pool_program returned &&
    pool_program returned HOTPACK_RELEASE_EVENTS=0 && pool_program recorded &&
    pool_program other_device && pool_program captured_request && pool_program captured_release &&
    pool_program unseen HOTPACK=0 && pool_program recorded_on_stream HOTPACK=0 && pool_program other_device HOTPACK=0 &&
    pool_program captured_request HOTPACK=0 && five_times pool_program captured_again HOTPACK=0 SIMGPU_DELAY=200
}

# Headers with the sources that have code of the lines below.
follower="runtime/script/follower.h runtime/engine/engine.cc runtime/engine/engine_requests.cc runtime/script/follower.cc"
event_ring="preload/streams/event_ring.h preload/streams/context_events.cc preload/streams/used_streams.cc"
page_wait="runtime/engine/page_wait.h runtime/engine/envelope_pages.cc runtime/engine/page_manager.cc"
cuda_driver="runtime/memory/cuda_driver.h runtime/memory/cuda_device_memory.cc runtime/memory/plain_device_memory.cc"
cuda_driver+=" preload/capi/share.cc preload/hooks/context_hooks.cc preload/hooks/graph_copies.cc preload/serve/allocate.cc"
cuda_driver+=" preload/serve/arena_factory.cc preload/serve/driver_blocks.cc preload/streams/context_events.cc"
cuda_driver+=" preload/streams/green_contexts.cc preload/streams/stream_contexts.cc preload/streams/stream_edges.cc"
cuda_driver+=" preload/streams/used_streams.cc"

check=all_programs
unbroken "unchanged" runtime/memory/arena.cc "// --- commit ----------------------------------------------------------------------------------------------------------" ""
check=random_programs

# No event edge: a block is handed out again, and nothing orders its next owner's work after the last one's.
mutant "no event edge, between two streams" preload/streams/stream_order.cc \
  "} else if (!streams_.Knows(stream, point.stream, point.tick) && !Edge(point.stream, point.tick, stream)) {" "} else if (false) {"
mutant "no event edge, from any stream to one" preload/streams/stream_order.cc \
  "return needed <= settled || streams_.KnowsAll(stream, needed) || Join(stream, needed);" "return true;"
mutant "no event edge, to any stream" preload/streams/stream_order.cc \
  "return (number == kAllStreams ? Barrier() : OrderStream(number, after)) || OrderOnHost(after, tick);" \
  "return number == kAllStreams || OrderStream(number, after) || OrderOnHost(after, tick);"
mutant "no event edge, a barrier that waits for the legacy stream alone" preload/streams/stream_edges.cc \
  "if (streams[i].number != hub && !by_legacy && !Gather(*driver, streams[i], hub, tick)) return false;" ""
mutant "no event edge, a barrier that nobody waits for" preload/streams/stream_edges.cc \
  "if (!streams_.Wait(*driver, stream.number, hub, all) && !streams_.Get(stream.number).gone) return false;" ""
mutant "no event edge, blocks of the script" runtime/engine/engine.cc \
  "PutStamps(address, units, *after);" ";"
mutant "no event edge, blocks beside the script" runtime/engine/engine.cc \
  "if (after != nullptr) stamps_.Put(address, address + block.units * kBlockUnit, *after);" ""
mutant "no event edge, blocks put aside during a capture" preload/streams/stream_captures.cc \
  "const ReuseAfter after = StampOf(batch[i].arena->engine, kNoStream, batch[i].address, ReleaseKind::kOrdered);" "const ReuseAfter after{};"
check=streams_that_go
mutant "no event edge, a stream that is gone" preload/streams/stream_order.cc \
  "if (!IsCapturing(stream) && streams_.Record(*Driver(), number, tick) == nullptr) SynchronizeStream(stream);" ""
check=random_programs
mutant "no event edge, an older event" "$event_ring" \
  "if (ticks[k] == kBusy || ticks[k] < tick || ticks[k] == 0) continue;" "if (ticks[k] == kBusy || ticks[k] == 0) continue;"
# Late stream ignored: nothing is done when another stream appears, or it is not seen at all.
mutant "late stream ignored, what was released before it" preload/streams/stream_order.cc \
  "if (!ByContexts() && !ComeAfterFloor(number) && !SynchronizeContexts()) WaitOnHost();" ""
mutant "late stream ignored, what all waited for before it" preload/streams/stream_edges.cc \
  "if (!barrier && floor.stream != kAllStreams && floor.stream != stream && Edge(floor.stream, floor.tick, stream))" \
  "if (!barrier)"
mutant "late stream ignored, its first use" preload/hooks/work_hooks.cc \
  "if (hotpack::Enabled() && !hotpack::IsRecording()) hotpack::Order().FirstUse(stream);" ""
mutant "late stream ignored, that there are several now" preload/streams/stream_order.cc \
  "if (!alone) {" "if (false) {"
mutant "late stream ignored, per thread" preload/hooks/work_hooks.cc \
  '" movl $1, hotpack_per_thread_stream_used(%rip)\n"         \' '" nop\n" \'
# No overlap check: the script's places are taken for granted.
mutant "no overlap check, predecessors" "$follower" "cell.pending += cell.predecessors;" ""
mutant "no overlap check, holes" runtime/script/follower.cc "std::vector<Range> busy = LiveRanges();" "std::vector<Range> busy;"
mutant "no overlap check, blocks beside the script" runtime/script/follower.cc "cells_[i].pending |= kForeignBit;" ""
# No carried block: what lives across the boundary is forgotten.
mutant "no carried block, residency" profiler/profile.cc "if (end > n) block.residency.push_back({0, end - n});" ""
mutant "no carried block, into another script" runtime/engine/script_switcher.cc "follower_.AddForeign(foreign);" ""
mutant "no carried block, out of an old plan" runtime/engine/script_switcher.cc "(pages_->InZone(place) ? in_zone : in_fragments).push_back(place);" ""
# Unmap too early: pages go while work or blocks are on them.
mutant "unmap too early, no waiting" runtime/memory/page_mover.cc "wait = memory_->SynchronizeWithin(work->max_wait);" ";"
mutant "unmap too early, live blocks" runtime/engine/page_manager.cc \
  "const bool used = below != live.rend() && below->end > OffsetOf(begin);" "const bool used = false;"
mutant "unmap too early, pages from under the script" runtime/script/follower.cc \
  "if (!Overlaps(i, begin, end) || (cells_[i].pending & kUnmappedBit) != 0) continue;" "continue;"
mutant "unmap too early, the end of a context" preload/serve/allocate.cc \
  "Order().Synchronize(context_);" "Retire(true);"

# What a driver call that fails must not do. (A program each, in which it is seen.)
check=failing_calls
failing_seeds=14
unbroken "failing calls, unchanged" preload/streams/used_streams.cc "if (result != CUDA_SUCCESS) return nullptr;" \
  "if (result != CUDA_SUCCESS) return nullptr;  "
check=refused_contexts refused=cuCtxPushCurrent
unbroken "refused contexts, unchanged" preload/process/current_scope.h "current_ = pushed_;" "current_ = pushed_;  "
mutant "a context that did not become current taken for current" preload/process/current_scope.h "current_ = pushed_;" ""
check=failing_calls failing_seeds=14-21
mutant "a failed event taken for recorded" preload/streams/used_streams.cc "if (result != CUDA_SUCCESS) return nullptr;" ""
mutant "a failed wait for an event taken for done" preload/streams/used_streams.cc \
  "return scope && driver.StreamWaitEvent(waiter.handle, event, 0) == CUDA_SUCCESS;" \
  "driver.StreamWaitEvent(waiter.handle, event, 0); return true;"
check=refused_contexts refused=cuCtxPopCurrent
unbroken "contexts that do not go, unchanged" preload/process/current_scope.h "current_ = pushed_;" "current_ = pushed_;  "
mutant "the program left in another context" "$cuda_driver" "inline constexpr int kAttemptsToRestore = 3;" \
  "inline constexpr int kAttemptsToRestore = 1;"
check=refused_end
unbroken "a refused end, unchanged" preload/hooks/context_hooks.cc "result == CUDA_SUCCESS ? end.Retire(false) : end.Cancel();" \
  "result == CUDA_SUCCESS ? end.Retire(false) : end.Cancel();  "
mutant "an arena gone before its context" preload/hooks/context_hooks.cc "result == CUDA_SUCCESS ? end.Retire(false) : end.Cancel();" \
  "end.Retire(false);"

# The contract of pools: an address that changes its stream waits for all that any stream had queued when it was released.
check=pool_programs link=link_without_hooks
unbroken "pools, unchanged" preload/streams/stream_contexts.cc "TrySettlePast();" "TrySettlePast();  "
mutant "pools, another stream waits for nothing" preload/streams/stream_contexts.cc "needed = std::max(needed, point.tick);" ""
mutant "pools, another stream waits for the owner alone" preload/streams/stream_order.cc \
  "after.Add(number, tick, pooled ? PooledBlock(address) : 0);" "after.Add(number, tick);"
mutant "pools, what was released before the second stream" preload/streams/stream_contexts.cc "if (ByContexts()) StampPast();" ""
mutant "pools, a context that is left out" preload/streams/stream_contexts.cc \
  "for (const CUcontext each : contexts) users.push_back(NumberOf(CU_STREAM_LEGACY, each));" \
  "users.push_back(NumberOf(CU_STREAM_LEGACY, context));"
mutant "pools, a handle that has come back" preload/streams/used_streams.cc "slots_[number].known_all.store(0);" ""
mutant "pools, a use that was told of" preload/streams/stream_order.cc "if (!gone) streams_.NoteRelease(stream, tick);" "continue;"
mutant "pools, a capturing stream that waits" preload/streams/stream_contexts.cc \
  "const bool capturing = AsksCapturing(stream);  // it must not wait for anything outside its graph" "const bool capturing = false;"
mutant "pools, an event while a stream captures" preload/streams/stream_edges.cc \
  "if (captures_.load() == 0 && !(ByContexts() && Driver() != nullptr && streams_.AnyCapturing(*Driver()))) return true;" \
  "if (captures_.load() == 0) return true;"
mutant "pools of the driver, one for all streams" preload/serve/driver_blocks.cc \
  "if (pool.context == context && pool.stream == stream) return &pool;" "if (pool.context == context) return &pool;"
mutant "pools of the driver, a use that was told of" preload/serve/driver_blocks.cc \
  "if (!block.users.empty() && (MayBegin() || !WaitForUsers(driver, block, stream))) return false;" ""
mutant "pools of the driver, a capture announced before its users are asked" preload/serve/driver_blocks.cc \
  "if (!block.users.empty() && (MayBegin() || !WaitForUsers(driver, block, stream))) return false;" \
  "if (!WaitForUsers(driver, block, stream)) return false;"
mutant "pools of the driver, a capture announced in the middle of a release" preload/capi/memory.cc \
  "const auto until_no_release_is_under_way = hotpack::BlocksOfDriver().HoldReleases();" ""
mutant "pools of the driver, a node of the graph" preload/serve/driver_blocks.cc "block->plain = Capturing(driver, stream);" "block->plain = false;"
# Without hooks the beginning of a capture is not visible. With them it waits until a release has ended.
check=captured_meanwhile link=link_mutant
mutant "a capture that begins in the middle of a release" preload/serve/driver_blocks.cc "const std::lock_guard<std::mutex> no_capture_begins(giving_back_);" ""
check=a_device_without_memory
mutant "pools of the driver, told of a pooled release" preload/serve/driver_blocks.cc \
  "if (kind == ReleaseKind::kPooled && KeepIdle(address, stream, block)) return true;" ""
check=steady_steps steady_mode=(interrupted)
unbroken "pages of steady steps, unchanged" runtime/engine/page_manager.cc "waited_requests_ = idle_requests_ = 0;" \
  "waited_requests_ = idle_requests_ = 0;  "
mutant "pages of steady steps, gone in each interruption" runtime/engine/page_manager.cc \
  "const uint64_t patience = std::max({kLong, 4 * script_size, 2 * longest_wait_});" \
  "const uint64_t patience = std::max(kLong, 4 * script_size);"
mutant "pages of steady steps, short interruptions added up" runtime/engine/engine.cc \
  "if (interrupts_ > 0 && --interrupts_ == 0) pages_.EndWait();" "if (interrupts_ > 0) --interrupts_;"
steady_mode=(recording "$source_dir/tests/data/resnet50.trace" 1)
unbroken "pages of steady steps, a recorded job" runtime/engine/page_manager.cc \
  "waited_requests_ = idle_requests_ = 0;" "waited_requests_ = idle_requests_ = 0;  "
mutant "pages of steady steps, given back at the end of each" runtime/engine/engine_requests.cc "MaybeSave();" \
  "pages_.GiveBack(lock, UINT64_MAX);"
check=posted_receive
unbroken "a receive posted before, unchanged" "$page_wait" "work.max_wait = now_us_;" \
  "work.max_wait = now_us_;  "
mutant "a receive posted before, waited for where pages could move" "$page_wait" \
  "work.max_wait = now_us_;" ""
mutant "a receive posted before, waited for where a place of its own has no pages" runtime/engine/page_manager.cc \
  "may_take_own = false;" "++attempt;"
check=green_contexts
mutant "green contexts, an end that waits for no work" preload/hooks/context_hooks.cc "driver->CtxSynchronize();" ""
mutant "green contexts, one default stream for all" preload/streams/stream_order.cc "context = CurrentContext(*Driver());" ";"
mutant "green contexts, memory of their own" preload/serve/allocate.cc "const CUcontext owner = Greens().OwnerOf(context);" \
  "const CUcontext owner = context;"
check=copies_between_devices
mutant "copies, nodes of graphs that name no contexts" preload/hooks/graph_copies.cc \
  "node->way = hotpack::FindCopyWay(*node->copy, &node->named);" ""
check=copies_without_hooks link=link_without_hooks
mutant "copies without hooks, of blocks from pools" preload/serve/driver_blocks.cc \
  "if (CopiesNeedPlainMemory(driver)) block->plain = true;" ""

end_of_mutants
