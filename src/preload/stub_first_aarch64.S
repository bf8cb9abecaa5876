/*
 * The first call of a stub (make_stubs.awk), for aarch64: the number of its name is in x16.  Written from the procedure
 * call standard and not yet run on such a machine.
 */
    .text
    .hidden stub_first
    .globl stub_first
    .type stub_first, %function
    .p2align 4
stub_first:
    .cfi_startproc
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    mov x29, sp
    .cfi_def_cfa_register 29
    stp x0, x1, [sp, #-16]!
    stp x2, x3, [sp, #-16]!
    stp x4, x5, [sp, #-16]!
    stp x6, x7, [sp, #-16]!
    stp x8, xzr, [sp, #-16]!
    stp q0, q1, [sp, #-32]!
    stp q2, q3, [sp, #-32]!
    stp q4, q5, [sp, #-32]!
    stp q6, q7, [sp, #-32]!
    mov w0, w16
    bl stub_resolve
    mov x16, x0
    ldp q6, q7, [sp], #32
    ldp q4, q5, [sp], #32
    ldp q2, q3, [sp], #32
    ldp q0, q1, [sp], #32
    ldp x8, xzr, [sp], #16
    ldp x6, x7, [sp], #16
    ldp x4, x5, [sp], #16
    ldp x2, x3, [sp], #16
    ldp x0, x1, [sp], #16
    ldp x29, x30, [sp], #16
    .cfi_def_cfa 31, 0
    br x16
    .cfi_endproc
    .size stub_first, .-stub_first
    .section .note.GNU-stack, "", %progbits
