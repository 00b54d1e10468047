#include "packer/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "random_instance.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NamedInstance Parsed(const std::string& text) {
  absl::StatusOr<NamedInstance> result = ParseCsv(text, "f.csv");
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : NamedInstance{};
}

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<NamedInstance> result = ParseCsv(text, "f.csv");
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

std::vector<std::pair<Clock, Clock>> Intervals(const Block& block) {
  std::vector<std::pair<Clock, Clock>> intervals;
  for (const Residency& residency : block.residency) intervals.emplace_back(residency.begin, residency.end);
  return intervals;
}

TEST(CsvReaderTest, ReadsTheFourNeededColumns) {
  const NamedInstance read = Parsed("id,lower,upper,size\nb1,0,3,4\nb2,3,9,2\n");
  EXPECT_THAT(read.ids, ElementsAre("b1", "b2"));
  EXPECT_THAT(read.offsets, IsEmpty());
  ASSERT_EQ(read.instance.blocks.size(), 2u);
  EXPECT_EQ(read.instance.blocks[0].size, 4);
  EXPECT_EQ(read.instance.blocks[0].alignment, 1);
  EXPECT_EQ(read.instance.blocks[0].pinned, kNotPinned);
  EXPECT_THAT(Intervals(read.instance.blocks[1]), ElementsAre(std::pair(3, 9)));
}

TEST(CsvReaderTest, ReadsAllColumnsInAnyOrder) {
  const NamedInstance read =
      Parsed("offset,gaps,size,hint,upper,alignment,lower,id\n16,3-5 7-8,4,-1,9,8,0,x\n-1,,4,,9,,0,y\n,,4,,9,,0,z");
  ASSERT_EQ(read.instance.blocks.size(), 3u);
  EXPECT_EQ(read.instance.blocks[0].alignment, 8);
  EXPECT_THAT(Intervals(read.instance.blocks[0]), ElementsAre(std::pair(0, 3), std::pair(5, 7), std::pair(8, 9)));
  EXPECT_THAT(read.offsets, ElementsAre(16, kNotPinned, kNotPinned));
  EXPECT_EQ(read.instance.blocks[0].pinned, kNotPinned);
}

TEST(CsvReaderTest, KnowsOtherNamesAndTheInclusiveEnd) {
  EXPECT_THAT(Intervals(Parsed("buffer_id,start,end,size\nx,2,4,1\n").instance.blocks[0]),
              ElementsAre(std::pair(2, 5)));
  EXPECT_THAT(Intervals(Parsed("buffer,begin,end,size,gaps\nx,2,9,1,4-6\n").instance.blocks[0]),
              ElementsAre(std::pair(2, 4), std::pair(7, 10)));
  EXPECT_THAT(Intervals(Parsed("id,begin,upper,size\nx,2,4,1\n").instance.blocks[0]), ElementsAre(std::pair(2, 4)));
}

// Every name of a column means the same as the first of its kind, in whatever company.
TEST(CsvReaderTest, EveryAliasIsRead) {
  for (const std::string id : {"id", "buffer", "buffer_id"}) {
    for (const std::string lower : {"lower", "begin", "start"}) {
      for (const std::string upper : {"upper", "end"}) {
        const NamedInstance read = Parsed(id + "," + lower + "," + upper + ",size\nx,2,4,1\n");
        ASSERT_THAT(read.ids, ElementsAre("x")) << id << lower << upper;
        ASSERT_THAT(Intervals(read.instance.blocks[0]), ElementsAre(std::pair(2, upper == "end" ? 5 : 4)));
        EXPECT_EQ(ErrorOf(id + "," + lower + "," + upper + ",size," + id + "\n"),
                  "f.csv:1:" + std::to_string(id.size() + lower.size() + upper.size() + 9) +
                      ": a second column of the meaning of '" + id + "'");
      }
    }
  }
  EXPECT_EQ(ErrorOf("id,start,begin,upper,size\n"), "f.csv:1:10: a second column of the meaning of 'begin'");
  EXPECT_EQ(ErrorOf("ID,lower,upper,size\n"), "f.csv:1:1: there is no column 'ID'");
}

