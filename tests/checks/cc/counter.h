/* A DLL as Windows projects write them: keywords of the compiler before the first header. */
#ifdef COUNTER_EXPORTS
#define COUNTER_API __declspec(dllexport)
#else
#define COUNTER_API __declspec(dllimport)
#endif

#ifdef __cplusplus
extern "C" {
#endif
typedef unsigned __int64 counter_value;
extern COUNTER_API const char counter_title[];
COUNTER_API counter_value __stdcall counter_add(unsigned __int32 threads, unsigned __int32 rounds);
#ifdef __cplusplus
}
#endif
