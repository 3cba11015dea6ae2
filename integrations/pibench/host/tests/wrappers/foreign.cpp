// A shared library that is no wrapper.

extern "C" int answer() { return 42; }
