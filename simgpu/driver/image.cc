#include "simgpu/driver/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace simgpu {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243B1;  // fatbinary_section.h
constexpr uint32_t kFatMagic = 0xBA55ED50;
constexpr uint16_t kEntryPtx = 1, kEntryElf = 2;
constexpr uint64_t kFlagZstd = 0x8000, kFlagLz4 = 0x2000;

template <typename T>
T Read(const void* data, size_t offset) {
  T value;
  memcpy(&value, static_cast<const char*>(data) + offset, sizeof value);
  return value;
}

// .nv.info.<kernel>: records of a format byte, an attribute byte and 16 bits; format 4 has that many bytes after it.
std::vector<KernelParameter> ReadParameters(const char* info, size_t bytes) {
  constexpr uint8_t kSized = 4, kParameter = 0x17;
  std::map<uint16_t, KernelParameter> by_ordinal;
  for (size_t at = 0; at + 4 <= bytes;) {
    const uint8_t format = Read<uint8_t>(info, at), attribute = Read<uint8_t>(info, at + 1);
    const size_t payload = format == kSized ? Read<uint16_t>(info, at + 2) : 0;
    if (at + 4 + payload > bytes) break;
    if (format == kSized && attribute == kParameter && payload >= 12) {
      const char* p = info + at + 4;
      by_ordinal[Read<uint16_t>(p, 4)] = {Read<uint16_t>(p, 6), Read<uint32_t>(p, 8) >> 18};
    }
    at += 4 + payload;
  }
  std::vector<KernelParameter> parameters;
  for (const auto& [ordinal, parameter] : by_ordinal) parameters.push_back(parameter);
  return parameters;
}

class ElfReader {
 public:
  explicit ElfReader(const char* data) : data_(data), header_(Read<Elf64_Ehdr>(data, 0)) {}

  bool ReadInto(Image* image) {
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_shentsize != sizeof(Elf64_Shdr)) return false;
    for (int i = 0; i < header_.e_shnum; ++i) {
      const Elf64_Shdr section = Section(i);
      const std::string name = Name(section);
      constexpr char kInfo[] = ".nv.info.", kText[] = ".text.";
      if (name.starts_with(kInfo)) {
        image->kernels[name.substr(sizeof kInfo - 1)] = ReadParameters(data_ + section.sh_offset, section.sh_size);
      } else if (name.starts_with(kText)) {
        image->kernels.try_emplace(name.substr(sizeof kText - 1));
      } else if (section.sh_type == SHT_SYMTAB) {
        ReadVariables(section, image);
      }
    }
    return true;
  }

 private:
  Elf64_Shdr Section(int index) const { return Read<Elf64_Shdr>(data_, header_.e_shoff + index * sizeof(Elf64_Shdr)); }
  std::string Name(const Elf64_Shdr& section) const {
    return data_ + Section(header_.e_shstrndx).sh_offset + section.sh_name;
  }

  void ReadVariables(const Elf64_Shdr& table, Image* image) {
    const char* names = data_ + Section(static_cast<int>(table.sh_link)).sh_offset;
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = Read<Elf64_Sym>(data_, table.sh_offset + at);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0) continue;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= header_.e_shnum) continue;
      const Elf64_Shdr section = Section(symbol.st_shndx);
      DeviceVariable& variable = image->variables[names + symbol.st_name];
      variable.bytes = symbol.st_size;
      if (section.sh_type == SHT_PROGBITS && symbol.st_value + symbol.st_size <= section.sh_size) {
        const char* from = data_ + section.sh_offset + symbol.st_value;
        variable.initial.assign(from, from + symbol.st_size);
      }
    }
  }

  const char* data_;
  Elf64_Ehdr header_;
};

bool IsElf(const void* data) { return memcmp(data, ELFMAG, SELFMAG) == 0; }

