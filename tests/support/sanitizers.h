/* sanitizers.h: what this build and machine do not support. */
#ifndef INTERLOCK_TESTS_SANITIZERS_H
#define INTERLOCK_TESTS_SANITIZERS_H

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#elif __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif

/* Other machines fault, and ThreadSanitizer's runtime requires aligned atomics. */
#if defined(__x86_64__) && !defined(THREAD_SANITIZER)
#define MISALIGNED_ATOMICS 1
#endif

#endif
