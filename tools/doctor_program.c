/* A program and its environment.  Uses tools/program_look.h. */
#include "tools/doctor.h"

#include "tools/program_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the environment ----------------------------------------------------------------------------------------------- */

/* Variables of frameworks that decide what can be seen. */
static const struct {
    const char *name, *value; /* value NULL: any but "" and "0" */
    const char *text, *remedy;
} doctor_variables[] = {
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", NULL, "PyTorch caches nothing: each tensor is an allocation of the driver", NULL},
    {"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync",
     "PyTorch leaves caching to the driver: tensors are seen as stream-ordered allocations", NULL},
    {"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync",
     "PyTorch leaves caching to the driver: tensors are seen as stream-ordered allocations", NULL},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "true", "JAX takes most of the GPU at its start; what it does inside is not seen",
     "XLA_PYTHON_CLIENT_PREALLOCATE=false, or XLA_PYTHON_CLIENT_ALLOCATOR=platform to see every array"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "platform", "JAX caches nothing: each array is an allocation of the driver", NULL},
    {"NVTX_INJECTION64_PATH", NULL, "NVTX ranges go to another tool",
     "unset NVTX_INJECTION64_PATH to have them recorded"},
};

static bool is_set(const char *value)
{
    return value && *value && strcmp(value, "0") != 0;
}

static void look_at_preloads(struct doctor *doctor, const char *list)
{
    while (list && *list) {
        size_t length = strcspn(list, ": ");
        const char *end = list + length, *name = list;
        for (const char *c = list; c < end; c++)
            name = *c == '/' ? c + 1 : name;
        bool is_ours = (size_t)(end - name) > 11 && strncmp(name, "libcudamem-", 11) == 0;
        if (length)
            doctor_say(doctor, DOCTOR_NOTE, "LD_PRELOAD", is_ours ? "do not record within a recording" : NULL,
                       is_ours ? "%.*s: this shell is being recorded itself" : "%.*s is kept, behind the recorder",
                       (int)length, list);
        list = end + (*end != 0);
    }
}

/* The list ends at the first that is none: empty, or with one below 0 in front, it has no GPU. */
static void look_at_visible(struct doctor *doctor)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    if (list && (!*list || *list == '-'))
        doctor_say(doctor, DOCTOR_NOTE, "environment", "unset CUDA_VISIBLE_DEVICES",
                   "CUDA_VISIBLE_DEVICES is %s: the program is shown no GPU", *list ? list : "empty");
}

void doctor_environment(struct doctor *doctor)
{
    if (is_set(getenv("CUDAMEM_DISABLE")))
        doctor_say(doctor, DOCTOR_BAD, "environment", "unset CUDAMEM_DISABLE",
                   "CUDAMEM_DISABLE is set: nothing is recorded");
    look_at_preloads(doctor, getenv("LD_PRELOAD"));
    look_at_visible(doctor);
    for (size_t i = 0; i < sizeof(doctor_variables) / sizeof(doctor_variables[0]); i++) {
        const char *value = getenv(doctor_variables[i].name), *wanted = doctor_variables[i].value;
        if (value && strstr(value, "/libcudamem-")) /* a recording's own */
            continue;
        if (wanted ? value && strstr(value, wanted) != NULL : is_set(value))
            doctor_say(doctor, DOCTOR_NOTE, "environment", doctor_variables[i].remedy, "%s is %s: %s",
                       doctor_variables[i].name, value, doctor_variables[i].text);
    }
}

/* --- the program --------------------------------------------------------------------------------------------------- */

static bool say_not_found(struct doctor *doctor, const char *program, const struct program_facts *facts)
{
    switch (facts->found) {
    case PROGRAM_MISSING:
        doctor_say(doctor, DOCTOR_BAD, "program", "name it by its path, or add its folder to PATH", "%s: not found", program);
        return true;
    case PROGRAM_NOT_EXECUTABLE:
        doctor_say(doctor, DOCTOR_BAD, "program", "chmod +x, or name its interpreter: python train.py",
                   "%s: not an executable file", facts->path);
        return true;
    case PROGRAM_NO_INTERPRETER:
        doctor_say(doctor, DOCTOR_BAD, "program", "correct its first line, or name the interpreter",
                   "%s: its interpreter %s cannot be run", facts->path, facts->interpreter);
        return true;
    case PROGRAM_CIRCLE:
        doctor_say(doctor, DOCTOR_BAD, "program", "correct its first line, or name the interpreter",
                   "%s: its interpreter is a script whose interpreter is a script, and so on without end", facts->path);
        return true;
    default:
        return false;
    }
}

