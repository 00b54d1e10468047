// Random changes to inputs, for compilers that have no libFuzzer.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace hotpack::fuzz {

// The tokens of a dictionary in libFuzzer's form: a line each, NAME="TOKEN" or "TOKEN", with \\, \" and \xHH for other
// bytes; lines that are empty or begin with # are left out. False with `fault` set at a line of another form.
bool ParseDictionary(std::string_view text, std::vector<std::string>* tokens, std::string* fault);

// Makes inputs out of seeds. The same seeds, tokens and random seed give the same inputs, with every standard library:
// only the generator's raw numbers are used.
class Mutator {
 public:
  // Inputs are at most `most_bytes` long. Without seeds everything grows out of the empty input.
  Mutator(std::vector<std::string> seeds, std::vector<std::string> tokens, size_t most_bytes, uint64_t seed);

  // A seed with one to eight changes: bits, bytes, integers, decimal numbers, tokens, pieces left out, doubled, moved,
  // cut or taken from another seed.
  std::string Next();

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }
  void Change(std::string* input);
  void ChangeByte(std::string* input);
  void ChangeInteger(std::string* input);
  void ChangeNumber(std::string* input);
  void ChangePiece(std::string* input);
  void InsertToken(std::string* input);
  void Splice(std::string* input);

  std::vector<std::string> seeds_;
  std::vector<std::string> tokens_;
  size_t most_bytes_;
  std::mt19937_64 random_;
};

}  // namespace hotpack::fuzz
