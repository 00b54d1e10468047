#include "bench/train/use_log.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace hotpack::train {
namespace {

struct Block {
  size_t bytes = 0;
  int64_t uses = 0, first = -1, last = -1;
  std::string first_what, last_what;
};

class LoggingDevice : public Device, public UseLog {
 public:
  LoggingDevice(std::unique_ptr<Device> device, const std::string& path)
      : device_(std::move(device)), file_(std::fopen(path.c_str(), "w")) {
    if (file_ == nullptr) throw std::runtime_error(path + " cannot be written");
    use_log = this;
  }
  ~LoggingDevice() override {
    use_log = nullptr;
    for (const Block& block : blocks_) {
      std::fprintf(file_, "%zu\t%lld\t%lld\t%lld\t%s\t%s\n", block.bytes, static_cast<long long>(block.uses),
                   static_cast<long long>(block.first), static_cast<long long>(block.last), block.first_what.c_str(),
                   block.last_what.c_str());
    }
    std::fclose(file_);
  }

  void* Allocate(size_t bytes) override { return Given(device_->Allocate(bytes), bytes); }
  void* AllocateForCopy(size_t bytes) override { return Given(device_->AllocateForCopy(bytes), bytes); }
  void Release(void* pointer) noexcept override {
    live_.erase(pointer);
    device_->Release(pointer);
  }
  void CopyIn(void* device, const void* host, size_t bytes) override {
    device_->CopyIn(device, host, bytes);
    Note("memcpy HtoD", {device});
  }
  void CopyOut(void* host, const void* device, size_t bytes) override {
    device_->CopyOut(host, device, bytes);
    Note("memcpy DtoH", {device});
  }
  void StartCopyIn(void* device, const void* host, size_t bytes) override {
    device_->StartCopyIn(device, host, bytes);
    Note("memcpy HtoD", {device});
  }
  void WaitForCopies() override { device_->WaitForCopies(); }
  std::string Name() const override { return device_->Name(); }

  void Note(const char* what, std::initializer_list<const void*> pointers) override {
    for (const void* pointer : pointers) {
      auto found = live_.upper_bound(pointer);
      if (found == live_.begin()) continue;
      --found;
      Block& block = blocks_[found->second];
      if (static_cast<const char*>(pointer) - static_cast<const char*>(found->first) >=
          static_cast<std::ptrdiff_t>(block.bytes))
        continue;
      if (block.last == count_) continue;  // the same work named it twice
      if (block.uses++ == 0) block.first = count_, block.first_what = what;
      block.last = count_;
      block.last_what = what;
    }
    ++count_;
  }

 private:
  void* Given(void* pointer, size_t bytes) {
    live_[pointer] = blocks_.size();
    blocks_.push_back({bytes, 0, -1, -1, "", ""});
    return pointer;
  }

  const std::unique_ptr<Device> device_;
  std::FILE* const file_;
  std::vector<Block> blocks_;
  std::map<const void*, size_t> live_;
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Device> LogUses(std::unique_ptr<Device> device, const std::string& path) {
  return std::make_unique<LoggingDevice>(std::move(device), path);
}

}  // namespace hotpack::train
