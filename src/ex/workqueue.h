/* workqueue.h: what can be seen and set of the threads that run work items. */
#ifndef INTERLOCK_WORKQUEUE_PRIVATE_H
#define INTERLOCK_WORKQUEUE_PRIVATE_H

#include "exp.h"

extern LONGLONG ExpWorkerPatience;      /* a relative timeout: how long a worker stays without work */

ULONG ExpQueryWorkers(ULONG Priority);  /* threads of the queue with that priority, idle or not */

#endif
