// Reads loaded objects' dynamic symbol tables directly. This library's exports hide the C library's dlsym, dlvsym and
// dlopen, so no other way finds those.
#pragma once

#include <cstddef>

namespace hotpack {

// Returns the address of the default version of `name` in the loaded C library (libdl before glibc 2.34). Walks its
// dynamic symbol table, because no dl* function is usable. Null if it is missing. Async-signal-unsafe, no heap.
void* FindInLibc(const char* name);

using DlsymFunction = void* (*)(void* handle, const char* name);
using DlvsymFunction = void* (*)(void* handle, const char* name, const char* version);
using DlopenFunction = void* (*)(const char* path, int flags);

// Never null: without them a process could not have loaded hotpack.
DlsymFunction RealDlsym();
DlvsymFunction RealDlvsym();
DlopenFunction RealDlopen();

// Asks the dlsym that the program would reach without hotpack: that of a preload behind this library, else the C
// library's. `handle`: of dlopen. Such a preload's own look-ups through here get the C library's answer.
void* AskNextDlsym(void* handle, const char* name);

// Returns true if the object that contains `caller` (a code address) was loaded after this library and defines `name`,
// dlsym or cuGetProcAddress_v2: another preload behind hotpack. Its look-ups want what follows it; hotpack's hook would
// make a cycle. Returns true also if the object is libcupti.
bool IsLaterInterposer(const void* caller, const char* name);

// Writes the path of the loaded object that contains `address`, as the loader knows it ("": the program), and whether
// the object defines `symbol`. Returns false if no object contains it, or if the path is longer than `size`.
bool FindObject(const void* address, const char* symbol, char* path, size_t size, bool* defines);

// Returns true if the object that contains `caller` was loaded before this library: the program, or an earlier preload.
bool IsEarlierObject(const void* caller);

}  // namespace hotpack