// Everything at once, as a spreadsheet saves it: a byte order mark, CRLF, blanks, all columns, the aliases.
TEST(CsvReaderTest, ReadsAllColumnsUnderTheirOtherNamesWithDosLineEnds) {
  const NamedInstance read = Parsed(
      "\xEF\xBB\xBF"
      "buffer_id,start,end,size,alignment,hint,gaps,offset\r\n"
      "conv 1, 0, 8, 4096, 512, 77, 3-4 7-7, 8192\r\n"
      "fc,1,1,1,,,,\r\n"
      "\r\n");
  EXPECT_THAT(read.ids, ElementsAre("conv 1", "fc"));
  ASSERT_EQ(read.instance.blocks.size(), 2u);
  const Block& conv = read.instance.blocks[0];
  EXPECT_EQ(conv.size, 4096);
  EXPECT_EQ(conv.alignment, 512);
  EXPECT_EQ(conv.pinned, kNotPinned);
  EXPECT_THAT(Intervals(conv), ElementsAre(std::pair(0, 3), std::pair(5, 7), std::pair(8, 9)));
  EXPECT_EQ(read.instance.blocks[1].alignment, 1);
  EXPECT_THAT(Intervals(read.instance.blocks[1]), ElementsAre(std::pair(1, 2)));
  EXPECT_THAT(read.offsets, ElementsAre(8192, kNotPinned));
}

// 2^61 as the value after the last and as the one after an inclusive end of 2^61 − 1: both are read, and written alike.
TEST(CsvReaderTest, TheLargestEndIsTheSameInBothColumns) {
  const NamedInstance inclusive = Parsed("id,lower,end,size\nx,0,2305843009213693951,1\n");
  const std::string text = FormatCsv(inclusive.instance, inclusive.ids, nullptr);
  EXPECT_EQ(text, "id,lower,upper,size\nx,0,2305843009213693952,1\n");
  EXPECT_THAT(Intervals(Parsed(text).instance.blocks[0]), ElementsAre(std::pair(Clock{0}, Clock{1} << 61)));
  EXPECT_EQ(ErrorOf("id,lower,end,size\nx,0,2305843009213693952,1\n"),
            "f.csv:2:5: the end is larger than 2305843009213693951: '2305843009213693952'");
}

// Hints are ignored, because other tools write any text there.
TEST(CsvReaderTest, TheHintMayBeAnything) {
  for (const char* hint : {"", "-1", "99999999999999999999", "left", "3-5"}) {
    const NamedInstance read = Parsed("id,lower,upper,size,hint\nx,0,3,4," + std::string(hint) + "\n");
    ASSERT_EQ(read.instance.blocks.size(), 1u) << hint;
    EXPECT_EQ(read.instance.blocks[0].pinned, kNotPinned);
    EXPECT_THAT(read.offsets, IsEmpty());
  }
}

// The place is that in the line as it is in the file, also behind CRLF line ends.
TEST(CsvReaderTest, CountsLinesAndColumnsWithDosLineEnds) {
  EXPECT_EQ(ErrorOf("id,lower,upper,size\r\nx,0,3,4\r\ny,0,3,k\r\n"), "f.csv:3:7: the size is not an integer: 'k'");
  EXPECT_EQ(ErrorOf("id,lower,upper,size\r\nx,0,3\r\n"), "f.csv:2:6: expected 4 fields, found 3");
  EXPECT_EQ(ErrorOf("id,lower,upper,size\r\n\r\nx,0,3,4\r\n"), "f.csv:2:1: the line is empty");
}

TEST(CsvReaderTest, TakesDosLineEndsByteOrderMarkBlanksAndEmptyLinesAtTheEnd) {
  const NamedInstance read = Parsed("\xEF\xBB\xBFid, lower,upper,size\r\nx y, 0 ,3,4\r\n\r\n\n");
  EXPECT_THAT(read.ids, ElementsAre("x y"));
  EXPECT_EQ(read.instance.blocks[0].size, 4);
}