// One entry of a fat binary: kind, header and payload size, compressed size @16, flags @40, uncompressed size @56.
void ReadEntry(const char* entry, uint16_t kind, uint32_t header, uint64_t payload, Image* image) {
  if (kind != kEntryPtx && kind != kEntryElf) return;
  const char* data = entry + header;
  const uint64_t flags = header >= 64 ? Read<uint64_t>(entry, 40) : 0;
  std::vector<char> plain;
  if ((flags & (kFlagZstd | kFlagLz4)) != 0) {
    const uint64_t packed = std::min<uint64_t>(Read<uint32_t>(entry, 16), payload);
    const uint64_t expected = Read<uint64_t>(entry, 56);
    const auto* bytes = reinterpret_cast<const uint8_t*>(data);
    const bool done = (flags & kFlagZstd) != 0 ? DecompressZstd(bytes, packed, expected, &plain)
                                               : DecompressLz4(bytes, packed, expected, &plain);
    if (!done) {
      image->incomplete = true;
      return;
    }
    data = plain.data();
    payload = plain.size();
  }
  if (kind == kEntryElf) {
    if (payload < sizeof(Elf64_Ehdr) || !IsElf(data) || !ElfReader(data).ReadInto(image)) image->incomplete = true;
  } else {
    ReadPtx(std::string(data, payload), image);
  }
}

struct FatEntry {
  const char* data;
  uint16_t kind;
  uint32_t header;   // bytes
  uint64_t payload;  // bytes
  int capability;    // 10 * major + minor; 0: not said
};

std::vector<FatEntry> FatEntries(const char* data) {
  const uint16_t header = Read<uint16_t>(data, 6);
  const uint64_t bytes = Read<uint64_t>(data, 8);
  std::vector<FatEntry> entries;
  for (uint64_t at = 0; at + 16 <= bytes;) {
    const char* entry = data + header + at;
    const uint32_t entry_header = Read<uint32_t>(entry, 4);
    const uint64_t payload = Read<uint64_t>(entry, 8);
    if (entry_header < 16 || at + entry_header + payload > bytes) break;
    const int capability = entry_header >= 32 ? static_cast<int>(Read<uint32_t>(entry, 28)) : 0;
    entries.push_back({entry, Read<uint16_t>(entry, 0), entry_header, payload, capability});
    at += entry_header + payload;
  }
  return entries;
}

// As the driver chooses: the ELF entries of the greatest compute capability of the device's major version that is not
// above the device's. 0: there is none.
int LoadedCapability(const std::vector<FatEntry>& entries) {
  int best = 0;
  for (const FatEntry& entry : entries) {
    if (entry.kind != kEntryElf || entry.capability / 10 != kComputeCapability / 10) continue;
    if (entry.capability <= kComputeCapability) best = std::max(best, entry.capability);
  }
  return best;
}

// Without code for the device, all that is there tells of the kernels: ELF entries first, which contain more than PTX.
void ReadFatBinary(const char* data, Image* image) {
  const std::vector<FatEntry> entries = FatEntries(data);
  const int capability = LoadedCapability(entries);
  for (const uint16_t wanted : {kEntryElf, kEntryPtx}) {
    for (const FatEntry& entry : entries) {
      if (entry.kind != wanted) continue;
      if (capability != 0 && (wanted != kEntryElf || entry.capability != capability)) continue;
      ReadEntry(entry.data, wanted, entry.header, entry.payload, image);
    }
  }
}

}  // namespace

bool ReadImage(const void* data, Image* image) {
  const uint32_t magic = Read<uint32_t>(data, 0);
  if (magic == kWrapperMagic) return ReadImage(Read<const void*>(data, 8), image);
  if (magic == kFatMagic) {
    ReadFatBinary(static_cast<const char*>(data), image);
    return true;
  }
  if (IsElf(data)) return ElfReader(static_cast<const char*>(data)).ReadInto(image);
  const std::string text = static_cast<const char*>(data);
  if (text.find(".version") == std::string::npos) return false;
  ReadPtx(text, image);
  return true;
}

}  // namespace simgpu
