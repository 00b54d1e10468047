// A shared library that uses the packer as a preloaded one does. It is linked with --no-undefined and the whole of the
// packer's archive, so anything of the packer that needs more than the C++ library fails the build.
#include "packer/pack.h"

extern "C" __attribute__((visibility("default"))) long long HotpackLinkCheckHeight() {
  hotpack::Instance instance;
  instance.blocks.resize(2);
  for (hotpack::Block& block : instance.blocks) {
    block.size = 21;
    block.residency = {{0, 1}};
  }
  return hotpack::Pack(instance).placement.height;
}
