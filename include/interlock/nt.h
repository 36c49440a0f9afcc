/* nt.h: the system services. The only door from user mode to the objects of the lower layers. */
#ifndef INTERLOCK_NT_H
#define INTERLOCK_NT_H

#include <interlock/ntalert.h>
#include <interlock/ntcompletion.h>
#include <interlock/ntobject.h>
#include <interlock/ntprocess.h>
#include <interlock/ntsync.h>
#include <interlock/ntthread.h>
#include <interlock/ntwait.h>

#endif
