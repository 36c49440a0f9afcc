#ifndef INTERLOCK_OLD_CONDITIONVARIABLE_H
#define INTERLOCK_OLD_CONDITIONVARIABLE_H

#include <interlock/rtl.h>

#endif
