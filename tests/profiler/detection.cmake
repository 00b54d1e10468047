# Iteration detection: history → period → profile.
hotpack_test(profiler_history_test SOURCES history_test.cc LIBS hotpack_profiler LABELS profiler sanitize)
hotpack_test(profiler_period_test SOURCES period_test.cc LIBS hotpack_profiler LABELS profiler sanitize)
hotpack_test(profiler_profile_test SOURCES profile_test.cc LIBS hotpack_profiler LABELS profiler sanitize)
hotpack_test(profiler_shapes_test SOURCES shapes_test.cc LIBS hotpack_profiler LABELS profiler sanitize)
