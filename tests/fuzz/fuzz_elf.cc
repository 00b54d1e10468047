// The search in a program's ELF file (tools/run/run_linked.h): it has a result for any bytes, always the same, and
// returns yes only where the runtime's texts are.
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "tools/run/run_linked.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack;
  const fuzz::MemoryFile file(data, size);
  const bool inside = HasNvidiaRuntimeInside(file.path());
  fuzz::Require(inside == HasNvidiaRuntimeInside(file.path()), "the answer is the same each time");
  const std::string_view contents(reinterpret_cast<const char*>(data), size);
  fuzz::Require(!inside || (contents.substr(0, 4) == "\177ELF" && contents.find("cuGetExportTable") != contents.npos),
                "the runtime is found in ELF files that have its texts only");
  return 0;
}
