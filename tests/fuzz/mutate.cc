#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hotpack::fuzz {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The token between the quotes of `quoted`, which is the rest of a line.
bool ParseToken(std::string_view quoted, std::string* token) {
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"') return false;
  quoted = quoted.substr(1, quoted.size() - 2);
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '"') return false;
    if (quoted[i] != '\\') {
      token->push_back(quoted[i]);
      continue;
    }
    if (++i == quoted.size()) return false;
    if (quoted[i] == '\\' || quoted[i] == '"') {
      token->push_back(quoted[i]);
    } else if (quoted[i] == 'x' && i + 2 < quoted.size() && HexDigit(quoted[i + 1]) >= 0 &&
               HexDigit(quoted[i + 2]) >= 0) {
      token->push_back(static_cast<char>(HexDigit(quoted[i + 1]) * 16 + HexDigit(quoted[i + 2])));
      i += 2;
    } else {
      return false;
    }
  }
  return !token->empty();
}

}  // namespace

bool ParseDictionary(std::string_view text, std::vector<std::string>* tokens, std::string* fault) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    std::string token;
    const size_t quote = line.find('"');
    if (quote == std::string_view::npos || !ParseToken(line.substr(quote), &token)) {
      *fault = "line " + std::to_string(number) + " is no token in quotes";
      return false;
    }
    tokens->push_back(std::move(token));
  }
  return true;
}

Mutator::Mutator(std::vector<std::string> seeds, std::vector<std::string> tokens, size_t most_bytes, uint64_t seed)
    : seeds_(std::move(seeds)), tokens_(std::move(tokens)), most_bytes_(most_bytes), random_(seed) {
  if (seeds_.empty()) seeds_.emplace_back();
}

std::string Mutator::Next() {
  std::string input = seeds_[Below(seeds_.size())];
  // Half of the inputs have one change, a quarter two, and so on: most stay near something that is taken.
  size_t changes = 1;
  while (changes < 8 && Below(2) == 0) ++changes;
  for (size_t i = 0; i < changes; ++i) Change(&input);
  if (input.size() > most_bytes_) input.resize(most_bytes_);
  return input;
}

void Mutator::Change(std::string* input) {
  if (input->empty()) {
    input->push_back(static_cast<char>(random_()));
    return;
  }
  switch (Below(8)) {
    case 0:
      ChangeByte(input);
      break;
    case 1:
      ChangeInteger(input);
      break;
    case 2:
    case 3:
      ChangeNumber(input);
      break;
    case 4:
    case 5:
      ChangePiece(input);
      break;
    case 6:
      InsertToken(input);
      break;
    default:
      Splice(input);
      break;
  }
}

void Mutator::ChangeByte(std::string* input) {
  const size_t at = Below(input->size());
  switch (Below(3)) {
    case 0:
      (*input)[at] = static_cast<char>((*input)[at] ^ (1 << Below(8)));
      break;
    case 1:
      (*input)[at] = static_cast<char>(random_());
      break;
    default:
      input->insert(at, 1, static_cast<char>(random_()));
      break;
  }
}

// A little-endian integer of 1, 2, 4 or 8 bytes that is small, large or one more or less than it was.
void Mutator::ChangeInteger(std::string* input) {
  const size_t width = size_t{1} << Below(4);
  if (input->size() < width) return;
  char* const at = input->data() + Below(input->size() - width + 1);
  uint64_t value = 0;
  memcpy(&value, at, width);
  switch (Below(4)) {
    case 0:
      value += 1;
      break;
    case 1:
      value -= 1;
      break;
    case 2:
      value = Below(300);
      break;
    default:
      value = UINT64_MAX >> Below(64);
      break;
  }
  memcpy(at, &value, width);
}

// Replaces a decimal number of the text by one at the limit of integers, or near the old one.
void Mutator::ChangeNumber(std::string* input) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t begin = Below(input->size());
  while (begin < input->size() && !digit((*input)[begin])) ++begin;
  size_t end = begin;
  while (end < input->size() && digit((*input)[end])) ++end;
  if (begin == end) return ChangeByte(input);
  std::string number;
  switch (Below(3)) {
    case 0:
      number = std::to_string(Below(20));
      break;
    case 1:
      number = std::to_string((uint64_t{1} << Below(64)) - Below(3) + Below(3));
      break;
    default:
      number = input->substr(begin, end - begin) + std::to_string(Below(10));
      break;
  }
  input->replace(begin, end - begin, number);
}

// A piece is left out, doubled or moved, or the input ends there.
void Mutator::ChangePiece(std::string* input) {
  const size_t at = Below(input->size());
  const std::string piece = input->substr(at, 1 + Below(Below(4) == 0 ? input->size() : 16));
  switch (Below(4)) {
    case 0:
      input->erase(at, piece.size());
      break;
    case 1:
      input->insert(Below(input->size()), piece);
      break;
    case 2:
      input->erase(at, piece.size());
      input->insert(Below(input->size() + 1), piece);
      break;
    default:
      input->resize(at);
      break;
  }
}

void Mutator::InsertToken(std::string* input) {
  if (tokens_.empty()) return ChangeByte(input);
  const std::string& token = tokens_[Below(tokens_.size())];
  const size_t at = Below(input->size() + 1);
  if (Below(2) == 0) {
    input->insert(at, token);
  } else {
    input->replace(at, std::min(token.size(), input->size() - at), token);
  }
}

void Mutator::Splice(std::string* input) {
  const std::string& other = seeds_[Below(seeds_.size())];
  if (other.empty()) return;
  const size_t from = Below(other.size());
  input->replace(Below(input->size()), Below(32), other, from, 1 + Below(other.size() - from));
}

}  // namespace hotpack::fuzz
