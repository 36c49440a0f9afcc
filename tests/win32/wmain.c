/* A program without main: its arguments and its environment are wide. Started without arguments, it starts itself. */
#define UNICODE
#define _UNICODE
#include <windows.h>

#include <tchar.h>

#include <sys/wait.h>
#include <unistd.h>

#define CODE 7

static const TCHAR *const expected[] = {_T("gr\u00fcn"), _T("\u65e5\u672c"), _T("\U0001F600"), _T("")};

static int check(int argc, TCHAR *argv[])
{
    for (int i = 1; i < argc; i++)
        if (_tcscmp(argv[i], expected[i - 1]) != 0)
            return 1 + i;
    return argc == 1 + (int)ARRAYSIZE(expected) && argv[argc] == NULL ? CODE : 1;
}

static int check_environment(TCHAR *environment[])
{
    static const TCHAR variable[] = _T("WMAIN_TEST=\u00e4");

    while (*environment != NULL && _tcscmp(*environment, variable) != 0)
        environment++;
    return *environment != NULL;
}

int _tmain(int argc, TCHAR *argv[], TCHAR *environment[])
{
    static char *arguments[] = {(char *)"wmain", (char *)"gr\xc3\xbcn", (char *)"\xe6\x97\xa5\xe6\x9c\xac",
                                (char *)"\xf0\x9f\x98\x80", (char *)"", NULL};
    static char *variables[] = {(char *)"WMAIN_TEST=\xc3\xa4", NULL};
    int status;

    if (argc > 1)
        return check_environment(environment) ? check(argc, argv) : 100;
    pid_t child = fork();
    if (child == 0) {
        execve("/proc/self/exe", arguments, variables);
        _exit(101);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == CODE ? 0 : 1;
}
