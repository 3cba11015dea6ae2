// A shared library that is not a wrapper.

extern "C" int answer() { return 42; }
