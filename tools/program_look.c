/* Looking at a program's file.  Uses the C library. */
#include "tools/program_look.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define LOOK_MACHINE EM_X86_64
#else
#define LOOK_MACHINE EM_AARCH64
#endif
#define LOOK_SCRIPTS 5 /* interpreters that are scripts themselves, as the kernel allows */

/* A file's bytes, and where its parts are. */
struct image {
    const unsigned char *bytes;
    size_t length;
    const Elf64_Ehdr *header;
};

/* --- which file ---------------------------------------------------------------------------------------------------- */

/* As execvp would: the first that may be run; else the first that is there. */
static bool find_program(const char *program, char path[PATH_MAX])
{
    char candidate[PATH_MAX];
    bool found = false;
    if (!*program)
        return false;
    if (strchr(program, '/'))
        return snprintf(path, PATH_MAX, "%s", program) < PATH_MAX && access(path, F_OK) == 0;
    const char *list = getenv("PATH");
    while (list && *list) {
        size_t length = strcspn(list, ":");
        int written = snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)(length < PATH_MAX ? length : 0), list,
                               length ? "/" : "", program);
        if (written > 0 && written < PATH_MAX && access(candidate, found ? X_OK : F_OK) == 0) {
            memcpy(path, candidate, (size_t)written + 1);
            found = true;
            if (access(path, X_OK) == 0)
                return true;
        }
        list += length + (list[length] == ':');
    }
    return found;
}

