// Stands in for profiler/trace_writer.cc until it is there: creates the file and appends raw events.
#include <fcntl.h>
#include <unistd.h>

#include "profiler/trace_writer.h"

namespace hotpack {
struct TraceWriter::State {
  int fd = -1;
  uint64_t count = 0;
};
TraceWriter::TraceWriter() : state_(new State) {}
TraceWriter::~TraceWriter() { Close(); }
std::unique_ptr<TraceWriter> TraceWriter::Create(const char* path, uint64_t, TraceStatus* status) {
  std::unique_ptr<TraceWriter> writer(new TraceWriter);
  writer->state_->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  *status = writer->state_->fd < 0 ? TraceStatus::kCannotOpen : TraceStatus::kOk;
  if (writer->state_->fd < 0) return nullptr;
  return writer;
}
bool TraceWriter::Append(const Event& event) {
  if (write(state_->fd, &event, sizeof(event)) != static_cast<ssize_t>(sizeof(event))) return false;
  ++state_->count;
  return true;
}
void TraceWriter::Close() {
  if (state_->fd >= 0) close(state_->fd);
  state_->fd = -1;
}
uint64_t TraceWriter::EventCount() const { return state_->count; }
}  // namespace hotpack
