/*
 * embed LIBRARY: a program that is not Python's takes memory, loads an interpreter into a scope of its own, takes memory
 * from its scripts, ends it, takes memory, unloads it, and takes memory again.
 *
 * Prints "frames SIZE" and what they should be, as device.py does, and "none SIZE" where no script runs.
 */
#include "driver_open.h"

#include <stdint.h>

static void take(size_t size)
{
    CUdeviceptr address;
    CHECK(DRIVER(cuMemAlloc_v2)(&address, size));
    printf("none %zu\n", size);
    fflush(stdout);
}

static void *library;

static void *function_of(const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        printf("no %s\n", name);
        exit(97);
    }
    return function;
}
#define PYTHON(type, name, ...) ((type)function_of(name))(__VA_ARGS__)

/* Of Python's own interface, as much as a function for its scripts takes. */
struct method {
    const char *name;
    void *(*function)(void *self, void *argument);
    int flags;
    const char *text;
};
#define METH_O 8

static void *taken(void *self, void *argument)
{
    (void)self;
    CUdeviceptr address;
    CHECK(DRIVER(cuMemAlloc_v2)(&address, PYTHON(size_t (*)(void *), "PyLong_AsSize_t", argument)));
    return PYTHON(void *(*)(long), "PyLong_FromLong", 0);
}

static void run(const char *text)
{
    if (PYTHON(int (*)(const char *), "PyRun_SimpleString", text))
        exit(96);
}

/* Modules that are libraries of their own do not find an interpreter in a scope of its own: what is built in must do. */
static const char script[] =
    "import sys\n"
    "def show(size):\n"
    "    frame, text = sys._getframe(1), []\n"
    "    while frame:\n"
    "        text.append(f'{frame.f_code.co_filename}|{frame.f_lineno}|{frame.f_code.co_name}')\n"
    "        frame = frame.f_back\n"
    "    print('frames', size, ';'.join(text), flush=True)\n"
    "    return size\n"
    "def inner(size):\n"
    "    return taken(show(size))\n"
    "def outer(size):\n"
    "    return [inner(size), 0][1]\n"
    "outer(4 << 20)\n";

static void run_scripts(void)
{
    static struct method method = {"taken", taken, METH_O, NULL};
    void *function = PYTHON(void *(*)(struct method *, void *, void *), "PyCFunction_NewEx", &method, NULL, NULL);
    void *module = PYTHON(void *(*)(const char *), "PyImport_AddModule", "__main__");
    PYTHON(int (*)(void *, const char *, void *), "PyObject_SetAttrString", module, "taken", function);
    run(script);
    run("outer(5 << 20)\n");
}

int main(int count, char **arguments)
{
    CUcontext context;
    if (count != 2)
        return 2;
    CHECK(DRIVER(cuInit)(0));
    CHECK(DRIVER(cuCtxCreate_v2)(&context, 0, 0));
    take(1 << 20);
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 77;
    }
    take(2 << 20);
    PYTHON(void (*)(int), "Py_InitializeEx", 0);
    take(3 << 20);
    run_scripts();
    PYTHON(int (*)(void), "Py_FinalizeEx");
    take(6 << 20);
    dlclose(library);
    take(7 << 20);
    take(8 << 20);
    return 0;
}