static bool can_run(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

/* The words of "#!INTERPRETER [ARGUMENT]"; false: it is no script. */
static bool read_script(const char *path, char interpreter[PATH_MAX], char argument[PATH_MAX])
{
    char line[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    if (fd >= 0)
        close(fd);
    if (length < 2 || memcmp(line, "#!", 2) != 0)
        return false;
    line[length] = 0;
    line[strcspn(line, "\r\n")] = 0;
    char *word = line + 2 + strspn(line + 2, " \t");
    size_t size = strcspn(word, " \t");
    snprintf(interpreter, PATH_MAX, "%.*s", (int)size, word);
    word += size + strspn(word + size, " \t");
    snprintf(argument, PATH_MAX, "%s", word);
    return interpreter[0] != 0;
}

/* `env [-S] [NAME=VALUE...] PROGRAM ...`: the program. */
static bool word_of_env(const char *argument, char program[PATH_MAX])
{
    for (;;) {
        size_t size = strcspn(argument, " \t");
        if (!size)
            return false;
        if (argument[0] != '-' && !memchr(argument, '=', size)) {
            snprintf(program, PATH_MAX, "%.*s", (int)size, argument);
            return true;
        }
        argument += size + strspn(argument + size, " \t");
    }
}

/* From the program to the file that the kernel loads. */
static enum program_found find_file(const char *program, struct program_facts *facts)
{
    char path[PATH_MAX], interpreter[PATH_MAX], argument[PATH_MAX];
    if (!find_program(program, facts->path))
        return PROGRAM_MISSING;
    if (!can_run(facts->path))
        return PROGRAM_NOT_EXECUTABLE;
    memcpy(path, facts->path, sizeof(path));
    for (int i = 0; read_script(path, interpreter, argument); i++) {
        if (i == LOOK_SCRIPTS)
            return PROGRAM_CIRCLE;
        const char *slash = strrchr(interpreter, '/');
        bool is_env = strcmp(slash ? slash + 1 : interpreter, "env") == 0;
        char word[PATH_MAX];
        memcpy(word, interpreter, sizeof(word));
        if (is_env && !word_of_env(argument, word))
            memcpy(word, interpreter, sizeof(word));
        memcpy(facts->interpreter, word, sizeof(word));
        if (!find_program(word, path) || !can_run(path))
            return PROGRAM_NO_INTERPRETER;
    }
    if (!realpath(path, facts->file))
        memcpy(facts->file, path, sizeof(path));
    return PROGRAM_FOUND;
}

static enum program_rights rights_of(const char *file)
{
    struct stat facts;
    if (stat(file, &facts))
        return RIGHTS_PLAIN;
    if (((facts.st_mode & S_ISUID) && facts.st_uid != getuid()) || ((facts.st_mode & S_ISGID) && facts.st_gid != getgid()))
        return RIGHTS_OF_OTHERS;
    return getuid() != 0 && getxattr(file, "security.capability", NULL, 0) > 0 ? RIGHTS_CAPABILITIES : RIGHTS_PLAIN;
}

/* --- what is in it ------------------------------------------------------------------------------------------------- */

static bool fits(const struct image *image, uint64_t offset, uint64_t size)
{
    return offset <= image->length && size <= image->length - offset;
}

static const Elf64_Phdr *program_parts(const struct image *image, unsigned *count)
{
    const Elf64_Ehdr *header = image->header;
    *count = header->e_phnum == PN_XNUM ? 0 : header->e_phnum;
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff % 8 ||
        !fits(image, header->e_phoff, (uint64_t)*count * sizeof(Elf64_Phdr)))
        *count = 0;
    return (const Elf64_Phdr *)(const void *)(image->bytes + (*count ? header->e_phoff : 0));
}

/* Where an address of the loaded program lies in the file, and how much follows; 0: nowhere. */
static uint64_t file_offset(const struct image *image, uint64_t address, uint64_t *left)
{
    unsigned count;
    const Elf64_Phdr *parts = program_parts(image, &count);
    for (unsigned i = 0; i < count; i++)
        if (parts[i].p_type == PT_LOAD && address >= parts[i].p_vaddr && address - parts[i].p_vaddr < parts[i].p_filesz &&
            fits(image, parts[i].p_offset, parts[i].p_filesz)) {
            *left = parts[i].p_filesz - (address - parts[i].p_vaddr);
            return parts[i].p_offset + (address - parts[i].p_vaddr);
        }
    return 0;
}

static void take_needed(const char *name, struct program_facts *facts)
{
    if (strncmp(name, "libcudart.so", 12) == 0)
        snprintf(facts->runtime, sizeof(facts->runtime), "%.60s", name);
    else if (strncmp(name, "libcuda.so", 10) == 0)
        facts->needs_driver = true;
    else if (!facts->python_major && sscanf(name, "libpython%d.%d", &facts->python_major, &facts->python_minor) == 2)
        facts->is_free_threaded = strstr(name, "t.so") != NULL;
}

static void read_dynamic(const struct image *image, const Elf64_Phdr *part, struct program_facts *facts)
{
    if (part->p_offset % 8 || !fits(image, part->p_offset, part->p_filesz))
        return;
    const Elf64_Dyn *list = (const Elf64_Dyn *)(const void *)(image->bytes + part->p_offset);
    size_t count = part->p_filesz / sizeof(*list);
    uint64_t strings = 0, left = 0;
    for (size_t i = 0; i < count && list[i].d_tag != DT_NULL; i++)
        if (list[i].d_tag == DT_STRTAB)
            strings = file_offset(image, list[i].d_un.d_ptr, &left);
    for (size_t i = 0; i < count && strings && list[i].d_tag != DT_NULL; i++) {
        uint64_t place = list[i].d_un.d_val;
        if (list[i].d_tag != DT_NEEDED || place >= left)
            continue;
        const char *name = (const char *)image->bytes + strings + place;
        if (memchr(name, 0, left - place))
            take_needed(name, facts);
    }
}

/* The linker itself, run by name, names no linker and yet is one. */
static void read_parts(const struct image *image, struct program_facts *facts)
{
    unsigned count;
    const Elf64_Phdr *parts = program_parts(image, &count);
    bool has_linker = false, is_dynamic = false;
    for (unsigned i = 0; i < count; i++) {
        has_linker |= parts[i].p_type == PT_INTERP;
        facts->has_unwind |= parts[i].p_type == PT_GNU_EH_FRAME && parts[i].p_filesz > 8;
        if (parts[i].p_type == PT_DYNAMIC) {
            is_dynamic = true;
            read_dynamic(image, &parts[i], facts);
        }
    }
    facts->is_static = count && !has_linker && (image->header->e_type == ET_EXEC || !is_dynamic);
}

static void read_sections(const struct image *image, struct program_facts *facts)
{
    const Elf64_Ehdr *header = image->header;
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % 8 ||
        !fits(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)) ||
        header->e_shstrndx >= header->e_shnum)
        return;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(image->bytes + header->e_shoff);
    const Elf64_Shdr *names = &sections[header->e_shstrndx];
    if (!fits(image, names->sh_offset, names->sh_size))
        return;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        const char *name = (const char *)image->bytes + names->sh_offset + sections[i].sh_name;
        if (sections[i].sh_name >= names->sh_size || !memchr(name, 0, names->sh_size - sections[i].sh_name))
            continue;
        facts->has_symbols |= sections[i].sh_type == SHT_SYMTAB;
        facts->has_lines |= strcmp(name, ".debug_line") == 0 || strcmp(name, ".zdebug_line") == 0;
        facts->has_link |= strcmp(name, ".gnu_debuglink") == 0;
        facts->has_build_id |= strcmp(name, ".note.gnu.build-id") == 0;
    }
}

