#ifndef INTERLOCK_OLD_DESCRIPTOR_H
#define INTERLOCK_OLD_DESCRIPTOR_H

#include <interlock/io.h>

#endif
