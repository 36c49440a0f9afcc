/*
 * pluginhost.c: a program that does not use the library and repeatedly loads a plugin that does. usage: pluginhost
 * PLUGIN ROUNDS
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *path;
static pthread_barrier_t closed;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "pluginhost: %s: %s\n", what, why);
    exit(1);
}

static void *load(void)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        fail("dlopen", dlerror());
    }
    return plugin;
}

static void call(void *plugin, const char *name)
{
    int (*function)(void) = (int (*)(void))dlsym(plugin, name);
    int result = function != NULL ? function() : -1;
    if (result != 0) {
        fprintf(stderr, "pluginhost: %s: %d\n", name, result);
        exit(1);
    }
}

/* Adopted by the library, and ends after the plugin has been closed: the library notices. */
static void *outlive(void *plugin)
{
    call(plugin, "plugin_touch");
    pthread_barrier_wait(&closed);
    pthread_barrier_wait(&closed);
    return NULL;
}

static void close_under_a_thread(void)
{
    pthread_t thread;
    void *plugin = load();
    if (pthread_create(&thread, NULL, outlive, plugin) != 0) {
        fail("pthread_create", "failed");
    }
    pthread_barrier_wait(&closed);
    dlclose(plugin);
    pthread_barrier_wait(&closed);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    long rounds = argc > 2 ? atol(argv[2]) : 1;
    void *plugin;
    path = argv[1];
    pthread_barrier_init(&closed, NULL, 2);
    for (long round = 0; round < rounds; round++) {
        plugin = load();
        call(plugin, round % 100 == 0 ? "plugin_use" : "plugin_touch");
        dlclose(plugin);
    }
    for (int round = 0; round < 20; round++) {
        close_under_a_thread();
    }
    plugin = load();
    call(plugin, "plugin_use");
    puts("used");
    return 0;
}
