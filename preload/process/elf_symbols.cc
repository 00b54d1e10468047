#include "preload/process/elf_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstdint>

namespace hotpack {
namespace {

// String functions of its own: this code runs before a sanitizer's runtime, which replaces the C library's, is ready.
bool StartsWith(const char* text, const char* prefix) {
  for (; *prefix != '\0'; ++text, ++prefix) {
    if (*text != *prefix) return false;
  }
  return true;
}

bool Equal(const char* a, const char* b) {
  for (; *a != '\0' && *a == *b; ++a, ++b) {
  }
  return *a == *b;
}

const char* FileName(const char* path) {
  const char* file = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') file = path + 1;
  }
  return file;
}

struct DynamicSymbols {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* gnu_hash = nullptr;
};

// glibc relocates the addresses in a loaded object's dynamic section in place; other loaders leave them relative.
const char* Absolute(ElfW(Addr) base, ElfW(Addr) value) {
  return reinterpret_cast<const char*>(value < base ? base + value : value);
}

DynamicSymbols ReadDynamic(const dl_phdr_info& info) {
  DynamicSymbols out;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const char* address = Absolute(info.dlpi_addr, entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) out.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) out.strings = address;
      if (entry->d_tag == DT_GNU_HASH) out.gnu_hash = reinterpret_cast<const uint32_t*>(address);
    }
  }
  return out;
}

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// DT_GNU_HASH: bucket count, first hashed symbol, Bloom words, Bloom shift, then Bloom filter, buckets, chain.
void* Lookup(const DynamicSymbols& dynamic, ElfW(Addr) base, const char* name) {
  if (dynamic.symbols == nullptr || dynamic.strings == nullptr || dynamic.gnu_hash == nullptr) return nullptr;
  const uint32_t bucket_count = dynamic.gnu_hash[0];
  const uint32_t first = dynamic.gnu_hash[1];
  const uint32_t bloom_words = dynamic.gnu_hash[2];
  const uint32_t* buckets = dynamic.gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* chain = buckets + bucket_count;
  const uint32_t hash = GnuHash(name);
  uint32_t index = bucket_count == 0 ? 0 : buckets[hash % bucket_count];
  if (index < first) return nullptr;
  for (;; ++index) {
    const uint32_t entry = chain[index - first];
    const ElfW(Sym)& symbol = dynamic.symbols[index];
    if ((entry | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF && Equal(dynamic.strings + symbol.st_name, name)) {
      return reinterpret_cast<void*>(base + symbol.st_value);
    }
    if ((entry & 1) != 0) return nullptr;
  }
}

bool IsLibc(const char* path) {
  if (path == nullptr) return false;
  const char* file = FileName(path);
  return StartsWith(file, "libc.so.") || StartsWith(file, "libc-2.") || StartsWith(file, "libdl.so.") ||
         StartsWith(file, "libdl-2.");
}

struct Search {
  const char* name;
  void* found;
};

int Visit(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (!IsLibc(info->dlpi_name)) return 0;
  search->found = Lookup(ReadDynamic(*info), info->dlpi_addr, search->name);
  return search->found != nullptr ? 1 : 0;
}

bool Contains(const dl_phdr_info& info, const void* address) {
  const auto a = reinterpret_cast<ElfW(Addr)>(address);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const ElfW(Addr) begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && a >= begin && a - begin < segment.p_memsz) return true;
  }
  return false;
}

struct InterposerSearch {
  const void* caller;
  const char* name;
  bool after_us;  // this library has been visited
  bool earlier;   // the caller's object came before it
  bool found;     // the caller's object came after it and defines `name`, or is CUPTI's
};

// CUPTI takes device memory for itself by functions of the driver that it looks up: that is not the program's.
bool IsCupti(const char* path) {
  const char* name = path;
  for (const char* at = path; at != nullptr && *at != '\0'; ++at) {
    if (*at == '/') name = at + 1;
  }
  return name != nullptr && StartsWith(name, "libcupti.so");
}

