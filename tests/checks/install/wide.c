/* A program with a wmain, which _tmain is with UNICODE. */
#include <windows.h>
#include <tchar.h>

int _tmain(int argc, TCHAR *argv[])
{
    return argc == 1 && argv[0][0] != 0 && argv[1] == NULL && lstrlen(argv[0]) > 4 ? 0 : 1;
}
