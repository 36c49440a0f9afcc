# The platform of toolchain.cmake: files and programs for Linux, sources for Windows.
include(Platform/Linux)
set(WIN32 1)
unset(UNIX)
unset(LINUX)
set(CMAKE_CROSSCOMPILING FALSE)
