// A library whose create_tree returns an object of another class.

class Other {
  public:
    virtual ~Other() = default;
    virtual int answer() { return 42; }
};

extern "C" Other* create_tree(const void*) { return new Other; }
