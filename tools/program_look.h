/*
 * What can be said of a program by looking at its file, without running it: can anything be injected, where is its CUDA,
 * what will its stacks say.  A script stands for its interpreter.  Every offset in the file is checked.
 */
#ifndef TOOLS_PROGRAM_LOOK_H
#define TOOLS_PROGRAM_LOOK_H

#include <limits.h>
#include <stdbool.h>

enum program_found {
    PROGRAM_FOUND,
    PROGRAM_MISSING,
    PROGRAM_NOT_EXECUTABLE, /* a folder, or without the right */
    PROGRAM_NO_INTERPRETER, /* a script whose interpreter is not there: `interpreter` */
    PROGRAM_CIRCLE,         /* scripts that are run by scripts, without end */
};

enum program_rights { RIGHTS_PLAIN, RIGHTS_OF_OTHERS /* set-user-id, set-group-id */, RIGHTS_CAPABILITIES };

struct program_facts {
    enum program_found found;
    char path[PATH_MAX];        /* as execvp would take it */
    char file[PATH_MAX];        /* what is loaded: links followed; of a script its interpreter */
    char interpreter[PATH_MAX]; /* of a script, as its first line names it; else "" */
    enum program_rights rights; /* of what is loaded */
    bool is_elf;                /* all below is known only then */
    bool is_other_machine;      /* or word size */
    bool is_static;
    char runtime[64];           /* DT_NEEDED libcudart.so.N, else "" */
    bool needs_driver;          /* DT_NEEDED libcuda.so.1 */
    bool holds_runtime;         /* the static runtime is in it */
    bool names_driver;          /* says libcuda.so somewhere: it opens the driver itself */
    bool has_build_id, has_symbols, has_lines, has_link, has_unwind;
    int python_major, python_minor; /* 0: no Python */
    bool is_free_threaded, is_debug_python;
};

/* program as execvp takes it. */
void program_look(const char *program, struct program_facts *facts);

/* Why it cannot be recorded; NULL if nothing speaks against it, or nothing is known. */
const char *program_bar(const struct program_facts *facts);

#endif
