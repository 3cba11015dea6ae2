// The driver as a program of PiBench's newer branches.

#define BULK_LOAD
#include "driver.cpp"
