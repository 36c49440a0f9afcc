// The same driver and the same test as C++.
#include "echo.c"

#include "echotest.c"
