/* Finding and showing manual pages.  Uses base/output and base/text; runs man or mandoc. */
#include "tools/help.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void help_commands_text(struct text *text)
{
    text_add(text, "usage: cudamem COMMAND [OPTIONS] [FILE[@MOMENT]...]\n\n");
    for (size_t i = 0; i < command_count; i++)
        text_printf(text, "  %-12s%s\n", commands[i]->name, commands[i]->summary);
    text_add(text, "\nFILE is a snapshot.bin, a PyTorch snapshot pickle, a ring file or an RMM log; snapshot.bin by default.\n"
                   "cudamem COMMAND -h shows a command's options, cudamem help COMMAND its manual page.\n");
}

int help_commands(void)
{
    struct error err = {0};
    struct output *output;
    struct text text = {0};
    if (output_open(NULL, &output, &err))
        return command_error(NULL, &err);
    help_commands_text(&text);
    output_text(output, text_string(&text));
    text_free(&text);
    return command_close_output(output, EXIT_DONE);
}

int help_screen(const struct command *command)
{
    struct error err = {0};
    struct output *output;
    if (output_open(NULL, &output, &err))
        return command_error(NULL, &err);
    options_help(command, output);
    return command_close_output(output, EXIT_DONE);
}

/* The page beside the program: build tree (tools/ and man/ are neighbours) or installed (bin/ and share/man/). */
static bool help_find(const char *name, const char *section, char path[PATH_MAX])
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length <= 0)
        return false;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return false;
    *slash = '\0';
    static const char *const places[] = {"%s/../man/%s.%s", "%s/../share/man/man%s/%s.%s"};
    for (int packed = 0; packed < 2; packed++) {
        int built = snprintf(path, PATH_MAX, places[0], program, name, section);
        if (!packed && built > 0 && built < PATH_MAX && access(path, R_OK) == 0)
            return true;
        built = snprintf(path, PATH_MAX - 3, places[1], program, section, name, section);
        if (built > 0 && built < PATH_MAX - 3) {
            if (packed)
                strcat(path, ".gz");
            if (access(path, R_OK) == 0)
                return true;
        }
    }
    return false;
}

/* Run a program; its output goes to `to` (-1: ours).  True if it ran and succeeded. */
static bool help_run(char *const argv[], int to, pid_t *running)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    if (posix_spawn_file_actions_init(&actions))
        return false;
    if (to >= 0) {
        posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return false;
    if (running) {
        *running = pid;
        return true;
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Bold and underlined text comes as letter, backspace, letter: keep the last letter. */
static void help_plain(struct text *page)
{
    size_t to = 0;
    for (size_t at = 0; at < page->length; at++) {
        char c = page->bytes[at];
        if (c != '\b') {
            page->bytes[to++] = c;
            continue;
        }
        while (to && (page->bytes[to - 1] & 0xc0) == 0x80) /* the rest of a character of several bytes */
            to--;
        if (to)
            to--;
    }
    page->length = to;
}

/* Run the formatter, and copy what it writes, made plain. */
static bool help_copy(char *const argv[])
{
    int ends[2], status = 1;
    pid_t pid;
    struct text page = {0};
    if (pipe2(ends, O_CLOEXEC))
        return false;
    bool ran = help_run(argv, ends[1], &pid);
    close(ends[1]);
    while (ran) {
        char some[4096];
        ssize_t got = read(ends[0], some, sizeof(some));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        text_append(&page, some, (size_t)got);
    }
    close(ends[0]);
    while (ran && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    bool good = ran && WIFEXITED(status) && WEXITSTATUS(status) == 0 && page.length && !text_failed(&page);
    struct output *output;
    if (good && output_open(NULL, &output, NULL) == 0) {
        help_plain(&page);
        output_write(output, page.bytes, page.length);
        command_close_output(output, EXIT_DONE);
    }
    text_free(&page);
    return good;
}

bool help_show(const char *name, const char *section)
{
    char path[PATH_MAX], whole[256];
    bool found = help_find(name, section, path);
    snprintf(whole, sizeof(whole), "%s", name);
    char *page = found ? path : whole;
    char man[] = "man", pager[] = "-P", cat[] = "cat", mandoc[] = "mandoc", form[] = "-Tutf8", local[] = "-l";
    if (isatty(STDOUT_FILENO)) {
        char *with_man[] = {man, found ? local : page, found ? page : NULL, NULL};
        if (help_run(with_man, -1, NULL))
            return true;
    }
    char *with_mandoc[] = {mandoc, form, page, NULL};
    if (found && help_copy(with_mandoc))
        return true;
    char *with_cat[] = {man, pager, cat, found ? local : page, found ? page : NULL, NULL};
    return help_copy(with_cat);
}

int help_page(const struct command *command)
{
    char name[128] = "cudamem";
    if (command)
        snprintf(name, sizeof(name), "cudamem-%s", command->name);
    if (help_show(name, "1"))
        return EXIT_DONE;
    if (command)
        return help_screen(command);
    return help_commands();
}
