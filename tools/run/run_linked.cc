#include "tools/run/run_linked.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace hotpack {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{64} << 20;  // of one section; a large program's may be hundreds of MiB
constexpr size_t kMaxSections = 65536;

// Old texts of NVIDIA's runtime that no other software contains all of: a name that it looks up in the driver, and
// messages of its error table. In the file each is enclosed in NULs. Here they are not, so that this program does not
// match.
constexpr std::string_view kTexts =
    "cuGetExportTable\n"
    "CUDA driver version is insufficient for CUDA runtime version\n"
    "launch would exceed maximum depth of nested launches\n"
    "launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)\n";

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status;
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return;
    bytes_ = static_cast<uint64_t>(status.st_size);
    Elf64_Ehdr header;
    if (!Read(0, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return;
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return;
    ReadSections(header);
  }
  ~ElfFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // Returns the beginning of a section; empty if there is none of this name, or if the file ends before it does.
  std::string Section(std::string_view name) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_NOBITS && Name(names_, section.sh_name) == name) return Content(section);
    }
    return "";
  }

  static std::string_view Name(std::string_view table, uint64_t offset) {
    if (offset >= table.size()) return "";
    const std::string_view rest = table.substr(offset);
    return rest.substr(0, rest.find('\0'));
  }

 private:
  bool Read(uint64_t offset, void* to, uint64_t count) const {
    if (offset > bytes_ || count > bytes_ - offset) return false;
    for (uint64_t done = 0; done < count;) {
      const ssize_t got =
          pread(descriptor_, static_cast<char*>(to) + done, count - done, static_cast<off_t>(offset + done));
      if (got <= 0) return false;
      done += static_cast<uint64_t>(got);
    }
    return true;
  }

  void ReadSections(const Elf64_Ehdr& header) {
    size_t count = header.e_shnum, names = header.e_shstrndx;
    Elf64_Shdr first;
    if (!Read(header.e_shoff, &first, sizeof(first))) return;
    if (count == 0) count = first.sh_size;  // more than the header's fields can hold (System V ABI, "ELF Header")
    if (names == SHN_XINDEX) names = first.sh_link;
    if (count == 0 || count > kMaxSections || names >= count) return;
    std::vector<Elf64_Shdr> sections(count);
    if (!Read(header.e_shoff, sections.data(), count * sizeof(Elf64_Shdr))) return;
    names_ = Content(sections[names]);
    sections_ = std::move(sections);
  }

  std::string Content(const Elf64_Shdr& section) const {
    if (section.sh_offset > bytes_ || section.sh_size > bytes_ - section.sh_offset) return "";
    std::string content(std::min(section.sh_size, kMaxBytes), '\0');
    if (!Read(section.sh_offset, content.data(), content.size())) content.clear();
    return content;
  }

  int descriptor_;
  uint64_t bytes_ = 0;
  std::vector<Elf64_Shdr> sections_;
  std::string names_;
};

bool NeedsSharedRuntime(const ElfFile& file) {
  const std::string dynamic = file.Section(".dynamic"), strings = file.Section(".dynstr");
  for (size_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    memcpy(&entry, dynamic.data() + at, sizeof(entry));
    if (entry.d_tag == DT_NEEDED && ElfFile::Name(strings, entry.d_un.d_val).starts_with("libcudart.so")) return true;
  }
  return false;
}

bool HasTexts(const std::string& content) {
  for (std::string_view rest = kTexts; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
    const std::string text = '\0' + std::string(rest.substr(0, rest.find('\n'))) + '\0';
    if (memmem(content.data(), content.size(), text.data(), text.size()) == nullptr) return false;
  }
  return true;
}

}  // namespace

bool HasNvidiaRuntimeInside(const std::string& path) {
  const ElfFile file(path);
  return !NeedsSharedRuntime(file) && HasTexts(file.Section(".rodata"));
}

}  // namespace hotpack
