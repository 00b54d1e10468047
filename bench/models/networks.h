// The two networks for which the paper's exact solver found the optimum (Sekiyama 2018, §5.2).
//
// Inference on one input needs, by its §5.2, 10169344 bytes for AlexNet and 12202496 for GoogLeNet. The sizes of the layers
// say what these sums are made of. Both are reached in the first convolution:
//
//   AlexNet      3·227²·4 → 618496 image    + 96·55²·4 → 1161728 conv1's output    + 8 MiB workspace + 512
//   GoogLeNet    3·224²·4 → 602112 image    + 64·112²·4 → 3211264 conv1's output   + 8 MiB workspace + 512
//
// (each rounded up to 512). Image, output and workspace follow from the architectures and from §5.1. *Inferred* is the last
// block of 512 bytes, the smallest there is, which lives while the first convolution runs: here it is the image's label,
// which Chainer's example networks are called with together with the image. Inferred as well, and without an effect on the
// peak, is the order of small blocks, and that image and label are held to the end.
#pragma once

#include "bench/models/layers.h"

namespace hotpack::bench {

// Krizhevsky et al. 2012, §3, as in Chainer's example: 227 × 227 images, convolutions in one group; relu, then local
// response normalisation, then pooling.
Network AlexNet(int64_t batch);

// Szegedy et al. 2015, Table 1; without the auxiliary classifiers, which inference discards (their §5).
Network GoogLeNet(int64_t batch);

}  // namespace hotpack::bench
