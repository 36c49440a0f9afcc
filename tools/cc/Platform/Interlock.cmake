# The platform of toolchain.cmake: files and programs are those of Linux, sources those for Windows.
include(Platform/Linux)
set(WIN32 1)
unset(UNIX)
unset(LINUX)
set(CMAKE_CROSSCOMPILING FALSE)
