// The main of every training program.
#include "bench/train/program.h"

int main(int argc, char** argv) { return hotpack::train::RunProgram(hotpack::train::MakeProgram(), argc, argv); }
