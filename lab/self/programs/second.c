/* second.c: the other half. */
#include "second.h"

void run_two(void *(*first)(void *), void *(*second)(void *), void *argument_of_second)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, argument_of_second);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}