// Objects are visited in load order, which is search order for the program and its preloads.
int VisitInterposer(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<InterposerSearch*>(data);
  if (!search->after_us) {
    search->after_us = Contains(*info, reinterpret_cast<const void*>(&FindInLibc));
    if (!Contains(*info, search->caller)) return 0;
    search->earlier = !search->after_us;
    return 1;
  }
  if (!Contains(*info, search->caller)) return 0;
  search->found = IsCupti(info->dlpi_name);
  const DynamicSymbols dynamic = ReadDynamic(*info);
  for (const char* name : {search->name, "dlsym", "cuGetProcAddress_v2"}) {
    if (!search->found) search->found = Lookup(dynamic, info->dlpi_addr, name) != nullptr;
  }
  return 1;
}

struct ObjectSearch {
  const void* address;
  const char* symbol;
  char* path;
  size_t size;
  bool* defines;
  bool found;
};

int VisitObject(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<ObjectSearch*>(data);
  if (!Contains(*info, search->address)) return 0;
  const char* name = info->dlpi_name != nullptr ? info->dlpi_name : "";
  size_t length = 0;
  for (; length < search->size && name[length] != '\0'; ++length) search->path[length] = name[length];
  search->found = length < search->size;
  if (search->found) search->path[length] = '\0';
  *search->defines = Lookup(ReadDynamic(*info), info->dlpi_addr, search->symbol) != nullptr;
  return 1;
}

template <typename Function>
Function Cached(std::atomic<Function>* cache, const char* name) {
  Function function = cache->load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<Function>(FindInLibc(name));
    cache->store(function, std::memory_order_relaxed);
  }
  return function;
}

constinit std::atomic<DlsymFunction> real_dlsym{nullptr};
constinit std::atomic<DlvsymFunction> real_dlvsym{nullptr};
constinit std::atomic<DlopenFunction> real_dlopen{nullptr};
constinit std::atomic<DlsymFunction> next_dlsym{nullptr};
constinit __attribute__((tls_model("initial-exec"))) thread_local bool asking_next = false;

// The C library searches after the object that calls it: this one.
DlsymFunction NextDlsym() {
  DlsymFunction next = next_dlsym.load(std::memory_order_relaxed);
  if (next != nullptr) return next;
  next = reinterpret_cast<DlsymFunction>(RealDlsym()(RTLD_NEXT, "dlsym"));
  if (next == nullptr) next = RealDlsym();
  next_dlsym.store(next, std::memory_order_relaxed);
  return next;
}

}  // namespace

void* FindInLibc(const char* name) {
  Search search = {name, nullptr};
  dl_iterate_phdr(Visit, &search);
  return search.found;
}

bool IsLaterInterposer(const void* caller, const char* name) {
  InterposerSearch search = {caller, name, false, false, false};
  dl_iterate_phdr(VisitInterposer, &search);
  return search.found;
}

bool FindObject(const void* address, const char* symbol, char* path, size_t size, bool* defines) {
  ObjectSearch search = {address, symbol, path, size, defines, false};
  dl_iterate_phdr(VisitObject, &search);
  return search.found;
}

bool IsEarlierObject(const void* caller) {
  InterposerSearch search = {caller, "", false, false, false};
  dl_iterate_phdr(VisitInterposer, &search);
  return search.earlier;
}

void* AskNextDlsym(void* handle, const char* name) {
  if (asking_next) return RealDlsym()(handle, name);
  asking_next = true;
  void* function = NextDlsym()(handle, name);
  asking_next = false;
  return function;
}

DlsymFunction RealDlsym() { return Cached(&real_dlsym, "dlsym"); }
DlvsymFunction RealDlvsym() { return Cached(&real_dlvsym, "dlvsym"); }
DlopenFunction RealDlopen() { return Cached(&real_dlopen, "dlopen"); }

}  // namespace hotpack
