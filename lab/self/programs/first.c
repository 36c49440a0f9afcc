/* first.c: half of a program of two files, for command.py: two locks in opposite orders. */
#include "second.h"

#include <stdlib.h>

static struct bank {
    struct account {
        pthread_mutex_t lock;
        int balance;
    } accounts[2];
} bank = {{{PTHREAD_MUTEX_INITIALIZER, 100}, {PTHREAD_MUTEX_INITIALIZER, 100}}};

static void *transfer(void *argument)
{
    struct account *from = &bank.accounts[argument != NULL], *to = &bank.accounts[argument == NULL];

    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance -= 10;
    to->balance += 10;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
    return NULL;
}

void one_way(void)
{
    run_two(transfer, transfer, NULL);
}

int main(int argc, char **argv)
{
    run_two(transfer, transfer, argc == 2 ? argv[1] : NULL);
    return argc == 2 && bank.accounts[0].balance != 100 ? EXIT_FAILURE : EXIT_SUCCESS;
}
