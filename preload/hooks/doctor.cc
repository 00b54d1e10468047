#include "preload/hooks/doctor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "preload/process/driver_access.h"
#include "preload/process/options.h"

namespace hotpack {

constinit std::atomic<DoctorFile*> doctor_file{nullptr};

namespace {

void Copy(char* to, size_t size, const char* from) {
  const size_t length = strnlen(from, size - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

// Takes an entry for a thread if it is free. Returns true once in the entry's life.
template <typename Entry>
bool Take(Entry* entry) {
  uint8_t free = 0;
  return entry->taken.compare_exchange_strong(free, 1);
}

// The thread that took an entry fills it. Until then others may see an empty name and take the next entry for it.
void NoteName(DoctorFile* file, const char* name, bool hooked_base) {
  for (DoctorName& entry : file->unhooked) {
    if (entry.taken.load(std::memory_order_acquire) != 0) {
      if (strncmp(entry.name, name, sizeof(entry.name) - 1) == 0) {
        if (hooked_base) entry.hooked_base.store(1);
        return;
      }
      continue;
    }
    if (!Take(&entry)) continue;
    Copy(entry.name, sizeof(entry.name), name);
    entry.hooked_base.store(hooked_base ? 1 : 0);
    return;
  }
  file->full.store(1);
}

DoctorLibrary* LibraryOf(DoctorFile* file, const void* caller) {
  Dl_info info = {};
  if (dladdr(const_cast<void*>(caller), &info) == 0 || info.dli_fname == nullptr) return nullptr;
  for (DoctorLibrary& entry : file->libraries) {
    if (entry.taken.load(std::memory_order_acquire) != 0) {
      if (strncmp(entry.path, info.dli_fname, sizeof(entry.path) - 1) == 0) return &entry;
      continue;
    }
    if (!Take(&entry)) continue;
    Copy(entry.path, sizeof(entry.path), info.dli_fname);
    return &entry;
  }
  file->full.store(1);
  return nullptr;
}

// Keeps the lines of each library's first part. Reads in pieces: a large job's file is longer than any buffer here.
class MapsReader {
 public:
  explicit MapsReader(DoctorFile* file) : file_(file) {}
  void Read() {
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    char piece[4096];
    for (ssize_t got; (got = read(fd, piece, sizeof(piece))) > 0;) {
      for (ssize_t i = 0; i < got; ++i) Add(piece[i]);
    }
    close(fd);
    file_->mapped_bytes.store(used_, std::memory_order_release);
  }

 private:
  void Add(char c) {
    if (c != '\n') {
      if (length_ < sizeof(line_) - 1) line_[length_++] = c;
      return;
    }
    line_[length_] = '\0';
    unsigned long offset = 0;
    int name = 0;
    if (sscanf(line_, "%*s %*s %lx %*s %*s %n", &offset, &name) == 1 && offset == 0 && name > 0 &&
        strstr(line_ + name, ".so") != nullptr) {
      Keep(line_ + name);
    }
    length_ = 0;
  }
  void Keep(const char* path) {
    const size_t size = strlen(path);
    if (size + 1 > sizeof(file_->mapped) - used_) {
      file_->full.store(1);
      return;
    }
    memcpy(file_->mapped + used_, path, size);
    file_->mapped[used_ + size] = '\n';
    used_ += static_cast<uint32_t>(size + 1);
  }

  DoctorFile* const file_;
  char line_[4352];
  size_t length_ = 0;
  uint32_t used_ = 0;
};

void ReadMaps(DoctorFile* file) {
  MapsReader reader(file);
  reader.Read();
}

// Not before the library's constructors: the C library is ready then.
__attribute__((constructor)) void OpenDoctorFile() {
  const char* directory = getenv("HOTPACK_DOCTOR");
  if (directory == nullptr || directory[0] == '\0') return;
  char path[4096];
  const int length = snprintf(path, sizeof(path), "%s/doctor.%d", directory, static_cast<int>(getpid()));
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return;
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  void* mapping = MAP_FAILED;
  if (posix_fallocate(fd, 0, sizeof(DoctorFile)) == 0) {
    mapping = mmap(nullptr, sizeof(DoctorFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (mapping == MAP_FAILED) {
    unlink(path);
    return;
  }
  auto* file = static_cast<DoctorFile*>(mapping);  // zeros: all members are empty
  file->pid = getpid();
  const ssize_t size = readlink("/proc/self/exe", file->program, sizeof(file->program) - 1);
  file->program[size > 0 ? size : 0] = '\0';
  file->enabled.store(GetOptions().enabled ? 1 : 0);
  file->magic.store(kDoctorMagic, std::memory_order_release);
  doctor_file.store(file, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, [] { doctor_file.store(nullptr); });  // the child's look-ups are not the parent's
}

__attribute__((destructor)) void CloseDoctorFile() {
  DoctorFile* file = Doctor();
  if (file == nullptr) return;
  if (DriverLibrary() != nullptr) file->driver.store(1);  // with hotpack off, no other code has searched for it
  if (file->driver.load() != 0) ReadMaps(file);
}

}  // namespace

void DoctorNotesHook(int index, const char* symbol, bool in_driver) {
  DoctorFile* file = Doctor();
  if (file == nullptr || static_cast<size_t>(index) >= kDoctorHooks) return;
  Copy(file->hooks[index].symbol, sizeof(file->hooks[index].symbol), symbol);
  file->hooks[index].in_driver.store(in_driver ? 1 : 0);
}

void DoctorNotesLookUp(const char* name, const void* caller, int index, bool hooked_base) {
  DoctorFile* file = Doctor();
  if (file == nullptr) return;
  if (DoctorLibrary* library = LibraryOf(file, caller)) {
    library->looked_up.fetch_add(1, std::memory_order_relaxed);
    if (index >= 0) library->hooked.fetch_add(1, std::memory_order_relaxed);
  }
  if (index >= 0) {
    file->hooks[index].looked_up.fetch_add(1, std::memory_order_relaxed);
  } else if (name != nullptr) {
    NoteName(file, name, hooked_base);
  }
}

void DoctorNotesDriver() {
  DoctorFile* file = Doctor();
  if (file == nullptr || file->driver.exchange(1) != 0) return;
  ReadMaps(file);
}

}  // namespace hotpack
