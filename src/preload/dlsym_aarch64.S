/*
 * The dlsym that programs find, for aarch64 (see dlsym_x86_64.S).  Written from the procedure call standard and not yet
 * run on such a machine.
 */
    .text
    .globl dlsym
    .type dlsym, %function
    .p2align 4
dlsym:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    str x1, [sp, #16]
    bl preload_dlsym
    mov x17, x1
    ldr x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    cbnz x0, 1f
    mov x0, x17
    adrp x16, preload_next_dlsym
    ldr x16, [x16, :lo12:preload_next_dlsym]
    br x16
1:  ret
    .cfi_endproc
    .size dlsym, .-dlsym
    .section .note.GNU-stack, "", %progbits
