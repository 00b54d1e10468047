#include "packer/model_writer.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hotpack {
namespace {

// Gathers small pieces for the sink.
class Text {
 public:
  explicit Text(const TextSink& sink) : sink_(sink) {}

  template <typename... Pieces>
  void Add(const Pieces&... pieces) {
    absl::StrAppend(&buffer_, pieces...);
    if (buffer_.size() >= kFull) Flush();
  }

  absl::Status Finish() {
    Flush();
    return status_;
  }

  bool failed() const { return !status_.ok(); }

 private:
  static constexpr size_t kFull = 1 << 16;

  void Flush() {
    if (status_.ok() && !buffer_.empty()) status_ = sink_(buffer_);
    buffer_.clear();
  }

  const TextSink& sink_;
  std::string buffer_;
  absl::Status status_;
};

// Returns an id for a comment: printable, on one line, and short enough that readers of the model do not cut the line.
std::string CommentText(const std::string& id) {
  constexpr size_t kLongest = 160;
  std::string text = absl::CHexEscape(id);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

void AddComments(const ExactModel& model, absl::string_view mark, const std::vector<std::string>& ids, Text* text) {
  text->Add(mark, " Dynamic storage allocation: ", model.blocks.size(), " blocks, ", model.pairs.size(),
            " pairs that are resident together\n");
  text->Add(mark, model.as_published ? " As published: u and xI in bytes\n"
                                     : " u and xI in units of the first number of u's name\n");
  if (ToleratedOverlap(model.big) >= 1) {
    text->Add(mark, " An integrality tolerance of 1e-6 lets blocks overlap by ",
              static_cast<int64_t>(ToleratedOverlap(model.big)), " units\n");
  }
  for (size_t i = 0; i < ids.size() && !text->failed(); ++i) text->Add(mark, " x", i, " ", CommentText(ids[i]), "\n");
}

// Returns I_J, as in the names that belong to a pair.
template <typename Index>
std::string Pair(const std::pair<Index, Index>& pair) {
  return absl::StrCat(pair.first, "_", pair.second);
}

class LpWriter {
 public:
  LpWriter(const ExactModel& model, const TextSink& sink) : model_(model), height_(HeightName(model)), text_(sink) {}

  absl::Status Write(const std::vector<std::string>& ids) {
    AddComments(model_, "\\", ids, &text_);
    text_.Add("Minimize\n obj: ", height_, "\nSubject To\n");
    Rows();
    text_.Add("Bounds\n");
    Bounds();
    text_.Add("Generals\n ", height_, "\n");
    for (size_t i = 0; i < model_.blocks.size(); ++i) {
      text_.Add(" x", i, "\n");
      if (model_.blocks[i].alignment > 1) text_.Add(" k", i, "\n");
    }
    if (!model_.pairs.empty()) text_.Add("Binaries\n");
    for (size_t p = 0; p < model_.pairs.size() && !text_.failed(); ++p) text_.Add(" z", Pair(model_.pairs[p]), "\n");
    text_.Add("End\n");
    return text_.Finish();
  }

 private:
  void Rows() {
    for (size_t i = 0; i < model_.blocks.size(); ++i) {
      text_.Add(" t", i, ": ", height_, " - x", i, " >= ", model_.blocks[i].size, "\n");
      if (const int64_t alignment = model_.blocks[i].alignment; alignment > 1) {
        text_.Add(" m", i, ": x", i, " - ", alignment, " k", i, " = 0\n");
      }
    }
    if (model_.lower_bound > 0) text_.Add(" lb: ", height_, " >= ", model_.lower_bound, "\n");
    for (size_t p = 0; p < model_.pairs.size() && !text_.failed(); ++p) {
      const auto [i, j] = model_.pairs[p];
      const std::string name = Pair(model_.pairs[p]);
      text_.Add(" a", name, ": x", i, " - x", j, " - ", model_.big, " z", name, " <= -", model_.blocks[i].size, "\n");
      text_.Add(" b", name, ": x", j, " - x", i, " + ", model_.big, " z", name,
                " <= ", model_.big - model_.blocks[j].size, "\n");
    }
  }

  void Bounds() {
    text_.Add(" 0 <= ", height_, " <= ", model_.big, "\n");
    for (size_t i = 0; i < model_.blocks.size() && !text_.failed(); ++i) {
      if (model_.blocks[i].pinned != kNotPinned) {
        text_.Add(" x", i, " = ", model_.blocks[i].pinned, "\n");
      } else if (!model_.as_published) {
        text_.Add(" 0 <= x", i, " <= ", model_.blocks[i].most, "\n");
      }
    }
  }

  const ExactModel& model_;
  const std::string height_;
  Text text_;
};

class MpsWriter {
 public:
  MpsWriter(const ExactModel& model, const TextSink& sink) : model_(model), height_(HeightName(model)), text_(sink) {}

  absl::Status Write(const std::vector<std::string>& ids) {
    AddComments(model_, "*", ids, &text_);
    text_.Add("NAME hotpack FREE\nROWS\n N obj\n");
    Rows();
    text_.Add("COLUMNS\n MARKER 'MARKER' 'INTORG'\n");
    Columns();
    text_.Add(" MARKER 'MARKER' 'INTEND'\nRHS\n");
    RightHandSides();
    text_.Add("BOUNDS\n");
    Bounds();
    text_.Add("ENDATA\n");
    return text_.Finish();
  }

 private:
  void Rows() {
    for (size_t i = 0; i < model_.blocks.size(); ++i) {
      text_.Add(" G t", i, "\n");
      if (model_.blocks[i].alignment > 1) text_.Add(" E m", i, "\n");
    }
    if (model_.lower_bound > 0) text_.Add(" G lb\n");
    for (size_t p = 0; p < model_.pairs.size() && !text_.failed(); ++p) {
      const std::string name = Pair(model_.pairs[p]);
      text_.Add(" L a", name, "\n L b", name, "\n");
    }
  }

  // Indexes the pairs of each block: those of block i are pairs_of_[first_[i]] up to pairs_of_[first_[i + 1]].
  void IndexPairs() {
    first_.assign(model_.blocks.size() + 1, 0);
    for (const auto& [i, j] : model_.pairs) {
      ++first_[i + 1];
      ++first_[j + 1];
    }
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    pairs_of_.resize(first_.back());
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    for (size_t p = 0; p < model_.pairs.size(); ++p) {
      pairs_of_[next[model_.pairs[p].first]++] = static_cast<uint32_t>(p);
      pairs_of_[next[model_.pairs[p].second]++] = static_cast<uint32_t>(p);
    }
  }

  void Columns() {
    IndexPairs();
    text_.Add(" ", height_, " obj 1\n");
    for (size_t i = 0; i < model_.blocks.size(); ++i) text_.Add(" ", height_, " t", i, " 1\n");
    if (model_.lower_bound > 0) text_.Add(" ", height_, " lb 1\n");
    for (size_t i = 0; i < model_.blocks.size() && !text_.failed(); ++i) BlockColumns(i);
    for (size_t p = 0; p < model_.pairs.size() && !text_.failed(); ++p) {
      const std::string name = Pair(model_.pairs[p]);
      text_.Add(" z", name, " a", name, " -", model_.big, "\n z", name, " b", name, " ", model_.big, "\n");
    }
  }

  void BlockColumns(size_t i) {
    text_.Add(" x", i, " t", i, " -1\n");
    if (model_.blocks[i].alignment > 1) text_.Add(" x", i, " m", i, " 1\n");
    for (size_t at = first_[i]; at < first_[i + 1]; ++at) {
      const auto& pair = model_.pairs[pairs_of_[at]];
      const bool is_first = static_cast<size_t>(pair.first) == i;
      text_.Add(" x", i, " a", Pair(pair), is_first ? " 1\n" : " -1\n");
      text_.Add(" x", i, " b", Pair(pair), is_first ? " -1\n" : " 1\n");
    }
    if (model_.blocks[i].alignment > 1) text_.Add(" k", i, " m", i, " -", model_.blocks[i].alignment, "\n");
  }

  void RightHandSides() {
    for (size_t i = 0; i < model_.blocks.size(); ++i) text_.Add(" RHS t", i, " ", model_.blocks[i].size, "\n");
    if (model_.lower_bound > 0) text_.Add(" RHS lb ", model_.lower_bound, "\n");
    for (size_t p = 0; p < model_.pairs.size() && !text_.failed(); ++p) {
      const auto [i, j] = model_.pairs[p];
      const std::string name = Pair(model_.pairs[p]);
      text_.Add(" RHS a", name, " -", model_.blocks[i].size, "\n");
      text_.Add(" RHS b", name, " ", model_.big - model_.blocks[j].size, "\n");
    }
  }

  // Writes bounds for every column: readers differ in the default bounds of an integer column.
  void Bounds() {
    text_.Add(" UP BND ", height_, " ", model_.big, "\n");
    for (size_t i = 0; i < model_.blocks.size(); ++i) {
      const ModelBlock& block = model_.blocks[i];
      if (block.pinned != kNotPinned) {
        text_.Add(" FX BND x", i, " ", block.pinned, "\n");
      } else if (model_.as_published) {
        text_.Add(" PL BND x", i, "\n");
      } else {
        text_.Add(" UP BND x", i, " ", block.most, "\n");
      }
      if (block.alignment > 1) text_.Add(" PL BND k", i, "\n");
    }
    for (size_t p = 0; p < model_.pairs.size() && !text_.failed(); ++p) {
      text_.Add(" BV BND z", Pair(model_.pairs[p]), "\n");
    }
  }

  const ExactModel& model_;
  const std::string height_;
  Text text_;
  std::vector<size_t> first_;
  std::vector<uint32_t> pairs_of_;
};

}  // namespace

std::string HeightName(const ExactModel& model) { return absl::StrCat("u_", model.unit, "_", model.big); }

absl::Status WriteModel(const ExactModel& model, ModelFormat format, const std::vector<std::string>& ids,
                        const TextSink& sink) {
  if (format == ModelFormat::kLp) return LpWriter(model, sink).Write(ids);
  return MpsWriter(model, sink).Write(ids);
}

}  // namespace hotpack
