// The program behind precompiled headers (tests/CMakeLists.txt).
int main() {}
