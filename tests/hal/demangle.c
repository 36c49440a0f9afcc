/* Names of C++ functions in reports. Mangled by gcc 12; the names are those of c++filt without parameters. */
#include "haltest.h"

#include "hal/halp.h"

#include <string.h>

static const struct {
    const char *mangled, *expected;
} names[] = {
    {"main", "main"},
    {"KeBugCheckEx", "KeBugCheckEx"},
    {"_Z3addii", "add"},
    {"_ZL6helperv", "helper"},
    {"_ZN6driver5Queue6InsertEP4_IRP", "driver::Queue::Insert"},
    {"_ZNK6driver5Queue5CountEv", "driver::Queue::Count"},
    {"_ZN6driver5QueueC1Ei", "driver::Queue::Queue"},
    {"_ZN6driver5QueueC2Ei", "driver::Queue::Queue"},
    {"_ZN6driver5QueueD0Ev", "driver::Queue::~Queue"},
    {"_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden"},
    {"_ZSt9terminatev", "std::terminate"},
    {"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<...>::push_back"},
    {"_ZN4ListI4_IRPLi10EE4PushEPS0_", "List<...>::Push"},
    {"_ZN4ListI4_IRPLi10EEC1Ev", "List<...>::List"},
    {"_Z7convertIN6driver5QueueEPKcET_T0_", "convert<...>"},
    {"_ZN6driver5QueueixEm", "driver::Queue::operator[]"},
    {"_ZN6driver5QueueeqERKS0_", "driver::Queue::operator=="},
    {"_ZlsRSoRKN6driver5QueueE", "operator<<"},
    {"_Znwm", "operator new"},
    {"_ZZ4mainENKUlvE_clEv", "main::<lambda>::operator()"},
    {"_ZN3abc3defB5cxx11Ev", "abc::def"},
    /* Unknown or truncated names stay unchanged. */
    {"_Z", "_Z"},
    {"_ZN", "_ZN"},
    {"_ZN3ab", "_ZN3ab"},
    {"_ZN99999999999999999999aE", "_ZN99999999999999999999aE"},
    {"_ZN3fooIXadL_Z3barvEEE3bazEv", "_ZN3fooIXadL_Z3barvEEE3bazEv"},
    {"_ZTV5Queue", "_ZTV5Queue"},
};

static void names_become_readable(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char buffer[256];

        strcpy(buffer, names[i].mangled);
        HalpDemangle(buffer, sizeof(buffer));
        assert_string_equal(buffer, names[i].expected);
    }
}

/* Any text may occur as a name in a damaged file. */
static void nothing_is_too_strange(void **state)
{
    static const char alphabet[] = "_ZNSIE0139abtvLXKPRTDCUlJFB";
    test_random random;

    (void)state;
    random_seed(&random, 7);
    for (int round = 0; round < 200000; round++) {
        char buffer[64] = "_Z";
        size_t length = 2 + random_below(&random, 40);

        for (size_t i = 2; i < length; i++)
            buffer[i] = alphabet[random_below(&random, sizeof(alphabet) - 1)];
        buffer[length] = '\0';
        HalpDemangle(buffer, sizeof(buffer));
        assert_true(memchr(buffer, '\0', sizeof(buffer)) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_readable),
        cmocka_unit_test(nothing_is_too_strange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
