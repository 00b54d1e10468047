// Records the operators of a forward pass, and runs some of them again.
//
// A boxed fallback on a dispatch key below autograd and autocast sees every kernel's call with its exact arguments. A
// tape keeps each call of a pass: constants as they are, tensors as numbers of values. It holds no tensor, so memory goes
// as without it. A recipe is the part of a tape that makes one value from values that are there in backward anyway.
//
//   values   x0 ──► native_layer_norm ──► y1, mean2, rstd3      recipe of y1: the call, from x0, the weight, the bias
//   in place y1 ──► relu_ ──► y4 (the same tensor)              every tensor on that storage is another value from then on
//
// Compiled once for a version of PyTorch (recorder.py), because boxed fallbacks have no stable interface.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "recorder_time.h"
#include "recorder_traits.h"

namespace {

using c10::IValue;
using c10::OperatorHandle;
using c10::TensorImpl;
using hotpack::DeviceOf;
using hotpack::Duration;
using hotpack::Now;
using hotpack::Traits;
using hotpack::TraitsOf;

constexpr auto kKey = c10::DispatchKey::Fake;  // below all modes; without kernels of its own (recorder.py checks)
constexpr size_t kMaxCalls = 100'000;          // of a tape: then it records no more
constexpr size_t kMaxRecipe = 48;              // calls
constexpr int64_t kUndefined = -1;

int64_t VersionOf(const at::Tensor& tensor) {
  TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return impl->is_inference() ? -1 : static_cast<int64_t>(impl->version_counter().current_version());
}

void* StorageOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

// Of a tensor whose contents a call does not read: a new one of this shape takes its place when the call runs again. So
// the program's running statistics are written once.
struct Shape {
  std::vector<int64_t> sizes, strides;
  at::TensorOptions options;
};

struct Argument {
  enum Kind : uint8_t { kConstant, kTensor, kTensors, kOptionalTensors, kShape };
  Kind kind = kConstant;
  bool written = false;
  IValue constant;
  std::vector<int64_t> values, versions;  // kUndefined: no tensor
  std::optional<Shape> shape;
};

struct Call {
  OperatorHandle op;
  Traits traits;
  std::vector<Argument> arguments;
  std::vector<int64_t> results;
  int64_t new_bytes = 0;  // of results that are no views
  at::Generator generator;
  at::Tensor state;  // of the generator, before the call
  Duration duration;
};

struct Value {
  c10::weak_intrusive_ptr<TensorImpl, c10::UndefinedTensorImpl>
      tensor;  // keeps the address from coming again, not the memory
  int64_t version;
  int64_t made_by;  // a call; -1: it was there
};

class Tape {
 public:
  // Drops everything before the next operator. Only while no recipe of it lives. Thread-safe.
  void Clear() { stale_ = true; }

  int64_t Find(const at::Tensor& tensor) const {
    if (stale_) return kUndefined;
    const auto found = current_.find(tensor.unsafeGetTensorImpl());
    if (found == current_.end() || At(found->second).version != VersionOf(tensor)) return kUndefined;
    return found->second;
  }

  size_t size() const { return calls_.size(); }

  bool full() const { return !stale_ && calls_.size() >= kMaxCalls; }

  // From now on calls are measured, which costs a GPU's stream two events each.
  void Time(bool timed) { timed_ = timed; }

  bool timed() const { return timed_; }

  // What the calls took, in seconds; measured ones only.
  double Seconds(const std::vector<int64_t>& order) const {
    double sum = 0;
    for (const int64_t number : order) sum += calls_.at(number - first_call_).duration.Seconds();
    return sum;
  }

  // The host's time for the recording of measured calls, since the last reading of it.
  double TakeOwnSeconds() { return std::exchange(own_seconds_, 0); }

  void AddOwn(double seconds) { own_seconds_ += seconds; }

