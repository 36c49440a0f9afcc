/*
 * prefix.h: the prefix of the library's symbols. A build with a symbol prefix (docs/building.md) installs another file in
 * the place of this one, which gives each exported function and variable its name for the linker. The names in sources stay
 * as they are.
 */
#ifndef INTERLOCK_PREFIX_H
#define INTERLOCK_PREFIX_H

#define INTERLOCK_SYMBOL_PREFIX ""

#endif
