// The table of the kernels that were compiled into this library.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>

struct Kernel {
  std::string name;
  // bind takes the parameters of a launch, and gives what one thread runs.
  std::function<std::function<void()>(void **)> bind;
  size_t parameters;
};

std::map<std::string, Kernel> &kernels();