  // Adds the call that is about to run. The caller runs it, and calls Finish.
  Call Begin(const OperatorHandle& op, const Traits& traits, const torch::jit::Stack& stack) {
    if (stale_.exchange(false)) Reset();
    const auto& schema = op.schema();
    const size_t count = schema.arguments().size();
    const size_t begin = stack.size() - count;
    Call call{op, traits, {}, {}, 0, {}, {}, {}};
    call.arguments.resize(count);
    if (traits.batch_norm) {
      const bool trains = traits.always_trains || (stack[begin + 5].isBool() && stack[begin + 5].toBool());
      call.traits.repeatable = trains;  // else it reads statistics that others write without a trace
    }
    for (size_t i = 0; i < count; ++i) {
      const auto* alias = schema.arguments()[i].alias_info();
      const bool statistics = traits.batch_norm && (i == 3 || i == 4);
      Read(stack[begin + i], call.traits.repeatable, traits.shape_only || statistics,
           alias != nullptr && alias->isWrite(), &call.arguments[i]);
    }
    if (!WritesWholeStorages(call, stack, begin)) call.traits.repeatable = false;
    if (traits.random && traits.repeatable) SaveGenerator(stack, begin, &call);
    return call;
  }

  void Finish(Call call, const std::vector<void*>& written, const torch::jit::Stack& stack) {
    Forget(written);
    const auto& returns = call.op.schema().returns();
    const int64_t made_by = first_call_ + static_cast<int64_t>(calls_.size());
    const size_t begin = stack.size() - returns.size();
    for (size_t i = 0; i < returns.size(); ++i) {
      const IValue& value = stack[begin + i];
      const bool is_view = returns[i].alias_info() != nullptr;
      const auto add = [&](const at::Tensor& tensor) {
        if (!tensor.defined()) {
          call.results.push_back(kUndefined);
          return;
        }
        // Versions are set above this key: a view gets its base's counter, a change in place is counted.
        const bool written = is_view && returns[i].alias_info()->isWrite();
        const int64_t version = is_view && !written ? FirstVersion(call) : VersionOf(tensor) + (written ? 1 : 0);
        call.results.push_back(Add(tensor, version, made_by));
        if (!is_view) call.new_bytes += static_cast<int64_t>(tensor.nbytes());
      };
      if (value.isTensor()) {
        add(value.toTensor());
      } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) add(tensor);
      }
    }
    calls_.push_back(std::move(call));
  }

  // The contents of these storages have changed: no tensor on them has its old value.
  void Forget(const std::vector<void*>& written) {
    for (void* storage : written) {
      const auto found = on_storage_.find(storage);
      if (found == on_storage_.end()) continue;
      for (TensorImpl* tensor : found->second) current_.erase(tensor);
      on_storage_.erase(found);
    }
  }

  // The calls that make `target` from values of Have and values that are given, in order, and what they read: (value,
  // version). Empty: there is no such recipe. The caller finds out whether what is given is still there.
  std::optional<std::tuple<std::vector<int64_t>, std::vector<std::pair<int64_t, int64_t>>, int64_t>> Recipe(
      int64_t target) const {
    std::unordered_set<int64_t> calls;
    std::unordered_map<int64_t, int64_t> sources;
    std::vector<int64_t> open = {target};
    int64_t bytes = 0;
    while (!open.empty()) {
      const int64_t made_by = At(open.back()).made_by;
      open.pop_back();
      if (made_by < 0) return {};
      if (!calls.insert(made_by).second) continue;
      const Call& call = calls_[made_by - first_call_];
      if (!call.traits.repeatable || calls.size() > kMaxRecipe) return {};
      bytes += call.new_bytes;
      for (const Argument& argument : call.arguments) {
        for (size_t k = 0; k < argument.values.size(); ++k) {
          const int64_t value = argument.values[k];
          if (value == kUndefined) continue;
          if (!have_.contains(value) && IsUninitialised(value) && !(argument.written && call.traits.overwrites)) {
            return {};
          }
          if (have_.contains(value) || IsGiven(value)) {
            const auto [known, is_new] = sources.try_emplace(value, argument.versions[k]);
            if (!is_new && known->second != argument.versions[k]) return {};
          } else {
            open.push_back(value);
          }
        }
      }
    }
    std::vector<int64_t> order(calls.begin(), calls.end());
    std::sort(order.begin(), order.end());
    return std::make_tuple(std::move(order), std::vector<std::pair<int64_t, int64_t>>(sources.begin(), sources.end()),
                           bytes);
  }

  // Recipes begin with this value: a save of it is there in backward.
  void Have(int64_t value) { have_.insert(value); }

  void HaveNot(int64_t value) { have_.erase(value); }

  // The tensor of a value that was there, if it still has that value.
  std::optional<at::Tensor> Tensor(int64_t value, int64_t version) const {
    const at::Tensor found(At(value).tensor.lock());
    if (!found.defined()) return {};
    const auto current = current_.find(found.unsafeGetTensorImpl());
    if (current == current_.end() || current->second != value || VersionOf(found) != version) return {};
    return found;
  }

  std::vector<std::string> Names(const std::vector<int64_t>& order) const {
    std::vector<std::string> names;
    for (const int64_t number : order) names.push_back(calls_[number - first_call_].op.operator_name().name);
    return names;
  }

  // Runs the calls again. have: the recipe's sources.
  at::Tensor Replay(const std::vector<int64_t>& order, std::unordered_map<int64_t, at::Tensor> have, int64_t target) {
    const at::NoGradGuard no_grad;
    const c10::impl::ExcludeDispatchKeyGuard no_record(kKey), no_autocast(c10::autocast_dispatch_keyset),
        no_autograd(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    std::unordered_map<int64_t, int> uses = {{target, 1}};
    for (const int64_t number : order) {
      for (const Argument& argument : calls_[number - first_call_].arguments) {
        for (const int64_t value : argument.values) ++uses[value];
      }
    }
    for (const int64_t number : order) ReplayCall(calls_[number - first_call_], &have, &uses);
    return have.at(target);
  }

 private:
  int64_t Add(const at::Tensor& tensor, int64_t version, int64_t made_by) {
    TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const int64_t number = first_value_ + static_cast<int64_t>(values_.size());
    values_.push_back(
        {c10::weak_intrusive_ptr<TensorImpl, c10::UndefinedTensorImpl>(tensor.getIntrusivePtr()), version, made_by});
    current_[impl] = number;
    if (void* storage = StorageOf(tensor); storage != nullptr) on_storage_[storage].push_back(impl);
    return number;
  }

  // A recipe makes whole storages: other views of them come back with it.
  static bool WritesWholeStorages(const Call& call, const torch::jit::Stack& stack, size_t begin) {
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const Argument& argument = call.arguments[i];
      if (!argument.written || argument.kind == Argument::kShape || argument.kind == Argument::kConstant) continue;
      if (argument.kind != Argument::kTensor) return false;
      const at::Tensor& tensor = stack[begin + i].toTensor();
      if (!tensor.has_storage() || tensor.nbytes() != tensor.storage().nbytes() ||
          !tensor.is_non_overlapping_and_dense()) {
        return false;
      }
    }
    return true;
  }

  static int64_t FirstVersion(const Call& call) {
    for (const Argument& argument : call.arguments) {
      if (!argument.versions.empty()) return argument.versions[0];
    }
    return 0;
  }

  int64_t FindOrAdd(const at::Tensor& tensor) {
    const int64_t found = Find(tensor);
    return found != kUndefined ? found : Add(tensor, VersionOf(tensor), -1);
  }

  void ReadTensor(const at::Tensor& tensor, Argument* argument) {
    argument->values.push_back(tensor.defined() ? FindOrAdd(tensor) : kUndefined);
    argument->versions.push_back(tensor.defined() ? VersionOf(tensor) : 0);
  }

  // Constants of calls that do not run again are not kept: one may hold a storage.
  void Read(const IValue& value, bool runs_again, bool shape_only, bool written, Argument* argument) {
    argument->written = written;
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (shape_only && tensor.defined() && tensor.layout() == at::kStrided) {
        argument->kind = Argument::kShape;
        argument->shape = {tensor.sizes().vec(), tensor.strides().vec(), tensor.options()};
        return;
      }
      if (tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number()) {  // a number of the program
        argument->constant = value;
        return;
      }
      argument->kind = Argument::kTensor;
      ReadTensor(tensor, argument);
    } else if (value.isTensorList()) {
      argument->kind = Argument::kTensors;
      for (const at::Tensor& tensor : value.toTensorVector()) ReadTensor(tensor, argument);
    } else if (value.isOptionalTensorList()) {
      argument->kind = Argument::kOptionalTensors;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        ReadTensor(tensor.value_or(at::Tensor()), argument);
      }
    } else if (runs_again) {
      argument->constant = value;
    }
  }

  static void SaveGenerator(const torch::jit::Stack& stack, size_t begin, Call* call) {
    c10::Device device = at::kCPU;
    for (size_t i = begin; i < stack.size(); ++i) {
      if (stack[i].isGenerator()) call->generator = stack[i].toGenerator();
      if (stack[i].isTensor() && stack[i].toTensor().defined()) device = stack[i].toTensor().device();
    }
    if (!call->generator.defined()) call->generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(call->generator.mutex());
    call->state = call->generator.get_state();
  }

  // What a call may write into: the tensor itself if this replay alone has it, else a copy.
  static at::Tensor Writable(at::Tensor tensor) {
    if (tensor.use_count() == 1 && tensor.storage().use_count() == 1) return tensor;
    if (!tensor.is_non_overlapping_and_dense()) return tensor.clone();
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()).copy_(tensor);
  }

  static void ReplayCall(const Call& call, std::unordered_map<int64_t, at::Tensor>* have,
                         std::unordered_map<int64_t, int>* uses) {
    const auto take = [&](int64_t value, bool written) {
      if (value == kUndefined) return at::Tensor();
      at::Tensor tensor;
      if (--(*uses)[value] == 0) {
        tensor = std::move((*have)[value]);
        have->erase(value);
      } else {
        tensor = have->at(value);
      }
      return written ? Writable(std::move(tensor)) : tensor;
    };
    torch::jit::Stack stack;
    stack.reserve(call.arguments.size());
    for (const Argument& argument : call.arguments) {
      switch (argument.kind) {
        case Argument::kConstant:
          stack.push_back(argument.constant);
          break;
        case Argument::kShape:
          stack.emplace_back(
              at::empty_strided(argument.shape->sizes, argument.shape->strides, argument.shape->options));
          break;
        case Argument::kTensor: {
          at::Tensor tensor = take(argument.values[0], argument.written);
          stack.push_back(tensor.defined() ? IValue(std::move(tensor)) : IValue());
          break;
        }
        case Argument::kTensors: {
          c10::List<at::Tensor> list;
          for (const int64_t value : argument.values) list.push_back(take(value, argument.written));
          stack.emplace_back(std::move(list));
          break;
        }
        case Argument::kOptionalTensors: {
          c10::List<std::optional<at::Tensor>> list;
          for (const int64_t value : argument.values) {
            list.push_back(value == kUndefined ? std::optional<at::Tensor>() : take(value, false));
          }
          stack.emplace_back(std::move(list));
          break;
        }
      }
    }
    Run(call, &stack);
    size_t result = 0;
    const auto keep = [&](const at::Tensor& tensor) {
      const int64_t value = call.results[result++];
      const auto used = uses->find(value);
      if (value != kUndefined && used != uses->end() && used->second > 0) (*have)[value] = tensor;
    };
    for (const IValue& value : stack) {
      if (value.isTensor()) {
        keep(value.toTensor());
      } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) keep(tensor);
      }
    }
  }

  static void Run(const Call& call, torch::jit::Stack* stack) {
    if (!call.state.defined()) {
      call.op.callBoxed(*stack);
      return;
    }
    at::Generator generator = call.generator;
    at::Tensor present;
    const auto set = [&](const at::Tensor& state) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      if (!present.defined()) present = generator.get_state();
      generator.set_state(state);
    };
    set(call.state);
    try {
      call.op.callBoxed(*stack);
    } catch (...) {
      set(present);
      throw;
    }
    set(present);
  }

  const Value& At(int64_t value) const { return values_[value - first_value_]; }

  bool IsUninitialised(int64_t value) const {
    const int64_t made_by = At(value).made_by;
    return made_by >= 0 && calls_[made_by - first_call_].traits.uninitialised;
  }

  // Recipes begin with it: it was there, is a parameter, or cannot be computed again.
  bool IsGiven(int64_t value) const {
    const Value& found = At(value);
    if (found.made_by < 0 || !calls_[found.made_by - first_call_].traits.repeatable) return true;
    const at::Tensor tensor(found.tensor.lock());
    return tensor.defined() && tensor.requires_grad() && tensor.is_leaf();
  }

  // Numbers go on, so that those of before mean nothing from now on.
  void Reset() {
    first_call_ += static_cast<int64_t>(calls_.size());
    first_value_ += static_cast<int64_t>(values_.size());
    calls_.clear();
    values_.clear();
    current_.clear();
    on_storage_.clear();
    have_.clear();
  }

  std::atomic<bool> stale_ = false;
  bool timed_ = false;
  double own_seconds_ = 0;
  std::unordered_set<int64_t> have_;
  int64_t first_call_ = 0, first_value_ = 0;
  std::vector<Call> calls_;
  std::vector<Value> values_;
  std::unordered_map<const TensorImpl*, int64_t> current_;
  std::unordered_map<void*, std::vector<TensorImpl*>> on_storage_;
};

