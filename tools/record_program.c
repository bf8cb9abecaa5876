/* Can anything be injected into this program?  Uses the C library. */
#include "tools/record_program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define PROGRAM_MACHINE EM_X86_64
#else
#define PROGRAM_MACHINE EM_AARCH64
#endif

/* As execvp would, for what was found. */
static bool find_program(const char *program, char path[PATH_MAX])
{
    if (strchr(program, '/'))
        return snprintf(path, PATH_MAX, "%s", program) < PATH_MAX;
    const char *list = getenv("PATH");
    while (list && *list) {
        size_t length = strcspn(list, ":");
        int written = snprintf(path, PATH_MAX, "%.*s%s%s", (int)(length < PATH_MAX ? length : 0), list,
                               length ? "/" : "", program);
        if (written > 0 && written < PATH_MAX && access(path, X_OK) == 0)
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

/* Does a 64-bit program name the dynamic linker?  The linker itself, run by name, does not and yet is one. */
static bool is_linked_statically(int fd, const Elf64_Ehdr *header)
{
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == PN_XNUM)
        return false;
    bool dynamic = false;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr part;
        if (pread(fd, &part, sizeof(part), (off_t)(header->e_phoff + i * sizeof(part))) != (ssize_t)sizeof(part) ||
            part.p_type == PT_INTERP)
            return false;
        dynamic |= part.p_type == PT_DYNAMIC;
    }
    return header->e_type == ET_EXEC || !dynamic;
}

static const char *bar_of_elf(int fd)
{
    Elf64_Ehdr header;
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return NULL;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != PROGRAM_MACHINE)
        return "it is a program for another machine or word size than the recorder";
    return is_linked_statically(fd, &header) ? "it is statically linked" : NULL;
}

const char *record_program_bar(const char *program)
{
    char path[PATH_MAX];
    struct stat facts;
    if (!find_program(program, path) || stat(path, &facts) || !S_ISREG(facts.st_mode))
        return NULL;
    if (((facts.st_mode & S_ISUID) && facts.st_uid != getuid()) || ((facts.st_mode & S_ISGID) && facts.st_gid != getgid()))
        return "it runs with more rights than its user";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    const char *bar = bar_of_elf(fd);
    close(fd);
    return bar;
}
