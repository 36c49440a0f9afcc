#ifndef INTERLOCK_OLD_NTSYNC_H
#define INTERLOCK_OLD_NTSYNC_H

#include <interlock/nt.h>

#endif