static bool says(const struct image *image, const char *text)
{
    return memmem(image->bytes, image->length, text, strlen(text) + 1) != NULL;
}

/* The static runtime registers the program's kernels by a function of its own, and asks the driver for its functions. */
static void read_texts(const struct image *image, struct program_facts *facts)
{
    facts->names_driver = !facts->needs_driver && (says(image, "libcuda.so.1") || says(image, "libcuda.so"));
    facts->holds_runtime = !facts->runtime[0] && facts->names_driver &&
                           (says(image, "cuGetProcAddress_v2") || says(image, "cuGetProcAddress")) &&
                           (says(image, "cudaMalloc") || says(image, "cudart") || says(image, "__cudaRegisterFatBinary"));
}

/* "python3.12", "python3.13t", "python3.11-dbg" */
static void read_python(struct program_facts *facts)
{
    const char *name = strrchr(facts->file, '/');
    int major, minor, length = 0;
    name = name ? name + 1 : facts->file;
    if (sscanf(name, "python%d.%d%n", &major, &minor, &length) != 2)
        return;
    facts->python_major = major;
    facts->python_minor = minor;
    facts->is_free_threaded = name[length] == 't';
    facts->is_debug_python = name[length] == 'd' || strstr(name + length, "dbg") != NULL;
}

static void read_image(const struct image *image, struct program_facts *facts)
{
    if (image->length < EI_NIDENT + 4 || memcmp(image->bytes, ELFMAG, SELFMAG) != 0)
        return;
    facts->is_elf = true;
    facts->is_other_machine = image->bytes[EI_CLASS] != ELFCLASS64 || image->length < sizeof(Elf64_Ehdr) ||
                              image->header->e_machine != LOOK_MACHINE;
    if (facts->is_other_machine)
        return;
    read_parts(image, facts);
    read_sections(image, facts);
    read_texts(image, facts);
    read_python(facts);
}

void program_look(const char *program, struct program_facts *facts)
{
    struct stat about;
    memset(facts, 0, sizeof(*facts));
    facts->found = find_file(program, facts);
    if (facts->found != PROGRAM_FOUND)
        return;
    facts->rights = rights_of(facts->file);
    int fd = open(facts->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        struct image image = {.length = (size_t)about.st_size};
        void *bytes = mmap(NULL, image.length, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            image.bytes = bytes;
            image.header = bytes;
            read_image(&image, facts);
            munmap(bytes, image.length);
        }
    }
    close(fd);
}

const char *program_bar(const struct program_facts *facts)
{
    if (facts->found != PROGRAM_FOUND)
        return NULL;
    if (facts->rights != RIGHTS_PLAIN)
        return "it runs with more rights than its user";
    if (facts->is_elf && facts->is_other_machine)
        return "it is a program for another machine or word size than the recorder";
    return facts->is_elf && facts->is_static ? "it is statically linked" : NULL;
}
