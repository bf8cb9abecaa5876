/* The cudamem command: the list of commands, and the way to one of them. */
#include "base/output.h"
#include "tools/command.h"
#include "tools/help.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAIN_STACK ((size_t)8 << 20)

#define COMMAND(name) extern const struct command command_##name;
#include "tools/commands.h"
#undef COMMAND

#define COMMAND(name) &command_##name,
const struct command *const commands[] = {
#include "tools/commands.h"
};
#undef COMMAND
const size_t command_count = sizeof(commands) / sizeof(commands[0]);

/* A file that we open must not become standard output because that was closed: writing there shall fail instead. */
static void main_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
            return;
}

static int main_unknown(const char *word)
{
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; i < command_count && count < 64; i++)
        names[count++] = commands[i]->name;
    const char *nearest = options_nearest(word, names, count);
    if (word[0] == '-')
        command_note("unknown option %s; options follow the command: cudamem COMMAND [OPTIONS] (cudamem help lists the "
                     "commands)", word);
    else if (nearest)
        command_note("unknown command %s; did you mean %s? (cudamem help lists them)", word, nearest);
    else
        command_note("unknown command %s (cudamem help lists them)", word);
    return EXIT_USAGE;
}

static int main_command(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        struct text text = {0};
        help_commands_text(&text);
        fputs(text_string(&text), stderr);
        text_free(&text);
        return EXIT_USAGE;
    }
    if (strcmp(word, "-h") == 0)
        word = "help";
    if (strcmp(word, "--help") == 0)
        return help_page(NULL);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    const struct command *command = command_find(word);
    if (!command)
        return main_unknown(word);

    struct command_line line;
    int status = options_parse(command, argc - 1, argv + 1, &line);
    if (status)
        return status;
    if (line.help_page)
        status = help_page(command);
    else if (line.help_short)
        status = help_screen(command);
    else
        status = command->run(&line);
    options_free(&line);
    return status;
}

struct main_call {
    int argc, status;
    char **argv;
    sigset_t mask;
};

static void *main_on_thread(void *context)
{
    struct main_call *call = context;
    pthread_sigmask(SIG_SETMASK, &call->mask, NULL);
    call->status = main_command(call->argc, call->argv);
    return NULL;
}

/* A limit on the stack is for the program that is recorded; readers of names and traces need more than some have left.
 * Signals are the thread's. */
static int main_with_room(int argc, char **argv)
{
    struct main_call call = {.argc = argc, .argv = argv};
    struct rlimit limit;
    pthread_attr_t attributes;
    pthread_t thread;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= MAIN_STACK || pthread_attr_init(&attributes))
        return main_command(argc, argv);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &call.mask);
    bool has_thread = !pthread_attr_setstacksize(&attributes, MAIN_STACK) &&
                      !pthread_create(&thread, &attributes, main_on_thread, &call);
    pthread_attr_destroy(&attributes);
    if (has_thread)
        pthread_join(thread, NULL);
    else
        main_on_thread(&call);
    return call.status;
}

int main(int argc, char **argv)
{
    main_standard_files();
    return main_with_room(argc, argv);
}
