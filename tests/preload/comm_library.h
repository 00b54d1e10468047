// The interface of the test's communication library.
#pragma once

// Connects `channels` channels. Returns the number of those with direct transfer between processes; -1: an error.
extern "C" __attribute__((visibility("default"))) int CommConnect(int channels);

// Registers a block of the program for transfers. Returns the driver's error; 0: registered.
extern "C" __attribute__((visibility("default"))) int CommRegister(unsigned long long address,
                                                                   unsigned long long bytes);
