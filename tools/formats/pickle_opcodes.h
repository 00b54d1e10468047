// The opcodes of a pickle that build data, and the names of the others. Python's module pickletools lists and describes
// all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hotpack::pickle {

enum Opcode : uint8_t {
  kProto = 0x80,  // u8: the protocol
  kFrame = 0x95,  // u64: bytes of the frame, which may be skipped
  kStop = '.',

  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',    // i32
  kBinInt1 = 'K',   // u8
  kBinInt2 = 'M',   // u16
  kLong1 = 0x8a,    // u8 bytes, two's complement
  kLong4 = 0x8b,    // i32 bytes
  kBinFloat = 'G',  // 8 bytes

  kShortBinUnicode = 0x8c,  // length, then as many bytes of UTF-8
  kBinUnicode = 'X',
  kBinUnicode8 = 0x8d,
  kShortBinString = 'U',  // as above, for Python 2's str
  kBinString = 'T',
  kShortBinBytes = 'C',  // as above, for bytes
  kBinBytes = 'B',
  kBinBytes8 = 0x8e,
  kByteArray8 = 0x96,

  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kList = 'l',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kDict = 'd',
  kEmptyTuple = ')',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTuple = 't',
  kMark = '(',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',

  kMemoize = 0x94,
  kBinPut = 'q',      // u8
  kLongBinPut = 'r',  // u32
  kBinGet = 'h',      // u8
  kLongBinGet = 'j',  // u32
};

// Returns the size in bytes of the length field of a text or byte string.
inline constexpr size_t LengthBytes(Opcode opcode) {
  switch (opcode) {
    case kShortBinUnicode:
    case kShortBinString:
    case kShortBinBytes:
      return 1;
    case kBinUnicode:
    case kBinString:
    case kBinBytes:
      return 4;
    default:
      return 8;
  }
}

// Returns the name of an opcode that makes non-data, or takes it from outside; null for all others.
inline const char* RefusedOpcode(uint8_t opcode) {
  switch (opcode) {
    case 'c':
      return "GLOBAL";
    case 0x93:
      return "STACK_GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x8f:
      return "EMPTY_SET";
    case 0x90:
      return "ADDITEMS";
    case 0x91:
      return "FROZENSET";
    case 0x97:
      return "NEXT_BUFFER";
    case 0x98:
      return "READONLY_BUFFER";
    default:
      return nullptr;
  }
}

}  // namespace hotpack::pickle
