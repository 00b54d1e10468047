// Pickles: the reader reads Python's output in each protocol, rejects what is not data before it has any effect, and
// names the place of a fault. Python reads the writer's output.
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"
#include "tools/formats/pickle_reader.h"
#include "tools/formats/pickle_writer.h"

namespace hotpack {
namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::RunProgram;
using ::testing::HasSubstr;
using ::testing::StartsWith;

enum Word : uint8_t { kNumbers, kFlag, kName, kNested, kHello };
constexpr std::string_view kTexts[] = {"numbers", "flag", "name", "nested", "hello"};

absl::StatusOr<Pickle> Read(std::string_view bytes, uint64_t memory = kPickleMemoryLimit) {
  PickleOptions options;
  options.words = kTexts;
  options.memory_limit = memory;
  return ReadPickle(MemorySource(bytes), "p", options);
}

std::string ErrorOf(std::string_view bytes, uint64_t memory = kPickleMemoryLimit) {
  absl::StatusOr<Pickle> pickle = Read(bytes, memory);
  return pickle.ok() ? "read" : std::string(pickle.status().message());
}

// Bytes with zeros among them.
template <size_t kBytes>
std::string Raw(const char (&text)[kBytes]) {
  return std::string(text, kBytes - 1);
}

bool HasPython() { return RunProgram({"/bin/sh", "-c", "python3 -c 'import pickle' 2>/dev/null"}).code == 0; }

std::vector<int64_t> Numbers(const Pickle& pickle, const PickleValue& list) {
  std::vector<int64_t> numbers;
  for (const PickleValue& value : pickle.lists.at(static_cast<size_t>(list.number))) {
    EXPECT_EQ(value.kind, PickleKind::kInteger);
    numbers.push_back(value.number);
  }
  return numbers;
}

constexpr char kWrite[] = R"(
import pickle, sys
deep = []
for _ in range(200): deep = [deep]
shared = {'name': 'hello'}
value = {
    'numbers': [0, 1, 255, 256, 65535, 65536, -1, -129, 2**31 - 1, 2**31, -2**31 - 1, 2**63 - 1, -2**63],
    'flag': True, 'other': 'x' * 300, 'floats': [1.5, float('nan')],
    'bytes': [b'abc', b'y' * 300] if int(sys.argv[2]) > 2 else None,  # of protocol 2: a call
    'nested': [shared, shared, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), None, 2**100, deep,
               {'flag': False, 'filename': 'a.py', 'line': 3}, {'filename': 'a.py'}, 'hello', 'unknown',
               {'numbers': list(range(2500))}],
}
with open(sys.argv[1], 'wb') as out: pickle.dump(value, out, protocol=int(sys.argv[2]))
)";

