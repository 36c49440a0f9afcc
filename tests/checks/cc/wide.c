/* _tmain with UNICODE: wide arguments and a wide environment. Returns 0 if they are those of the caller. */
#include <windows.h>
#include <tchar.h>

int _tmain(int argc, TCHAR *argv[], TCHAR *environment[])
{
    if (sizeof(TCHAR) != 2 || argc != 3 || argv[3] != NULL || environment[0] == NULL)
        return 1;
    if (_tcscmp(argv[1], _T("gr\u00fcn")) != 0)
        return 2;
    return argv[2][0] == 0xD83D && argv[2][1] == 0xDE00 && argv[2][2] == 0 ? 0 : 3;
}
