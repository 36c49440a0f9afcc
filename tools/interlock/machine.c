/* machine.c: interlock machine: creates the world for the names of all users. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wo/wop.h"

static void *map_new(int file)
{
    void *memory = MAP_FAILED;

    if (fchmod(file, 0666) == 0 && ftruncate(file, (off_t)WO_FIRST_SIZE) == 0)
        memory = mmap(NULL, WO_FIRST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory;
}

/* The file has its contents before it has its name. 0, or the error. */
static int make_world(const char *path)
{
    char source[64];
    int file = open(HAL_COMMON_MEMORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    void *memory = file >= 0 ? map_new(file) : MAP_FAILED;
    int error = errno;

    if (memory != MAP_FAILED) {
        WopInitializeWorld(memory, WO_FIRST_SIZE);
        munmap(memory, WO_FIRST_SIZE);
        snprintf(source, sizeof(source), "/proc/self/fd/%d", file);
        error = linkat(AT_FDCWD, source, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
    }
    if (file >= 0)
        close(file);
    return error;
}

static bool is_usable(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == 0 && (status.st_mode & 07777) == 0666;
}

int command_machine(int argc, char **argv)
{
    char path[256];
    struct stat namespace;
    int error;

    if (argc != 1) {
        bool help = argc == 2 && strcmp(argv[1], "--help") == 0;

        if (!help)
            fprintf(stderr, "interlock: unrecognized argument: %s\n", argv[1]);
        fprintf(help ? stdout : stderr, "usage: interlock machine\n\n"
                "Creates the world for names that begin with Global\\, shared by all users, and prints its path. Needs root.\n");
        return help ? 0 : 2;
    }
    snprintf(path, sizeof(path), HAL_COMMON_MEMORY WO_MACHINE_NAME, WO_VERSION,
             stat("/proc/self/ns/pid", &namespace) == 0 ? (unsigned long long)namespace.st_ino : 0);
    error = geteuid() == 0 ? make_world(path) : EPERM;
    if (error != 0 && error != EEXIST) {
        fprintf(stderr, "interlock: %s cannot be created: %s\n", path, error == EPERM ? "only root can" : strerror(error));
        return 1;
    }
    if (!is_usable(path)) {
        fprintf(stderr, "interlock: %s does not belong to root: programs will not use it\n", path);
        return 1;
    }
    printf("%s\n", path);
    return 0;
}
