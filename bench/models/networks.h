// The convolutional networks of the paper's figures (Sekiyama 2018, §5). For two of them its exact solver found the
// optimum.
//
// By §5.2, inference on one input needs 10169344 bytes for AlexNet and 12202496 for GoogLeNet. The layers' sizes
// explain these sums. Both are reached in the first convolution:
//
//   AlexNet      3·227²·4 → 618496 image    + 96·55²·4 → 1161728 conv1's output    + 8 MiB workspace + 512
//   GoogLeNet    3·224²·4 → 602112 image    + 64·112²·4 → 3211264 conv1's output   + 8 MiB workspace + 512
//
// (each rounded up to 512). Image, output and workspace follow from the architectures and from §5.1.
//
// *Inferred*: the last block of 512 bytes, the smallest size, which lives while the first convolution runs. Here it is
// the image's label, which Chainer's example networks receive together with the image. Also inferred, without an effect
// on the peak: the order of small blocks, and that image and label are held to the end.
#pragma once

#include "bench/models/layers.h"

namespace hotpack::bench {

// Krizhevsky et al. 2012, §3, as in Chainer's example: 227 × 227 images, convolutions in one group; relu, then local
// response normalisation, then pooling.
Network AlexNet(int64_t batch);

// Szegedy et al. 2015, Table 1. Inference omits the auxiliary classifiers (their §5), but a program that has trained
// them holds their weights.
Network GoogLeNet(int64_t batch);
Network GoogLeNetInTraining(int64_t batch);  // with the auxiliary classifiers

// He et al. 2015, Table 1, 50 layers.
Network ResNet50(int64_t batch);

// Szegedy et al. 2016, the two versions of Inception-ResNet, the second with the stem of the published weights and
// without the auxiliary classifier. The paper does not say which one it uses.
Network InceptionResNet1(int64_t batch);
Network InceptionResNet2(int64_t batch);

}  // namespace hotpack::bench
