// Writes the report of the sample recording to the named file: for tests/tools/report/page_test.py. With another word,
// its names are unusual on purpose.
#include <cstdio>
#include <fstream>

#include "tests/tools/report_sample.h"
#include "tools/report/page.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  hotpack::TraceFile file = hotpack_test::Sample();
  if (argc > 2) {
    file.origin.program = "/\x01\xff'\"><img src=x onerror=alert(1)>";
    // "step", "forward", "backward", two kernels, two stacks.
    file.notes.names = {"'\"><img src=x>",
                        "<!--<script>",
                        std::string(20'000, 'r'),
                        "\xff\xc3(\x01\x7f\n\t\xe2\x80\xa8\xe2\x80\xae",
                        "std::tuple<" + std::string(20'000, 'T') + ">",
                        "]]>&lt;\\u003c\n</script>",
                        "</script><script>alert(1)</script>"};
  }
  const auto picture = hotpack::MakePicture(file, {});
  if (!picture.ok()) return 1;
  hotpack::PageInput input;
  input.name = "sample.trace";
  input.file = &file;
  input.picture = &*picture;
  input.comparison = hotpack::Compare(file.trace, hotpack::PeerNames(), 0);
  std::ofstream out(argv[1], std::ios::binary);
  out << hotpack::Page(input);
  return out.good() ? 0 : 1;
}