thread_local std::shared_ptr<Tape> recording;  // of this thread's forward passes

std::mutex watch_mutex;
std::unordered_map<void*, int> watched;  // storages that live recipes read: how many
std::atomic<size_t> watched_count = 0;
pybind11::object* on_write = nullptr;  // called with the storage's address before it is written

bool IsWatched(void* storage) {
  const std::lock_guard<std::mutex> lock(watch_mutex);
  return watched.contains(storage);
}

std::vector<void*> WrittenStorages(const OperatorHandle& op, const torch::jit::Stack& stack) {
  std::vector<void*> written;
  const auto& arguments = op.schema().arguments();
  const size_t begin = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias_info() == nullptr || !arguments[i].alias_info()->isWrite()) continue;
    const auto add = [&](const at::Tensor& tensor) {
      if (void* storage = StorageOf(tensor); storage != nullptr) written.push_back(storage);
    };
    if (stack[begin + i].isTensor()) {
      add(stack[begin + i].toTensor());
    } else if (stack[begin + i].isTensorList()) {
      for (const at::Tensor& tensor : stack[begin + i].toTensorVector()) add(tensor);
    }
  }
  return written;
}

void Record(const OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);  // calls that a kernel makes are part of it
  const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  const Traits& traits = TraitsOf(op);
  std::vector<void*> written;
  if (traits.writes) {
    written = WrittenStorages(op, *stack);
    if (watched_count > 0) {
      for (void* storage : written) {
        if (!IsWatched(storage)) continue;
        const pybind11::gil_scoped_acquire lock;
        (*on_write)(reinterpret_cast<intptr_t>(storage));
      }
    }
  }
  const std::shared_ptr<Tape> tape = recording;
  if (tape == nullptr || tape->full() || !c10::GradMode::is_enabled() ||
      torch::autograd::get_current_graph_task_id() != -1) {
    op.redispatchBoxed(below, stack);
    if (tape != nullptr) tape->Forget(written);
    return;
  }
  if (!tape->timed()) {
    Call call = tape->Begin(op, traits, *stack);
    op.redispatchBoxed(below, stack);
    tape->Finish(std::move(call), written, *stack);
    return;
  }
  const double begun = Now();
  Call call = tape->Begin(op, traits, *stack);
  call.duration.Begin(DeviceOf(*stack, stack->size() - call.arguments.size()));
  tape->AddOwn(Now() - begun);
  op.redispatchBoxed(below, stack);
  const double done = Now();
  call.duration.End();
  tape->Finish(std::move(call), written, *stack);
  tape->AddOwn(Now() - done);
}

