// The device code of `hotpack replay`: one thread that writes, or checks, a pattern at both ends of a block.
#pragma once

namespace hotpack {

// Byte `at` of block `id` is byte (at mod 8), lowest first, of (id + 1) * 0x9E3779B97F4A7C15. The first and the last
// eight bytes are written. The target is the oldest that CUDA 12 knows; the driver translates it for the device.
//   hotpack_replay_fill(base, bytes, id)
//   hotpack_replay_check(base, bytes, id, count): one more in *count if a byte differs
inline constexpr char kReplayPtx[] = R"ptx(
.version 6.0
.target sm_50
.address_size 64

.visible .entry hotpack_replay_fill(.param .u64 base, .param .u64 bytes, .param .u64 id)
{
  .reg .pred %more;
  .reg .b32 %value, %shift;
  .reg .b64 %base, %bytes, %pattern, %i, %ends, %at, %address, %byte;
  ld.param.u64 %base, [base];
  ld.param.u64 %bytes, [bytes];
  ld.param.u64 %pattern, [id];
  cvta.to.global.u64 %base, %base;
  add.u64 %pattern, %pattern, 1;
  mul.lo.u64 %pattern, %pattern, 0x9E3779B97F4A7C15;
  min.u64 %ends, %bytes, 8;
  mov.u64 %i, 0;
next:
  // from the front
  cvt.u32.u64 %shift, %i;
  shl.b32 %shift, %shift, 3;
  shr.u64 %byte, %pattern, %shift;
  cvt.u32.u64 %value, %byte;
  add.u64 %address, %base, %i;
  st.global.u8 [%address], %value;
  // from the back
  sub.u64 %at, %bytes, %i;
  sub.u64 %at, %at, 1;
  add.u64 %address, %base, %at;
  and.b64 %at, %at, 7;
  cvt.u32.u64 %shift, %at;
  shl.b32 %shift, %shift, 3;
  shr.u64 %byte, %pattern, %shift;
  cvt.u32.u64 %value, %byte;
  st.global.u8 [%address], %value;
  add.u64 %i, %i, 1;
  setp.lt.u64 %more, %i, %ends;
  @%more bra next;
  ret;
}

.visible .entry hotpack_replay_check(.param .u64 base, .param .u64 bytes, .param .u64 id, .param .u64 count)
{
  .reg .pred %more, %differs;
  .reg .b32 %value, %seen, %shift, %wrong;
  .reg .b64 %base, %bytes, %pattern, %count, %i, %ends, %at, %address, %byte;
  ld.param.u64 %base, [base];
  ld.param.u64 %bytes, [bytes];
  ld.param.u64 %pattern, [id];
  ld.param.u64 %count, [count];
  cvta.to.global.u64 %base, %base;
  cvta.to.global.u64 %count, %count;
  add.u64 %pattern, %pattern, 1;
  mul.lo.u64 %pattern, %pattern, 0x9E3779B97F4A7C15;
  min.u64 %ends, %bytes, 8;
  mov.u64 %i, 0;
  mov.u32 %wrong, 0;
next:
  // from the front
  cvt.u32.u64 %shift, %i;
  shl.b32 %shift, %shift, 3;
  shr.u64 %byte, %pattern, %shift;
  cvt.u32.u64 %value, %byte;
  and.b32 %value, %value, 255;
  add.u64 %address, %base, %i;
  ld.global.u8 %seen, [%address];
  xor.b32 %value, %value, %seen;
  or.b32 %wrong, %wrong, %value;
  // from the back
  sub.u64 %at, %bytes, %i;
  sub.u64 %at, %at, 1;
  add.u64 %address, %base, %at;
  and.b64 %at, %at, 7;
  cvt.u32.u64 %shift, %at;
  shl.b32 %shift, %shift, 3;
  shr.u64 %byte, %pattern, %shift;
  cvt.u32.u64 %value, %byte;
  and.b32 %value, %value, 255;
  ld.global.u8 %seen, [%address];
  xor.b32 %value, %value, %seen;
  or.b32 %wrong, %wrong, %value;
  add.u64 %i, %i, 1;
  setp.lt.u64 %more, %i, %ends;
  @%more bra next;
  setp.ne.u32 %differs, %wrong, 0;
  @%differs red.global.add.u32 [%count], 1;
  ret;
}
)ptx";

}  // namespace hotpack
