#ifndef SECOND_H
#define SECOND_H

#include <pthread.h>

void one_way(void);
void run_two(void *(*first)(void *), void *(*second)(void *), void *argument_of_second);

#endif
