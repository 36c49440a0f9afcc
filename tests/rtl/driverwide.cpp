#include "driverwide.c"
