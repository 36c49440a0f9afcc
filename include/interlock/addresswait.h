#ifndef INTERLOCK_OLD_ADDRESSWAIT_H
#define INTERLOCK_OLD_ADDRESSWAIT_H

#include <interlock/rtl.h>

#endif
