/* A library in the middle of a stack: calls back.  Built twice under two names, and once without unwind tables, using
 * the frame pointer for something else, so that no unwinder can get past it; and twice with the same code addresses and
 * different stacks (FRAMED, FRAMELESS): what is right for one leads to nowhere in the other. */
int plugin_call(int (*back)(void *), void *context, int number);

#if defined(FRAMED) || defined(FRAMELESS)
#ifdef FRAMED
#define ENTER "mov %rsp, %rbp\n\t.cfi_def_cfa_register 6\n\tnop\n\tnop\n\tsub $1024, %rsp\n\t"
#define LEAVE "leave\n\t"
#else
#define ENTER "mov $0x1234, %ebp\n\tsub $4096, %rsp\n\t.cfi_adjust_cfa_offset 4096\n\t"
#define LEAVE "add $4096, %rsp\n\tpop %rbp\n\t"
#endif
__asm__(".text\n\t.globl plugin_call\n\t.type plugin_call, @function\nplugin_call:\n\t.cfi_startproc\n\t"
        "push %rbp\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset 6, -16\n\t" ENTER
        "mov %rdi, %rax\n\tmov %rsi, %rdi\n\tcall *%rax\n\t" LEAVE
        "ret\n\t.cfi_endproc\n\t.size plugin_call, .-plugin_call");
#elif defined(BLIND)
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
