// Writes the report of the sample recording to the file that is named: for tests/tools/report/page_test.py.
#include <cstdio>
#include <fstream>

#include "tests/tools/report_sample.h"
#include "tools/report/page.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const hotpack::TraceFile file = hotpack_test::Sample();
  const auto picture = hotpack::MakePicture(file, {});
  if (!picture.ok()) return 1;
  hotpack::PageInput input;
  input.name = "sample.trace";
  input.file = &file;
  input.picture = &*picture;
  input.comparison = hotpack::Compare(file.trace, hotpack::PeerNames(), 0, [](const std::string&) {});
  std::ofstream out(argv[1], std::ios::binary);
  out << hotpack::Page(input);
  return out.good() ? 0 : 1;
}