TEST(CsvReaderTest, ReadsNoBlocks) { EXPECT_THAT(Parsed("id,lower,upper,size\n").ids, IsEmpty()); }

TEST(CsvReaderTest, GapsMayTouchTheEndsAndEachOther) {
  EXPECT_THAT(Intervals(Parsed("id,lower,upper,size,gaps\nx,0,9,1,4-6 0-2 2-3\n").instance.blocks[0]),
              ElementsAre(std::pair(3, 4), std::pair(6, 9)));
}

TEST(CsvReaderTest, SaysWhereAndWhy) {
  const std::string head = "id,lower,upper,size\n";
  EXPECT_EQ(ErrorOf(""), "f.csv:1:1: the file is empty; expected the column names id,lower,upper,size");
  EXPECT_EQ(ErrorOf("\n\n"), "f.csv:1:1: the file is empty; expected the column names id,lower,upper,size");
  EXPECT_EQ(ErrorOf("id,lower,size\n"), "f.csv:1:1: the column upper is missing");
  EXPECT_EQ(ErrorOf("id,lower,upper,size,colour\n"), "f.csv:1:21: there is no column 'colour'");
  EXPECT_EQ(ErrorOf("id,lower,upper,size,end\n"), "f.csv:1:21: a second column of the meaning of 'end'");
  EXPECT_EQ(ErrorOf(head + "x,0,3\n"), "f.csv:2:6: expected 4 fields, found 3");
  EXPECT_EQ(ErrorOf(head + "x,0,3,4,5\n"), "f.csv:2:9: expected 4 fields, found 5");
  EXPECT_EQ(ErrorOf(head + "x,0,3,4\nx,1,2,3\n"), "f.csv:3:1: the id 'x' was given in line 2 already");
  EXPECT_EQ(ErrorOf(head + ",0,3,4\n"), "f.csv:2:1: the id is empty");
  EXPECT_EQ(ErrorOf(head + "x,0,3,4k\n"), "f.csv:2:7: the size is not an integer: '4k'");
  EXPECT_EQ(ErrorOf(head + "x,0,3,\n"), "f.csv:2:7: the size is not an integer: ''");
  EXPECT_EQ(ErrorOf(head + "x,0,3,0\n"), "f.csv:2:7: the size is less than 1: '0'");
  EXPECT_EQ(ErrorOf(head + "x,0,3,-4\n"), "f.csv:2:7: the size is less than 1: '-4'");
  EXPECT_EQ(ErrorOf(head + "x,-1,3,4\n"), "f.csv:2:3: the begin is less than 0: '-1'");
  EXPECT_EQ(ErrorOf(head + "x,3,3,4\n"), "f.csv:2:5: the block ends before it begins");
  EXPECT_EQ(ErrorOf(head + "x,0,3,4611686018427387905\n"),
            "f.csv:2:7: the size is larger than 4611686018427387904: '4611686018427387905'");
  EXPECT_EQ(ErrorOf(head + "x,0,99999999999999999999999999,4\n"),
            "f.csv:2:5: the end is larger than 2305843009213693952: '99999999999999999999999999'");
  EXPECT_EQ(ErrorOf(head + "x,0,3,-99999999999999999999999999\n"),
            "f.csv:2:7: the size is less than 1: '-99999999999999999999999999'");
  EXPECT_EQ(ErrorOf(head + "x,0,3,4611686018427387904\ny,0,3,1\n"),
            "f.csv:3:7: the sizes add up to more than 2^62 bytes");
  EXPECT_EQ(ErrorOf(head + "x,0,3,4\n\ny,0,3,4\n"), "f.csv:3:1: the line is empty");
  EXPECT_EQ(ErrorOf("id,lower,upper,size,alignment\nx,0,3,4,0\n"), "f.csv:2:9: the alignment is less than 1: '0'");
  EXPECT_EQ(ErrorOf("id,lower,upper,size,offset\nx,0,3,4,-2\n"), "f.csv:2:9: the offset is less than -1: '-2'");
  const std::string gaps = "id,lower,upper,size,gaps\nx,2,9,4,";
  EXPECT_EQ(ErrorOf(gaps + "4\n"), "f.csv:2:9: expected a gap like 3-5, found '4'");
  EXPECT_EQ(ErrorOf(gaps + "4-x\n"), "f.csv:2:11: the gap's end is not an integer: 'x'");
  EXPECT_EQ(ErrorOf(gaps + "4-4\n"), "f.csv:2:9: the gap ends before it begins");
  EXPECT_EQ(ErrorOf(gaps + "3-4 1-2\n"), "f.csv:2:13: the gap is not within the block's begin and end");
  EXPECT_EQ(ErrorOf(gaps + "3-5 4-6\n"), "f.csv:2:9: two gaps overlap");
  EXPECT_EQ(ErrorOf(gaps + "2-9\n"), "f.csv:2:9: the gaps leave nothing of the block");
  EXPECT_EQ(ErrorOf(gaps + "3-5@0:2\n"), "f.csv:2:9: a gap of only some of the bytes is not supported: '3-5@0:2'");
  EXPECT_EQ(ErrorOf(std::string("i\0d,lower,upper,size\n", 21)), "f.csv:1:1: there is no column 'i\\000d'");
}

