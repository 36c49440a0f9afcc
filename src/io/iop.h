/* iop.h: the I/O manager's private part. */
#ifndef INTERLOCK_IOP_H
#define INTERLOCK_IOP_H

#include <interlock/io.h>

#include "../ke/interrupt.h"

#endif
