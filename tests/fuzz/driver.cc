// The main program of a fuzz target without libFuzzer: runs files and folders of inputs, and with --random also N
// random changes of them. If the program fails, the current input is in the file crash-TARGET.
//
//   fuzz_csv [--random N] [--seed S] [--max-bytes N] [--dictionary FILE] [FILE|FOLDER ...]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace hotpack::fuzz {
namespace {

namespace fs = std::filesystem;

struct Options {
  uint64_t random = 0;
  uint64_t seed = 1;
  uint64_t most_bytes = 4096;
  std::string dictionary;
  std::vector<std::string> paths;
};

// What runs now, for the handlers below: they may use nothing that allocates.
const std::string* running = nullptr;
char crash_path[256];

void KeepInput() {
  if (running == nullptr) return;
  const int file = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const char* at = running->data();
  for (size_t left = running->size(); file >= 0 && left > 0;) {
    const ssize_t written = write(file, at, left);
    if (written <= 0) break;
    at += written;
    left -= static_cast<size_t>(written);
  }
  char line[400];
  const int length = snprintf(line, sizeof(line), "fuzz: the input is in %s\n", crash_path);
  if (length > 0 && write(2, line, static_cast<size_t>(length)) < 0) return;
  running = nullptr;
}

void OnSignal(int signal_number) {
  KeepInput();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void KeepInputOnFailure(const std::string& target) {
  snprintf(crash_path, sizeof(crash_path), "crash-%s", target.c_str());
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(KeepInput);
  signal(SIGABRT, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) return;  // it reports the others itself
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, OnSignal);
}

// The target gets a copy of the exact length, so that a sanitizer sees a read behind its end.
void Run(const std::string& input) {
  running = &input;
  const std::vector<uint8_t> copy(input.begin(), input.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  running = nullptr;
}

int Usage(const std::string& fault) {
  fprintf(stderr, "fuzz: %s\nusage: [--random N] [--seed S] [--max-bytes N] [--dictionary FILE] [FILE|FOLDER ...]\n",
          fault.c_str());
  return 2;
}

bool ReadFile(const fs::path& path, std::string* contents) {
  std::ifstream file(path, std::ios::binary);
  contents->assign(std::istreambuf_iterator<char>(file), {});
  return file.is_open() && !file.bad();
}

bool ParseOptions(int count, char** arguments, Options* options, std::string* fault) {
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument.substr(0, 2) != "--") {
      options->paths.push_back(argument);
      continue;
    }
    if (i + 1 == count) {
      *fault = argument + " is not known, or its value is missing";
      return false;
    }
    const std::string value = arguments[++i];
    if (argument == "--dictionary") {
      options->dictionary = value;
      continue;
    }
    uint64_t* const number = argument == "--random"      ? &options->random
                             : argument == "--seed"      ? &options->seed
                             : argument == "--max-bytes" ? &options->most_bytes
                                                         : nullptr;
    if (number == nullptr) {
      *fault = argument + " is not known";
      return false;
    }
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
    if (error != std::errc() || stop != value.data() + value.size()) {
      *fault = argument + " " + value + " is no number";
      return false;
    }
  }
  return true;
}

// The inputs in `paths`: files, and all files of folders, in the order of their names.
bool ReadSeeds(const std::vector<std::string>& paths, std::vector<std::string>* seeds, std::string* fault) {
  for (const std::string& path : paths) {
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::directory_iterator(path)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
      std::sort(files.begin(), files.end());
    } else {
      files.push_back(path);
    }
    for (const fs::path& file : files) {
      seeds->emplace_back();
      if (ReadFile(file, &seeds->back())) continue;
      *fault = file.string() + " cannot be read";
      return false;
    }
  }
  return true;
}

int Main(int count, char** arguments) {
  Options options;
  std::vector<std::string> seeds, tokens;
  std::string fault, dictionary;
  if (!ParseOptions(count, arguments, &options, &fault) || !ReadSeeds(options.paths, &seeds, &fault))
    return Usage(fault);
  if (options.random == 0 && seeds.empty()) return Usage("nothing to run");
  if (!options.dictionary.empty()) {
    if (!ReadFile(options.dictionary, &dictionary)) return Usage(options.dictionary + " cannot be read");
    if (!ParseDictionary(dictionary, &tokens, &fault)) return Usage(options.dictionary + ": " + fault);
  }
  const std::string target = fs::path(arguments[0]).filename().string();
  KeepInputOnFailure(target);
  for (const std::string& seed : seeds) Run(seed);
  const size_t given = seeds.size();
  Mutator mutator(std::move(seeds), std::move(tokens), options.most_bytes, options.seed);
  for (uint64_t i = 0; i < options.random; ++i) Run(mutator.Next());
  printf("%s: %zu inputs as given and %llu changed ones (--seed %llu)\n", target.c_str(), given,
         static_cast<unsigned long long>(options.random), static_cast<unsigned long long>(options.seed));
  return 0;
}

}  // namespace
}  // namespace hotpack::fuzz

int main(int count, char** arguments) { return hotpack::fuzz::Main(count, arguments); }