TEST(CsvReaderTest, SaysThatAFileCannotBeRead) {
  const absl::StatusOr<NamedInstance> missing = ReadCsvFile("no/such/file.csv");
  EXPECT_EQ(missing.status().message(), "no/such/file.csv:1:1: cannot be read: No such file or directory");
  EXPECT_THAT(std::string(ReadCsvFile("/").status().message()), HasSubstr("/:1:1: cannot be read: "));
}

TEST(CsvWriterTest, WritesOnlyTheColumnsThatSaySomething) {
  NamedInstance read = Parsed("id,lower,upper,size\nx,0,3,4\ny,3,9,2\n");
  EXPECT_EQ(FormatCsv(read.instance, read.ids, nullptr), "id,lower,upper,size\nx,0,3,4\ny,3,9,2\n");
  EXPECT_EQ(FormatCsv(read.instance, {}, nullptr), "id,lower,upper,size\n0,0,3,4\n1,3,9,2\n");
  const Placement placement{{0, 8}, 10};
  EXPECT_EQ(FormatCsv(read.instance, read.ids, &placement), "id,lower,upper,size,offset\nx,0,3,4,0\ny,3,9,2,8\n");
  read.instance.blocks[1].alignment = 8;
  read.instance.blocks[0].residency = {{0, 1}, {1, 2}, {3, 4}, {6, 9}};
  EXPECT_EQ(FormatCsv(read.instance, read.ids, &placement),
            "id,lower,upper,size,alignment,gaps,offset\nx,0,9,4,1,2-3 4-6,0\ny,3,9,2,8,,8\n");
}

