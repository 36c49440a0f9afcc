/* turn.h: the old name of fairness.h and of what park.h has of it. */
#ifndef INTERLOCK_KE_TURN_H
#define INTERLOCK_KE_TURN_H

#include "fairness.h"
#include "park.h"

#endif
