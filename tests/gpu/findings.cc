#include "tests/gpu/findings.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>

namespace hotpack::gpu {
namespace {

// The text for an abnormal end. Each finding replaces it, and none is freed, because a signal handler may be reading
// it.
std::atomic<const std::string*> last_words{nullptr};

void WriteAll(int file, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = write(file, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

// Async-signal-safe. At most one caller gets the text.
void WriteLastWords() {
  const std::string* text = last_words.exchange(nullptr);
  if (text != nullptr) WriteAll(STDOUT_FILENO, text->data(), text->size());
}

void OnFatalSignal(int signal_number) {
  WriteLastWords();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

std::string Number(double value) {
  char text[64];
  snprintf(text, sizeof text, "%.15g", value);
  return text;
}

}  // namespace

std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", byte);
      json += escape;
    } else {
      json += c;
    }
  }
  return json + "\"";
}

Findings::Findings(std::string program) : program_(std::move(program)) {}

void Findings::Pass(std::string name, std::string expected, std::string seen) {
  Add({std::move(name), Result::kPass, std::move(expected), std::move(seen)});
}

void Findings::Fail(std::string name, std::string expected, std::string seen) {
  Add({std::move(name), Result::kFail, std::move(expected), std::move(seen)});
}

void Findings::Differs(std::string name, std::string expected, std::string seen) {
  Add({std::move(name), Result::kDiffers, std::move(expected), std::move(seen)});
}

void Findings::Skip(std::string name, std::string reason) {
  Add({std::move(name), Result::kSkip, "", std::move(reason)});
}

bool Findings::Check(bool ok, std::string name, std::string expected, std::string seen) {
  Add({std::move(name), ok ? Result::kPass : Result::kFail, std::move(expected), std::move(seen)});
  return ok;
}

bool Findings::Fact(bool ok, std::string name, std::string expected, std::string seen) {
  Add({std::move(name), ok ? Result::kPass : Result::kDiffers, std::move(expected), std::move(seen)});
  return ok;
}

void Findings::AddFigure(std::string name, std::string unit, std::vector<double> samples) {
  if (samples.empty()) return;
  Figure figure = check::Summarize(std::move(name), std::move(unit), std::move(samples));
  const std::string line = "figure: " + figure.name + ": " + Number(figure.median) + " " + figure.unit + " (" +
                           Number(figure.low) + " to " + Number(figure.high) + ")\n";
  WriteAll(STDERR_FILENO, line.data(), line.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  figures_.push_back(std::move(figure));
  Publish();
}

bool Findings::AnyFailed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(findings_.begin(), findings_.end(), [](const Finding& f) { return f.result == Result::kFail; });
}

std::string Findings::Json() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Render(nullptr);
}

void Findings::Guard(int seconds) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    guarded_ = true;
    Publish();
  }
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGINT}) signal(number, OnFatalSignal);
  std::thread([seconds] {
    const timespec limit = {seconds, 0};
    timespec left = limit;
    while (nanosleep(&left, &left) != 0) {
    }
    if (last_words.load() == nullptr) return;  // Finish was first
    static constexpr char kLine[] = "the time limit is over\n";
    WriteAll(STDERR_FILENO, kLine, sizeof kLine - 1);
    WriteLastWords();
    _exit(1);
  }).detach();
}

int Findings::Finish() {
  const std::string json = Json() + "\n";
  const bool guarded = guarded_;
  // The thread that takes the last words writes, so there are never two objects.
  if (!guarded || last_words.exchange(nullptr) != nullptr) WriteAll(STDOUT_FILENO, json.data(), json.size());
  return AnyFailed() ? 1 : 0;
}

void Findings::Add(Finding finding) {
  std::string line = std::string("finding: ") + ResultName(finding.result) + " " + finding.name;
  if (!finding.expected.empty()) line += "; expected " + finding.expected;
  if (!finding.seen.empty()) line += "; seen " + finding.seen;
  line += "\n";
  WriteAll(STDERR_FILENO, line.data(), line.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  findings_.push_back(std::move(finding));
  Publish();
}

std::string Findings::Render(const Finding* last) const {
  std::string json = "{\"program\": " + JsonString(program_) + ", \"findings\": [";
  const char* separator = "";
  const auto add = [&](const Finding& f) {
    json += std::string(separator) + "{\"name\": " + JsonString(f.name) + ", \"result\": \"" + ResultName(f.result) +
            "\", \"expected\": " + JsonString(f.expected) + ", \"seen\": " + JsonString(f.seen) + "}";
    separator = ", ";
  };
  for (const Finding& finding : findings_) add(finding);
  if (last != nullptr) add(*last);
  json += "], \"figures\": [";
  separator = "";
  for (const Figure& f : figures_) {
    json += std::string(separator) + "{\"name\": " + JsonString(f.name) + ", \"unit\": " + JsonString(f.unit) +
            ", \"median\": " + Number(f.median) + ", \"low\": " + Number(f.low) + ", \"high\": " + Number(f.high) +
            ", \"samples\": " + std::to_string(f.samples) + "}";
    separator = ", ";
  }
  return json + "]}";
}

void Findings::Publish() {
  if (!guarded_) return;
  const Finding last = {
      "finished", Result::kFail, "the program ends by itself within its time limit",
      findings_.empty() ? "it ended before its first finding" : "it ended after " + findings_.back().name};
  last_words.store(new std::string(Render(&last) + "\n"));
}

}  // namespace hotpack::gpu
