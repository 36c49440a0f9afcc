// The same as names.c, as C++.
#include <string>

#include "names.c"

#include <iostream>
#include <mutex>
