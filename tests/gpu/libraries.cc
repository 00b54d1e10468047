// Do the memory requests of cuBLAS and cuDNN reach hotpack, and do both compute right? They are opened at run time; the
// few functions used are declared here as in cublas_api.h and cudnn_ops.h / cudnn_cnn.h (version 9), handles as void*.
#include <dlfcn.h>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

struct Opened {
  void* handle = nullptr;
  std::string name;
};

// By the loader's own search first, then in `directories`.
Opened Open(const std::vector<std::string>& directories, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) return {handle, name};
  }
  for (const std::string& directory : directories) {
    for (const std::string& name : names) {
      const std::string path = directory + "/" + name;
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return {handle, path};
    }
  }
  return {};
}

void NeedStatus(int status, const char* what) {
  if (status != 0) throw CallFailed(std::string(what) + " gave status " + std::to_string(status));
}
#define HOTPACK_NEED_STATUS(call) NeedStatus((call), #call)

template <typename Function>
Function* Find(const Opened& library, const char* name) {
  void* function = dlsym(library.handle, name);
  if (function == nullptr) throw CallFailed(library.name + " has no " + name);
  return reinterpret_cast<Function*>(function);
}

float* Upload(const std::vector<float>& values) {
  void* p = nullptr;
  HOTPACK_NEED(cudaMalloc(&p, values.size() * sizeof(float)));
  HOTPACK_NEED(cudaMemcpy(p, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
  return static_cast<float*>(p);
}

std::vector<float> Download(const float* p, size_t count) {
  std::vector<float> values(count);
  HOTPACK_NEED(cudaMemcpy(values.data(), p, count * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}

// hotpack's requests between two moments.
class Requests {
 public:
  explicit Requests(const Probe& probe) : probe_(probe), before_(probe.Stats()) {}
  uint64_t Count() const { return probe_.Stats().requests - before_.requests; }

 private:
  const Probe& probe_;
  hotpack_stats before_;
};

// `own`: requests that the library itself made, while its handle was made and while it was first used.
void JudgeRequests(const Probe& probe, const std::string& name, uint64_t at_create, uint64_t at_use) {
  if (!probe.hotpack) {
    probe.found->Skip("libraries." + name + ".requests", "hotpack is not preloaded");
    return;
  }
  probe.found->Fact(
      at_create + at_use > 0, "libraries." + name + ".requests", "the library's own requests reach hotpack",
      std::to_string(at_create) + " while its handle is made, " + std::to_string(at_use) + " at its first use");
}

// C = A·B, with values whose products and sums a float holds exactly.
struct Product {
  static constexpr int kSide = 512;
  std::vector<float> a, b;
  Product() : a(kSide * kSide), b(kSide * kSide) {
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column) {  // column-major
        a[row + column * kSide] = static_cast<float>(row % 7);
        b[row + column * kSide] = static_cast<float>(column % 5);
      }
    }
  }
  static size_t CountWrong(const std::vector<float>& c) {
    size_t wrong = 0;
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column) {
        wrong += c[row + column * kSide] != static_cast<float>(kSide * (row % 7) * (column % 5));
      }
    }
    return wrong;
  }
};

void Blas(const Probe& probe) {
  // The library next to it first, in case its own search does not look there.
  Open(probe.library_path, {"libcublasLt.so.13", "libcublasLt.so.12"});
  const Opened library = Open(probe.library_path, {"libcublas.so.13", "libcublas.so.12"});
  if (library.handle == nullptr) {
    probe.found->Skip("libraries.cublas", "neither libcublas.so.13 nor .12 was found");
    return;
  }
  const auto create = Find<int(void**)>(library, "cublasCreate_v2");
  const auto destroy = Find<int(void*)>(library, "cublasDestroy_v2");
  const auto sgemm = Find<int(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
                              const float*, float*, int)>(library, "cublasSgemm_v2");
  constexpr int kSide = Product::kSide;
  const Product product;
  float* a = Upload(product.a);
  float* b = Upload(product.b);
  float* c = Upload(std::vector<float>(kSide * kSide, -1.0f));
  void* handle = nullptr;
  const Requests creating(probe);
  HOTPACK_NEED_STATUS(create(&handle));
  const uint64_t at_create = creating.Count();
  const Requests using_it(probe);
  const float one = 1, zero = 0;
  HOTPACK_NEED_STATUS(sgemm(handle, 0, 0, kSide, kSide, kSide, &one, a, kSide, b, kSide, &zero, c, kSide));
  HOTPACK_NEED(cudaDeviceSynchronize());
  JudgeRequests(probe, "cublas", at_create, using_it.Count());
  const size_t wrong = Product::CountWrong(Download(c, kSide * kSide));
  probe.Must(wrong == 0, "libraries.cublas.sgemm", "an exact product of 512 by 512",
             std::to_string(wrong) + " entries wrong, by " + library.name);
  HOTPACK_NEED_STATUS(destroy(handle));
  for (float* p : {a, b, c}) HOTPACK_NEED(cudaFree(p));
}

