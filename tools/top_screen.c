/* A terminal that is drawn again and again.  Uses the C library. */
#include "tools/top_screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const int screen_ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define SCREEN_ENDS (sizeof(screen_ends) / sizeof(screen_ends[0]))

static volatile sig_atomic_t screen_signal; /* the one that ends it, 0: none */
static volatile sig_atomic_t screen_resized;
static struct termios screen_before;
static bool screen_has_keys;

static void screen_note(int number)
{
    if (number == SIGWINCH)
        screen_resized = 1;
    else
        screen_signal = number;
}

static void screen_write(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = write(STDOUT_FILENO, bytes, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) { /* nobody looks any more */
            if (!screen_signal)
                screen_signal = SIGPIPE;
            return;
        }
        bytes += count;
        length -= (size_t)count;
    }
}

static void screen_text(const char *text)
{
    screen_write(text, strlen(text));
}

void screen_enter(void)
{
    struct sigaction action;
    struct termios keys;
    memset(&action, 0, sizeof(action));
    action.sa_handler = screen_note; /* without SA_RESTART: the wait ends */
    for (size_t i = 0; i < SCREEN_ENDS; i++)
        sigaction(screen_ends[i], &action, NULL);
    sigaction(SIGWINCH, &action, NULL);
    screen_has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen_before) == 0;
    if (screen_has_keys) {
        keys = screen_before;
        keys.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
        keys.c_cc[VMIN] = 0;
        keys.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    screen_text("\033[?1049h\033[?25l");
}

void screen_leave(void)
{
    int number = screen_signal;
    screen_text("\033[?25h\033[?1049l");
    if (screen_has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &screen_before);
    screen_has_keys = false;
    for (size_t i = 0; i < SCREEN_ENDS; i++)
        signal(screen_ends[i], SIG_DFL);
    signal(SIGWINCH, SIG_DFL);
    if (number)
        raise(number);
}

static struct winsize screen_size(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    return size;
}

unsigned screen_width(void)
{
    return screen_size().ws_col;
}

void screen_draw(const char *text, size_t length)
{
    unsigned rows = screen_size().ws_row;
    screen_text("\033[H");
    for (unsigned row = 0; row + 1 < rows && length > 0; row++) {
        const char *end = memchr(text, '\n', length);
        size_t line = end ? (size_t)(end - text) : length;
        screen_write(text, line);
        screen_text("\033[K\r\n");
        line += end != NULL;
        text += line;
        length -= line;
    }
    screen_text("\033[J");
}

static int64_t screen_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Keys that came: is q among them? */
static bool screen_quits(void)
{
    char keys[64];
    ssize_t count = read(STDIN_FILENO, keys, sizeof(keys));
    if (count == 0) /* the terminal is gone */
        screen_has_keys = isatty(STDIN_FILENO);
    for (ssize_t i = 0; i < count; i++)
        if (keys[i] == 'q' || keys[i] == 'Q')
            return true;
    return false;
}

bool screen_wait(unsigned seconds)
{
    int64_t end = screen_clock() + (int64_t)seconds * 1000;
    for (;;) {
        int64_t left = end - screen_clock();
        struct pollfd keys = {.fd = screen_has_keys ? STDIN_FILENO : -1, .events = POLLIN};
        if (screen_signal)
            return false;
        if (left <= 0 || screen_resized)
            break;
        if (poll(&keys, 1, (int)left) > 0 && screen_quits())
            return false;
    }
    screen_resized = 0;
    return true;
}
