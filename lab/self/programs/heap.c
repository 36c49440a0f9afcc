/* Two threads race for a member of a node on the heap, through the same functions. */
#include <pthread.h>
#include <stdlib.h>

struct node {
    int value;
    struct node *next;
    long extra;
};

static struct node *head;

static __attribute__((noinline)) struct node *make_node(int value)
{
    struct node *made = calloc(1, sizeof(*made));

    made->value = value;
    return made;
}

static __attribute__((noinline)) void link_to_itself(struct node *node)
{
    node->next = node;
}

static void *first(void *unused)
{
    link_to_itself(head);
    return unused;
}

static void *second(void *unused)
{
    link_to_itself(head);
    return unused;
}

int main(void)
{
    pthread_t threads[2];

    head = make_node(1);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(head);
    return 0;
}
