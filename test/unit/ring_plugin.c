/* A library in the middle of a stack: calls back.  Built twice under two names, and once without unwind tables, using
 * the frame pointer for something else, so that no unwinder can get past it. */
int plugin_call(int (*back)(void *), void *context, int number);

#ifdef BLIND
#include <alloca.h>

__attribute__((noinline)) int plugin_call(int (*back)(void *), void *context, int number)
{
    /* An unknown amount of stack, and a frame pointer that is a number. */
    volatile char *room = alloca((unsigned)number * 64 + 48);
    room[0] = 1;
    int result;
    __asm__ volatile("push %%rbp\n\tmov $0x1234567, %%ebp\n\tsub $24, %%rsp\n\tcall *%1\n\tadd $24, %%rsp\n\tpop %%rbp"
                     : "=a"(result)
                     : "r"(back), "D"(context)
                     : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return result + room[0];
}
#else
__attribute__((noinline)) int plugin_call(int (*back)(void *), void *context, int number)
{
    return back(context) + number;
}
#endif
