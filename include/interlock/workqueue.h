#ifndef INTERLOCK_OLD_WORKQUEUE_H
#define INTERLOCK_OLD_WORKQUEUE_H

#include <interlock/ex.h>

#endif