TEST(PickleReaderTest, ReadsWhatPythonWrites) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  const hotpack_test::TemporaryDirectory folder;
  for (int protocol = 2; protocol <= 5; ++protocol) {
    const std::string path = folder.path() + "/" + std::to_string(protocol);
    ASSERT_EQ(RunProgram({"python3", "-c", kWrite, path, std::to_string(protocol)}).code, 0);
    const std::string bytes = ReadFile(path);
    absl::StatusOr<Pickle> pickle = Read(bytes);
    ASSERT_TRUE(pickle.ok()) << protocol << ": " << pickle.status();
    ASSERT_EQ(pickle->root.kind, PickleKind::kDict);
    EXPECT_EQ(Numbers(*pickle, *pickle->Find(pickle->root, kNumbers)),
              (std::vector<int64_t>{0, 1, 255, 256, 65535, 65536, -1, -129, 2147483647, 2147483648, -2147483649,
                                    std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}));
    EXPECT_EQ(pickle->Find(pickle->root, kFlag)->kind, PickleKind::kBool);
    EXPECT_EQ(pickle->Find(pickle->root, kName), nullptr);
    const auto& nested = pickle->lists.at(static_cast<size_t>(pickle->Find(pickle->root, kNested)->number));
    // Twice the shared one, `deep`, the one with a flag, 'hello', the last: of the others nothing is kept.
    ASSERT_EQ(nested.size(), 6u) << protocol;
    EXPECT_EQ(nested[0].number, nested[1].number);
    EXPECT_EQ(pickle->Find(nested[0], kName)->number, kHello);
    EXPECT_EQ(nested[2].kind, PickleKind::kList);
    EXPECT_EQ(pickle->Find(nested[3], kFlag)->number, 0);
    EXPECT_EQ(nested[4].number, kHello);
    const std::vector<int64_t> many = Numbers(*pickle, *pickle->Find(nested[5], kNumbers));
    ASSERT_EQ(many.size(), 2500u);
    for (int64_t i = 0; i < 2500; ++i) ASSERT_EQ(many[static_cast<size_t>(i)], i);

    // Cut anywhere, it is refused at a byte inside of it.
    for (size_t cut = 0; cut < bytes.size(); cut += 1 + cut / 40) {
      const std::string error = ErrorOf(std::string_view(bytes).substr(0, cut));
      EXPECT_THAT(error, StartsWith("p: byte ")) << cut;
      EXPECT_TRUE(cut < 2 || absl::EndsWith(error, "the file ends here: it is cut")) << cut << " " << error;
    }
  }
}

constexpr char kAttack[] = R"(
import os, pickle, sys
class Attack:
    def __reduce__(self): return (os.mkdir, (sys.argv[2],))
with open(sys.argv[1], 'wb') as out: pickle.dump({'numbers': [Attack()]}, out, protocol=int(sys.argv[3]))
)";

TEST(PickleReaderTest, NothingIsRun) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  const hotpack_test::TemporaryDirectory folder;
  for (const std::string protocol : {"2", "3", "4", "5"}) {
    const std::string path = folder.path() + "/" + protocol, victim = folder.path() + "/victim";
    ASSERT_EQ(RunProgram({"python3", "-c", kAttack, path, victim, protocol}).code, 0);
    EXPECT_THAT(ErrorOf(ReadFile(path)), HasSubstr("it wants Python to make an object (")) << protocol;
    EXPECT_NE(access(victim.c_str(), F_OK), 0);
  }
}

TEST(PickleReaderTest, RefusesWhatIsNoData) {
  const std::string why = "; only numbers, texts, lists and dictionaries are read, and nothing is run";
  for (const auto& [opcode, name] : std::vector<std::pair<std::string, std::string>>{{"c", "GLOBAL"},
                                                                                     {"\x93", "STACK_GLOBAL"},
                                                                                     {"R", "REDUCE"},
                                                                                     {"b", "BUILD"},
                                                                                     {"i", "INST"},
                                                                                     {"o", "OBJ"},
                                                                                     {"\x81", "NEWOBJ"},
                                                                                     {"\x92", "NEWOBJ_EX"},
                                                                                     {"\x82", "EXT1"},
                                                                                     {"\x83", "EXT2"},
                                                                                     {"\x84", "EXT4"},
                                                                                     {"P", "PERSID"},
                                                                                     {"Q", "BINPERSID"},
                                                                                     {"\x8f", "EMPTY_SET"},
                                                                                     {"\x90", "ADDITEMS"},
                                                                                     {"\x91", "FROZENSET"},
                                                                                     {"\x97", "NEXT_BUFFER"},
                                                                                     {"\x98", "READONLY_BUFFER"}}) {
    // After enough on the stack for any of them.
    EXPECT_EQ(ErrorOf("\x80\x04NNN(NN" + opcode + "xx\nyy\n."),
              "p: byte 8: it wants Python to make an object (" + name + ")" + why);
  }
}