// One image of 8 channels, 32 by 32, with 16 filters of 3 by 3; everything is one, so that each output counts the
// inputs that its filter covers.
class Convolution {
 public:
  explicit Convolution(const Opened& library) : library_(library) {
    Call<int(void**)>("cudnnCreateTensorDescriptor", &x_);
    Call<int(void**)>("cudnnCreateTensorDescriptor", &y_);
    Call<int(void**)>("cudnnCreateFilterDescriptor", &w_);
    Call<int(void**)>("cudnnCreateConvolutionDescriptor", &convolution_);
    using SetTensor = int(void*, int, int, int, int, int, int);
    Call<SetTensor>("cudnnSetTensor4dDescriptor", x_, kNchw, kFloat, 1, kIn, kSide, kSide);
    Call<SetTensor>("cudnnSetTensor4dDescriptor", y_, kNchw, kFloat, 1, kOut, kSide, kSide);
    Call<SetTensor>("cudnnSetFilter4dDescriptor", w_, kFloat, kNchw, kOut, kIn, 3, 3);
    Call<int(void*, int, int, int, int, int, int, int, int)>("cudnnSetConvolution2dDescriptor", convolution_, 1, 1, 1,
                                                             1, 1, 1, kCrossCorrelation, kFloat);
  }
  ~Convolution() {
    Find<int(void*)>(library_, "cudnnDestroyConvolutionDescriptor")(convolution_);
    Find<int(void*)>(library_, "cudnnDestroyFilterDescriptor")(w_);
    Find<int(void*)>(library_, "cudnnDestroyTensorDescriptor")(y_);
    Find<int(void*)>(library_, "cudnnDestroyTensorDescriptor")(x_);
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  // The output, computed with memory that is allocated here.
  std::vector<float> Run(void* handle) {
    float* x = Upload(std::vector<float>(kIn * kSide * kSide, 1.0f));
    float* w = Upload(std::vector<float>(kOut * kIn * 9, 1.0f));
    float* y = Upload(std::vector<float>(kOut * kSide * kSide, -1.0f));
    size_t bytes = 0;
    Call<int(void*, void*, void*, void*, void*, int, size_t*)>("cudnnGetConvolutionForwardWorkspaceSize", handle, x_,
                                                               w_, convolution_, y_, kImplicitGemm, &bytes);
    void* workspace = nullptr;
    own_requests_ = bytes > 0 ? 4 : 3;
    if (bytes > 0) HOTPACK_NEED(cudaMalloc(&workspace, bytes));
    const float one = 1, zero = 0;
    Call<int(void*, const void*, void*, const void*, void*, const void*, void*, int, void*, size_t, const void*, void*,
             void*)>("cudnnConvolutionForward", handle, &one, x_, x, w_, w, convolution_, kImplicitGemm, workspace,
                     bytes, &zero, y_, y);
    HOTPACK_NEED(cudaDeviceSynchronize());
    const std::vector<float> result = Download(y, kOut * kSide * kSide);
    for (void* p : {static_cast<void*>(x), static_cast<void*>(w), static_cast<void*>(y), workspace}) {
      if (p != nullptr) HOTPACK_NEED(cudaFree(p));
    }
    return result;
  }

  static size_t CountWrong(const std::vector<float>& y) {
    const auto covered = [](int at) { return at == 0 || at == kSide - 1 ? 2 : 3; };
    size_t wrong = 0;
    for (int i = 0; i < kOut * kSide * kSide; ++i) {
      const int row = i / kSide % kSide, column = i % kSide;
      wrong += y[i] != static_cast<float>(kIn * covered(row) * covered(column));
    }
    return wrong;
  }

  // How many requests Run made itself, not the library.
  uint64_t own_requests() const { return own_requests_; }

 private:
  static constexpr int kNchw = 0, kFloat = 0, kCrossCorrelation = 1, kImplicitGemm = 0;
  static constexpr int kIn = 8, kOut = 16, kSide = 32;

  template <typename Function, typename... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    NeedStatus(Find<Function>(library_, name)(arguments...), name);
  }

  const Opened& library_;
  uint64_t own_requests_ = 0;
  void *x_ = nullptr, *y_ = nullptr, *w_ = nullptr, *convolution_ = nullptr;
};

void Dnn(const Probe& probe) {
  const Opened library = Open(probe.library_path, {"libcudnn.so.9"});
  if (library.handle == nullptr) {
    probe.found->Skip("libraries.cudnn", "libcudnn.so.9 was not found");
    return;
  }
  void* handle = nullptr;
  const Requests creating(probe);
  HOTPACK_NEED_STATUS(Find<int(void**)>(library, "cudnnCreate")(&handle));
  const uint64_t at_create = creating.Count();
  uint64_t at_use = 0;
  {
    Convolution convolution(library);
    const Requests using_it(probe);
    const size_t wrong = Convolution::CountWrong(convolution.Run(handle));
    const uint64_t all = using_it.Count();
    at_use = all > convolution.own_requests() ? all - convolution.own_requests() : 0;
    probe.Must(wrong == 0, "libraries.cudnn.convolution", "an exact convolution",
               std::to_string(wrong) + " entries wrong, by " + library.name);
  }
  JudgeRequests(probe, "cudnn", at_create, at_use);
  HOTPACK_NEED_STATUS(Find<int(void*)>(library, "cudnnDestroy")(handle));
}

}  // namespace

void RunLibraries(Probe& probe) {
  if (probe.simulated) {
    probe.found->Skip("libraries.cublas", "it carries NVIDIA's runtime, which needs NVIDIA's driver");
    probe.found->Skip("libraries.cudnn", "it carries NVIDIA's runtime, which needs NVIDIA's driver");
    return;
  }
  // A library that fails on this machine must not hide the other's result.
  struct Library {
    const char* name;
    void (*run)(const Probe&);
  };
  for (const auto& [name, run] : {Library{"cublas", Blas}, Library{"cudnn", Dnn}}) {
    try {
      run(probe);
    } catch (const CallFailed& failed) {
      probe.Must(false, std::string("libraries.") + name + ".calls", "every call succeeds", failed.what());
    }
  }
}

}  // namespace hotpack::gpu
