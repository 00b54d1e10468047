// Each case of the cuDNN shim (dnn_cases.cc, dnn_legacy_cases.cc) gives the reports it must, and no others.
#include <gtest/gtest.h>

#include "tests/simgpu/reports.h"

namespace simgpu_test {
namespace {

struct Expected {
  const char* name;
  const char* kinds;          // "": none
  const char* settings = "";  // of the environment
};

constexpr char kBeyond[] = "use-after-free";

const Expected kExpected[] = {
    {"ConvolutionClean", ""},
    {"ConvolutionBeyondX", kBeyond},
    {"ConvolutionBeyondW", kBeyond},
    {"ConvolutionBeyondY", kBeyond},
    {"ConvolutionBeyondWorkspace", kBeyond},
    {"ConvolutionOnAnotherStream", "reuse-without-order"},
    {"ConvolutionAfterAnEvent", ""},
    {"ConvolutionAfterFree", kBeyond},
    {"ChannelsLast", ""},
    {"BackwardDataClean", ""},
    {"BackwardDataBeyondDx", kBeyond},
    {"BackwardFilterClean", ""},
    {"BackwardFilterBeyondDw", kBeyond},
    {"VirtualTensorsTakeNoMemory", ""},
    {"FusedBeyondZ", kBeyond},
    {"PlansOutliveWhatTheyWereMadeOf", kBeyond},
    {"EnginesAreNamed", ""},
    {"WorkspaceSetting", "", "SIMGPU_DNN_WORKSPACE=1K"},
    {"NoWorkspace", "", "SIMGPU_DNN_WORKSPACE=0"},
    {"BackendMisuse", ""},
    {"ExecuteMisuse", ""},
    {"LegacyForwardClean", ""},
    {"LegacyForwardBeyondY", kBeyond},
    {"LegacyForwardBeyondWorkspace", kBeyond},
    {"LegacyBackward", ""},
    {"LegacyFindWithinWorkspace", ""},
    {"LegacyMisuse", ""},
    {"Version", ""},
    {"BatchNormClean", ""},
    {"BatchNormWithReserve", ""},
    {"BatchNormBeyondX", kBeyond},
    {"BatchNormBeyondRunning", kBeyond},
    {"BatchNormBeyondSaved", kBeyond},
    {"BatchNormBeyondWorkspace", kBeyond},
    {"BatchNormBeyondReserve", kBeyond},
    {"BatchNormBackwardClean", ""},
    {"BatchNormBackwardBeyondDx", kBeyond},
    {"BatchNormBackwardBeyondDBias", kBeyond},
    {"BatchNormInference", kBeyond},  // the variances
    {"NetworkSizes", ""},
    {"NetworkParts", ""},
    {"NetworkForward", ""},
    {"NetworkBeyondX", kBeyond},
    {"NetworkBeyondState", kBeyond},
    {"NetworkBeyondWeights", kBeyond},
    {"NetworkBeyondReserve", kBeyond},
    {"NetworkPacked", ""},
    {"NetworkPackedBeyond", kBeyond},
    {"NetworkBackward", ""},
    {"NetworkBackwardBeyondDx", kBeyond},
    {"NetworkBackwardBeyondWeights", kBeyond},
    {"DropoutStates", ""},
    {"DropoutStatesFreed", kBeyond},
    {"CtcClean", ""},
    {"CtcBeyondGradients", kBeyond},
    {"TransformerClean", ""},
    {"TransformerBeyondGrid", kBeyond},
    {"PoolingBeyondX", kBeyond},
};

class DnnCase : public testing::TestWithParam<Expected> {};
INSTANTIATE_TEST_SUITE_P(All, DnnCase, testing::ValuesIn(kExpected),
                         [](const testing::TestParamInfo<Expected>& c) { return std::string(c.param.name); });

TEST_P(DnnCase, GivesItsReports) {
  const CheckedOutcome outcome =
      RunChecked(std::string(HOTPACK_BINARY_DIR) + "/tests/simgpu_dnn_cases " + GetParam().name, GetParam().settings);
  EXPECT_EQ(outcome.kinds, GetParam().kinds) << outcome.err;
  EXPECT_EQ(outcome.code, outcome.reports.empty() ? 0 : 97) << outcome.err;
}

TEST(Dnn, AMalformedWorkspaceEndsTheProgram) {
  for (const char* value : {"1X", "-1", "big", "99999999999T"}) {
    const CheckedOutcome outcome =
        RunChecked(std::string(HOTPACK_BINARY_DIR) + "/tests/simgpu_dnn_cases ConvolutionClean",
                   std::string("SIMGPU_DNN_WORKSPACE=") + value);
    EXPECT_EQ(outcome.code, 2) << value;
    EXPECT_EQ(outcome.err, std::string("simgpu: SIMGPU_DNN_WORKSPACE is not a size: ") + value + "\n");
  }
}

// A program that was built against the real one finds its names, with their version.
TEST(Dnn, HasItsNames) {
  const CheckedOutcome outcome =
      RunChecked("nm -D --defined-only --with-symbol-versions " HOTPACK_BINARY_DIR "/lib/simgpu/libcudnn.so.9");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"cudnnCreate", "cudnnBackendExecute", "cudnnRNNForward", "cudnnSoftmaxForward"}) {
    EXPECT_NE(outcome.out.find(std::string(" ") + name + "@@libcudnn.so.9"), std::string::npos) << name;
  }
  EXPECT_EQ(outcome.out.find("simgpu"), std::string::npos);
}

// The report file ends with the counts.
TEST(Dnn, CallsAreCounted) {
  const std::string file = testing::TempDir() + "dnn_counted";
  const CheckedOutcome outcome = RunChecked("env SIMGPU_REPORT_FILE=" + file +
                                            " " HOTPACK_BINARY_DIR "/tests/simgpu_dnn_cases " + "NetworkBackward");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = ReadFile(file);
  unlink(file.c_str());
  EXPECT_NE(text.find(" 2 library calls told, 0 not\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace simgpu_test
