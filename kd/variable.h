/* variable.h: what is at an offset in a variable, by the debugging information of its module. */
#ifndef INTERLOCK_KD_VARIABLE_H
#define INTERLOCK_KD_VARIABLE_H

#include "kd.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

typedef struct kd_variables kd_variables;

kd_variables *kd_read_variables(Dwfl_Module *module); /* at fixed addresses; empty without debugging information */
void kd_free_variables(kd_variables *all);
/* For example [3].lock, for the variable that begins there. *offset becomes the remaining offset. FALSE: nothing is
   known. */
bool kd_name_inside(const kd_variables *all, Dwfl_Module *module, kd_address begin, uint64_t *offset, char *buffer, size_t size);

#endif
