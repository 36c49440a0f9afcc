#include "counter.h"

#include <filesystem>
#include <iostream>
#include <mutex>
#include <string>

#include <windows.h>

class __declspec(novtable) base {
public:
    virtual ~base() = default;
    virtual int __stdcall answer() const = 0;
};

class derived final : public base {
public:
    int __stdcall answer() const override
    {
        return WaitForSingleObject(GetCurrentThread(), 0) == WAIT_TIMEOUT ? 42 : 0;
    }
};

int main()
{
    std::mutex mutex;
    std::lock_guard<std::mutex> guard(mutex);
    const derived object;
    const base &seen = object;
    const std::filesystem::path path = std::filesystem::path("a") / "b"; /* a type of the C++ library, with its own
                                                                            layout */

    std::cout << seen.answer() << ' ' << path.string() << '\n';
    return seen.answer() == 42 && path.string() == "a/b" && counter_add(2, 10) == 20 ? 0 : 1;
}
