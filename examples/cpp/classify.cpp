// Run an image classifier on batches of several sizes:
//
//     classify MODEL.rvm BATCH...
//
// The model has one input, f32[batch, 3, 32, 32], and one output, f32[batch, classes].  The images are synthetic.
#include <algorithm>
#include <iostream>
#include <relvm.hpp>
#include <string>

namespace {

std::int64_t parse_batch(const std::string &text) {
  std::size_t used = 0;
  std::int64_t batch = 0;
  try {
    batch = std::stoll(text, &used);
  } catch (const std::exception &) {
  }
  if (used == 0 || used != text.size()) throw relvm::Error(RVM_ARGUMENT_ERROR, "batch: expected a number, got " + text);
  return batch;
}

/// Returns a batch of images.  Image i has the value i / 10 everywhere.
relvm::Tensor images(std::int64_t batch) {
  const std::vector<std::int64_t> shape{batch, 3, 32, 32};
  std::vector<float> pixels;
  for (std::int64_t i = 0; i < batch; i++) pixels.insert(pixels.end(), 3 * 32 * 32, static_cast<float>(i) / 10);
  return relvm::Tensor(shape, pixels);
}

/// Prints the best class of each row of `scores`.
void print_classes(const relvm::Tensor &scores) {
  const std::vector<std::int64_t> shape = scores.shape();
  if (shape.size() != 2 || shape[1] == 0)
    throw relvm::Error(RVM_SHAPE_ERROR, "expected an output of shape [batch, classes]");
  const float *row = scores.begin<float>();
  for (std::int64_t i = 0; i < shape[0]; i++, row += shape[1]) {
    const float *best = std::max_element(row, row + shape[1]);
    std::cout << "image " << i << ": class " << best - row << ", score " << *best << '\n';
  }
}

}  // namespace

int main(int argument_count, char **arguments) try {
  if (argument_count < 3) {
    std::cerr << "usage: " << arguments[0] << " MODEL.rvm BATCH...\n";
    return 2;
  }
  const relvm::Executable executable(arguments[1], /*trust_native=*/true);
  relvm::Model model(executable);
  for (int i = 2; i < argument_count; i++) {
    const std::vector<relvm::Tensor> outputs = model.run({images(parse_batch(arguments[i]))});
    std::cout << "batch of " << outputs.at(0).shape().at(0) << '\n';
    print_classes(outputs[0]);
  }
  return 0;
} catch (const std::exception &error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