TORCH_LIBRARY_IMPL(_, Fake, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&Record>()); }

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  namespace py = pybind11;
  py::class_<Tape, std::shared_ptr<Tape>>(m, "Tape")
      .def(py::init<>())
      .def("size", &Tape::size)
      .def("clear", &Tape::Clear)
      .def("find", &Tape::Find)
      .def("recipe", &Tape::Recipe)
      .def("tensor", &Tape::Tensor)
      .def("have", &Tape::Have)
      .def("have_not", &Tape::HaveNot)
      .def("names", &Tape::Names)
      .def("time", &Tape::Time)
      .def("seconds", &Tape::Seconds)
      .def("own_seconds", &Tape::TakeOwnSeconds)
      .def("replay", &Tape::Replay);
  // Records this thread's operators from now on; None: no more.
  m.def("record", [](std::shared_ptr<Tape> tape) {
    recording = std::move(tape);
    c10::impl::tls_set_dispatch_key_included(kKey, recording != nullptr);
  });
  m.def("watch", [](intptr_t storage) {
    const std::lock_guard<std::mutex> lock(watch_mutex);
    ++watched[reinterpret_cast<void*>(storage)];
    watched_count = watched.size();
  });
  m.def("unwatch", [](intptr_t storage) {
    const std::lock_guard<std::mutex> lock(watch_mutex);
    const auto found = watched.find(reinterpret_cast<void*>(storage));
    if (found != watched.end() && --found->second == 0) watched.erase(found);
    watched_count = watched.size();
  });
  m.def("on_write", [](py::object callback) { on_write = new py::object(std::move(callback)); });
}
