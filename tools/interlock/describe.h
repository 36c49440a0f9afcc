/* describe.h: which variable of a program is at an address. */
#ifndef INTERLOCK_DESCRIBE_H
#define INTERLOCK_DESCRIBE_H

/* Prints the name with member and element, from the debugging information. Returns 0, or 1: not known. */
int describe_variable(const char *program, const char *address);

#endif
