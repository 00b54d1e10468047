#include "remat/networks/k_means.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

class Builder {
 public:
  explicit Builder(const KMeansOptions& options) : options_(options) {}

  absl::StatusOr<Graph> Run() {
    const StorageId points = Add("points", n_ * d_, true);
    graph_.storages[static_cast<size_t>(points)].kept = true;
    StorageId centroids = Add("centroids0", k_ * d_, true);
    const StorageId norms = Add("norms", n_, false);
    Run("norms", {points}, {norms}, 2 * n_ * d_);
    StorageId labels = 0;
    for (int64_t i = 1; i <= options_.iterations; ++i) {
      const StorageId distances = Add(absl::StrCat("distances", i), n_ * k_, false);
      Run(absl::StrCat("product", i), {points, centroids}, {distances}, 2 * n_ * d_ * k_).heavy = true;
      Run(absl::StrCat("distances", i), {norms, centroids}, {}, 3 * n_ * k_, {distances});
      labels = Add(absl::StrCat("labels", i), n_, false);
      Run(absl::StrCat("nearest", i), {distances}, {labels}, n_ * k_);
      const StorageId next = Add(absl::StrCat("centroids", i), k_ * d_, false);
      Run(absl::StrCat("means", i), {points, labels}, {next}, n_ * d_);
      centroids = next;
    }
    for (StorageId last : {labels, centroids}) graph_.storages[static_cast<size_t>(last)].kept = true;
    if (too_large_) return absl::InvalidArgumentError("a storage of more than 2^62 bytes");
    return std::move(graph_);
  }

 private:
  StorageId Add(std::string name, double elements, bool given) {
    const double bytes = elements * 4;
    too_large_ |= bytes >= 0x1p62;
    const StorageKind kind = given ? StorageKind::kOther : StorageKind::kFeatureMap;
    graph_.storages.push_back({std::move(name), too_large_ ? 0 : static_cast<Bytes>(bytes), kind, given, false});
    return static_cast<StorageId>(graph_.storages.size()) - 1;
  }

  Operator& Run(std::string name, std::vector<StorageId> reads, std::vector<StorageId> writes, double flops,
                std::vector<StorageId> updates = {}) {
    Operator op;
    op.name = std::move(name);
    double bytes = 0;
    for (const auto* list : {&reads, &writes, &updates, &updates}) {  // changes in place read and write
      for (StorageId id : *list) bytes += static_cast<double>(graph_.storages[static_cast<size_t>(id)].bytes);
    }
    op.cost = CostOf(options_.device, flops, bytes);
    op.reads = std::move(reads);
    op.writes = std::move(writes);
    op.updates = std::move(updates);
    return graph_.operators.emplace_back(std::move(op));
  }

  const KMeansOptions& options_;
  const double n_ = static_cast<double>(options_.points);
  const double d_ = static_cast<double>(options_.dimensions);
  const double k_ = static_cast<double>(options_.clusters);
  Graph graph_;
  bool too_large_ = false;
};

}  // namespace

absl::StatusOr<Graph> KMeans(const KMeansOptions& options) { return Builder(options).Run(); }

std::vector<Generator> KMeansGenerators() {
  Generator k_means = {"kmeans",
                       "Lloyd's iterations of k-means",
                       {},
                       {{"points", 1'000'000, 1, 1'000'000'000'000, "samples"},
                        {"dimensions", 64, 1, 1'000'000, "of a point"},
                        {"clusters", 256, 1, 1'000'000, "centroids"},
                        {"iterations", 20, 1, 100'000, "each with its own distances, labels and centroids"}}};
  k_means.graph = [](const Parameters& of) {
    return KMeans({.points = of.at("points"),
                   .dimensions = of.at("dimensions"),
                   .clusters = of.at("clusters"),
                   .iterations = of.at("iterations")});
  };
  return {k_means};
}

}  // namespace hotpack::remat