TEST(PickleReaderTest, SaysWhereItIsMalformed) {
  EXPECT_EQ(ErrorOf(""), "p: byte 0: the file is empty");
  EXPECT_EQ(ErrorOf("}."), "p: byte 0: this is no pickle of protocol 2 to 5");
  EXPECT_EQ(ErrorOf("\x80\x06}."), "p: byte 0: this is no pickle of protocol 2 to 5");
  EXPECT_EQ(ErrorOf("\x80\x02."), "p: byte 2: malformed: it ends with more or less than one value");
  EXPECT_EQ(ErrorOf("\x80\x02NN."), "p: byte 4: malformed: it ends with more or less than one value");
  EXPECT_EQ(ErrorOf("\x80\x02(N."), "p: byte 4: malformed: it ends with more or less than one value");
  EXPECT_EQ(ErrorOf("\x80\x02Na."), "p: byte 3: malformed: it takes more than there is");
  EXPECT_EQ(ErrorOf("\x80\x02]N(a."), "p: byte 5: malformed: it takes more than there is");
  EXPECT_EQ(ErrorOf("\x80\x02](Na."), "p: byte 5: malformed: it takes more than there is");
  EXPECT_EQ(ErrorOf("\x80\x02NNN(\x87."), "p: byte 6: malformed: it takes more than there is");
  EXPECT_EQ(ErrorOf("\x80\x02]}e."), "p: byte 4: malformed: there is no mark");
  EXPECT_EQ(ErrorOf("\x80\x02(Ne."), "p: byte 4: malformed: there is nothing before the mark");
  EXPECT_EQ(ErrorOf("\x80\x02}(Ne."), "p: byte 5: malformed: something is appended to what is no list");
  EXPECT_EQ(ErrorOf("\x80\x02](NNu."), "p: byte 6: malformed: an entry is added to what is no dictionary");
  EXPECT_EQ(ErrorOf("\x80\x02}(Nu."), "p: byte 5: malformed: a dictionary has a key without a value");
  EXPECT_EQ(ErrorOf(Raw("\x80\x02Nh\0.")), "p: byte 3: malformed: note 0 of 0 notes");
  EXPECT_EQ(ErrorOf("\x80\x02Nq\x05."), "p: byte 3: malformed: note 5 after 0 notes");
  EXPECT_EQ(ErrorOf("\x80\x02Nr\xff\xff\xff\xff."), "p: byte 3: malformed: note 4294967295 after 0 notes");
  EXPECT_EQ(ErrorOf("\x80\x02\x8b\xff\xff\xff\xff."), "p: byte 2: malformed: an integer of a negative length");
  EXPECT_EQ(ErrorOf("\x80\x02\x80\x02N."), "p: byte 2: malformed: a second beginning");
  EXPECT_EQ(ErrorOf("\x80\x02I1\n."), "p: byte 2: malformed: there is no operation 73 in a pickle of protocol 2 to 5");
  EXPECT_EQ(ErrorOf("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), "p: byte 2: the file ends here: it is cut");
  EXPECT_EQ(ErrorOf("\x80\x02N.what follows is not looked at"), "read");
}

// The reader's memory is bounded, however small the file.
TEST(PickleReaderTest, MemoryIsBounded) {
  constexpr uint64_t kLimit = uint64_t{16} << 20;
  for (const std::string piece : {"]", "}", "(", "N", "]\x94", "}\x94",
                                  "](K\x01K\x01K\x01K\x01K\x01"
                                  "e",
                                  "N2"}) {
    std::string bytes = "\x80\x04";
    while (bytes.size() < (size_t{4} << 20)) bytes += piece;
    EXPECT_THAT(ErrorOf(bytes, kLimit), HasSubstr("there is more in it than 16 MiB of memory hold")) << piece;
  }
  std::string texts = "\x80\x04](";  // but texts take nothing
  for (int i = 0; i < 50000; ++i) texts += Raw("X\0\x01\0\0") + std::string(256, 'x') + "0";
  EXPECT_EQ(ErrorOf(texts + "e.", uint64_t{1} << 20), "read");
}

constexpr char kCompare[] = R"(
import pickle, pickletools, sys
with open(sys.argv[1], 'rb') as file: value = pickle.load(file)
with open(sys.argv[1], 'rb') as file: operations = [operation.name for operation, _, _ in pickletools.genops(file)]
many = operations[operations.index('APPENDS', operations.index('TUPLE2')) - 1000:]  # the first thousand numbers
assert many[:1001] == ['BININT1'] * 256 + ['BININT2'] * 744 + ['APPENDS'] and many.count('APPENDS') >= 4
expected = {
    'numbers': [0, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -1, -128, -2**31, -2**31 - 1, 2**39 - 1, 2**39, -2**39,
                -2**39 - 1, 2**47, 2**55 - 1, 2**55, 2**63 - 1, -2**63],
    'empty': [], 'yes': True, 'no': False, 'pair': (0, 0), 'text': 'gr\u00fc\u00dfe',
    'many': list(range(3001)), 'texts': ['t%d' % (i % 300) for i in range(900)], 'nested': [{}, [[]], {'empty': []}],
}
assert value == expected, (value, expected)
assert [type(x) for x in value['numbers']] == [int] * len(value['numbers'])
)";

TEST(PickleWriterTest, PythonReadsIt) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  const hotpack_test::TemporaryDirectory folder;
  std::ofstream out(folder.path() + "/p", std::ios::binary);
  PickleWriter writer([&](absl::string_view bytes) {
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return absl::OkStatus();
  });
  const auto two_to = [](int n) { return int64_t{1} << n; };
  writer.BeginDict();
  writer.Key("numbers"), writer.BeginList();
  for (int64_t number : {int64_t{0},
                         int64_t{255},
                         int64_t{256},
                         int64_t{65535},
                         int64_t{65536},
                         two_to(31) - 1,
                         two_to(31),
                         int64_t{-1},
                         int64_t{-128},
                         -two_to(31),
                         -two_to(31) - 1,
                         two_to(39) - 1,
                         two_to(39),
                         -two_to(39),
                         -two_to(39) - 1,
                         two_to(47),
                         two_to(55) - 1,
                         two_to(55),
                         std::numeric_limits<int64_t>::max(),
                         std::numeric_limits<int64_t>::min()}) {
    writer.Integer(number);
  }
  writer.EndList();
  writer.Key("empty"), writer.EmptyList();
  writer.Key("yes"), writer.Bool(true);
  writer.Key("no"), writer.Bool(false);
  writer.Key("pair"), writer.ZeroPair();
  writer.Key("text"), writer.Text("gr\u00fc\u00dfe");
  writer.Key("many"), writer.BeginList();
  for (int i = 0; i < 3001; ++i) writer.Integer(i);
  writer.EndList();
  writer.Key("texts"), writer.BeginList();
  for (int i = 0; i < 900; ++i) writer.Text(std::string("t").append(std::to_string(i % 300)));
  writer.EndList();
  writer.Key("nested"), writer.BeginList();
  writer.BeginDict(), writer.EndDict();
  writer.BeginList(), writer.EmptyList(), writer.EndList();
  writer.BeginDict(), writer.Key("empty"), writer.EmptyList(), writer.EndDict();
  writer.EndList();
  writer.EndDict();
  ASSERT_TRUE(writer.Finish().ok());
  out.close();
  const Outcome outcome = RunProgram({"python3", "-c", kCompare, folder.path() + "/p"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(PickleWriterTest, EndsAtAnErrorOfTheSink) {
  int calls = 0;
  PickleWriter writer([&](absl::string_view) { return ++calls, absl::ResourceExhaustedError("full"); });
  writer.BeginList();
  for (int64_t i = 0; i < 100000; ++i) writer.Integer(i);
  writer.EndList();
  EXPECT_EQ(writer.Finish().message(), "full");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hotpack
