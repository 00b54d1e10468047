// The eight matrices of the deep Q-network, stored one after the other in one vector.
#pragma once

#include <Eigen/Dense>
#include <random>

namespace hotpack::remat {

inline constexpr int kNodeFeatures = 6;
inline constexpr int kWidth = 8;  // p; not given in the paper. Constant, so that loops are unrolled

class QWeights {
 public:
  using Square = Eigen::Matrix<double, kWidth, kWidth>;
  using OfFeatures = Eigen::Matrix<double, kWidth, kNodeFeatures>;
  using Column = Eigen::Matrix<double, kWidth, 1>;
  using OfHidden = Eigen::Matrix<double, 1, 3 * kWidth>;

  QWeights() : all_(Eigen::VectorXd::Zero(kSize)) {}  // all zero

  const Eigen::VectorXd& all() const { return all_; }
  Eigen::VectorXd& all() { return all_; }

  // Equation 1.
  auto w1() const { return Eigen::Map<const OfFeatures>(all_.data()); }
  auto w2() const { return Eigen::Map<const Square>(all_.data() + kAt2); }
  auto w3() const { return Eigen::Map<const Square>(all_.data() + kAt3); }
  auto w4() const { return Eigen::Map<const Column>(all_.data() + kAt4); }
  auto w1() { return Eigen::Map<OfFeatures>(all_.data()); }
  auto w2() { return Eigen::Map<Square>(all_.data() + kAt2); }
  auto w3() { return Eigen::Map<Square>(all_.data() + kAt3); }
  auto w4() { return Eigen::Map<Column>(all_.data() + kAt4); }
  // Equation 2.
  auto w5() const { return Eigen::Map<const Square>(all_.data() + kAt5); }
  auto w6() const { return Eigen::Map<const Square>(all_.data() + kAt6); }
  auto w5() { return Eigen::Map<Square>(all_.data() + kAt5); }
  auto w6() { return Eigen::Map<Square>(all_.data() + kAt6); }
  // Equation 3.
  auto w7() const { return Eigen::Map<const OfHidden>(all_.data() + kAt7); }
  auto w8() const { return Eigen::Map<const Square>(all_.data() + kAt8); }
  auto w7() { return Eigen::Map<OfHidden>(all_.data() + kAt7); }
  auto w8() { return Eigen::Map<Square>(all_.data() + kAt8); }

 private:
  static constexpr int kOfSquare = kWidth * kWidth;
  static constexpr int kAt2 = kWidth * kNodeFeatures, kAt3 = kAt2 + kOfSquare, kAt4 = kAt3 + kOfSquare,
                       kAt5 = kAt4 + kWidth, kAt6 = kAt5 + kOfSquare, kAt7 = kAt6 + kOfSquare, kAt8 = kAt7 + 3 * kWidth,
                       kSize = kAt8 + kOfSquare;
  Eigen::VectorXd all_;
};

// Draws weights uniformly from ±1/√columns. Matrices in front of a sum over neighbours or over `nodes` are smaller, so
// that values are of the order of one after four rounds of sums.
QWeights DrawWeights(size_t nodes, std::mt19937_64* random);

}  // namespace hotpack::remat
