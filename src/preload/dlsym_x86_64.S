/*
 * The dlsym that programs find: asks preload_dlsym() what to do and, unless it has the answer, jumps into the next dlsym
 * with the caller's return address in place, because RTLD_NEXT and RTLD_DEFAULT are answered relative to the caller.
 *
 * preload_dlsym(handle, name) returns two words: an answer in rax, or 0 and in rdx the handle to ask the next one with.
 */
    .text
    .globl dlsym
    .type dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_def_cfa_offset 16
    pushq %rsi
    .cfi_def_cfa_offset 24
    subq $8, %rsp
    .cfi_def_cfa_offset 32
    call preload_dlsym
    addq $8, %rsp
    .cfi_def_cfa_offset 24
    popq %rsi
    .cfi_def_cfa_offset 16
    popq %rdi
    .cfi_def_cfa_offset 8
    testq %rax, %rax
    jnz 1f
    movq %rdx, %rdi
    movq preload_next_dlsym(%rip), %r11
    jmp *%r11
1:  ret
    .cfi_endproc
    .size dlsym, .-dlsym
    .section .note.GNU-stack, "", %progbits