static const char *remedy_of(const struct program_facts *facts)
{
    if (facts->rights == RIGHTS_CAPABILITIES)
        return "record a copy without file capabilities (cp drops them), as a user who has the rights";
    if (facts->rights != RIGHTS_PLAIN)
        return "record a copy without the set-user-id bit (cp drops it), as a user who has the rights";
    if (facts->is_other_machine)
        return "use a cudamem built for that machine";
    return "link it dynamically (without -static); the CUDA runtime in it may stay static";
}

static void look_at_runtime(struct doctor *doctor, const struct program_facts *facts)
{
    if (facts->runtime[0])
        doctor_say(doctor, DOCTOR_OK, "runtime", NULL, "CUDA's runtime, shared: %s", facts->runtime);
    if (facts->holds_runtime)
        doctor_say(doctor, DOCTOR_OK, "runtime", NULL, "CUDA's runtime is linked in statically; its calls are seen all the same");
    if (facts->needs_driver)
        doctor_say(doctor, DOCTOR_OK, "runtime", NULL, "linked with the driver (libcuda.so.1)");
    if (facts->names_driver && !facts->holds_runtime)
        doctor_say(doctor, DOCTOR_OK, "runtime", NULL, "it opens the driver itself (dlopen)");
    if (!facts->runtime[0] && !facts->holds_runtime && !facts->needs_driver && !facts->names_driver)
        doctor_say(doctor, DOCTOR_OK, "runtime", NULL,
                   "none in the program itself; libraries that it loads and programs that it starts are recorded");
}

static void look_at_debug(struct doctor *doctor, const struct program_facts *facts)
{
    static const char keep[] = "build with -g, or set DEBUGINFOD_URLS to a server that has its debug information";
    bool may_be_elsewhere = facts->has_link || (facts->has_build_id && is_set(getenv("DEBUGINFOD_URLS")));
    if (facts->has_lines)
        doctor_say(doctor, DOCTOR_OK, "stacks", NULL, "debug information is there: functions, files and lines");
    else if (may_be_elsewhere)
        doctor_say(doctor, DOCTOR_OK, "stacks", NULL, "debug information stands in a file of its own, if that can be found");
    else if (facts->has_symbols)
        doctor_say(doctor, DOCTOR_NOTE, "stacks", keep, "functions have names, files and lines are not known");
    else
        doctor_say(doctor, DOCTOR_NOTE, "stacks", keep, "it is stripped: only exported functions have names");
    if (!facts->has_unwind)
        doctor_say(doctor, DOCTOR_NOTE, "stacks", "do not build with -fno-asynchronous-unwind-tables",
                   "there is no unwind information (.eh_frame): native stacks end in the program");
}

static void look_at_python(struct doctor *doctor, const struct program_facts *facts)
{
    int minor = facts->python_minor;
    if (!facts->python_major)
        return;
    if (facts->is_free_threaded || facts->is_debug_python)
        doctor_say(doctor, DOCTOR_NOTE, "python", "use a plain build of CPython",
                   "Python %d.%d, %s: no Python frames, native ones are recorded", facts->python_major, minor,
                   facts->is_free_threaded ? "free-threaded" : "a debug build");
    else if (facts->python_major != 3 || minor < 9 || minor > 14)
        doctor_say(doctor, DOCTOR_NOTE, "python", "use CPython 3.9 to 3.14",
                   "Python %d.%d: no Python frames, native ones are recorded", facts->python_major, minor);
    else
        doctor_say(doctor, DOCTOR_OK, "python", NULL, "Python %d.%d: Python frames are recorded", facts->python_major, minor);
}

static bool is_shell(const char *file)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ksh", "zsh", "busybox"};
    const char *slash = strrchr(file, '/');
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(slash ? slash + 1 : file, shells[i]) == 0)
            return true;
    return false;
}

void doctor_program(struct doctor *doctor, const char *program)
{
    struct program_facts facts;
    program_look(program, &facts);
    if (say_not_found(doctor, program, &facts))
        return;
    const char *bar = program_bar(&facts);
    if (bar) {
        doctor_say(doctor, DOCTOR_BAD, "program", remedy_of(&facts), "%s cannot be recorded: %s", facts.file, bar);
        return;
    }
    if (facts.interpreter[0])
        doctor_say(doctor, DOCTOR_OK, "program", NULL, "%s, run by %s", facts.path, facts.file);
    else
        doctor_say(doctor, DOCTOR_OK, "program", NULL, "%s", facts.file);
    if (!facts.is_elf)
        return;
    if (facts.interpreter[0] && is_shell(facts.file)) {
        doctor_say(doctor, DOCTOR_NOTE, "program", "cudamem doctor with the program that it starts",
                   "it is a script of the shell: the programs that it starts are recorded, and not looked at here");
        return;
    }
    look_at_runtime(doctor, &facts);
    look_at_debug(doctor, &facts);
    look_at_python(doctor, &facts);
}
