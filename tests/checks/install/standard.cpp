// windows.h first, the standard library after it, also where wchar_t has 16 bits.
#include <windows.h>
#include <intrin.h>
#include <process.h>
#include <strsafe.h>
#include <tchar.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

int main()
{
    std::mutex mutex;
    std::lock_guard<std::mutex> guard(mutex);
    std::string text = "text";
    std::vector<DWORD> numbers{3, 1, 2};
    char copy[16];
    WCHAR wide[16];

    std::sort(numbers.begin(), numbers.end());
    if (strcpy_s(copy, text.c_str()) != 0 || sprintf_s(copy, "%u", numbers[0]) != 1 || text.size() != 4)
        return 1;
    if (StringCchCopyW(wide, 16, INTERLOCK_WIDE("wide")) != S_OK || wcscpy_s(wide, INTERLOCK_WIDE("x")) != 0)
        return 2;
    return std::max(1, 0) == 1 && std::numeric_limits<DWORD>::max() == MAXDWORD ? 0 : 3;
}
