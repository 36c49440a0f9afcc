#define NO_KERNEL_LIST_ENTRY_CHECKS
#include "lists.c"
