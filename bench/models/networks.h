// The convolutional networks of the paper's figures (Sekiyama 2018, §5). For two of them its exact solver found the
// optimum.
//
// Inference on one input needs, by its §5.2, 10169344 bytes for AlexNet and 12202496 for GoogLeNet. The sizes of the
// layers say what these sums are made of. Both are reached in the first convolution:
//
//   AlexNet      3·227²·4 → 618496 image    + 96·55²·4 → 1161728 conv1's output    + 8 MiB workspace + 512
//   GoogLeNet    3·224²·4 → 602112 image    + 64·112²·4 → 3211264 conv1's output   + 8 MiB workspace + 512
//
// (each rounded up to 512). Image, output and workspace follow from the architectures and from §5.1. *Inferred* is the
// last block of 512 bytes, the smallest there is, which lives while the first convolution runs: here it is the image's
// label, which Chainer's example networks are called with together with the image. Inferred as well, and without an
// effect on the peak, is the order of small blocks, and that image and label are held to the end.
#pragma once

#include "bench/models/layers.h"

namespace hotpack::bench {

// Krizhevsky et al. 2012, §3, as in Chainer's example: 227 × 227 images, convolutions in one group; relu, then local
// response normalisation, then pooling.
Network AlexNet(int64_t batch);

// Szegedy et al. 2015, Table 1. Inference discards the auxiliary classifiers (their §5), but a program that has trained
// them has their weights.
Network GoogLeNet(int64_t batch);
Network GoogLeNetInTraining(int64_t batch);  // with them

// He et al. 2015, Table 1, 50 layers.
Network ResNet50(int64_t batch);

// Szegedy et al. 2016, the two versions of Inception-ResNet; of the second with the stem of the published weights, and
// without the auxiliary classifier. Which one the paper uses it does not say.
Network InceptionResNet1(int64_t batch);
Network InceptionResNet2(int64_t batch);

}  // namespace hotpack::bench
