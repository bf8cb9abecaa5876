# Writes the stubs of an object that stands where the driver's library is looked for: an exported function a name,
# which jumps through a slot.  A slot points at first to the rest of its own stub, which asks `stub_resolve` (number of
# the name in, address out) and jumps on with every argument register as it was; from then on a call costs one jump.
#
#   awk -v machine=x86_64|aarch64 -f make_stubs.awk names.txt > stubs.S
#
# The file also defines the tables stub_names (NUL-terminated, in the order of the numbers), stub_slots and stub_count.

function stub_x86_64(name, number)
{
    printf "    .globl %s\n    .type %s, @function\n    .p2align 4\n%s:\n    .cfi_startproc\n    endbr64\n", name, name, name
    printf "    jmp *stub_slots+%d(%%rip)\n.Lfirst%d:\n    endbr64\n", 8 * number, number
    printf "    movl $%d, %%r11d\n    jmp stub_first\n    .cfi_endproc\n    .size %s, .-%s\n", number, name, name
}

function stub_aarch64(name, number)
{
    printf "    .globl %s\n    .type %s, %%function\n    .p2align 4\n%s:\n    .cfi_startproc\n    hint #34\n", name, name, name
    printf "    adrp x16, stub_slots+%d\n    ldr x17, [x16, :lo12:stub_slots+%d]\n    br x17\n", 8 * number, 8 * number
    printf ".Lfirst%d:\n    hint #36\n    movz x16, #%d\n    b stub_first\n", number, number
    printf "    .cfi_endproc\n    .size %s, .-%s\n", name, name
}

BEGIN {
    count = 0
    if (machine != "x86_64" && machine != "aarch64") {
        print "make_stubs.awk: machine must be x86_64 or aarch64" > "/dev/stderr"
        failed = 1
        exit 1
    }
    print "/* Made by make_stubs.awk; do not edit. */"
    print "    .text"
}

/^[A-Za-z_][A-Za-z0-9_]*$/ {
    names[count] = $0
    if (machine == "x86_64")
        stub_x86_64($0, count)
    else
        stub_aarch64($0, count)
    count++
    next
}

NF && !/^#/ {
    printf "make_stubs.awk: line %d is no name: %s\n", NR, $0 > "/dev/stderr"
    failed = 1
    exit 1
}

END {
    if (failed)
        exit 1
    print "    .section .data.rel.ro.local, \"aw\""
    print "    .p2align 3\n    .globl stub_names\n    .hidden stub_names\nstub_names:"
    for (i = 0; i < count; i++)
        printf "    .quad .Lname%d\n", i
    print "    .section .rodata.str1.1, \"aMS\", %progbits, 1"
    for (i = 0; i < count; i++)
        printf ".Lname%d: .string \"%s\"\n", i, names[i]
    print "    .data\n    .p2align 3\n    .globl stub_slots\n    .hidden stub_slots\nstub_slots:"
    for (i = 0; i < count; i++)
        printf "    .quad .Lfirst%d\n", i
    print "    .section .rodata\n    .p2align 2\n    .globl stub_count\n    .hidden stub_count\nstub_count:"
    printf "    .long %d\n", count
    print "    .section .note.GNU-stack, \"\", %progbits"
}
