// The constants of the trace file, shared by its writer and its reader. docs/trace_format.md explains every byte.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace hotpack::trace_format {

static_assert(std::endian::native == std::endian::little, "the trace file is little-endian");

// The first byte is not ASCII, so a trace is never mistaken for text. The version is stored separately.
inline constexpr unsigned char kMagic[8] = {0x89, 'h', 'o', 't', 'p', 'a', 'c', 'k'};
inline constexpr uint16_t kVersion = 1;           // events only
inline constexpr uint16_t kVersionWithNotes = 2;  // notes (profiler/notes.h) between them

// Positions of the header's fields.
inline constexpr size_t kHeaderBytes = 256;
inline constexpr size_t kVersionAt = 8;         // u16
inline constexpr size_t kHeaderBytesAt = 10;    // u16: position of the first record
inline constexpr size_t kStateAt = 12;          // u32, a State
inline constexpr size_t kCommittedAt = 16;      // u64: valid bytes of the file, including the header
inline constexpr size_t kCreatedAt = 24;        // u64: nanoseconds since 1970
inline constexpr size_t kProcessAt = 32;        // u32
inline constexpr size_t kProgramLengthAt = 36;  // u32
inline constexpr size_t kProgramAt = 40;
inline constexpr size_t kProgramMax = kHeaderBytes - kProgramAt;

enum State : uint32_t {
  kRecording = 0,  // in progress, or the process ended without closing
  kClosed = 1,
  kLimitReached = 2,  // the size limit (or the process's file size limit) ended the recording
  kDiskFull = 3,      // no space or no permission to grow the file
  kLastState = kDiskFull,
};

// A record begins with a tag. Values that it omits are those of the previous record.
inline constexpr uint8_t kKindMask = 0x07;    // an EventKind, 1 to 5 and 7
inline constexpr uint8_t kHasContext = 0x08;  // flags (1 byte), thread, stream (varints) follow
inline constexpr uint8_t kHasTime = 0x10;     // the difference in time_ns (zigzag varint) follows
inline constexpr uint8_t kNextId = 0x20;      // allocation: the id is that of the last allocation + 1, and is omitted
inline constexpr uint8_t kUnits = 0x40;       // allocation: the size is written in units of 512 bytes
inline constexpr uint8_t kReserved = 0x80;
inline constexpr uint64_t kTraceUnit = 512;

// tag, flags, thread (u16), stream (u32), time, id, bytes (u64)
inline constexpr size_t kMaxRecordBytes = 1 + 1 + 3 + 5 + 10 + 10 + 10;

// A note's record: its tag has this kind, and the next byte is a NoteKind. Version 2.
inline constexpr uint8_t kNote = 0x06;
enum NoteKind : uint8_t {
  kNoteName = 1,
  kNoteLaunch = 2,
  kNoteWork = 3,
  kNoteRange = 4,
  kNoteStack = 5,
  kNoteMemory = 6,
};
inline constexpr uint64_t kMaxNameBytes = 4096;  // the writer cuts longer names
// As many pointers as parameters can hold (cuLaunchKernel: 32764 bytes).
inline constexpr uint64_t kMaxLaunchBlocks = 4096;

// tag, kind, flags, thread, stream, time, name, count, ids
inline constexpr size_t kMaxNoteBytes = 1 + 1 + 1 + 3 + 5 + 10 + 5 + 2 + 10 * kMaxLaunchBlocks;
static_assert(kMaxNoteBytes >= 1 + 1 + 2 + kMaxNameBytes);

inline constexpr uint64_t ZigZag(uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
inline constexpr uint64_t UnZigZag(uint64_t code) { return (code >> 1) ^ (0 - (code & 1)); }

}  // namespace hotpack::trace_format
