/* Signals and lengths of time as users write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/signal_name.h"

#include <signal.h>

static void signals_have_the_names_of_kill(void **state)
{
    (void)state;
    assert_int_equal(signal_number("USR2"), SIGUSR2);
    assert_int_equal(signal_number("SIGUSR1"), SIGUSR1);
    assert_int_equal(signal_number("usr2"), SIGUSR2);
    assert_int_equal(signal_number("12"), 12);
    assert_int_equal(signal_number("RTMIN"), SIGRTMIN);
    assert_int_equal(signal_number("SIGRTMIN+3"), SIGRTMIN + 3);
    assert_int_equal(signal_number("RTMAX-2"), SIGRTMAX - 2);
    static const char *const bad[] = {"", "0", "32", "33", "65", "99", "100", "-1", "1x", "SIG", "USR3", "RTMIN+", "RTMIN+99",
                                      "RTMIN-1", "RTMAX+1", "RTMAX-99", "RTMIN 1", " USR1", "USR1 "};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (signal_number(bad[i]))
            fail_msg("'%s' is %d", bad[i], signal_number(bad[i]));
}

static void times_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t milliseconds;
    } good[] = {{"500ms", 500}, {"30s", 30000}, {"1.5s", 1500}, {"5m", 300000}, {"2h", 7200000}, {"1d", 86400000},
                {"365d", INT64_C(365) * 86400000}, {"0.001s", 1}, {"1.0000000001s", 1000}};
    static const char *const bad[] = {"", "30", "s", "0s", "0.0001s", "-1s", "1 s", "1.s", ".5s", "366d", "1e3s", "1S",
                                      "99999999999999999999s", "1ss", "+1s"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t milliseconds = 0;
        assert_true(duration_parse(good[i].text, &milliseconds));
        assert_int_equal(milliseconds, good[i].milliseconds);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t milliseconds;
        if (duration_parse(bad[i], &milliseconds))
            fail_msg("'%s' is a time", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_have_the_names_of_kill),
        cmocka_unit_test(times_have_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
