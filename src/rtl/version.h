/* version.h: the version that this library reports. */
#ifndef INTERLOCK_RTLP_VERSION_H
#define INTERLOCK_RTLP_VERSION_H

#define RTLP_MAJOR_VERSION 10
#define RTLP_MINOR_VERSION 0
#define RTLP_BUILD_NUMBER 19045

#endif
