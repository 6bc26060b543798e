// Modules: the kernels of the source that was compiled into this library, those that the text of
// PTX has too.
#pragma once
#include <sstream>

#include "queue.h"

struct CUfunc_st {
  const Kernel *kernel;
};

struct CUmod_st {
  std::map<std::string, CUfunc_st> functions;
};

static std::set<CUmodule> modules;

// read_entry reads the list of parameters of a kernel in PTX, and says what is wrong with it.
static std::string read_entry(const std::string &name, const std::string &list, CUmodule m) {
  auto found = kernels().find(name);
  if (found == kernels().end()) return "kernel " + name + " is not in the source";
  std::istringstream words(list);
  std::string word;
  size_t parameters = 0;
  while (words >> word) {
    if (word == ".param") parameters++;
    if (word.rfind(".u", 0) == 0 || word.rfind(".f", 0) == 0 || word.rfind(".b", 0) == 0 ||
        word.rfind(".s", 0) == 0)
      if (word.substr(2) != "64")
        return "kernel " + name + " has a parameter that is not of 8 bytes: " + word;
  }
  if (parameters != found->second.parameters)
    return "kernel " + name + " has " + std::to_string(parameters) +
           " parameters in the PTX, and in the source " +
           std::to_string(found->second.parameters);
  m->functions[name] = {&found->second};
  return "";
}

// read_ptx fills a module, and says what is wrong with the text.
static std::string read_ptx(const std::string &text, CUmodule m) {
  size_t target = text.find("\n.target sm_");
  if (text.find(".version ") == std::string::npos || target == std::string::npos)
    return "this is no PTX: .version or .target is missing";
  int capability = atoi(text.c_str() + target + 12);
  if (capability > knobs()["capability"])
    return "the PTX is for sm_" + std::to_string(capability) + ", the device is sm_" +
           std::to_string(knobs()["capability"]);
  for (size_t at = 0; (at = text.find(".entry ", at)) != std::string::npos;) {
    size_t open = text.find('(', at), close = text.find(')', at);
    if (close == std::string::npos) return "a list of parameters does not end";
    std::string wrong = read_entry(text.substr(at + 7, open - at - 7),
                                   text.substr(open + 1, close - open - 1), m);
    if (!wrong.empty()) return wrong;
    at = close;
  }
  return "";
}
