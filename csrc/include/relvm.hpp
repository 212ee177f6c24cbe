// relvm.hpp: C++17 classes for the C interface of relvm (relvm.h), which own what they refer to.
//
//     relvm::Model model(relvm::Executable("model.rvm", /*trust_native=*/true));
//     relvm::Tensor x({5, 8}, std::vector<float>(40));
//     std::vector<relvm::Tensor> outputs = model.run({x});
//     for (float score : outputs[0].span<float>()) ...
//
// Failures throw relvm::Error, except that Model::call returns its status.  Reference counts are not atomic, so a model
// and its tensors belong to one thread at a time.  Threads that run a model at the same time each need their own Model,
// which can share an Executable.
#ifndef RELVM_HPP
#define RELVM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"  // ISO C++ has no flexible array members
#endif
extern "C" {
#include <relvm.h>
}
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace relvm {

/// A failure of the runtime: its status and its message, with the active calls of the program.
class Error : public std::runtime_error {
 public:
  Error(rvm_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
  rvm_status status() const noexcept { return status_; }

 private:
  rvm_status status_;
};

/// One reference to a value of the runtime.
class Value {
 public:
  Value() noexcept : value_{} { value_.tag = RVM_TAG_NIL; }
  /// Takes over one reference.
  explicit Value(rvm_value owned) noexcept : value_(owned) {}
  Value(const Value &other) noexcept : value_(other.value_) { rvm_value_retain(value_); }
  Value(Value &&other) noexcept : Value() { std::swap(value_, other.value_); }
  Value &operator=(Value other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Value() { rvm_value_release(&value_); }

  const rvm_value &get() const noexcept { return value_; }
  /// The place in which a C function stores a value.  The current value is released.
  rvm_value *out() noexcept {
    rvm_value_release(&value_);
    return &value_;
  }

 private:
  rvm_value value_;
};

/// Throws the error that a C function has stored in `result`.
inline void check(rvm_status status, const Value &result) {
  if (status == RVM_OK) return;
  if (result.get().tag != RVM_TAG_ERROR) throw Error(status, "relvm: status " + std::to_string(status));
  const rvm_error *error = result.get().as.error;
  throw Error(status, error->trace ? std::string(error->message) + "\n" + error->trace : error->message);
}

/// The dtype of a C++ type.
template <typename T>
struct Dtype;
template <>
struct Dtype<float> {
  static constexpr std::int32_t value = RVM_DTYPE_f32;
};
template <>
struct Dtype<double> {
  static constexpr std::int32_t value = RVM_DTYPE_f64;
};
template <>
struct Dtype<std::int8_t> {
  static constexpr std::int32_t value = RVM_DTYPE_i8;
};
template <>
struct Dtype<std::uint8_t> {
  static constexpr std::int32_t value = RVM_DTYPE_u8;
};
template <>
struct Dtype<std::int32_t> {
  static constexpr std::int32_t value = RVM_DTYPE_i32;
};
template <>
struct Dtype<std::int64_t> {
  static constexpr std::int32_t value = RVM_DTYPE_i64;
};

/// Elements in memory that something else owns, like std::span of C++20.
template <typename T>
class Span {
 public:
  Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  /// The elements of a container with contiguous elements, such as std::vector.
  template <typename Container, typename = decltype(std::data(std::declval<Container &>()))>
  Span(Container &container) noexcept : data_(std::data(container)), size_(std::size(container)) {}

  T *data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T *begin() const noexcept { return data_; }
  T *end() const noexcept { return data_ + size_; }
  T &operator[](std::size_t index) const noexcept { return data_[index]; }

 private:
  T *data_;
  std::size_t size_;
};

/// A tensor.  Copies refer to the same elements.
class Tensor {
 public:
  /// A tensor over memory of the program, without a copy.  The memory must exist as long as the tensor and its copies.
  template <typename T>
  static Tensor view(const std::vector<std::int64_t> &shape, Span<T> elements) {
    Value value;
    check(rvm_tensor_wrap(Dtype<T>::value, static_cast<std::int32_t>(shape.size()), shape.data(), elements.data(),
                          nullptr, nullptr, value.out()),
          value);
    Tensor tensor(std::move(value));
    tensor.expect_size(elements.size());
    return tensor;
  }
  /// A tensor with a copy of `elements`, in row-major order.
  template <typename T>
  Tensor(const std::vector<std::int64_t> &shape, const std::vector<T> &elements) {
    check(rvm_tensor_new(Dtype<T>::value, static_cast<std::int32_t>(shape.size()), shape.data(), value_.out()), value_);
    expect_size(elements.size());
    std::copy(elements.begin(), elements.end(), begin<T>());
  }
  /// owner: what the elements belong to, if not to the value alone.
  explicit Tensor(Value value, std::shared_ptr<const void> owner = nullptr)
      : owner_(std::move(owner)), value_(std::move(value)) {
    if (value_.get().tag != RVM_TAG_TENSOR) throw Error(RVM_TYPE_ERROR, "expected a tensor");
  }
  Tensor(const Tensor &) = default;
  Tensor(Tensor &&) = default;
  Tensor &operator=(Tensor other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(value_, other.value_);
    return *this;
  }

  std::vector<std::int64_t> shape() const {
    const rvm_dltensor &dl = value_.get().as.tensor->dl;
    return std::vector<std::int64_t>(dl.shape, dl.shape + dl.ndim);
  }
  /// Number of elements.
  std::size_t size() const {
    std::size_t count = 1;
    for (std::int64_t dim : shape()) count *= static_cast<std::size_t>(dim);
    return count;
  }
  /// The elements, valid while a tensor refers to them.  Throws if T is not their type.
  template <typename T>
  Span<const T> span() const {
    return {elements<T>(), size()};
  }
  template <typename T>
  Span<T> span() {
    return {elements<T>(), size()};
  }
  template <typename T>
  const T *begin() const {
    return elements<T>();
  }
  template <typename T>
  const T *end() const {
    return elements<T>() + size();
  }
  template <typename T>
  T *begin() {
    return elements<T>();
  }
  template <typename T>
  T *end() {
    return elements<T>() + size();
  }

  const Value &value() const noexcept { return value_; }

 private:
  template <typename T>
  T *elements() const {
    const rvm_tensor *tensor = value_.get().as.tensor;
    if (tensor->dtype != Dtype<T>::value) throw Error(RVM_TYPE_ERROR, "tensor: its elements have another type");
    return static_cast<T *>(tensor->dl.data);
  }

  void expect_size(std::size_t count) const {
    if (size() != count)
      throw Error(RVM_SHAPE_ERROR, "tensor: expected " + std::to_string(size()) + " elements for its shape, got " +
                                       std::to_string(count));
  }

  std::shared_ptr<const void> owner_;
  Value value_;  // released before its owner
};

/// A loaded executable.  Several models on several threads can share it.
class Executable {
 public:
  /// Loads a .rvm file.  trust_native: whether to run native code in the file, which can do anything that the process
  /// can.  If the native code is not trusted, or cannot run on this computer, loads the portable program of the file
  /// instead.
  explicit Executable(const std::filesystem::path &path, bool trust_native) {
    Bytes bytes = read(path);
    rvm_load_options options{};
    options.trust_native = trust_native;
    options.release = deallocate;
    options.release_argument = bytes.memory.get();
    rvm_executable *loaded = nullptr;
    Value error;
    rvm_status status = rvm_executable_load(bytes.memory.get(), bytes.size, &options, &loaded, error.out());
    if (status == RVM_UNSUPPORTED) {
      options.portable = 1;
      status = rvm_executable_load(bytes.memory.get(), bytes.size, &options, &loaded, error.out());
    }
    check(status, error);
    (void)bytes.memory.release();  // the executable frees it
    executable_.reset(loaded, rvm_executable_release);
  }

  const std::shared_ptr<rvm_executable> &get() const noexcept { return executable_; }

 private:
  static constexpr std::align_val_t alignment{64};

  static void deallocate(void *memory) noexcept { ::operator delete(memory, alignment); }
  struct Free {
    void operator()(void *memory) const noexcept { deallocate(memory); }
  };
  struct Bytes {
    std::unique_ptr<void, Free> memory;
    std::int64_t size;
  };

  /// Reads a file to memory that is aligned as rvm_executable_load needs it.
  static Bytes read(const std::filesystem::path &path) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) throw Error(RVM_ARGUMENT_ERROR, path.string() + ": " + error.message());
    Bytes bytes{std::unique_ptr<void, Free>(::operator new(static_cast<std::size_t>(size) + 1, alignment)),
                static_cast<std::int64_t>(size)};
    std::ifstream file(path, std::ios::binary);
    if (!file.read(static_cast<char *>(bytes.memory.get()), static_cast<std::streamsize>(size)))
      throw Error(RVM_ARGUMENT_ERROR, path.string() + ": cannot read the file");
    return bytes;
  }

  std::shared_ptr<rvm_executable> executable_;
};

/// A function of an executable, with a virtual machine that runs it.  One thread at a time may use it.
class Model {
 public:
  /// threads: the maximum number of threads of a kernel.
  explicit Model(Executable executable, const std::string &function = "main", std::int32_t threads = 1)
      : executable_(std::move(executable)), function_(rvm_executable_find(executable_.get().get(), function.c_str())) {
    if (function_ < 0) throw Error(RVM_UNKNOWN_FUNCTION, "the executable has no function " + function);
    rvm_machine_options options{};
    options.threads = threads;
    rvm_machine *machine = nullptr;
    Value error;
    check(rvm_machine_new(executable_.get().get(), &options, &machine, error.out()), error);
    machine_.reset(machine);
  }

  /// Turns the real-time mode on.  The calling thread must make the runs, with call(), and destroy the model.
  void real_time() {
    if (!is_entered_ && rvm_machine_enter(machine_.get()) != 1) throw Error(RVM_BUSY, "another thread uses the model");
    is_entered_ = true;
    Value error;
    check(rvm_machine_real_time(machine_.get(), 1, error.out()), error);
  }

  /// Runs the model without allocating memory in C++.  `result` first releases the value that it holds, and then
  /// becomes the output, or a tuple of the outputs.  It must not outlive the model.
  rvm_status call(Span<const rvm_value> arguments, Value &result) noexcept {
    return rvm_machine_call(machine_.get(), function_, arguments.data(), static_cast<std::int32_t>(arguments.size()),
                            result.out());
  }

  /// Runs the model.  The outputs may outlive the model.  They share the executable, because they can be its constants.
  std::vector<Tensor> run(const std::vector<Tensor> &inputs) {
    std::vector<rvm_value> arguments;
    for (const Tensor &input : inputs) arguments.push_back(input.value().get());
    Value result;
    check(call(arguments, result), result);
    std::vector<Tensor> outputs;
    if (result.get().tag == RVM_TAG_TUPLE) {
      const rvm_tuple *tuple = result.get().as.tuple;
      for (std::int32_t i = 0; i < tuple->size; i++) {
        rvm_value_retain(tuple->items[i]);
        outputs.emplace_back(Value(tuple->items[i]), executable_.get());
      }
    } else {
      outputs.emplace_back(std::move(result), executable_.get());
    }
    return outputs;
  }

 private:
  struct Release {
    void operator()(rvm_machine *machine) const noexcept {
      while (rvm_machine_leave(machine, nullptr) == RVM_OK) continue;  // if the real-time mode has entered it
      rvm_machine_release(machine);
    }
  };

  Executable executable_;
  std::int32_t function_;
  std::unique_ptr<rvm_machine, Release> machine_;
  bool is_entered_ = false;
};

}  // namespace relvm

#endif
