// The interface of the test's communication library.
#pragma once

// Connects `channels` channels. Returns the number of those with direct transfer between processes; -1: an error.
extern "C" __attribute__((visibility("default"))) int CommConnect(int channels);