TEST(CsvWriterTest, WritesAFileOrNothing) {
  const std::string folder = ::testing::TempDir();
  const std::string path = folder + "/hotpack_csv_test.csv";
  ASSERT_TRUE(WriteTextFile(path, "text\n").ok());
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_EQ(content.str(), "text\n");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  std::filesystem::remove(path);
  const absl::Status failure = WriteTextFile(folder + "/no/such/folder/f.csv", "text\n");
  EXPECT_EQ(failure.message(), folder + "/no/such/folder/f.csv: cannot be written: No such file or directory");
  // A device is written to, not replaced. /dev/full takes nothing.
  EXPECT_TRUE(WriteTextFile("/dev/null", "text\n").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_FALSE(WriteTextFile("/dev/full", "text\n").ok());
}

TEST(CsvPropertyTest, WhatIsWrittenIsReadBack) {
  std::mt19937_64 random(testing::TestSeed());
  for (int run = 0; run < 1000; ++run) {
    testing::InstanceShape shape = testing::RandomShape(&random);
    shape.pinned = 0;
    const Instance instance = testing::RandomInstance(shape, &random);
    Placement placement;
    for (size_t i = 0; i < instance.blocks.size(); ++i) placement.offsets.push_back(static_cast<Offset>(random() % 99));
    const NamedInstance read = Parsed(FormatCsv(instance, {}, &placement));
    ASSERT_EQ(read.offsets, placement.offsets);
    ASSERT_EQ(read.instance.blocks.size(), instance.blocks.size());
    for (size_t i = 0; i < instance.blocks.size(); ++i) {
      ASSERT_EQ(read.instance.blocks[i].size, instance.blocks[i].size);
      ASSERT_EQ(read.instance.blocks[i].alignment, instance.blocks[i].alignment);
      ASSERT_EQ(Intervals(read.instance.blocks[i]), Intervals(instance.blocks[i])) << "run " << run << " block " << i;
    }
  }
}

// One random change: a byte, a piece left out, doubled or moved, a number made large.
void Mutate(std::string* text, std::mt19937_64* random) {
  if (text->empty()) {
    text->push_back(static_cast<char>((*random)()));
    return;
  }
  const size_t at = (*random)() % text->size();
  const size_t length = (*random)() % 12;
  constexpr const char* kPieces[] = {",",   "\n", "\r\n", "-",  "99999999999999999999", "end", "\"", " ",
                                     "0-1", "@",  "id",   "\0x"};
  switch ((*random)() % 6) {
    case 0:
      (*text)[at] = static_cast<char>((*random)());
      break;
    case 1:
      text->erase(at, length);
      break;
    case 2:
      text->insert(at, text->substr((*random)() % text->size(), length));
      break;
    case 3:
      text->insert(at, kPieces[(*random)() % std::size(kPieces)]);
      break;
    case 4:
      text->resize(at);
      break;
    default:
      (*text)[at] = static_cast<char>('0' + (*random)() % 10);
      break;
  }
}

// NAME:LINE:COLUMN: reason, on one line of printable characters, the place within the text.
void CheckErrorForm(const std::string& message, const std::string& text) {
  unsigned long line = 0;
  unsigned long column = 0;
  int reason_at = 0;
  ASSERT_EQ(std::sscanf(message.c_str(), "f.csv:%lu:%lu: %n", &line, &column, &reason_at), 2) << message;
  ASSERT_GT(reason_at, 0) << message;
  ASSERT_LT(static_cast<size_t>(reason_at), message.size()) << message;
  ASSERT_TRUE(std::all_of(message.begin(), message.end(), [](char c) { return c >= ' ' && c <= '~'; })) << message;
  std::istringstream lines(text);
  std::string at;
  for (unsigned long i = 0; i < line; ++i) std::getline(lines, at);
  ASSERT_GE(line, 1u);
  ASSERT_GE(column, 1u);
  ASSERT_LE(line, 1 + static_cast<unsigned long>(std::count(text.begin(), text.end(), '\n'))) << message;
  ASSERT_LE(column, at.size() + 1) << message;
}

TEST(CsvFuzzTest, MutatedInputIsReadOrRefusedInOneLine) {
  std::mt19937_64 random(testing::TestSeed());
  int refused = 0;
  constexpr int kRuns = 20'000;
  for (int run = 0; run < kRuns; ++run) {
    testing::InstanceShape shape = testing::RandomShape(&random);
    shape.blocks = 1 + shape.blocks % 6;
    shape.pinned = 0;
    std::string text = FormatCsv(testing::RandomInstance(shape, &random), {}, nullptr);
    for (uint64_t i = random() % 4; i < 4; ++i) Mutate(&text, &random);
    const absl::StatusOr<NamedInstance> result = ParseCsv(text, "f.csv");
    if (result.ok()) {
      ASSERT_EQ(result->ids.size(), result->instance.blocks.size());
      continue;
    }
    ++refused;
    CheckErrorForm(std::string(result.status().message()), text);
    if (HasFatalFailure()) FAIL() << "run " << run << ":\n" << text;
  }
  EXPECT_GT(refused, kRuns / 4);
  EXPECT_LT(refused, kRuns);
}

}  // namespace
}  // namespace hotpack
