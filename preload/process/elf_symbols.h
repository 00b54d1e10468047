// Reads loaded objects' dynamic symbol tables directly: the C library's own dlsym, dlvsym and dlopen (which this
// library's exports of the same names hide) cannot be found in any other way.
#pragma once

namespace hotpack {

// Address of the default version of `name` in the loaded C library (or in libdl before glibc 2.34), found by walking
// its dynamic symbol table: no dl* function can be asked. Null if it is not there. Async-signal-unsafe, no heap.
void* FindInLibc(const char* name);

using DlsymFunction = void* (*)(void* handle, const char* name);
using DlvsymFunction = void* (*)(void* handle, const char* name, const char* version);
using DlopenFunction = void* (*)(const char* path, int flags);

// Never null: a process without them could not have loaded us.
DlsymFunction RealDlsym();
DlvsymFunction RealDlvsym();
DlopenFunction RealDlopen();

// True if the object that contains `caller` (a code address) defines `name` and was loaded after this library: another
// preload behind us. What it looks up is what lies behind it, and giving it our hook would make a circle. Also if the
// object is libcupti.
bool IsLaterInterposer(const void* caller, const char* name);

// True if the object that contains `caller` was loaded before this library: the program, or a preload in front of us.
bool IsEarlierObject(const void* caller);

}  // namespace hotpack
